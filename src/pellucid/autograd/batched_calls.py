"""A function called once on a batch of examples, for what stands on batching inside `autograd`.

The public form, with its checks and its choice of dimensions, is `pellucid.func.vmap`.
"""

from __future__ import annotations

from pellucid.autograd import declaration
from pellucid.autograd.batching import BatchedTensor, BatchLevel, batch_of, with_batch
from pellucid.autograd.transforms import opened
from pellucid.core.tensor import Tensor

__all__ = ["vmap_over"]

F = declaration.tensors


class _AnyFunctions(BatchLevel):
    takes_any_function = True


def vmap_over(function, tensors) -> tuple[Tensor, ...]:
    """Call a function of one example on all examples at once.

    Args:
        function: takes a tensor for each of `tensors`, without their first dimension, and returns a tuple of tensors.
        tensors: dimension 0 of each counts the examples.

    Returns:
        What the function returned, with the examples in dimension 0.
    """
    size = tensors[0]._array.shape[0]
    level = _AnyFunctions(size)
    with opened(level):
        results = function(*[batch_of(t, level) for t in tensors])
    return tuple(_whole(r, level) for r in results)


def _whole(result: Tensor, level: BatchLevel) -> Tensor:
    if result.__class__ is BatchedTensor and result._level is level:
        return with_batch(result, level.size)
    return F.expand(F.unsqueeze(result, 0), (level.size, *result._array.shape))
