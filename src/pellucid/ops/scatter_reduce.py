"""Scattering with a reduction: `scatter_reduce`, and `index_reduce` as an operator; the function is in `functions/scattering.py`."""

from __future__ import annotations

import numpy as np

from pellucid.autograd.operator import Array, Index, composite, operator
from pellucid.core.dims import one_dim
from pellucid.core.dtype import dtype_of
from pellucid.core.place_checks import check_index, check_shapes
from pellucid.core.tensor import Tensor
from pellucid.kernels.places import UFUNCS, corner, counts_at, reduce_at
from pellucid.ops.families import in_place
from pellucid.ops.scatter import in_rows, places_of

__all__ = ["scatter_reduce"]


class _ScatterReduce:
    """The raw form of `scatter_reduce` and `index_reduce`."""

    def canonical(input, dim: int, index, src, reduce: str, include_self: bool = True):
        if reduce not in UFUNCS:
            raise RuntimeError(f"reduce argument must be either sum, prod, mean, amax or amin, got {reduce}")
        dim = one_dim(dim, input.ndim)
        check_shapes("scatter", input, dim, index, src)
        if index.size:
            check_index("scatter", index, input.shape[dim] if input.ndim else 1, dim)
        if src.dtype != input.dtype:
            raise RuntimeError(f"scatter(): Expected self.dtype to be equal to src.dtype, got {dtype_of(input.dtype)} and "
                               f"{dtype_of(src.dtype)}")
        return dim, reduce, include_self

    def forward(xp, input: Array, dim: int, index: Index, src: Array, reduce: str, include_self: bool = True):
        result = xp.array(input, order="C")
        if index.size:
            whole = result if result.ndim else result.reshape(1)
            reduce_at(whole, places_of(index, dim), corner(src, index.shape), reduce, include_self)
        return result

    def vjp(F, grad, needs, input, index, src, result, dim, reduce, include_self):
        for_input, for_src = _pulled(F, grad, input, dim, index, src, result, reduce, include_self)
        if tuple(src.shape) != tuple(index.shape):
            for_src = F.basic_backward(for_src, tuple(src.shape), tuple([slice(0, n) for n in index.shape]))
        return for_input if needs[0] else None, for_src if needs[1] else None

    def jvp(F, tangents, input, index, src, result, dim, reduce, include_self):
        moved, added = tangents  # what comes back of a gradient of ones is the slope in each element
        slopes = _pulled(F, F.zeros_as(result) + 1, input, dim, index, src, result, reduce, include_self)
        made = F.zeros_as(result) if moved is None else slopes[0] * moved
        return made if added is None else F.scatter_add(made, dim, index, slopes[1] * _part(added, index))

    def batch(F, size_of_batch, batched, input, dim, index, src, reduce, include_self):
        operands, number = {"input": input, "index": index, "src": src}, input.ndim == ("input" in batched)
        return in_rows(F, F.scatter_reduce, size_of_batch, batched, operands, number, dim, reduce, include_self)

    def samples(make):
        index = np.array([[0, 1, 0], [2, 0, 1]])
        for reduce in ("sum", "prod", "mean", "amax", "amin"):
            yield (make.distinct(3, 3), 0, index, make.distinct(2, 3, gap=0.17), reduce, True), {}
            yield (make.distinct(3, 3), 0, index, make.distinct(2, 3, gap=0.17), reduce, False), {}


scatter_reduce_, index_reduce_raw = (
    operator(module=None, name=name, node=node, holomorphic=False)(_ScatterReduce)
    for name, node in (("scatter_reduce", "ScatterReduceBackward0"), ("index_reduce", "IndexReduceBackward0"))
)


@operator(module=None, node="Error", elementwise=True, linear=True)
class single_zeros:
    """The gradient of a product's factors. It is not differentiated where two factors of one product are zero.

    zeros: for each factor how many of its product are zero.
    """

    def forward(xp, input: Array, zeros: Index): return input.copy()
    def vjp_input(F, grad, zeros): return F.refusing_zeros(grad, zeros)
    def samples(make): yield (make(3), make.integers(3, high=1)), {}


@operator(module=None, node="Error", elementwise=True, linear=True)
class refusing_zeros:
    """The operand, unless a product has two factors that are zero: then RuntimeError. See `single_zeros`."""

    def forward(xp, input: Array, zeros: Index):
        if (zeros > 1).any():
            raise RuntimeError("Double backward is unsupported for src when >1 zeros in src are scattered to the same position in "
                               "self: scatter_reduce and index_reduce with 'prod'")
        return input.copy()

    def vjp_input(F, grad, zeros): return F.refusing_zeros(grad, zeros)
    def samples(make): yield (make(3), make.integers(3, high=1)), {}


def _pulled(F, grad, input, dim, index, src, result, reduce, include_self):
    """The gradients of the tensor, and of the elements of the source that the index covers."""
    form = _product if reduce == "prod" else _extreme if reduce in ("amax", "amin") else _total
    for_input, for_src = form(F, grad, input, dim, index, src, result, reduce, include_self)
    return for_input if include_self else F.scatter_value(for_input, dim, index, 0), for_src


def _total(F, grad, input, dim, index, src, result, reduce, include_self):
    """Sums and means: every element has the same share."""
    if reduce == "mean":
        grad = grad / F.scatter_counts(grad, dim, index, include_self)
    return grad, F.gather(grad, dim, index)


def _product(F, grad, input, dim, index, src, result, reduce, include_self):
    """Products: the product of the others. A single zero among the factors is looked at on its own."""
    src = _part(src, index)
    no_zero = F.where(input == 0, 1, input)
    others = F.scatter_reduce(no_zero, dim, index, src, "prod", include_self)
    for_input = grad * others / no_zero
    zeros = F.where(src == 0, 1.0 + 0 * src, 0)
    count = F.gather(F.scatter_add(0 * input, dim, index, zeros), dim, index)
    single = (src == 0) & (count == 1)
    without = F.scatter_reduce(input, dim, index, F.where(single, 1, src), "prod", include_self)
    shared = F.gather(grad * result, dim, index) / F.where(src == 0, 1, src)
    return for_input, F.single_zeros(F.where(single, F.gather(grad * without, dim, index), shared), count)


def _extreme(F, grad, input, dim, index, src, result, reduce, include_self):
    """Largest and smallest: those that equal the result share its gradient."""
    src = _part(src, index)
    one = 0 * grad + 1
    own = F.where(input == result, one, 0)
    theirs = F.where(src == F.gather(result, dim, index), 1 + 0 * F.gather(one, dim, index), 0)
    count = F.scatter_add(own, dim, index, theirs)
    share = grad / F.where(count == 0, 1, count)
    return F.where(input == result, share, 0), F.where(
        src == F.gather(result, dim, index), F.gather(share, dim, index), 0
    )


def _part(src, index):
    """The part of the source that the index covers."""
    return src if tuple(src.shape) == tuple(index.shape) else src[tuple([slice(0, n) for n in index.shape])]


@operator(module=None)
class scatter_counts:
    """How many values meet in each element of a scatter into a tensor like `input`, at least 1."""

    def forward(xp, input: Array, dim: int, index: Index, include_self: bool):
        return counts_at(input, dim, index, include_self)

    def batch(F, size_of_batch, batched, input, dim, index, include_self):
        operands, number = {"input": input, "index": index}, input.ndim == ("input" in batched)
        return in_rows(F, F.scatter_counts, size_of_batch, batched, operands, number, dim, include_self)


@composite(method=True)
def scatter_reduce(
    input: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str, *, include_self: bool = True
) -> Tensor:
    """`input` with the elements of `src` that fall on one place reduced: "sum", "prod", "mean", "amax" or "amin".

    input, index, src: as many dimensions each; index: int64, no larger than src.
    include_self: whether the tensor's own element takes part. RuntimeError for what does not fit.
    """
    return scatter_reduce_(input, dim, index, src, reduce, include_self)


Tensor.scatter_reduce_ = in_place(
    "scatter_reduce_",
    lambda self, dim, index, src, reduce, *, include_self=True: (scatter_reduce_, dim, index, src, reduce, include_self),
)
