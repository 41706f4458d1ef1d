"""Sorting and order statistics: sort, topk, kthvalue, median, mode; searching in sorted values.

The gradient of each follows the indices. NaN counts as larger than every number.
"""

from __future__ import annotations

import math

import numpy as np

from pellucid.autograd.operator import Array, Index, Promote, composite, operator
from pellucid.core.checks import require_kind
from pellucid.core.dims import one_dim, require_elements
from pellucid.core.search_checks import check_search, check_sorter, check_top, side_of
from pellucid.core.tensor import Number, wrap
from pellucid.kernels import sorting as kernel
from pellucid.kernels.sorting import taken
from pellucid.ops.batches import all_for_each
from pellucid.ops.selection import WITH_INDICES, Listed, Picked

__all__ = ["argsort", "bucketize", "kthvalue", "median", "mode", "msort", "nanmedian", "searchsorted", "sort", "topk"]


def _distinct(*attributes):
    def samples(make):
        yield (make.distinct(3, 4), *attributes), {}
        yield (make.distinct(2, 3, 2), *attributes), {}

    return samples


# --- sort ------------------------------------------------------------------------------------------------------------


@operator(module=None, name="sort", node="SortBackward0", **WITH_INDICES)
class sort_kernel(Listed):
    """The sorted elements and where they were."""

    def canonical(input, dim, descending, stable=True): return one_dim(dim, input.ndim), bool(descending), bool(stable)

    def forward(xp, input: Array, dim: int, descending: bool, stable: bool = True):
        require_kind("sort_cpu", input, "fib")
        if not input.ndim:
            return input.copy(), xp.zeros((), np.int64)
        indices = (kernel.order if stable else kernel.unstable_order)(input, dim, descending)
        return taken(input, indices, dim), xp.ascontiguousarray(indices)

    samples = _distinct(-1, True)


@composite(method=True)
def sort(input, dim: int = -1, descending: bool = False, stable: bool | None = False, *, out=None):
    """The elements sorted along `dim`, and where they were: the pair (values, indices).

    input: [*S], real.
    dim: the dimension to sort along.
    descending: largest first.
    stable: keep equal elements in their order. Otherwise they come as C++'s sort leaves them, which takes longer here.
    Raises: IndexError (a dimension that is not there), RuntimeError (complex input).
    """
    return sort_kernel(input, dim, descending, stable, out=out)


@composite(method=True)
def argsort(input, dim: int = -1, descending: bool = False, stable: bool = False):
    """The indices that sort the tensor along `dim`; see `sort`. Returns int64."""
    return sort_kernel(input, dim, descending, stable)[1]


@composite(method=True)
def msort(input, *, out=None):
    """The tensor sorted along its first dimension."""
    values = sort_kernel(input, 0, False, False)[0]
    return values if out is None else out.copy_(values)


# --- the k largest, the k-th -----------------------------------------------------------------------------------------


@operator(method=True, **WITH_INDICES)
class topk(Listed):
    """The k largest (or smallest) elements along a dimension, in order (unless `sorted` is False), and where they are.

    input: [*S], real. Returns the pair (values, indices), [*S] with size k along `dim`.
    Raises: RuntimeError for a k that is out of range.
    """

    def canonical(input, k: int, dim: int = -1, largest: bool = True, sorted: bool = True):
        return k, one_dim(dim, input.ndim), bool(largest), bool(sorted)

    def forward(xp, input: Array, k: int, dim: int = -1, largest: bool = True, sorted: bool = True):
        check_top(input, k, dim)
        if not input.ndim:
            return input.copy(), xp.zeros((), np.int64)
        indices = kernel.top(input, k, dim, largest, sorted)
        return taken(input, indices, dim), indices

    samples = _distinct(2, -1)


def _picked(input: np.ndarray, indices: np.ndarray, dim: int, keepdim: bool):
    """The pair (values, indices) from indices with the dimension kept."""
    values = taken(input, indices, dim)
    return (values, indices) if keepdim else (values.squeeze(dim), indices.squeeze(dim))


@operator(method=True, **WITH_INDICES)
class kthvalue(Picked):
    """The k-th smallest element along a dimension, counted from 1, and where it is.

    input: [*S], real. Returns the pair (values, indices), S without `dim` (or with size one).
    Raises: RuntimeError for a k that is out of range.
    """

    def canonical(input, k: int, dim: int = -1, keepdim: bool = False):
        return k, one_dim(dim, input.ndim), bool(keepdim)

    def forward(xp, input: Array, k: int, dim: int = -1, keepdim: bool = False):
        require_kind("kthvalue_cpu", input, "fi")
        require_elements("kthvalue", input, (dim,) if input.ndim else ())
        if not 1 <= k <= (input.shape[dim] if input.ndim else 1):
            raise RuntimeError(f"kthvalue(): selected number k out of range for dimension {dim}: k is {k}")
        if not input.ndim:
            return input.copy(), xp.zeros((), np.int64)
        return _picked(input, kernel.kth(input, k - 1, dim), dim, keepdim)

    samples = _distinct(2, 0)


# --- median and mode -------------------------------------------------------------------------------------------------


def _declare_median(name: str, node: str, what: str, ignore_nan: bool):
    """Declare the lower median along a dimension, with its index, and that of all elements."""

    @operator(module=None, name=name, node=f"{node}Backward1", **WITH_INDICES)
    class along(Picked):
        __doc__ = f"The lower median along a dimension {what}, and where it is."

        def forward(xp, input: Array, dim: int, keepdim: bool):
            require_elements(name, input, (dim,) if input.ndim else ())
            require_kind(f"{name}_cpu", input, "fi")
            if not input.ndim:
                return input.copy(), xp.zeros((), np.int64)
            return _picked(input, kernel.middle(input, dim, ignore_nan), dim, keepdim)

        samples = _distinct(0, False)

    @operator(module=None, exact=True, name=f"{name}_all", node=f"{node}Backward0")
    class of_all:
        __doc__ = f"The lower median of all elements {what}; for each place in the first `lead` dimensions by itself."

        def forward(xp, input: Array, lead: int = 0):
            require_kind(f"{name}_cpu", input, "fi")
            if not input.size:
                lowest = xp.nan if input.dtype.kind == "f" else xp.iinfo(input.dtype).min
                return xp.full(input.shape[:lead], lowest, input.dtype)
            rows = input.reshape(*input.shape[:lead], -1)
            return taken(rows, kernel.middle(rows, lead, ignore_nan), lead)[..., 0]

        def vjp_input(F, grad, input, result, lead):
            return F.spread_ties(grad, input, result, tuple(range(lead, input.ndim)), False)

        def jvp_input(F, tangent, input, result, lead):
            return F.gather_ties(tangent, input, result, tuple(range(lead, input.ndim)), False)

        def batch(F, input, lead): return getattr(F, f"{name}_all")(input, lead + 1)
        samples = _distinct()

    return along, of_all


median_dim, median_all = _declare_median("median", "Median", "(a NaN if there is one)", False)
nanmedian_dim, nanmedian_all = _declare_median("nanmedian", "Nanmedian", "that are not NaN", True)


@composite(method=True)
def median(input, dim: int | None = None, keepdim: bool = False, *, out=None):
    """The median of all elements; or the pair (values, indices) along `dim`. Of two middle elements the lower one.

    Raises: IndexError (a dimension that is not there or is empty), RuntimeError (complex input).
    """
    return median_all(input, out=out) if dim is None else median_dim(input, dim, keepdim, out=out)


@composite(method=True)
def nanmedian(input, dim: int | None = None, keepdim: bool = False, *, out=None):
    """The median of the elements that are not NaN; see `median`."""
    return nanmedian_all(input, out=out) if dim is None else nanmedian_dim(input, dim, keepdim, out=out)


@operator(method=True, **WITH_INDICES)
class mode(Picked):
    """The most frequent element along a dimension (the smallest of several), and where it is last.

    input: [*S], real. Returns the pair (values, indices), S without `dim` (or with size one).
    """

    def forward(xp, input: Array, dim: int = -1, keepdim: bool = False):
        require_kind("mode_cpu", input, "fib")
        if not input.ndim:
            return input.copy(), xp.zeros((), np.int64)
        require_elements("mode", input, (dim,))
        return _picked(input, kernel.most_frequent(input, dim), dim, keepdim)

    samples = _distinct(0)


# --- searching -------------------------------------------------------------------------------------------------------


@operator(promote=Promote.SAME, numbers=("input",), broadcast=False, module=None, name="searchsorted")
class search:
    """The raw form of `searchsorted`."""

    def forward(xp, sorted_sequence: Array, input: Array, sorter: Index | None = None, right: bool = False, kind=np.int64):
        rows = sorted_sequence
        if sorter is not None:
            check_sorter(sorter, rows)
            rows = xp.take_along_axis(rows, sorter, -1)
        check_search(rows, input)
        return kernel.search(rows, input, "right" if right else "left").astype(kind)

    def batch(F, size_of_batch, batched, sorted_sequence, input, sorter, right, kind):
        if batched == {"input"} and sorted_sequence.ndim == 1:
            return F.searchsorted(sorted_sequence, input, sorter, right, kind)
        value = wrap(np.asarray(input._array)) if input.__class__ is Number else input
        given = {"sorted_sequence": sorted_sequence, "input": value, "sorter": sorter}
        rows, value, order = all_for_each(F, batched, size_of_batch, **given)
        values = F.reshape(value, (size_of_batch, math.prod(value.shape[1:]))) if rows.ndim == 2 else value
        return F.reshape(F.searchsorted(rows, values, order, right, kind), value.shape)

    def samples(make):
        yield (np.sort(make(5)), make(2, 3)), {}
        yield (make(2, 5), make(2, 3), make(2, 5).argsort(-1)), {}


@composite()
def searchsorted(sorted_sequence, input, *, out_int32: bool = False, right: bool = False, side: str | None = None,
                 sorter=None, out=None):  # fmt: skip
    """Where each value would be inserted into sorted values so that they stay sorted.

    sorted_sequence: [N], or [*B, N] with one row for each row of input; sorted along the last dimension.
    input: a number or tensor; [*B, M] for several rows. Both are brought to their common dtype.
    out_int32: return int32 instead of int64.
    right, side: after equal elements ("right") instead of before them.
    sorter: the indices that sort an unsorted `sorted_sequence`.
    Raises: RuntimeError (shapes do not fit, or sides contradict each other), NotImplementedError (complex numbers).
    """
    right = side_of("searchsorted", right, side) == "right"
    return search(sorted_sequence, input, sorter, right, np.dtype(np.int32 if out_int32 else np.int64), out=out)


@composite()
def bucketize(input, boundaries, *, out_int32: bool = False, right: bool = False, out=None):
    """The index of the bucket of each value: how many sorted boundaries lie below it (with `right`, not above it).

    input: a number or tensor; boundaries: [N], sorted. Returns int64 (int32 on request), of the input's shape.
    """
    if boundaries.ndim != 1:
        raise RuntimeError(f"boundaries tensor must be 1 dimension, but got dim({boundaries.ndim})")
    return searchsorted(boundaries, input, out_int32=out_int32, right=right, out=out)
