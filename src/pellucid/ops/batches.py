"""What the batching rules of operators share. No operator lives here.

Some operators keep a number `lead` of leading dimensions apart and do the same for each place in them. On a batch there is
one such dimension more.
"""

from __future__ import annotations

import math

import numpy as np

from pellucid.core.values import differs

__all__ = ["all_for_each", "at_each_place", "differs", "for_each", "refuse_dynamic", "side_by_side"]


def at_each_place(lead: int, function, *arrays):
    """What `function` gives for the arrays (None among them), at each place in their first `lead` dimensions, one after another."""
    if not lead:
        return function(*arrays)
    shape = next(a for a in arrays if a is not None).shape[:lead]
    rows = [a if a is None else a.reshape(math.prod(shape), *a.shape[lead:]) for a in arrays]
    found = [function(*[r if r is None else r[i] for r in rows]) for i in range(math.prod(shape))]
    if isinstance(found[0], tuple):
        return tuple([np.stack(column).reshape(*shape, *column[0].shape) for column in zip(*found, strict=True)])
    return np.stack(found).reshape(*shape, *found[0].shape)


def for_each(F, tensor, batched: bool, size: int):
    """An operand with the batch in front: repeated, without copying, where it has none."""
    return tensor if batched else F.expand(F.unsqueeze(tensor, 0), (size, *tensor.shape))


def all_for_each(F, batched: set, size: int, **operands) -> list:
    """Operands given by name (tensors, lists of them, None) with the batch in front: repeated where it is not in `batched`."""

    def each(operand, there: bool):
        if operand is None:
            return None
        return [each(t, there) for t in operand] if isinstance(operand, list) else for_each(F, operand, there, size)

    return [each(operand, name in batched) for name, operand in operands.items()]


def side_by_side(F, batched: set, **operands) -> list:
    """Operands whose dimensions behind the batch line up as those of the examples do, so that they broadcast.

    They are given by name; those whose name is in `batched` have the batch in front.
    """
    ranks = {name: len(t.shape) - (name in batched) for name, t in operands.items()}
    rank = max(ranks.values())
    return [
        F.view(t, (t.shape[0], *(1,) * (rank - ranks[name]), *t.shape[1:])) if name in batched else t
        for name, t in operands.items()
    ]


def refuse_dynamic(name: str, *tensors) -> None:
    """RuntimeError where values that differ between the examples of a batch would decide the shape of a result."""
    for tensor in tensors:
        if differs(tensor):
            raise RuntimeError(
                f"vmap: We do not support batching operators that can output dynamic shape. Attempted to vmap over {name}: the "
                "size of its result depends on the values of each example. Call it outside of vmap."
            )
