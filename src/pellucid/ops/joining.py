"""Several tensors as one: concatenation, stacking, blocks on a diagonal. What is made of these is in `functions/joining.py`."""

from __future__ import annotations

from pellucid.autograd.operator import Arrays, Promote, composite, operator
from pellucid.core.joins import check_cat, check_stack, list_of
from pellucid.core.tensor import Tensor
from pellucid.kernels import joining as kernel
from pellucid.kernels.joining import block_places

__all__ = ["cat", "stack"]


@operator(promote=Promote.SAME, broadcast=False, exact=True, linear=True, batching="shift", module=None, name="cat", node="CatBackward0")
class cat_:
    """The raw form of `cat`."""

    canonical = check_cat

    def forward(xp, tensors: Arrays, dim=0):
        return kernel.concatenated(tensors, dim)

    def vjp_tensors(F, grad, needs, tensors_shape, dim):
        pieces, start, ndim = [], 0, max([len(s) for s in tensors_shape])
        for need, shape in zip(needs, tensors_shape, strict=True):
            length = shape[dim] if len(shape) == ndim else 0
            piece = grad[(slice(None),) * dim + (slice(start, start + length),)] if need else None
            pieces.append(piece if piece is None or len(shape) == ndim else F.reshape(piece, (-1,))[:0])
            start += length
        return tuple(pieces)

    def samples(make):
        yield ([make(2, 3), make(1, 3)], 0), {}
        yield ([make(2, 3), make(2, 2)], -1), {}


@composite(alias=["concat", "concatenate"])
def cat(tensors, dim: int = 0, *, out=None, axis: int | None = None) -> Tensor:
    """Tensors laid side by side along one dimension, in which alone their sizes may differ.

    tensors: a sequence of at least one tensor; their common type is the result's. Returns a new tensor.
    Raises: RuntimeError for shapes that do not fit, ValueError for an empty sequence, TypeError for what is no tensor.
    """
    tensors = list_of(tensors, "cat")
    if not tensors:
        raise ValueError("torch.cat(): expected a non-empty list of Tensors")
    return cat_(tensors, dim if axis is None else axis, out=out)


@operator(promote=Promote.SAME, broadcast=False, exact=True, linear=True, batching="shift", module=None, name="stack", node="StackBackward0")
class stack_:
    """The raw form of `stack`."""

    canonical = check_stack

    def forward(xp, tensors: Arrays, dim=0):
        return kernel.stacked(tensors, dim)

    def vjp_tensors(F, grad, needs, dim):
        return tuple([F.select(grad, dim, k) if need else None for k, need in enumerate(needs)])

    def samples(make):
        yield ([make(2, 3), make(2, 3)], 1), {}
        yield ([make(), make()], 0), {}


@composite()
def stack(tensors, dim: int = 0, *, out=None) -> Tensor:
    """Tensors of one shape as the slices of one tensor along a new dimension.

    Raises: RuntimeError for different shapes or an empty sequence, TypeError for what is no tensor.
    """
    return stack_(list_of(tensors, "stack"), dim, out=out)


@operator(promote=Promote.SAME, broadcast=False, exact=True, linear=True, module=None, name="block_diag", node="BlockDiagBackward0")
class block_diag_:
    """The raw form of `block_diag`, on matrices [*S, rows, columns]."""

    def forward(xp, tensors: Arrays):
        return kernel.blocks(tensors)

    def vjp_tensors(F, grad, needs, tensors_shape):
        return tuple([grad[p] if need else None for need, p in zip(needs, block_places(tensors_shape), strict=True)])

    def batch(F, tensors): return F.block_diag(tensors)
    def samples(make): yield ([make(2, 3), make(1, 2)],), {}
