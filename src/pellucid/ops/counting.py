"""Counting values: unique elements, bincount, histograms. Nothing here has a derivative. The arithmetic is in kernels/counting.py."""

from __future__ import annotations

import numpy as np

from pellucid.autograd.operator import Array, Index, composite, operator
from pellucid.autograd.operator import tensors as F
from pellucid.core.checks import refuse_dynamic, require_kind
from pellucid.core.counting_checks import check_bincount, check_weight, compared_dim
from pellucid.core.tensor import Tensor
from pellucid.kernels import counting as kernel
from pellucid.kernels.batches import at_each_place
from pellucid.ops.batches import all_for_each

__all__ = ["bincount", "histc", "histogram", "unique", "unique_consecutive"]


def _declare(name: str, node: str, found) -> None:
    """Declare the raw form of a search for distinct values, `found(array)` or `found(array, dim)`: (values, inverse, counts)."""

    def forward(xp, input: Array, dim: int | None):
        dims = () if dim is None else (compared_dim(name, input, dim),)
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


# For each place in the first `lead` dimensions by itself.


@operator(module=None, name="bincount")
class bincount_kernel:
    """The raw form of `bincount`."""

    def forward(xp, input: Index, weights: Index | None = None, minlength: int = 0, lead: int = 0):
        check_bincount(input, weights, lead)
        return kernel.bincount(input, weights, minlength, lead)

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


@operator(module=None, name="histc")
class histc_kernel:
    """The raw form of `histc`."""

    def forward(xp, input: Array, bins: int, min: float, max: float, lead: int = 0):
        require_kind("histogram_cpu", input, "f")
        if bins <= 0:
            raise RuntimeError(f"torch.histogram(): bins must be > 0, but got {bins}")
        return at_each_place(lead, lambda row: kernel.counts(row, bins, min, max), input)

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


@operator(module=None, name="histogram", outputs=("hist", "bin_edges"), widen=False)
class histogram_kernel:
    """The raw form of `histogram`: with edges, or with a number of bins and a span."""

    def forward(xp, input: Array, edges: Index | None = None, weight: Index | None = None, bins: int = 0, span=None,
                density: bool = False, lead: int = 0):  # fmt: skip
        require_kind("histogram_cpu", input, "f")
        check_weight(input, weight, lead)

        def counted(values, edges, weight):
            return kernel.histogram_and_edges(values, edges, weight, bins, span, density)

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
