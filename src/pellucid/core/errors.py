"""Texts of errors that every operator shares: shapes that do not fit, arguments of the wrong kind; and where it happened.

An operator's own checks raise their own errors, in its file. What NumPy raised becomes PyTorch's exception type and
phrase, with the operator, its arguments by name, and both shapes. Every error that comes out of an operator or a module
gets a note (`__notes__`, printed below the message) with the arguments as the program calls them, the line, the module.
"""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any, NoReturn

import numpy as np

from pellucid.core.names import Names, module_path, names_here, running_modules
from pellucid.core.sites import Site, at, caller

__all__ = ["fail", "locate", "shape_text", "type_name"]


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


def fail(op, error: Exception, values) -> NoReturn:
    """Raise what an error in an operator's forward is to be for the program, with a note of where it happened."""
    found = _translated(op, error, values) if isinstance(error, ValueError) else error
    locate(found, sys._getframe(1), op.name, _operands(op, values))
    if found is error:
        raise error
    raise found from error


def locate(error: Exception, frame: FrameType, operation: str, operands: list[tuple[str, Any]]) -> None:
    """Note on an error which operation failed, on which arguments, on which line, in which module; unless it is noted."""
    if getattr(error, "_located", False):
        return
    running, outermost = running_modules(frame)
    tables = [names_here(outermost.f_back)] if outermost is not None else []  # by longer paths, "net.layer" for "self.layer"
    tables.append(names_here(frame))
    shown = ", ".join(f"{name} {shape_text(value._array)}{_held(value, tables)}" for name, value in operands)
    module = module_path(running, outermost)
    line = at(Site.of(*caller(frame)))
    error.add_note(f"{operation}({shown}) failed{line}" + (f", in module {module}" if module else ""))
    error._located = True  # type: ignore[attr-defined]


def _held(value: Any, tables: list[Names]) -> str:
    """What the program calls a tensor: a parameter by the path from outside, anything else by the nearest variable."""
    far, near = tables[0].of_tensor(value), tables[-1].of_tensor(value)
    name = far if near.startswith("self.") and far else near or far
    return f" `{name}`" if name else ""


def _operands(op, values) -> list[tuple[str, Any]]:
    """The tensors that an operator was called with, by the names of its parameters; lists spread out."""
    found = []
    for p, value in zip(op.parameters, values, strict=True):
        items = [(f"{p.name}[{k}]", v) for k, v in enumerate(value)] if isinstance(value, (list, tuple)) else [(p.name, value)]
        found += [(name, v) for name, v in items if p.kind != "attribute" and isinstance(getattr(v, "_array", None), np.ndarray)]
    return found


def _translated(op, error: ValueError, values) -> Exception:
    """The error to raise for one that NumPy raised in an operator's forward."""
    if isinstance(error, np.exceptions.AxisError):
        ndim = error.ndim or 0
        return IndexError(
            f"Dimension out of range (expected to be in range of [{-ndim}, {ndim - 1}], but got {error.axis})"
        )
    if not error.args or getattr(error, "pellucid", False):
        return error
    named = [(name, value._array) for name, value in _operands(op, values)]
    shapes = ", ".join(f"{name}: {shape_text(array)}" for name, array in named)
    if op.broadcast or "broadcast" in str(error):
        clash = _first_clash(named)
        if clash:
            return RuntimeError(f"{clash} in {op.name}({shapes})")
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
