"""Common shapes of several tensors, by the rules of broadcasting. The views are in `ops/expansion.py`."""

from __future__ import annotations

from pellucid.autograd.operator import composite
from pellucid.core.dims import one_by_one
from pellucid.core.size import Size
from pellucid.core.tensor import Tensor
from pellucid.ops.expansion import expand_

__all__ = ["broadcast_shapes", "broadcast_tensors"]


@composite()
def broadcast_tensors(*tensors) -> tuple[Tensor, ...]:
    """Views of all tensors in their common broadcast shape. RuntimeError if they have none."""
    tensors = one_by_one(tensors)
    shape = broadcast_shapes(*[t._array.shape for t in tensors])
    return tuple([t if t._array.shape == shape else expand_(t, tuple(shape)) for t in tensors])


@composite()
def broadcast_shapes(*shapes):
    """The shape to which all shapes (ints or tuples) broadcast; RuntimeError if there is none."""
    shapes = [(s,) if isinstance(s, int) else tuple(s) for s in shapes]
    result = [1] * max([len(s) for s in shapes], default=0)
    for shape in shapes:
        for back, s in enumerate(reversed(shape), 1):
            if s < 0:
                raise RuntimeError(f"Trying to create tensor with negative dimension ({s}): ({list(shape)})")
            if s != 1:
                if result[-back] not in (1, s):
                    raise RuntimeError(f"Attempting to broadcast a dimension of length {s} at -{back}! Mismatching argument at "
                                       f"index {shapes.index(shape)} had {shape}; but expected shape should be broadcastable to "
                                       f"{result}: The size of tensor a ({result[-back]}) must match the size of tensor b ({s}) at "
                                       f"non-singleton dimension {len(result) - back}")
                result[-back] = s
    return Size(result)
