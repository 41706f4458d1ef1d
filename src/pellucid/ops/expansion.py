"""Expansion to larger shapes without copying, and the sums that undo it. Common shapes are found in `functions/broadcasting.py`."""

from __future__ import annotations

from pellucid.autograd.operator import Array, composite, operator
from pellucid.core.dims import sizes_of
from pellucid.core.geometry import expanded
from pellucid.core.tensor import Tensor
from pellucid.kernels.strides import broadcast
from pellucid.kernels.sums import sum_to
from pellucid.ops.views import show_to_formulas

__all__ = ["broadcast_to", "expand", "expand_as", "sum_to_size"]


@operator(view=True, module=None, name="expand")
class expand_:
    """The raw form of `expand`: sizes as one tuple."""

    canonical = expanded

    def forward(xp, input: Array, size: tuple): return broadcast(input, size)
    def vjp_input(F, grad, input_shape): return F.sum_to_size(grad, input_shape)

    def batch(F, size_of_batch, input, size):
        lead = len(size) + 1 - input.ndim
        return F.expand(F.view(input, (size_of_batch, *(1,) * lead, *input.shape[1:])), (size_of_batch, *size))

    def samples(make):
        yield (make(3, 1), (2, 3, 4)), {}
        yield (make(), (2,)), {}
        yield (make(2, 3), (-1, 3)), {}


@composite(method=True, module=None)
def expand(input: Tensor, *size, implicit: bool = False) -> Tensor:
    """Dimensions of size 1 repeated, and leading ones added, without copying; -1 keeps a size.

    Returns a view in which several elements share memory: clone it before writing. RuntimeError for sizes that do not fit.
    """
    return expand_(input, sizes_of(size, "expand"))


show_to_formulas("expand", expand)


@composite(method=True)
def broadcast_to(input: Tensor, size) -> Tensor:
    """`expand` to a shape given as one sequence."""
    return expand_(input, sizes_of((size,), "broadcast_to"))


@composite(method=True, module=None)
def expand_as(input: Tensor, other: Tensor) -> Tensor:
    """`expand` to the shape of another tensor."""
    return expand_(input, other._array.shape)


@operator(module=None, name="sum_to_size", node="SumBackward1", exact=True, linear=True)
class sum_to_size_:
    """The raw form of `sum_to_size`: sizes as one tuple."""

    def canonical(input, size: tuple):
        lead = input.ndim - len(size)
        if lead < 0 or any(s not in (1, n) for s, n in zip(size, input.shape[lead:], strict=True)):
            raise RuntimeError(f"size {{{list(size)}}} is not expandable to size {{{list(input.shape)}}}.")
        return tuple(size)

    def forward(xp, input: Array, size: tuple):
        made = sum_to(input if input.dtype.kind not in "biu" else input.astype(xp.int64), size)
        return made.copy() if xp.may_share_memory(made, input) else made

    def vjp_input(F, grad, input_shape): return F.expand(grad, input_shape)

    def batch(F, size_of_batch, input, size):
        lead = (1,) * (input.ndim - 1 - len(size))
        return F.reshape(F.sum_to_size(input, (size_of_batch, *lead, *size)), (size_of_batch, *size))

    def samples(make):
        yield (make(2, 3, 4), (3, 1)), {}
        yield (make(2), ()), {}


@composite(method=True, module=None)
def sum_to_size(input: Tensor, *size) -> Tensor:
    """Sums along the dimensions by which the tensor is larger than `size`, which must broadcast to its shape."""
    size = sizes_of(size, "sum_to_size")
    if size == input._array.shape and (size or input._array.dtype.kind not in "biu"):
        return input
    return sum_to_size_(input, size)


show_to_formulas("sum_to_size", sum_to_size)
