"""Largest and smallest elements: `max` and its relatives, of everything, along dimensions, or of two tensors.

The operators are in `ops/selection.py` and `ops/extrema.py`.
"""

from __future__ import annotations

from types import SimpleNamespace

from pellucid.autograd.operator import composite
from pellucid.core.dims import keyword_names
from pellucid.core.tensor import Tensor
from pellucid.ops.extrema import maximum, minimum
from pellucid.ops.selection import largest, smallest

__all__ = ["amax", "amin", "argmax", "argmin", "max", "min"]


def _public(word: str, which: str, operators: SimpleNamespace, pairwise):
    """The three public functions about the largest or the smallest elements."""

    def over_dims(input, dim=(), keepdim=False, *, out=None, axis=None, keepdims=None):
        dim, keepdim = keyword_names(dim, keepdim, axis, keepdims)
        return operators.over_dims(input, dim, keepdim, out=out)

    def three_ways(input, dim=None, keepdim=False, *, other=None, out=None, axis=None, keepdims=None):
        dim, keepdim = keyword_names(dim if other is None else other, keepdim, axis, keepdims)
        if isinstance(dim, Tensor):
            return pairwise(input, dim, out=out)
        if dim is not None:
            return operators.along(input, dim, keepdim, out=out)
        if keepdim:
            raise TypeError(f"{word}() received an invalid combination of arguments: keepdim needs dim")
        return operators.of_all(input, out=out)

    def place(input, dim=None, keepdim=False, *, out=None, axis=None, keepdims=None):
        dim, keepdim = keyword_names(dim, keepdim, axis, keepdims)
        return operators.place(input, dim, keepdim, out=out)

    over_dims.__doc__ = f"""The {which} element over `dim` (by default over all); equal ones share the gradient.

    input: [*S], real. dim: a dimension or a tuple.

    Raises:
        IndexError: a dimension without elements.
        RuntimeError: a dimension named twice, or complex input.
    """
    three_ways.__doc__ = f"""The {which} element; or the pair (values, indices) along `dim`; or elementwise that of two tensors.

    Args:
        input: [*S], real.
        dim: one dimension, or a tensor to compare with (then also called `other`).
        keepdim: keep the dimension, with size one.

    Raises:
        IndexError: a dimension that is not there, or is empty.
        RuntimeError: an empty tensor without `dim`, or complex input.
    """
    place.__doc__ = f"""The index of the {which} element along `dim`, or in the flattened tensor; the first of equal ones. Returns int64.

    Raises:
        IndexError: a dimension that is not there, or nothing to choose from.
        RuntimeError: bools or complex numbers.
    """
    for function, name in ((over_dims, f"a{word}"), (three_ways, word), (place, f"arg{word}")):
        function.__name__ = function.__qualname__ = name
        composite(method=True)(function)
    return over_dims, three_ways, place


amax, max, argmax = _public("max", "largest", largest, maximum)
amin, min, argmin = _public("min", "smallest", smallest, minimum)
