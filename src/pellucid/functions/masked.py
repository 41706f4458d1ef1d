"""Reductions and normalisations of the elements at which a mask is true: the functions of `torch.masked`.

Each puts the element that changes nothing (0 in a sum, minus infinity in a maximum) where the mask is false, and calls the function
without mask. Filling and selecting by a mask is in `ops/masking.py`. A mask has at most as many dimensions as its input and broadcasts
to it; no mask means all elements.
"""

from __future__ import annotations

import math

import numpy as np

from pellucid.autograd.operator import composite
from pellucid.autograd.operator import tensors as T
from pellucid.core.dims import all_dims
from pellucid.core.dtype import float32, int64
from pellucid.core.tensor import Tensor, wrap
from pellucid.functions.norms import vector_norm
from pellucid.functions.softmax import functional_log_softmax, functional_softmax
from pellucid.functions.softmax import softmin as functional_softmin

__all__: list[str] = []  # the names belong to `torch.masked`


# --- what is hidden --------------------------------------------------------------------------------------------------


def _whole_mask(input: Tensor, mask: Tensor | None) -> Tensor:
    """The mask as bools in the input's shape."""
    if mask is None:
        return wrap(np.ones(input._array.shape, bool))
    if mask._array.ndim > input._array.ndim:
        raise IndexError(
            "_input_mask expected broadcastable mask (got mask dimensionality higher than of the input): mask "
            f"{list(mask.shape)}, input {list(input.shape)}"
        )
    return wrap(mask.expand(input.shape)._array.astype(bool))


def _visible(input: Tensor, mask: Tensor | None, neutral: float, name: str) -> Tensor:
    """The input with `neutral`, the element that changes nothing in the operation `name`, where the mask is false."""
    if mask is None:
        return input
    kind = input._array.dtype
    if math.isinf(neutral) and kind.kind in "iub":
        if kind.kind == "b":
            raise NotImplementedError(f"identity of {name} on torch.bool input: convert it to integers")
        neutral = np.iinfo(kind).min if neutral < 0 else np.iinfo(kind).max
    if math.isinf(neutral) and kind.kind == "c" and name != "logsumexp":
        raise TypeError(f"masked {name} requires an input with an order, got {input.dtype}")
    return T.where(_whole_mask(input, mask), input, wrap(np.asarray(neutral, kind)))


def _cast(result: Tensor, dtype) -> Tensor:
    return result if result.dtype is dtype else result.to(dtype)


# --- reductions ------------------------------------------------------------------------------------------------------

_REDUCED = """

    input: [*S]. dim: a dimension or several, all if None or (). keepdim: keep them, with size one. dtype: the result's; {dtype} if None.
    mask: broadcastable to S; elements where it is false do not count. Returns S without `dim`.

    Raises:
        IndexError: a dimension that is not there, or a mask of more dimensions than the input.
        RuntimeError: a dimension named twice, or a mask that does not broadcast.
"""


def _export(function, doc: str | None, arguments: str):
    """Make a function public under its name in `torch.masked`."""
    function.__doc__ = (doc or "") + arguments
    return composite(module="masked")(function)


def _reduction(neutral: float, counted: bool = False):
    """A masked reduction, from what to do with the visible elements: `core(visible, dim, keepdim, dtype)`.

    counted: integers and bools become int64, unless a dtype is asked for.
    """

    def declare(core):
        def reduction(input, dim=None, *, keepdim=False, dtype=None, mask=None):
            visible = _visible(input, mask, neutral, core.__name__)
            whole = counted and not (input.is_floating_point() or input.is_complex())
            return core(visible, dim, bool(keepdim), dtype or (int64 if whole else input.dtype))

        reduction.__name__ = reduction.__qualname__ = core.__name__
        return _export(reduction, core.__doc__, _REDUCED.format(dtype="the input's or int64" if counted else "the input's"))

    return declare


@_reduction(0, counted=True)
def sum(visible, dim, keepdim, dtype):
    """The sum of the elements; 0 if there are none."""
    return visible.sum(dim, keepdim, dtype=dtype)


@_reduction(1, counted=True)
def prod(visible, dim, keepdim, dtype):
    """The product of the elements; 1 if there are none."""
    visible = _cast(visible, dtype)
    for d in sorted(all_dims(dim, visible.dim()), reverse=True):
        visible = visible.prod(d, keepdim)
    return visible


@_reduction(-math.inf)
def amax(visible, dim, keepdim, dtype):
    """The largest element; minus infinity, or the smallest integer, if there are none."""
    return _cast(visible.amax(all_dims(dim, visible.dim()), keepdim), dtype)


@_reduction(math.inf)
def amin(visible, dim, keepdim, dtype):
    """The smallest element; infinity, or the largest integer, if there are none."""
    return _cast(visible.amin(all_dims(dim, visible.dim()), keepdim), dtype)


@_reduction(-math.inf)
def argmax(visible, dim, keepdim, dtype):
    """The index of the largest element along one dimension, or among all."""
    return _cast(visible.argmax(dim, keepdim), dtype)


@_reduction(math.inf)
def argmin(visible, dim, keepdim, dtype):
    """The index of the smallest element along one dimension, or among all."""
    return _cast(visible.argmin(dim, keepdim), dtype)


@_reduction(-math.inf)
def logsumexp(visible, dim, keepdim, dtype):
    """The logarithm of the sum of exponentials of the elements; minus infinity if there are none."""
    return _cast(visible.logsumexp(all_dims(dim, visible.dim()), keepdim), dtype)


def norm(input, ord=2.0, dim=None, *, keepdim=False, dtype=None, mask=None):
    """The vector norm of the elements, of order `ord`; see linalg.vector_norm. AssertionError for a masked minimum of other than floats."""
    neutral = math.inf if ord == -math.inf else 0
    if neutral and mask is not None and not input.is_floating_point():
        raise AssertionError(f"masked norm of order -inf: input must be floating point, got {input.dtype}")
    return vector_norm(_visible(input, mask, neutral, "norm"), ord, dim, bool(keepdim), dtype=dtype)


def mean(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """The mean of the elements; NaN if there are none. ValueError for integers and bools without `dtype`."""
    source, kind = ("Input", input.dtype) if dtype is None else ("Optional", dtype)
    if not (kind.is_floating_point or kind.is_complex):
        raise ValueError(
            f"mean(): Could not infer output dtype. {source} dtype must be either a floating point or complex dtype. Got: {kind}"
        )
    return sum(input, dim, keepdim=keepdim, dtype=kind, mask=mask) / _whole_mask(input, mask).sum(dim, bool(keepdim))


def median(input, dim=-1, *, keepdim=False, dtype=None, mask=None):
    """The lower median of the elements along one dimension; NaN if there are none, of integers a ValueError."""
    visible = _visible(input if input.is_floating_point() else input.to(float32), mask, math.nan, "median")
    found = visible.nanmedian(_one(dim, input), keepdim).values
    if input.is_floating_point():
        return found
    if bool(found.isnan().any()):
        raise ValueError("masked median expects no fully masked out rows if dtype is not floating point")
    return found.to(dtype or input.dtype)


def _one(dim, input: Tensor) -> int:
    """The dimension that is meant where one is needed: the first of those given."""
    return min(all_dims(dim, input.dim()), default=0)


def _spread(input, dim, unbiased, correction, keepdim, dtype, mask) -> Tensor:
    """The variance."""
    if unbiased is not None and correction is not None:
        raise AssertionError(f"Only one of unbiased and correction may be given: got {unbiased} and {correction}")
    if correction is None:
        correction = 1.0 if unbiased is None else float(unbiased)
    dtype = dtype or (input.dtype if input._array.dtype.kind in "fcV" else float32)
    work = dtype if dtype.is_floating_point or dtype.is_complex else float32
    count = _whole_mask(input, mask).sum(dim, True)
    distance = input - sum(input, dim, keepdim=True, dtype=dtype, mask=mask) / count
    total = sum(distance * distance.conj(), dim, keepdim=keepdim, dtype=work, mask=mask)
    degrees = (count.to(work.to_real()) - correction).clamp(min=0) if correction else count
    return (total / degrees.reshape(total.shape)).to(dtype)


def var(input, dim=None, unbiased=None, *, correction=None, keepdim=False, dtype=None, mask=None):
    """The variance of the elements, divided by their number less `correction` (1; 0 if not `unbiased`); NaN if there are none.

    Of complex numbers it is complex. AssertionError for both `unbiased` and `correction`."""
    return _spread(input, dim, unbiased, correction, keepdim, dtype, mask)


def std(input, dim=None, unbiased=None, *, correction=None, keepdim=False, dtype=None, mask=None):
    """The square root of `var`."""
    return _spread(input, dim, unbiased, correction, keepdim, dtype, mask).sqrt()


for _function in (norm, mean, median, var, std):
    _export(_function, _function.__doc__, _REDUCED.format(dtype="the input's"))


# --- along one dimension ---------------------------------------------------------------------------------------------

_ALONG = """

    input: [*S]. dim: the dimension. dtype: the result's; the input's if None. mask: broadcastable to S; elements where it is
    false do not count, and what stands there in the result means nothing. Returns [*S].

    Raises:
        IndexError: a dimension that is not there, or a mask of more dimensions than the input.
        RuntimeError: a mask that does not broadcast.
"""


def _along(neutral: float, name: str):
    """A masked function along a dimension, from what to do with the visible elements: `core(visible, dim, dtype)`."""

    def declare(core):
        def function(input, dim, *, dtype=None, mask=None):
            return core(_visible(input, mask, neutral, name), _one(dim, input), dtype or input.dtype)

        function.__name__ = function.__qualname__ = core.__name__
        return _export(function, core.__doc__, _ALONG)

    return declare


@_along(0, "sum")
def cumsum(visible, dim, dtype):
    """The sum of the elements up to each one."""
    return visible.cumsum(dim, dtype=dtype)


@_along(1, "prod")
def cumprod(visible, dim, dtype):
    """The product of the elements up to each one."""
    return visible.cumprod(dim, dtype=dtype)


@_along(-math.inf, "amax")
def softmax(visible, dim, dtype):
    """exp(x) over the sum of the exponentials along the dimension; NaN if there are no elements."""
    return functional_softmax(visible, dim, dtype=dtype)


@_along(-math.inf, "amax")
def log_softmax(visible, dim, dtype):
    """The logarithm of `softmax`."""
    return functional_log_softmax(visible, dim, dtype=dtype)


@_along(math.inf, "amin")
def softmin(visible, dim, dtype):
    """`softmax` of the negative."""
    return functional_softmin(visible, dim, dtype=dtype)


def normalize(input, ord, dim, *, eps=1e-12, dtype=None, mask=None):
    """The elements over their norm of order `ord` along the dimension, or over `eps` if that is larger."""
    size = norm(input, ord, dim, keepdim=True, dtype=dtype, mask=mask)
    return _visible(input, mask, 0, "sum") / size.clamp(min=eps)


_export(normalize, normalize.__doc__, _ALONG)


@composite(module="masked")
def logaddexp(input, other, *, dtype=None, input_mask=None, other_mask=None):
    """log(exp(input) + exp(other)), in which an element that its mask hides is minus infinity.

    input, other: broadcastable. input_mask, other_mask: as `mask` elsewhere. dtype: the result's; that of input if None.
    """
    visible = _visible(input, input_mask, -math.inf, "logaddexp")
    return _cast(T.logaddexp(visible, _visible(other, other_mask, -math.inf, "logaddexp")), dtype or input.dtype)
