"""Tables of text and HTML, and how numbers are written in them."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from html import escape

__all__ = ["cells", "count_text", "html_table", "text_table"]


def cells(text: str) -> int:
    """How many places a text takes in a monospaced face: characters of East Asian scripts are two cells wide."""
    if text.isascii():
        return len(text)
    return sum(2 if unicodedata.east_asian_width(character) in "WF" else 1 for character in text)


def text_table(headers: Sequence[str], rows: Sequence[Sequence[str]], left: int = 1, last_left: bool = False) -> str:
    """Rows under headers. The first `left` columns, and the last if asked, stand to the left, the others to the right."""
    table = [list(headers), *([*row] for row in rows)]
    widths = [max(cells(row[k]) for row in table) for k in range(len(headers))]
    to_left = _sides(len(headers), left, last_left)
    lines = []
    for row in table:
        rooms = [" " * (width - cells(text)) for text, width in zip(row, widths, strict=True)]
        texts = [text + room if side else room + text for text, room, side in zip(row, rooms, to_left, strict=True)]
        lines.append("  ".join(texts).rstrip())
    return "\n".join([lines[0], "-" * max(map(cells, lines)), *lines[1:]])


def html_table(headers: Sequence[str], rows: Sequence[Sequence[str]], left: int = 1, last_left: bool = False) -> str:
    """The same as HTML, for notebooks."""
    to_left = _sides(len(headers), left, last_left)

    def line(tag: str, row: Sequence[str]) -> str:
        styles = [f"text-align:{'left' if side else 'right'};white-space:pre" for side in to_left]
        return "".join(f'<{tag} style="{s}">{escape(text)}</{tag}>' for text, s in zip(row, styles, strict=True))

    body = "".join(f"<tr>{line('td', row)}</tr>" for row in rows)
    return f"<table><thead><tr>{line('th', headers)}</tr></thead><tbody>{body}</tbody></table>"


def _sides(count: int, left: int, last_left: bool) -> list[bool]:
    return [k < left or (last_left and k == count - 1) for k in range(count)]


def count_text(number: float) -> str:
    """A number of operations, exact up to a million, then with a prefix: `12,345`, `1.82 M`, `3.64 G`."""
    if number < 1e6:
        return f"{number:,}"
    for size, prefix in ((1e15, "P"), (1e12, "T"), (1e9, "G")):
        if number >= size:
            return f"{number / size:.4g} {prefix}"
    return f"{number / 1e6:.4g} M"
