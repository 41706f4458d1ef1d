"""Texts of errors that every operator shares: shapes that do not fit, arguments of the wrong kind; and where it happened.

An operator's own checks raise their own errors, in its file. What NumPy raised becomes PyTorch's exception type and
phrase, with the operator, its arguments by name, and both shapes. Every error that comes out of an operator or a module
gets a note (`__notes__`, printed below the message) with the arguments as the program calls them, the line, the module.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any, NoReturn

import numpy as np

from pellucid.core.language import say
from pellucid.core.names import Names, module_path, names_here, running_modules
from pellucid.core.sites import Site, at, caller, outside
from pellucid.core.tensor import Tensor

__all__ = ["REFUSALS", "fail", "locate", "located", "shape_text", "type_name"]


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
    try:
        found = _translated(op, error, values) if isinstance(error, ValueError) else error
        frame = sys._getframe(1)
        locate(found, frame, _known_name(op.name, frame), _operands(op, values), _settings(op, values))
        if found is error:
            raise error
        raise found from error
    finally:
        del found, error, values, frame  # an error that is a variable of a frame it has passed through is a cycle with it


def locate(
    error: Exception, frame: FrameType | None, operation: str, operands: list[tuple[str, Any]], settings: tuple[str, ...] = ()
) -> None:
    """Note on an error which operation failed, on which arguments, on which line, in which module; unless it is noted.

    operands: the tensors among the arguments, by the names of the parameters. settings: the other arguments, as text.
    """
    if getattr(error, "_located", False):
        return
    running, outermost = running_modules(frame)
    tables = [names_here(outermost.f_back)] if outermost is not None else []  # by longer paths, "net.layer" for "self.layer"
    tables.append(names_here(frame))
    shown = [f"{name} {shape_text(value._array)}{_held(value, tables)}" for name, value in operands]
    call, place = f"{operation}({', '.join([*shown, *settings])})", at(Site.of(*caller(frame)))
    module = module_path(running, outermost)
    if module:
        note = say("{call} failed{place}, in module {module}", call=call, place=place, module=module)
    else:
        note = say("{call} failed{place}", call=call, place=place)
    error.add_note(note)
    error._located = True  # type: ignore[attr-defined]


def located(function: Callable) -> Callable:
    """A function made of operators, whose refusals get the note that those of operators get.

    Errors of its own checks, before it has come to an operator, pass through nothing else that could say what it was given.
    """

    @functools.wraps(function)
    def call(*args, **kwargs):
        try:
            return function(*args, **kwargs)
        except REFUSALS as error:
            locate(error, sys._getframe(1), function.__name__.rstrip("_"), _given(function, args, kwargs))
            raise

    return call


REFUSALS = (RuntimeError, ValueError, IndexError, TypeError, AssertionError, NotImplementedError)


def _given(function: Callable, args: tuple, kwargs: dict) -> list[tuple[str, Any]]:
    """The tensors that a function was called with, by the names of its parameters; lists spread out."""
    try:
        bound = inspect.signature(function).bind_partial(*args, **kwargs).arguments
    except TypeError:  # they do not fit the parameters, which is the error
        bound = {**{f"argument {k}": value for k, value in enumerate(args)}, **kwargs}
    found = []
    for name, value in bound.items():
        found += _spread(name, value)
    return [(name, value) for name, value in found if _is_tensor(value)]


def _spread(name: str, value: Any) -> list[tuple[str, Any]]:
    return [(f"{name}[{k}]", item) for k, item in enumerate(value)] if isinstance(value, (list, tuple)) else [(name, value)]


def _is_tensor(value: Any) -> bool:
    return isinstance(getattr(value, "_array", None), np.ndarray)


def _held(value: Any, tables: list[Names]) -> str:
    """What the program calls a tensor: a parameter by the path from outside, anything else by the nearest variable."""
    far, near = tables[0].of_tensor(value), tables[-1].of_tensor(value)
    name = far if near.startswith("self.") and far else near or far
    return f" `{name}`" if name else ""


def _known_name(name: str, frame: FrameType | None) -> str:
    """An operator by its own name, if programs know it; else by that of the method within which it was called."""
    while frame is not None and not hasattr(Tensor, name) and not outside[frame.f_code.co_filename]:
        for known in (frame.f_code.co_name, f"__{frame.f_code.co_name}__"):
            if hasattr(Tensor, known):
                return known
        frame = frame.f_back
    return name


def _operands(op, values) -> list[tuple[str, Any]]:
    """The tensors that an operator was called with, by the names of its parameters; lists spread out."""
    found = []
    for p, value in zip(op.parameters, values, strict=True):
        if p.kind != "attribute":
            found += _spread(p.name, value)
    return [(name, value) for name, value in found if _is_tensor(value)]


LONGEST = 60  # text of a setting that is shown


def _settings(op, values) -> tuple[str, ...]:
    """What else an operator was called with, apart from what it takes by default: "size=(4, 2)"."""
    shown = []
    for p, value in zip(op.parameters, values, strict=True):
        if p.kind == "attribute" and value is not None and value is not p.default and not _is_tensor(value):
            text = repr(value)
            if len(text) <= LONGEST and not text.startswith("<"):
                shown.append(f"{p.name}={text}")
    return tuple(shown)


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
