"""Choosing between two tensors, element by element; between two functions: `functions/choosing.py`."""

from __future__ import annotations

import numpy as np

from pellucid.autograd.operator import Array, Index, Promote, composite, operator
from pellucid.core.checks import no_tensor
from pellucid.core.tensor import Tensor, wrap

__all__ = ["where"]


def condition_array(condition: np.ndarray) -> np.ndarray:
    """The condition as bools; RuntimeError for another dtype than bool and uint8."""
    if condition.dtype.kind == "b":
        return condition
    if condition.dtype == np.uint8:
        return condition != 0
    raise RuntimeError(f"where expected condition to be a boolean tensor, but got a tensor with dtype {condition.dtype.name}")


@operator(promote=Promote.SAME, numbers=True, exact=True, module=None, name="where", node="WhereBackward0")
class where_kernel:
    """The element of `input` where the condition holds, else that of `other`."""

    def forward(xp, condition: Index, input: Array, other: Array):
        return xp.where(condition_array(condition), input, other)

    def vjp_input(F, grad, condition): return F.where(condition, grad, 0)
    def vjp_other(F, grad, condition): return F.where(condition, 0, grad)

    def samples(make):
        yield (make.mask(3, 4), make(3, 4), make(4)), {}
        yield (make.mask(3, 1), make(4), make()), {}


@composite()
def where(condition, input=None, other=None, *, out=None):
    """The element of `input` where the condition holds, else that of `other`; with the condition alone, its `nonzero`.

    condition: bool; input, other: tensors or numbers. All broadcast to a common shape.
    Raises: RuntimeError (the condition is not bool), TypeError (the condition is no tensor, or one of the values is
        missing).
    """
    if not isinstance(condition, Tensor):
        raise no_tensor("where", "condition", condition)
    if input is None and other is None:
        return condition.nonzero(as_tuple=True)
    if out is None:
        input, other = _as_tensor(input, other), _as_tensor(other, input)
    return where_kernel(condition, input, other, out=out)


def _as_tensor(value, beside):
    """A Python number beside a real floating tensor as a 0-d tensor of its type: it changes no result and is faster."""
    if (value.__class__ is float or value.__class__ is int) and isinstance(beside, Tensor):
        if beside._array.dtype.char in "fd":
            return wrap(np.asarray(value, beside._array.dtype))
    return value


def _where_method(self, condition, other):
    """This tensor's element where the condition holds, else that of `other`; see `pellucid.where`."""
    return where(condition, self, other)


Tensor.where = _where_method
