"""The page: one HTML file with the data, the style and the program in it, and nothing from outside."""

from __future__ import annotations

import functools
import os
import re
import sys
import tempfile
import webbrowser
from html import escape
from importlib.resources import files
from pathlib import Path

from pellucid.core.language import language
from pellucid.graph.page.colours import style_sheet
from pellucid.graph.page.content import Content
from pellucid.graph.page.data import page_json
from pellucid.graph.page.scene import opened_at_first
from pellucid.graph.page.texts import LOCALES, say
from pellucid.graph.pausing import collector_paused
from pellucid.graph.snapshot import Graph

__all__ = ["SCRIPTS", "document", "notebook_frame", "show_page", "write_page"]

# In the order in which they stand in the page: each uses what is before it, and functions of those after it.
SCRIPTS = (
    "model", "layout", "nested", "scene", "view", "draw", "describe", "details", "chain", "flow", "replay", "outline",
    "search", "keys", "main",
)  # fmt: skip
LEAST_HEIGHT, MOST_HEIGHT = 360, 640  # of the page in a notebook


@collector_paused()
def document(graph: Graph, *, embedded: bool = False) -> str:
    """The page as the text of an HTML file.

    embedded: whether it is to stand in another page, where it leaves the mouse's wheel to that.
    """
    content = Content(graph, replayed=True)
    opened = opened_at_first(graph, content.blocks)
    title = _title(graph)
    parts = {
        "locale": LOCALES[language()],
        "title": escape(say("graph of", title=title)),
        "name": escape(title),
        "classes": "embedded" if embedded else "",
        "style": style_sheet() + _asset("page.css"),
        "data": page_json(content, opened, graph.to_dict()),
        "script": "\n".join(_asset(f"{name}.js") for name in SCRIPTS),
    }
    return re.sub(r"\{\{(\w+):?([^}]*)\}\}", lambda found: _part(parts, *found.groups()), _asset("page.html"))


def _title(graph: Graph) -> str:
    return say("the part that ran") if graph.failure is not None else graph.title or say("results")


def _part(parts: dict[str, str], name: str, key: str) -> str:
    """What stands for a mark in the page: `{{data}}` a part, `{{text:key}}` a text."""
    return escape(say(key)) if name == "text" else parts[name]


@functools.cache
def _asset(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def notebook_frame(graph: Graph) -> str:
    """The page in a frame of its own, as notebooks show it: its style and program touch nothing around it."""
    content = Content(graph)
    height = max(LEAST_HEIGHT, min(MOST_HEIGHT, 300 + 45 * len(content.blocks[0].items)))
    return (
        f'<iframe title="{escape(say("graph of", title=_title(graph)))}" sandbox="allow-scripts" '
        f'style="width:100%;height:{height}px;border:1px solid #8886;border-radius:6px" '
        f'srcdoc="{escape(document(graph, embedded=True))}"></iframe>'
    )


def write_page(graph: Graph, path: str | os.PathLike[str]) -> str:
    """Write the page to a file, and return its text."""
    text = document(graph)
    Path(path).write_text(text, encoding="utf-8")
    return text


def show_page(graph: Graph) -> str | None:
    """Show the page: in a notebook, or else in the web browser, from a temporary file whose path is returned."""
    if _in_notebook():
        from IPython.display import display

        display(graph)
        return None
    with tempfile.NamedTemporaryFile("w", encoding="utf-8", prefix="graph-", suffix=".html", delete=False) as file:
        file.write(document(graph))
    webbrowser.open(Path(file.name).as_uri())
    return file.name


def _in_notebook() -> bool:
    """Whether the program runs in a kernel that shows HTML. A terminal's IPython does not."""
    interactive = sys.modules.get("IPython")
    shell = interactive.get_ipython() if interactive is not None else None
    return shell is not None and hasattr(shell, "kernel")
