"""Texts of errors that every operator shares: shapes that do not fit, arguments of the wrong kind.

An operator's own checks raise their own errors, in its file. What comes here is what NumPy raised: it becomes PyTorch's
exception type and phrase, with the operator, its arguments by name, and both shapes.
"""

from __future__ import annotations

import numpy as np

__all__ = ["shape_text", "translate", "type_name"]


def shape_text(array) -> str:
    """A shape as PyTorch writes it in errors: [2, 3]."""
    return str(list(np.shape(array)))


_TYPE_NAMES = {
    "bool": "Bool", "uint8": "Byte", "int8": "Char", "int16": "Short", "int32": "Int", "int64": "Long", "float16": "Half",
    "bfloat16": "BFloat16", "float32": "Float", "float64": "Double", "complex64": "ComplexFloat", "complex128": "ComplexDouble",
}  # fmt: skip


def type_name(dtype: np.dtype) -> str:
    """An element type as PyTorch's errors call it: Float, Long, ..."""
    return _TYPE_NAMES.get(str(dtype), str(dtype))


def translate(op, error: ValueError, values) -> Exception:
    """The error to raise for one that NumPy raised in an operator's forward."""
    if isinstance(error, np.exceptions.AxisError):
        ndim = error.ndim or 0
        return IndexError(
            f"Dimension out of range (expected to be in range of [{-ndim}, {ndim - 1}], but got {error.axis})"
        )
    if not error.args or getattr(error, "pellucid", False):
        return error
    named = [
        (p.name, v._array)
        for p, v in zip(op.parameters, values, strict=True)
        if p.kind == "array" and hasattr(v, "_array") and hasattr(v._array, "shape")
    ]
    if op.broadcast:
        clash = _first_clash(named)
        if clash:
            return RuntimeError(clash + f" in {op.name}({', '.join(f'{n}: {shape_text(a)}' for n, a in named)})")
    shapes = ", ".join(f"{n}: {shape_text(a)}" for n, a in named)
    return RuntimeError(f"{op.name}(): {error} (got {shapes})")


def _first_clash(named) -> str | None:
    """PyTorch's sentence about the dimension along which two operands cannot be broadcast."""
    for i, (name_a, a) in enumerate(named):
        for name_b, b in named[i + 1 :]:
            for back in range(1, min(a.ndim, b.ndim) + 1):
                if a.shape[-back] != b.shape[-back] and 1 not in (a.shape[-back], b.shape[-back]):
                    dim = max(a.ndim, b.ndim) - back
                    return (
                        f"The size of tensor a ({a.shape[-back]}) must match the size of tensor b ({b.shape[-back]}) "
                        f"at non-singleton dimension {dim} (a is {name_a!r}, b is {name_b!r})"
                    )
    return None
