"""Counting values: unique elements, bincount, histograms. Nothing here has a derivative."""

from __future__ import annotations

import numpy as np

from pellucid.autograd.operator import Array, Index, composite, operator
from pellucid.autograd.operator import tensors as F
from pellucid.core.checks import require_kind
from pellucid.core.dims import one_dim
from pellucid.core.tensor import Tensor
from pellucid.kernels import counting as kernel
from pellucid.ops.batches import all_for_each, at_each_place, refuse_dynamic

__all__ = ["bincount", "histc", "histogram", "unique", "unique_consecutive"]


def _compared_dim(name: str, array: np.ndarray, dim: int) -> int:
    """The dimension whose slices are compared, counted from the front.

    Raises: IndexError (there is no such dimension), RuntimeError (the slices are empty).
    """
    if not array.ndim:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions: {name} needs slices to compare")
    dim = one_dim(dim, array.ndim)
    if array.shape.count(0) > 1:
        raise RuntimeError(f"{name}: Number of zero sized dimensions is more than one, so unique cannot be applied to {list(array.shape)}")
    if not array.size and array.shape[dim]:
        raise RuntimeError(f"{name}: There are 0 sized dimensions, and they aren't selected, so unique cannot be applied")
    return dim


def _declare(name: str, node: str, found) -> None:
    """Declare the raw form of a search for distinct values, `found(array)` or `found(array, dim)`: (values, inverse, counts)."""

    def forward(xp, input: Array, dim: int | None):
        dims = () if dim is None else (_compared_dim(name, input, dim),)
        values, inverse, counts = found(input, *dims)
        return xp.ascontiguousarray(values), xp.asarray(inverse, np.int64), xp.asarray(counts, np.int64)

    def vjp_input(F, grad):
        raise NotImplementedError(f"the derivative for '{name}' is not implemented.")

    members = {"forward": forward, "vjp_input": vjp_input, "__doc__": f"The raw form of {name}.", "__qualname__": name}
    outputs = ("output", "inverse_indices", "counts")
    operator(module=None, node=node, outputs=outputs, constant=outputs[1:], exact=True)(type(name, (), members))


_declare("_unique2", "Unique2Backward0", kernel.distinct)
_declare("unique_dim", "UniqueDimBackward0", kernel.distinct_slices)
_declare("unique_consecutive", "UniqueConsecutiveBackward0", kernel.runs)


def _asked(found, return_inverse: bool, return_counts: bool):
    """The values, and what else was asked for."""
    values, inverse, counts = found
    asked = (values, *((inverse,) if return_inverse else ()), *((counts,) if return_counts else ()))
    return asked if len(asked) > 1 else values


@composite(method=True)
def unique(input, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False, dim=None):
    """The distinct elements, or the distinct slices along `dim`, in ascending order. They have no derivative.

    input: [*S].
    sorted: as here they always are.
    return_inverse: also give for each element the index of its value, [*S] (or [S[dim]]).
    return_counts: also give how often each value occurs.
    dim: the dimension whose slices are compared; None for single elements.
    Returns a tensor, or a tuple of what was asked for.
    Raises: IndexError (a dimension that is not there), RuntimeError (empty slices), NotImplementedError (complex input;
        backward).
    """
    require_kind("unique", input._array, "fib")
    refuse_dynamic("unique", input)
    return _asked((F._unique2 if dim is None else F.unique_dim)(input, dim), return_inverse, return_counts)


@composite(method=True)
def unique_consecutive(input, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None):
    """The elements without those that equal the one before them; along `dim` the slices.

    Args, returns and errors as for `unique`, but nothing is sorted.
    """
    refuse_dynamic("unique_consecutive", input)
    return _asked(F.unique_consecutive(input, dim), return_inverse, return_counts)


# --- how often ---------------------------------------------------------------------------------------------------------
# For each place in the first `lead` dimensions by itself.


@operator(module=None, name="bincount")
class bincount_kernel:
    """The raw form of `bincount`."""

    def forward(xp, input: Index, weights: Index | None = None, minlength: int = 0, lead: int = 0):
        if input.ndim != 1 + lead or input.dtype.kind not in "iu" or (input.size and input.min() < 0):
            raise RuntimeError(
                f"bincount only supports 1-d non-negative integral inputs: got {input.dtype.name} of shape {list(input.shape[lead:])}"
            )
        if weights is not None and weights.shape != input.shape:
            raise RuntimeError(
                f"weights should be 1-d and have the same length as input: got {list(weights.shape[lead:])} and {list(input.shape[lead:])}"
            )
        largest = input.max(-1, initial=-1)
        if (largest != largest.max(initial=-1)).any() and largest.max() >= minlength:
            raise RuntimeError("vmap: bincount would give each example a result of another size. Pass a minlength that holds them all.")
        kind = np.int64 if weights is None else np.float32 if weights.dtype == np.float32 else np.float64
        if weights is None:
            return at_each_place(lead, lambda row: xp.bincount(row, None, minlength).astype(kind), input)
        counts = at_each_place(lead, lambda row, weight: xp.bincount(row, weight, minlength), input, weights.astype(np.float64))
        return counts.astype(kind)

    def batch(F, size_of_batch, batched, input, weights, minlength, lead):
        input, weights = all_for_each(F, batched, size_of_batch, input=input, weights=weights)
        return F.bincount(input, weights, minlength, lead + 1)


@composite(method=True)
def bincount(input, weights=None, minlength: int = 0):
    """How often each non-negative integer occurs, or the sum of the weights of its places.

    input: [N], integers; weights: [N]. Returns [max(input) + 1, at least minlength]: int64, with weights their dtype if
    that is float32, else float64.
    Raises: RuntimeError (negative values, another shape or dtype).
    """
    if minlength < 0:
        raise RuntimeError(f"minlength should be >= 0: got {minlength}")
    return bincount_kernel(input, weights, minlength)


def _counts(array: np.ndarray, bins: int, low: float, high: float) -> np.ndarray:
    """How many elements fall into each of equal intervals."""
    if low == high and array.size:
        low, high = float(array.min()), float(array.max())
    if low == high:
        low, high = low - 1, high + 1
    if not (np.isfinite(low) and np.isfinite(high)):
        raise RuntimeError(f"range of [{low}, {high}] is not finite")
    if low > high:
        raise RuntimeError(f"max must be larger than min: got {high} and {low}")
    return np.histogram(array[np.isfinite(array)], bins, (low, high))[0].astype(array.dtype)


@operator(module=None, name="histc")
class histc_kernel:
    """The raw form of `histc`."""

    def forward(xp, input: Array, bins: int, min: float, max: float, lead: int = 0):
        require_kind("histogram_cpu", input, "f")
        if bins <= 0:
            raise RuntimeError(f"torch.histogram(): bins must be > 0, but got {bins}")
        return at_each_place(lead, lambda row: _counts(row, bins, min, max), input)

    def batch(F, input, bins, min, max, lead): return F.histc(input, bins, min, max, lead + 1)

    def samples(make):
        if make.dtype.kind == "f":
            yield (make(3, 4), 5, 0, 0), {}


@composite(method=True)
def histc(input, bins: int = 100, min: float = 0, max: float = 0, *, out=None):
    """How many elements fall into each of `bins` equal intervals from `min` to `max`; elements outside are not counted.

    input: [*S], floating-point. With min == max the smallest and largest element are taken.
    Returns [bins], of the input's dtype.
    Raises: RuntimeError (no bins, bounds out of order or not finite, or integers).
    """
    return histc_kernel(input, bins, min, max, out=out)


def check_span(name: str, low: float, high: float, dim: int = 0, whose: str = "") -> None:
    """RuntimeError unless a range is finite and in order."""
    if not (np.isfinite(low) and np.isfinite(high)):
        raise RuntimeError(f"{name}: {whose}range [{low}, {high}] is not finite")
    if low > high:
        raise RuntimeError(f"{name}: min should not exceed max, but got min {low} max {high} for dimension {dim}")


def _even_edges(array: np.ndarray, bins: int, span) -> np.ndarray:
    """The edges of a number of bins of one width, from the smallest to the largest element or in a given span."""
    if bins <= 0:
        raise RuntimeError(f"torch.histogram(): bins must be > 0, but got {bins}")
    low, high = span if span is not None else (array.min(), array.max()) if array.size else (0.0, 1.0)
    check_span("torch.histogram()", low, high)
    if low == high:
        low, high = low - 0.5 if span is None else low - 1, high + 0.5 if span is None else high + 1
    return np.linspace(low, high, bins + 1, dtype=array.dtype)


@operator(module=None, name="histogram", outputs=("hist", "bin_edges"), widen=False)
class histogram_kernel:
    """The raw form of `histogram`: with edges, or with a number of bins and a span."""

    def forward(xp, input: Array, edges: Index | None = None, weight: Index | None = None, bins: int = 0, span=None,
                density: bool = False, lead: int = 0):  # fmt: skip
        require_kind("histogram_cpu", input, "f")
        if weight is not None and weight.shape != input.shape:
            raise RuntimeError(
                "torch.histogram(): if weight tensor is provided it should have the same shape as the input: got "
                f"{list(weight.shape[lead:])} and {list(input.shape[lead:])}"
            )

        def counted(values, edges, weight):
            edges = _even_edges(values, bins, span) if edges is None else edges
            found = kernel.histogram(values, edges, weight)
            return kernel.density(found, [edges]).astype(values.dtype) if density else found, xp.array(edges)

        return at_each_place(lead, counted, input, edges, weight)

    def batch(F, size_of_batch, batched, input, edges, weight, bins, span, density, lead):
        given = all_for_each(F, batched, size_of_batch, input=input, edges=edges, weight=weight)
        return F.histogram(*given, bins, span, density, lead + 1)

    def samples(make):
        if make.dtype.kind == "f":
            yield (make(3, 4), None, None, 5), {}
            yield (make(3, 4), np.sort(make(4)), make(3, 4, low=0)), {}


@composite(method=True)
def histogram(input, bins, *, range=None, weight=None, density: bool = False, out=None):
    """How many elements (or how much weight) fall into each bin.

    input: [*S], floating-point.
    bins: the number of bins, or the edges as an ascending 1-d tensor.
    range: where the bins begin and end; by default at the smallest and largest element.
    weight: [*S]: how much each element counts.
    density: divide so that the area under the histogram is one.
    Returns the pair (hist, bin_edges).
    Raises: RuntimeError (integers, no bins, a range that is out of order or not finite, weights of another shape).
    """
    if not isinstance(bins, Tensor):
        return histogram_kernel(input, None, weight, bins, range, density, out=out)
    if range is not None:
        raise TypeError("histogram(): give either a number of bins and a range, or the edges of the bins")
    if bins.ndim != 1 or not bins.numel():
        raise RuntimeError(f"torch.histogramdd(): bins tensor should have 1 dimension and at least one element: got {bins.ndim}")
    return histogram_kernel(input, bins, weight, density=density, out=out)
