"""`Variable`: the old name of a tensor, kept for old programs."""

from __future__ import annotations

from pellucid.autograd.engine import current_task
from pellucid.core.tensor import Tensor

__all__ = ["Variable"]


class _Engine:
    """What is left of the engine object that old programs reach through Variable."""

    @staticmethod
    def queue_callback(callback) -> None:
        """Call `callback` when the running backward is done; RuntimeError outside one."""
        task = current_task()
        if task is None:
            raise RuntimeError("Final callbacks can only be installed during backward pass.")
        task.queue_callback(callback)


class _VariableMeta(type):
    def __instancecheck__(cls, value) -> bool:
        return isinstance(value, Tensor)

    def __call__(cls, data, requires_grad: bool = False, volatile: bool = False):
        return data.detach().requires_grad_(requires_grad) if requires_grad else data


class Variable(metaclass=_VariableMeta):
    """`Variable(tensor, requires_grad=False)` is the tensor; every tensor is an instance."""

    _execution_engine = _Engine()
