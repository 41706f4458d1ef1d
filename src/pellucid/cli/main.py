"""The command `pellucid`: reads the arguments, runs the program they name, turns a user's mistake into one line.

The programs themselves live in modules of their own: each offers `add_arguments(parser)` and `run(options) -> int`.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from typing import NoReturn

import pellucid
from pellucid.cli import bench, demo, graph, kernels, summary
from pellucid.cli.errors import EXIT_INTERRUPTED, EXIT_USAGE, UsageError

PROGRAMS = {
    "bench": (bench, "measure Pellucid beside PyTorch, if it is installed"),
    "demo": (demo, "train a small network on handwritten digits and draw what happened"),
    "graph": (graph, "run a program and show the computation graph of its last backward()"),
    "kernels": (kernels, "compile the kernels of this installation now"),
    "summary": (summary, "print the modules of a model with shapes, parameters and arithmetic"),
}


class OneLineParser(argparse.ArgumentParser):
    """An argument parser whose complaint is one line; the help it points to has the rest."""

    def error(self, message: str) -> NoReturn:
        self.exit(EXIT_USAGE, f"{self.prog}: {message} (see {self.prog} --help)\n")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program that `arguments` (by default the process's own) name and return its exit status.

    0: done; 2: the arguments, a file or the device cannot be used, said in one line on stderr; 130: ended by Ctrl-C.
    """
    parser = build_parser()
    options = parser.parse_args(arguments)
    if options.program is None:
        parser.print_help()
        return 0
    try:
        return PROGRAMS[options.program][0].run(options)
    except UsageError as error:
        print(f"pellucid {options.program}: {error}", file=sys.stderr)
        return EXIT_USAGE
    except KeyboardInterrupt:
        print(f"pellucid {options.program}: interrupted", file=sys.stderr)
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        # The reader of our output (`| head`) has gone: nobody is left to tell. The interpreter's last flush must not
        # complain either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def build_parser() -> argparse.ArgumentParser:
    """The parser of the command and of all its programs."""
    parser = OneLineParser(prog="pellucid", description="Autograd you can see through.")
    parser.add_argument("--version", action="version", version=f"pellucid {pellucid.__version__}")
    programs = parser.add_subparsers(dest="program", metavar="PROGRAM")
    for name, (program, purpose) in PROGRAMS.items():
        program.add_arguments(programs.add_parser(name, help=purpose, description=program.DESCRIPTION))
    return parser
