"""Sorting and order statistics: sort, topk, kthvalue, median, mode; searching in sorted values.

The gradient of each follows the indices. NaN counts as larger than every number.
"""

from __future__ import annotations

import math

import numpy as np

from pellucid.autograd.operator import Array, Index, Promote, composite, operator
from pellucid.core.tensor import Number, wrap
from pellucid.kernels import equal_elements
from pellucid.ops.batches import for_each
from pellucid.ops.checks import require_kind, scalar_name
from pellucid.ops.dims import one_dim, require_elements
from pellucid.ops.selection import WITH_INDICES, Listed, Picked, taken

__all__ = ["argsort", "bucketize", "kthvalue", "median", "mode", "msort", "nanmedian", "searchsorted", "sort", "topk"]


def order(xp, input: np.ndarray, dim: int, descending: bool) -> np.ndarray:
    """The indices that sort along a dimension, equal elements in their order."""
    if not descending:
        return input.argsort(axis=dim, kind="stable")
    reverse = (slice(None),) * dim + (slice(None, None, -1),)
    backwards = input[reverse].argsort(axis=dim, kind="stable")
    return (input.shape[dim] - 1 - backwards)[reverse]


def _differ(ordered: np.ndarray) -> np.ndarray:
    """Where an element of sorted rows differs from the one before; one NaN is like another."""
    here, before = ordered[..., 1:], ordered[..., :-1]
    return (here != before) & ((here == here) | (before == before))


def _ranks(rows: np.ndarray, descending: bool) -> np.ndarray:
    """The ranks of the elements in their rows, equal for equal elements: [N, size]."""
    places = order(np, rows, 1, descending)
    ranks = np.zeros(rows.shape, np.int64)
    np.put_along_axis(ranks, places[:, 1:], _differ(taken(rows, places, 1)).cumsum(1), 1)
    return ranks


def _named(input: np.ndarray, places: np.ndarray, dim: int, descending: bool, wanted: slice, rule, always=False):
    """The part `wanted` of an order along a dimension; where equal elements leave a choice, `rule` takes it from the ranks."""
    ordered = np.moveaxis(taken(input, places, dim), dim, -1)[..., max(wanted.start - 1, 0) : wanted.stop + 1]
    chosen = np.moveaxis(places, dim, -1)[..., wanted].copy()
    undecided = always | ~_differ(ordered).all(-1)
    if undecided.any():
        chosen[undecided] = rule(_ranks(np.moveaxis(input, dim, -1)[undecided], descending))
    return np.ascontiguousarray(np.moveaxis(chosen, -1, dim))


def unstable_order(xp, input: np.ndarray, dim: int, descending: bool) -> np.ndarray:
    """As `order`, but equal elements come as PyTorch's sort leaves them where it is not asked to be stable."""
    places, size = order(xp, input, dim, descending), input.shape[dim]
    if size <= equal_elements.SHORT:
        return places
    return _named(input, places, dim, descending, slice(0, size), equal_elements.order_of_sort)


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
        indices = (order if stable else unstable_order)(xp, input, dim, descending)
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

PARTITION = 1000  # from this many elements on the k largest are first set apart, then sorted


def _top(xp, input: np.ndarray, k: int, dim: int, largest: bool, in_order: bool) -> np.ndarray:
    """Indices of the k largest (or smallest) elements along a dimension."""
    size = input.shape[dim]
    kept = min(k + 1, size)  # one more shows whether the last has an equal that could stand in its place
    if size < PARTITION or 4 * kept > size:
        places = xp.take(order(xp, input, dim, largest), xp.arange(kept), axis=dim)
    else:
        places = xp.argpartition(input, size - kept if largest else kept - 1, axis=dim)
        places = xp.take(places, xp.arange(size - kept, size) if largest else xp.arange(kept), axis=dim)
        places = taken(places, order(xp, taken(input, places, dim), dim, largest), dim)

    def rule(ranks):
        return equal_elements.first_in_order(ranks, k, in_order)

    return _named(input, places, dim, largest, slice(0, k), rule, always=not in_order)


@operator(method=True, **WITH_INDICES)
class topk(Listed):
    """The k largest (or smallest) elements along a dimension, in order (unless `sorted` is False), and where they are.

    input: [*S], real. Returns the pair (values, indices), [*S] with size k along `dim`.
    Raises: RuntimeError for a k that is out of range.
    """

    def canonical(input, k: int, dim: int = -1, largest: bool = True, sorted: bool = True):
        return k, one_dim(dim, input.ndim), bool(largest), bool(sorted)

    def forward(xp, input: Array, k: int, dim: int = -1, largest: bool = True, sorted: bool = True):
        if input.dtype == bool:
            raise RuntimeError("topk does not support bool dtypes on CPU")
        require_kind("topk_cpu", input, "fi")
        if not 0 <= k <= (input.shape[dim] if input.ndim else 1):
            raise RuntimeError(
                f"selected index k out of range: k is {k}, dimension {dim} has {input.shape[dim] if input.ndim else 1} elements"
            )
        if not input.ndim:
            return input.copy(), xp.zeros((), np.int64)
        if not k:
            shape = tuple(0 if d == dim else s for d, s in enumerate(input.shape))
            return xp.empty(shape, input.dtype), xp.empty(shape, np.int64)
        indices = _top(xp, input, k, dim, largest, sorted)
        return taken(input, indices, dim), indices

    samples = _distinct(2, -1)


def _picked(xp, input: np.ndarray, indices: np.ndarray, dim: int, keepdim: bool):
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

        def rule(ranks):
            return equal_elements.kth_in_order(ranks, k - 1)[:, None]

        indices = _named(input, order(xp, input, dim, False), dim, False, slice(k - 1, k), rule)
        return _picked(xp, input, indices, dim, keepdim)

    samples = _distinct(2, 0)


# --- median and mode -------------------------------------------------------------------------------------------------


def _middle(xp, input: np.ndarray, dim: int, ignore_nan: bool) -> np.ndarray:
    """Where the lower of the middle elements is; without `ignore_nan` a NaN, if there is one."""
    ranks = order(xp, input, dim, False)
    size = input.shape[dim]
    if input.dtype.kind != "f":
        return xp.take(ranks, [(size - 1) // 2], axis=dim)
    nans = xp.isnan(input).sum(axis=dim, keepdims=True)
    place = xp.maximum(size - nans - 1, 0) // 2
    if not ignore_nan:
        place = xp.where(nans > 0, size - nans, (size - 1) // 2)
    return taken(ranks, place, dim)


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
            return _picked(xp, input, _middle(xp, input, dim, ignore_nan), dim, keepdim)

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
            return taken(rows, _middle(xp, rows, lead, ignore_nan), lead)[..., 0]

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


def _most_frequent(xp, input: np.ndarray, dim: int) -> np.ndarray:
    """Where the most frequent element is last; of several the smallest."""
    ranks = unstable_order(xp, input, dim, False)
    ranked = xp.moveaxis(taken(input, ranks, dim), dim, -1)
    places = xp.arange(ranked.shape[-1])
    fresh = xp.ones(ranked.shape, bool)
    fresh[..., 1:] = ranked[..., 1:] != ranked[..., :-1]
    length = places - xp.maximum.accumulate(xp.where(fresh, places, 0), axis=-1)
    last = xp.argmax(length, axis=-1)
    return taken(ranks, xp.expand_dims(last, dim), dim)


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
        return _picked(xp, input, _most_frequent(xp, input, dim), dim, keepdim)

    samples = _distinct(0)


# --- searching -------------------------------------------------------------------------------------------------------


def _search(rows: np.ndarray, wanted: np.ndarray, side: str) -> np.ndarray:
    """Where values would be inserted into sorted rows: one row for all, or one row for each."""
    if rows.ndim == 1:
        return np.asarray(np.searchsorted(rows, wanted, side))
    count = math.prod(rows.shape[:-1])
    flat, values = rows.reshape(count, rows.shape[-1]), wanted.reshape(count, wanted.shape[-1])
    found = [np.searchsorted(row, value, side) for row, value in zip(flat, values, strict=True)]
    return np.asarray(found, np.int64).reshape(wanted.shape)


@operator(promote=Promote.SAME, numbers=("input",), broadcast=False, module=None, name="searchsorted")
class search:
    """The raw form of `searchsorted`."""

    def forward(xp, sorted_sequence: Array, input: Array, sorter: Index | None = None, right: bool = False, kind=np.int64):
        rows = sorted_sequence
        if sorter is not None:
            _check_sorter(sorter, rows)
            rows = xp.take_along_axis(rows, sorter, -1)
        _check_search(rows, input)
        return _search(rows, input, "right" if right else "left").astype(kind)

    def batch(F, size_of_batch, batched, sorted_sequence, input, sorter, right, kind):
        if batched == {"input"} and sorted_sequence.ndim == 1:
            return F.searchsorted(sorted_sequence, input, sorter, right, kind)
        value = wrap(np.asarray(input._array)) if input.__class__ is Number else input
        rows = for_each(F, sorted_sequence, "sorted_sequence" in batched, size_of_batch)
        value = for_each(F, value, "input" in batched, size_of_batch)
        order = None if sorter is None else for_each(F, sorter, "sorter" in batched, size_of_batch)
        values = F.reshape(value, (size_of_batch, math.prod(value.shape[1:]))) if rows.ndim == 2 else value
        return F.reshape(F.searchsorted(rows, values, order, right, kind), value.shape)

    def samples(make):
        yield (np.sort(make(5)), make(2, 3)), {}
        yield (make(2, 5), make(2, 3), make(2, 5).argsort(-1)), {}


def _side(name: str, right: bool, side: str | None) -> str:
    if side not in (None, "left", "right"):
        raise RuntimeError(f"{name}(): side can only be 'left' or 'right' but got {side}")
    if side == "left" and right:
        raise RuntimeError(f"{name}(): side and right can't be set to opposites, got side of left while right was True")
    return "right" if right or side == "right" else "left"


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
    right = _side("searchsorted", right, side) == "right"
    return search(sorted_sequence, input, sorter, right, np.dtype(np.int32 if out_int32 else np.int64), out=out)


def _check_sorter(sorter: np.ndarray, rows: np.ndarray) -> None:
    if sorter.shape != rows.shape:
        raise RuntimeError(
            "torch.searchsorted(): boundary and sorter must have the same size, but got boundary tensor "
            f"{list(rows.shape)} and got sorter tensor {list(sorter.shape)}"
        )
    if sorter.dtype != np.int64:
        raise RuntimeError(f"torch.searchsorted(): sorter must be a tensor of long dtype but got dtype {scalar_name(sorter)}")
    if sorter.size and (sorter.min() < 0 or sorter.max() >= rows.shape[-1]):
        raise RuntimeError("torch.searchsorted(): sorter index out of range")


def _check_search(rows: np.ndarray, value: np.ndarray) -> None:
    require_kind("searchsorted_out_cpu", rows, "fi")
    if not rows.ndim:
        raise RuntimeError("torch.searchsorted(): boundaries tensor should have positive dimension, but got 0 dimension")
    if rows.ndim > 1 and not value.ndim:
        raise RuntimeError(
            "torch.searchsorted(): input value can be a scalar only when boundaries tensor dimension is 1, but we got "
            f"boundaries tensor dim({rows.ndim})"
        )
    if rows.ndim > 1 and rows.shape[:-1] != value.shape[:-1]:
        raise RuntimeError(
            "torch.searchsorted(): boundaries tensor should be 1 dimension or the first N-1 dimensions of boundaries tensor "
            f"and input value tensor must match, but we got boundaries tensor {list(rows.shape)} and input value tensor {list(value.shape)}"
        )


@composite()
def bucketize(input, boundaries, *, out_int32: bool = False, right: bool = False, out=None):
    """The index of the bucket of each value: how many sorted boundaries lie below it (with `right`, not above it).

    input: a number or tensor; boundaries: [N], sorted. Returns int64 (int32 on request), of the input's shape.
    """
    if boundaries.ndim != 1:
        raise RuntimeError(f"boundaries tensor must be 1 dimension, but got dim({boundaries.ndim})")
    return searchsorted(boundaries, input, out_int32=out_int32, right=right, out=out)
