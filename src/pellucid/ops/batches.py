"""What the batching rules of operators share. No operator lives here. What moves a batch is in `batch_places.py`."""

from __future__ import annotations

__all__ = ["all_for_each", "for_each", "side_by_side"]


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
