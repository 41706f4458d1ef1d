"""Writes docs/errors.md: python docs/make_errors.py [--check]

Each program of errors_programs.py runs under both libraries, and the page shows what each says. Where PyTorch is installed
its words are measured again and kept in errors_torch.json; elsewhere, and for --check, the kept ones are shown. Ours are
measured each time.
"""

from __future__ import annotations

import contextlib
import importlib.util
import io
import json
import linecache
import math
import re
import sys
import textwrap
import traceback
import warnings
from html import escape
from pathlib import Path
from types import CodeType

sys.path.insert(0, str(Path(__file__).parent))
from errors_programs import MISTAKES, Mistake

from pellucid.autograd import growth
from pellucid.core.language import set_language

HERE = Path(__file__).parent
PAGE, MEASURED = HERE / "errors.md", HERE / "errors_torch.json"
FILE = "train.py"  # what the programs are called in messages
WIDTH = 52  # of a column, in characters
SILENCE = "(nothing: it runs on)"
HEAD = """# Twenty mistakes, and what is said about them

Each program below was run with PyTorch {version} and with Pellucid (`import pellucid as torch`). Side by side is what each of them
said: printed lines, warnings, the error; long lines are wrapped. An error's first line begins as PyTorch's does, so that programs which
look for its words go on working; what explains it comes after.

Made by `python docs/make_errors.py` from the programs in `docs/errors_programs.py`; a test holds this page to what the library says.
"""
CHINESE = """## The same in Chinese

With `PELLUCID_LANG=zh`, or in a Chinese locale, explanations are in Chinese; the first line stays.
"""
IN_CHINESE = (1, 4)


# --- measuring --------------------------------------------------------------------------------------------------------


def said_by(library: str, mistake: Mistake) -> str:
    """What running a program says under a library: printed lines, warnings, the error with its notes."""
    code = compiled(source_of(mistake).replace("import torch\n", f"import {library} as torch\n", 1))
    printed, error = io.StringIO(), ""
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed), warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        try:
            exec(code, {"__name__": "__main__"})
        except Exception as caught:
            error = "".join(traceback.format_exception_only(caught))
    parts = [f"{each.category.__name__}: {each.message}" for each in warned] + [printed.getvalue(), error]
    return stable("\n".join(part.strip() for part in parts if part.strip())) or SILENCE


def source_of(mistake: Mistake) -> str:
    """The program, without the indentation that it has as data."""
    return textwrap.dedent(mistake.program).strip() + "\n"


def compiled(source: str) -> CodeType:
    """A program whose lines tracebacks and messages can quote."""
    linecache.cache[FILE] = (len(source), None, source.splitlines(keepends=True), FILE)
    return compile(source, FILE, "exec")


def stable(text: str) -> str:
    """A message without what differs between runs and machines: lines of this script, places in PyTorch's source, counts."""
    text = re.sub(rf'  File "(?!{FILE})[^"]*", line .*\n    .*\n', "", text)
    text = re.sub(r" \(Triggered internally at [^)]*\)", "", text)
    return re.sub(r"\d[\d,]* operations deep, and \d[\d,]* of its \d[\d,]*", "N operations deep, and N of its N", text)


def ours() -> list[str]:
    """What our library says of each mistake. Graphs that grow are looked for at once, as in a run of minutes."""
    growth.SHARE = math.inf
    return [said_by("pellucid", mistake) for mistake in MISTAKES]


def theirs(measure: bool) -> tuple[str, list[str]]:
    """PyTorch's version and what it says of each mistake: measured and kept, or as kept.

    Raises:
        RuntimeError: what is kept is of other programs.
    """
    if measure:
        import torch

        version = re.match(r"\d+\.\d+", torch.__version__)
        kept = {"version": version[0] if version else torch.__version__, "programs": {}}
        for mistake in MISTAKES:
            kept["programs"][source_of(mistake)] = said_by("torch", mistake)
        MEASURED.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    kept = json.loads(MEASURED.read_text(encoding="utf-8"))
    missing = [mistake.heading for mistake in MISTAKES if source_of(mistake) not in kept["programs"]]
    if missing:
        raise RuntimeError(f"not measured under PyTorch: {', '.join(missing)}; run this script where PyTorch is installed")
    return kept["version"], [kept["programs"][source_of(mistake)] for mistake in MISTAKES]


# --- writing ----------------------------------------------------------------------------------------------------------


def wrapped(text: str, width: int = WIDTH) -> str:
    """A message in lines of at most so many characters; what was wrapped is indented."""
    lines = []
    for line in text.splitlines():
        indent = line[: len(line) - len(line.lstrip())] + "    "
        lines += textwrap.wrap(line, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False) or [""]
    return "\n".join(line for line in lines if line.strip())  # an empty line would end the table


def side_by_side(version: str, theirs: str, ours: str) -> list[str]:
    """A table of two columns: GitHub shows <pre> in cells as it stands."""
    cells = [f"<td><pre>\n{escape(wrapped(text), quote=False)}\n</pre></td>" for text in (theirs, ours)]
    return ["<table>", f"<tr><th>PyTorch {version}</th><th>Pellucid</th></tr>", '<tr valign="top">', *cells, "</tr>", "</table>"]


def section(number: int, mistake: Mistake, version: str, theirs: str, ours: str) -> list[str]:
    """One mistake: heading, program, both messages, the fix."""
    fix = f"**Instead:** {mistake.fix}" + (f" *{mistake.same}*" if mistake.same else "")
    program = ["```python", source_of(mistake).rstrip(), "```"]
    return [f"## {number}. {mistake.heading}", "", *program, "", *side_by_side(version, theirs, ours), "", fix, ""]


def in_chinese() -> list[str]:
    """Some of our messages in Chinese."""
    set_language("zh")
    lines = [CHINESE]
    for number in IN_CHINESE:
        first, *rest = said_by("pellucid", MISTAKES[number - 1]).splitlines()
        lines += [f"Mistake {number}:", "", "```text", wrapped(first, 2 * WIDTH), *rest, "```", ""]
    set_language("en")
    return lines


def page(measure: bool) -> str:
    """The whole page."""
    set_language("en")
    version, kept = theirs(measure)
    lines = [HEAD.format(version=version)]
    for number, (mistake, their, our) in enumerate(zip(MISTAKES, kept, ours(), strict=True), 1):
        if (their == our) != bool(mistake.same):
            raise RuntimeError(f"{mistake.heading!r} has to say that both messages are the same just where they are")
        lines += section(number, mistake, version, their, our)
    return "\n".join([*lines, *in_chinese()]).rstrip() + "\n"


def main() -> int:
    check = "--check" in sys.argv[1:]
    text = page(measure=not check and importlib.util.find_spec("torch") is not None)
    if not check:
        PAGE.write_text(text, encoding="utf-8")
        return 0
    return int(PAGE.read_text(encoding="utf-8") != text)


if __name__ == "__main__":
    sys.exit(main())
