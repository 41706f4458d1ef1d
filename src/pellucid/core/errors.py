"""Texts of errors that every operator shares: shapes that do not fit, arguments of the wrong kind; and where it happened.

An operator's own checks raise their own errors, in its file. What NumPy raised becomes PyTorch's exception type and
phrase, with the operator, its arguments by name, and both shapes. Every error that comes out of an operator or a module
gets a note (`__notes__`, printed below the message) with the arguments as the program calls them, the line, the module.
"""

from __future__ import annotations

import dis
import gc
import sys
from types import FrameType, FunctionType, TracebackType
from typing import Any, NoReturn

import numpy as np

from pellucid.core.frames import variables
from pellucid.core.language import say
from pellucid.core.names import Names, is_module, module_path, names_here, running_modules
from pellucid.core.sites import Site, at, caller, outside
from pellucid.core.tensor import Tensor

__all__ = ["calls_through", "fail", "locate", "locate_raised", "note_call", "refused", "shape_text", "spread", "type_name"]


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
    frame = sys._getframe(1)
    name, operands = _known_name(op.name, frame), _operands(op, values)
    found = _translated(error, name, operands, op.broadcast) if isinstance(error, ValueError) else error
    try:
        locate(found, frame, name, operands, _settings(op, values))
        if found is error:
            raise error
        raise found from error
    finally:
        del found, error, values, operands, frame  # an error held by a frame that it has passed through is a cycle


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


def note_call(op, error: Exception, values, name: str) -> None:
    """`locate`, for an operator that was called under a name and refused before it came to its forward."""
    locate(error, sys._getframe(1), name, _operands(op, values), _settings(op, values))


def locate_raised(error: Exception, frame: FrameType, operation: str, operands: list[tuple[str, Any]]) -> None:
    """`locate`, for an error that has passed through calls: by the function that refused, on the program's innermost line.

    operation, operands: what to name where no function of the library refused.
    """
    calls = calls_through(error.__traceback__)
    inner = next((each for each, _ in reversed(calls) if outside[each.f_code.co_filename]), frame)
    locate(error, inner, *(refused(error.__traceback__) or (operation, operands)))


def refused(traceback: TracebackType | None) -> tuple[str, list[tuple[str, Any]]] | None:
    """The function of the library that refused what it was given, and the tensors that it was given, by parameter.

    Of the calls that an error passed through it is the one next to the program's line, or to the modules of the library that
    the program called; None if there is none with tensors, or if it is not known any more what it was given.
    """
    calls = calls_through(traceback)
    last = max((k for k, (frame, _) in enumerate(calls) if outside[frame.f_code.co_filename]), default=-1)
    for frame, place in calls[last + 1 :]:
        given, changed = _given(frame, place)
        operands = [pair for name, value in given for pair in spread(name, value) if _is_tensor(pair[1])]
        if operands and not any(is_module(value) for _, value in given):
            return None if changed else (_function_name(frame), operands)
    return None


def calls_through(traceback: TracebackType | None) -> list[tuple[FrameType, int]]:
    """The frames that an error passed through, outermost first, each with the instruction it was at."""
    calls = []
    while traceback is not None:
        calls.append((traceback.tb_frame, traceback.tb_lasti))
        traceback = traceback.tb_next
    return calls


def _given(frame: FrameType, place: int) -> tuple[list[tuple[str, Any]], bool]:
    """The arguments of a function, and whether it has assigned to one that holds a tensor before an instruction."""
    code, local = frame.f_code, variables(frame)
    assigned = {each.argval for each in dis.get_instructions(code) if each.opname == "STORE_FAST" and each.offset < place}
    parameters = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    given = [(name, local[name]) for name in parameters if name in local]
    return given, any(name in assigned and _is_tensor(value) for name, value in given)


def _function_name(frame: FrameType) -> str:
    """The name of a running function; of one made within another the name that was given to it."""
    code = frame.f_code
    if "<locals>" in code.co_qualname:
        local = variables(frame)
        for function in gc.get_referrers(code):
            cells = zip(code.co_freevars, getattr(function, "__closure__", None) or (), strict=False)
            if isinstance(function, FunctionType) and all(cell.cell_contents is local.get(name) for name, cell in cells):
                return function.__name__
    return code.co_name.removeprefix("functional_")


def spread(name: str, value: Any) -> list[tuple[str, Any]]:
    """An argument and its name; of a list each item, by the list's name and its place."""
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
    methods = vars(Tensor)
    while frame is not None and name not in methods and not outside[frame.f_code.co_filename]:
        written = frame.f_code.co_name if not frame.f_code.co_filename.startswith("<") else ""  # no generated code
        known = next((known for known in (written, f"__{written}__") if callable(methods.get(known))), None)
        if known is not None:
            return known
        frame = frame.f_back
    return name


def _operands(op, values) -> list[tuple[str, Any]]:
    """The tensors that an operator was called with, by the names of its parameters; lists spread out."""
    found = []
    for p, value in zip(op.parameters, values, strict=True):
        if p.kind != "attribute":
            found += spread(p.name, value)
    return [(name, value) for name, value in found if _is_tensor(value)]


LONGEST = 60  # text of a setting that is shown


def _settings(op, values) -> tuple[str, ...]:
    """What else an operator was called with, apart from what it takes by default: "size=(4, 2)"."""
    shown = []
    for p, value in zip(op.parameters, values, strict=True):
        if p.kind == "attribute" and value is not None and not _is_default(value, p.default) and not _is_tensor(value):
            text = repr(value)
            if len(text) <= LONGEST and not text.startswith("<"):
                shown.append(f"{p.name}={text}")
    return tuple(shown)


def _is_default(value, default) -> bool:
    """Whether a setting is what it is by default; a number written again is another object."""
    return value is default or (type(value) is type(default) and isinstance(value, int | float | str) and value == default)


def _translated(error: ValueError, name: str, operands: list[tuple[str, Any]], broadcasts: bool) -> Exception:
    """The error to raise for one that NumPy raised in an operator's forward."""
    if isinstance(error, np.exceptions.AxisError):
        ndim = error.ndim or 0
        return IndexError(
            f"Dimension out of range (expected to be in range of [{-ndim}, {ndim - 1}], but got {error.axis})"
        )
    if not error.args or getattr(error, "pellucid", False):
        return error
    named = [(parameter, value._array) for parameter, value in operands]
    shapes = ", ".join(f"{parameter}: {shape_text(array)}" for parameter, array in named)
    clash = _first_clash(named) if broadcasts or "broadcast" in str(error) else None
    return RuntimeError(f"{clash} in {name}({shapes})" if clash else f"{name}(): {error} (got {shapes})")


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
