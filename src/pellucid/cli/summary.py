"""`pellucid summary module:Model --input 1,3,32,32`: the table of a model's modules, shapes, parameters and arithmetic."""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pellucid
from pellucid.cli.errors import UsageError
from pellucid.cli.numbers import whole
from pellucid.graph import summary
from pellucid.nn import Module

DESCRIPTION = "Print the modules of a model with their shapes, parameters, FLOPs and MACs."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `pellucid summary`."""
    parser.add_argument(
        "model", metavar="MODULE:MODEL", help="a module or file, and what in it makes the model: net:Net, net.py:Net(10)"
    )
    parser.add_argument("--input", action="append", type=_shape, metavar="SIZES", help="the shape of an input, such as 1,3,32,32")
    parser.add_argument("--dtype", action="append", type=_dtype, metavar="DTYPE", help="the element type of an input (float32)")
    parser.add_argument("--depth", type=whole, default=3, help="how deep modules are shown (3)")


def run(options: argparse.Namespace) -> int:
    """Make the model, print its table; UsageError if it cannot be made or run."""
    model = _model(options.model)
    try:
        found = summary(model, input_size=options.input, dtypes=options.dtype)
    except Exception as error:  # the model is somebody else's program
        notes = " ".join(getattr(error, "__notes__", ())).splitlines()[:1]
        raise UsageError(f"{options.model} failed: {error}. {''.join(notes)}".rstrip(". ")) from error
    print(found.text(options.depth), end="")
    return 0


def _shape(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in text.split(",") if part)
    except ValueError:
        raise argparse.ArgumentTypeError(f"expected sizes such as 1,3,32,32, got {text!r}") from None


def _dtype(text: str) -> Any:
    found = getattr(pellucid, text, None)
    if not isinstance(found, pellucid.dtype):
        raise argparse.ArgumentTypeError(f"expected an element type such as float32 or int64, got {text!r}")
    return found


def _model(text: str) -> Module:
    """The model that `MODULE:MODEL` names: an instance, or a class or function that makes one without arguments."""
    where, colon, what = text.partition(":")
    if not (where and colon and what):
        raise UsageError(f"{text}: expected MODULE:MODEL, such as net:Net or net.py:Net(10)")
    module = _module(where)
    try:
        made = eval(what, vars(module))
        made = made if isinstance(made, Module) else made()
    except Exception as error:  # somebody else's program
        raise UsageError(f"{text} cannot be made: {type(error).__name__}: {error}") from error
    if not isinstance(made, Module):
        raise UsageError(f"{text} is no module but a {type(made).__name__}")
    return made


def _module(where: str) -> ModuleType:
    """A module by its name, looked for in the current folder too, or a Python file."""
    sys.path.insert(0, str(Path.cwd()))
    try:
        if not where.endswith(".py"):
            return importlib.import_module(where)
        spec: Any = importlib.util.spec_from_file_location(Path(where).stem, where)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module
    except Exception as error:  # somebody else's program
        raise UsageError(f"cannot import {where}: {type(error).__name__}: {error}") from error
    finally:
        sys.path.pop(0)
