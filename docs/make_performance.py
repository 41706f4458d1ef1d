"""Writes the result into docs/performance.md, and its picture, from docs/performance.json, which `pellucid bench --json` wrote:

python docs/make_performance.py [--check]

A page without such a file has no result, which is up to date too.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from pellucid.cli.bench.picture import ratios_picture
from pellucid.cli.bench.report import COLUMNS, PARTS, entries, parts_of
from pellucid.cli.bench.results import Line

HERE = Path(__file__).parent
PAGE, FIGURES, PICTURE = HERE / "performance.md", HERE / "performance.json", HERE / "pictures" / "performance.svg"
BEGIN, END = "<!-- made by make_performance.py: -->\n", "<!-- end of what is made -->\n"

PARTS_SAY = [
    "From the same run, each row once, in the process that was measured before: seconds and shares of a step in which every call of",
    "a compiled kernel is timed. Products and the optimizer have their rate beside the machine's limit in the same seconds: that of a",
    "product of two 2048 x 2048 matrices, and that of a copy of 64 MiB (parameters that fit the caches are faster than that). *Alone*",
    "is what the step's products take one after the other with operands in the cache, in turns with the same products in PyTorch.",
    "What no kernel does is in the last column; it is longer here than it would be without the clock.",
]


def main() -> int:
    """Write both, or say whether both are up to date."""
    if "--check" in sys.argv and not FIGURES.exists():
        return int(BEGIN in PAGE.read_text(encoding="utf-8"))
    content = json.loads(FIGURES.read_text(encoding="utf-8"))
    lines = [Line.from_json(entry) for entry in content["lines"]]
    before = PAGE.read_text(encoding="utf-8")
    head, _, rest = before.partition(BEGIN)
    _, _, tail = rest.partition(END)
    page, picture = head.rstrip("\n") + "\n\n" + BEGIN + section(content, lines) + END + tail, ratios_picture(lines)
    if "--check" in sys.argv:
        return int(page != before or not PICTURE.exists() or picture != PICTURE.read_text(encoding="utf-8"))
    PAGE.write_text(page, encoding="utf-8")
    PICTURE.write_text(picture, encoding="utf-8")
    return 0


def section(content: Mapping[str, Any], lines: list[Line]) -> str:
    """What was measured where, the table, and what each row is."""
    rows = table(COLUMNS, map(entries, lines))
    parts = table(PARTS, [parts_of(line, line.breakdown) for line in lines if line.breakdown])
    works = [f"- `{line.name}`: {line.title}" for line in lines]
    compared = compared_sentence(lines)
    picture = f"![Ratios]({PICTURE.relative_to(HERE).as_posix()})"
    head = ["## Result", "", machine(content), "", picture, "", *rows, "", *compared, "The rows:", "", *works, ""]
    return "\n".join([*head, "## What a step of ours is made of", "", *PARTS_SAY, "", *parts, ""]) + "\n"


def table(columns: list[str], entries: Iterable[list[str]]) -> list[str]:
    """Lines of a table; the first column is code."""
    rows = [f"| {' | '.join([f'`{name}`', *rest])} |" for name, *rest in entries]
    return [f"| {' | '.join(columns)} |", "|" + " --- |" * len(columns), *rows]


def machine(content: Mapping[str, Any]) -> str:
    """The machine and the settings in a sentence."""
    where, how = content["machine"], content["settings"]
    packages = ", ".join(f"{name} {version}" for name, version in where["packages"].items())
    clock = "" if how["clock"] == "elapsed" else " Times are the processor's, because others used the machine."
    return (
        f"{where['processor']}, {where['cores']} cores, {where['system']}, Python {where['python']}; {packages}; "
        f"{where['date']}; threads: {how['threads']}; rounds: {how['rounds']}, of turns: {how['turns']}.{clock}"
    )


def compared_sentence(lines: list[Line]) -> list[str]:
    """Whether the losses agree, and who was disturbed."""
    compared = [line for line in lines if line.agrees is not None]
    apart = ", ".join(f"`{line.name}`" for line in compared if not line.agrees)
    text = f"Losses over {min((line.compared for line in compared), default=0)} steps agree in all rows that have them"
    parts = [text + (f", but for {apart}." if apart else "."), ""] if compared else []
    if any(line.disturbed for line in lines):
        parts += ["\\* Others used the machine in most turns of these rows.", ""]
    return parts


if __name__ == "__main__":
    sys.exit(main())
