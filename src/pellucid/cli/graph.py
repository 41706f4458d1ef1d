"""`pellucid graph train.py`: run a program and show the graph of its last backward, or of another one.

The recording is in `pellucid.graph`; here are the options, the running of somebody else's program, and the files.
"""

from __future__ import annotations

import argparse
import os
import runpy
import sys
import traceback
from collections.abc import Callable
from pathlib import Path

from pellucid.cli.errors import UsageError
from pellucid.cli.files import write_text
from pellucid.cli.numbers import positive_whole
from pellucid.graph.failures import note_failure
from pellucid.graph.names import names_here
from pellucid.graph.selecting import sinks
from pellucid.graph.snapshot import Graph
from pellucid.graph.taking import put_names
from pellucid.graph.watching import Enough, Watcher

DESCRIPTION = (
    "Run a program and show the computation graph of its last backward(). Options may stand before or after the program's "
    "own arguments; what follows -- belongs to the program."
)
FORMATS: dict[str, Callable[[Graph, argparse.Namespace], str]] = {
    "text": lambda graph, options: graph.text(expand=options.expand),
    "dot": lambda graph, options: graph.dot(expand=options.expand),
    "json": lambda graph, options: graph.json(indent=1),
    "svg": lambda graph, options: graph.svg(expand=options.expand),
    "html": lambda graph, options: graph.html(),
}
EXTENSIONS = {".txt": "text", ".dot": "dot", ".gv": "dot", ".json": "json", ".svg": "svg", ".html": "html", ".htm": "html"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `pellucid graph`."""
    _add_options(parser)
    parser.add_argument("script", metavar="PROGRAM", type=Path, help="the program, a Python file")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="its arguments")


def _add_options(parser: argparse.ArgumentParser) -> None:
    """The options, for the command line as a whole and for what stands after the program's name."""
    output = parser.add_argument_group("what to show")
    output.add_argument("-o", "--output", type=Path, metavar="FILE", help="a file; its ending says in which form")
    for name in FORMATS:
        output.add_argument(f"--{name}", dest="format", action="store_const", const=name, help=f"as {name}")
    output.add_argument("--expand", type=_levels, metavar="N", help="levels of modules to open, or all")
    output.add_argument("--values", action="store_true", help="with small values and local derivatives")
    which = parser.add_argument_group("which graph")
    which.add_argument("--nth", type=positive_whole, metavar="N", help="of the Nth backward(); the program ends there")
    which.add_argument("--line", type=positive_whole, metavar="N", help="of the last backward() that this line starts")


def run(options: argparse.Namespace) -> int:
    """Run the program, write the graph; the exit status: 0, or 1 if the program failed."""
    own, program_arguments = _own_options(options)
    if not own.script.is_file():
        raise UsageError(f"{own.script}: there is no such file")
    form = _format(own)
    watcher = Watcher(lambda number, line: _wanted(own, number, line), lambda number: number == own.nth, own.values)
    failed = _run(own.script, program_arguments, watcher)
    graph = _chosen(own, watcher, failed)
    text = FORMATS[form](graph, own)
    if own.output is None:
        print(text, end="" if text.endswith("\n") else "\n")
    else:
        write_text(own.output, text)
        print(f"{graph!r}\nwritten to {own.output}")
    return 1 if failed is not None else 0


def _levels(text: str) -> int | str:
    if text == "all":
        return text
    if not text.isdigit():
        raise argparse.ArgumentTypeError(f"expected a number of levels or 'all', got {text!r}")
    return int(text)


def _own_options(options: argparse.Namespace) -> tuple[argparse.Namespace, list[str]]:
    """Our options, wherever they stand, and what is left for the program."""
    given, after = options.arguments, []
    if "--" in given:
        at = given.index("--")
        given, after = given[:at], given[at + 1 :]
    parser = argparse.ArgumentParser(prog="pellucid graph", add_help=False, allow_abbrev=False, argument_default=argparse.SUPPRESS)
    parser.error = _complain  # type: ignore[method-assign]
    _add_options(parser)
    found, left = parser.parse_known_args(given)
    own = argparse.Namespace(**{**vars(options), **vars(found)})
    return own, [*left, *after]


def _complain(message: str) -> None:
    raise UsageError(message)


def _format(options: argparse.Namespace) -> str:
    """In which form to show the graph: as asked for, or as the file's ending says; text otherwise."""
    if options.format:
        return options.format
    if options.output is None:
        return "text"
    ending = options.output.suffix.lower()
    if ending not in EXTENSIONS:
        raise UsageError(f"{options.output}: unknown ending; known are {', '.join(EXTENSIONS)}")
    return EXTENSIONS[ending]


def _wanted(options: argparse.Namespace, number: int, line: object) -> bool:
    if options.nth is not None:
        return number == options.nth
    return options.line is None or getattr(line, "line", None) == options.line


def _run(program: Path, arguments: list[str], watcher: Watcher) -> Exception | None:
    """Run a program as `python program arguments` does; the error that ended it, if one did, is shown and returned."""
    before = sys.argv, sys.path[0]
    sys.argv, sys.path[0] = [str(program), *arguments], str(program.resolve().parent)
    try:
        with watcher:
            runpy.run_path(str(program), run_name="__main__")
    except Enough:
        pass
    except SystemExit as exit_:
        if exit_.code not in (None, 0):
            print(f"{program} ended with exit status {exit_.code}", file=sys.stderr)
    except Exception as error:
        _show(error)
        return error
    finally:
        sys.argv, sys.path[0] = before
    return None


def _show(error: Exception) -> None:
    """Print the program's traceback, without our frames before it."""
    trace = error.__traceback__
    here = os.path.dirname(os.path.abspath(__file__))
    while trace is not None and (trace.tb_frame.f_code.co_filename.startswith((here, "<frozen runpy"))):
        trace = trace.tb_next
    traceback.print_exception(type(error), error, trace or error.__traceback__)


def _chosen(options: argparse.Namespace, watcher: Watcher, failed: Exception | None) -> Graph:
    """The graph to show: that of the wanted backward, or where the program failed, what ran since the last one."""
    if failed is not None and (watcher.kept is None or (options.nth is None and options.line is None)):
        put_names(watcher.graph, names_here(), watcher)
        note_failure(watcher, failed)
        watcher.graph.roots = sinks(watcher.graph)
        return watcher.graph
    if watcher.kept is not None:
        return watcher.kept
    if not watcher.count:
        raise UsageError(f"{options.script} never called backward(): there is no graph to show")
    lines = ", ".join(map(str, sorted(watcher.lines))) or "unknown lines"
    wanted = f"--nth {options.nth}" if options.nth is not None else f"--line {options.line}"
    raise UsageError(f"{wanted}: no such backward(); there were {watcher.count}, started at lines {lines}")
