"""The static picture: an SVG of the graph as the page shows it, for READMEs, papers and documents."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from pellucid.graph.draw import FAMILY, FONT, MARGIN, MAX_OPERATIONS, NOTE_FONT, path_of
from pellucid.graph.layout_nested import Line, Rect
from pellucid.graph.page.blocks import Block
from pellucid.graph.page.colours import LIGHT
from pellucid.graph.page.content import Content
from pellucid.graph.page.labels import ROW_LINE, STACK, TITLE_LINE, Label
from pellucid.graph.page.scene import Scene, opened_at_first, opened_to, scene_of
from pellucid.graph.page.texts import say
from pellucid.graph.snapshot import Graph

__all__ = ["MOST_BOXES", "static_svg"]

MOST_BOXES = MAX_OPERATIONS
ARROW = 5.0  # length of an arrow's head
STYLES = {"type": "faint", "value": "value", "grad": "gradient-text", "facts": "faint", "bad": "bad", "site": "faint"}
LABEL_STYLES = {**STYLES, "derivative": "gradient-text"}


def static_svg(graph: Graph, expand: int | str | None = None, direction: str = "down") -> str:
    """The text of an SVG. See `Graph.svg`.

    Raises:
        ValueError: there are more boxes than a picture can show, or the direction or `expand` is unknown.
    """
    if direction not in ("down", "right"):
        raise ValueError(f"direction must be 'right' or 'down', got {direction!r}")
    if expand not in (None, "all") and (not isinstance(expand, int) or expand < 0):
        raise ValueError(f"expand must be a number of levels from 0 up, 'all' or None, got {expand!r}")
    content = Content(graph)
    if expand is None:
        opened = opened_at_first(graph, content.blocks)
    else:
        opened = opened_to(content.blocks, None if expand == "all" else int(expand))
    scene = scene_of(content, opened, direction, MOST_BOXES)
    return _Drawing(content, scene, direction == "down").text()


class _Drawing:
    def __init__(self, content: Content, scene: Scene, down: bool):
        self.content, self.scene, self.down = content, scene, down

    def text(self) -> str:
        layout = self.scene.layout
        assert layout is not None
        width, height = (layout.width, layout.length) if self.down else (layout.length, layout.width)
        width, height = width + 2 * MARGIN, height + 2 * MARGIN
        title = say("graph of", title=self.content.graph.title or say("results"))
        frames = [number for number, box in enumerate(self.scene.boxes) if box.opened]
        parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
            f'viewBox="0 0 {width:.1f} {height:.1f}" font-family="{FAMILY}" text-anchor="middle" role="img">',
            f"<title>{escape(title)}</title>",
            f"<defs>{_marker('gradient')}{_marker('constant')}</defs>",
            f'<rect width="100%" height="100%" fill="{LIGHT["page"]}"/>',
            f'<g transform="translate({MARGIN:g},{MARGIN:g})">',
            *(self._frame(number) for number in frames),
            '<g fill="none">',
            *(self._line(line) for line in layout.lines),
            "</g>",
            *(self._box(number, rect) for number, box in enumerate(self.scene.boxes) if not box.opened
              for rect in layout.places[number]),
            *(self._edge_label(number, rect) for number, rect in enumerate(layout.labels) if rect is not None),
            "</g>",
            "</svg>",
            "",
        ]  # fmt: skip
        return "\n".join(part for part in parts if part)

    def _place(self, rect: Rect) -> tuple[float, float, float, float]:
        """Left, top, width, height."""
        main, cross, length, width = rect
        return (cross, main, width, length) if self.down else (main, cross, length, width)

    # --- frames and boxes -----------------------------------------------------------------------------------------------

    def _frame(self, number: int) -> str:
        thing = self.scene.things[number]
        assert isinstance(thing, Block)
        (rect,) = self.scene.layout.places[number]
        left, top, width, height = self._place(rect)
        name, what = self.content.heading(thing)
        head = self.scene.layout.heads[number] if self.down else left + 12
        behind = ""
        if thing.kind == "fold":
            behind = _rect(left + 4, top + 4, width, height, LIGHT["frame"], LIGHT["frame-line"], 8)
        return (
            behind
            + _rect(left, top, width, height, LIGHT["frame"], LIGHT["frame-line"], 8)
            + _title(name, what, head, top + 18, LIGHT["text"], LIGHT["faint"], "start")
        )

    def _box(self, number: int, rect: Rect) -> str:
        thing = self.scene.things[number]
        left, top, width, height = self._place(rect)
        label, (fill, line, text, faint) = self.content.label(thing), self._colours(thing)
        parts = []
        if isinstance(thing, Block) and thing.kind == "fold":
            width, height = width - STACK, height - STACK
            parts = [_rect(left + d, top + d, width, height, fill, line, 5) for d in (STACK, STACK / 2)]
        corner = height / 2 if self.scene.boxes[number].source else 5
        parts.append(_rect(left, top, width, height, fill, line, corner, 2.4 if self._is_root(thing) else 1.3))
        parts.append(_texts(label, left + width / 2, top, height, text, faint))
        return "".join(parts)

    def _colours(self, thing: Block | int) -> tuple[str, str, str, str]:
        """Fill, outline, text, and text of less weight."""
        kind = self.content.kind(thing)
        if kind == "failed":
            return LIGHT["bad-fill"], LIGHT["bad"], LIGHT["bad"], LIGHT["bad"]
        if kind == "root":
            return LIGHT["root"], LIGHT["root-line"], LIGHT["root-text"], LIGHT["root-faint"]
        return LIGHT[kind], LIGHT[f"{kind}-line"], LIGHT["text"], LIGHT["faint"]

    def _is_root(self, thing: Block | int) -> bool:
        return self.content.holds_root(thing)

    # --- arrows ---------------------------------------------------------------------------------------------------------

    def _line(self, line: Line) -> str:
        kind = self.content.edges[self.scene.carried[line.arrows[0]][0]].kind
        backward = line.arrows[0] in self.scene.backward
        cut_off = kind == "cut" and (line.part == "after") != backward
        colour = "constant" if kind == "constant" or cut_off else "gradient"
        spans = line.spans
        head = line.head and not backward
        if head:
            last = spans[-1]
            spans = [*spans[:-1], last._replace(start=min(last.start, last.end - ARROW), end=last.end - 1)]
        style = ' stroke-dasharray="5 4"' if cut_off else ""
        marker = f' marker-end="url(#{colour})"' if head else ""
        width = 1.3 if colour == "constant" else 1.8
        broken = _break(spans, self.down) if kind == "cut" and line.part == "before" else ""
        path = path_of(spans, self.down)
        return f'<path d="{path}" stroke="{LIGHT[colour]}" stroke-width="{width}"{style}{marker}/>{broken}'

    def _edge_label(self, number: int, rect: Rect) -> str:
        left, top, width, height = self._place(rect)
        rows = self.content.edge_rows(self.scene.carried[number])
        lines = []
        for place, (style, text) in enumerate(rows):
            y = top + height / 2 + (place - (len(rows) - 1) / 2) * ROW_LINE + NOTE_FONT * 0.36
            lines.append(_text(text, left + width / 2, y, NOTE_FONT, LIGHT[LABEL_STYLES[style]]))
        return "".join(lines)


def _marker(colour: str) -> str:
    return (
        f'<marker id="{colour}" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto" '
        f'markerUnits="userSpaceOnUse"><path d="M0,0.5 L8,4 L0,7.5 z" fill="{LIGHT[colour]}"/></marker>'
    )


def _break(spans: Sequence, down: bool) -> str:
    """Two strokes across the end of a line that is cut."""
    at, middle = spans[-1].end, spans[-1].middle
    strokes = []
    for back in (3, 7):
        ends = [(middle - 6, at - back + 2), (middle + 6, at - back - 2)]
        points = [f"{x:.1f},{y:.1f}" if down else f"{y:.1f},{x:.1f}" for x, y in ends]
        strokes.append(f"M{points[0]} L{points[1]}")
    return f'<path d="{" ".join(strokes)}" stroke="{LIGHT["bad"]}" stroke-width="1.8"/>'


def _rect(
    left: float, top: float, width: float, height: float, fill: str, line: str, corner: float, stroke: float = 1.3
) -> str:
    return (
        f'<rect x="{left:.1f}" y="{top:.1f}" width="{width:.1f}" height="{height:.1f}" rx="{corner:g}" '
        f'fill="{fill}" stroke="{line}" stroke-width="{stroke:g}"/>'
    )


def _texts(label: Label, x: float, top: float, height: float, text: str, faint: str) -> str:
    """The title and the rows below it, in the middle of a box."""
    block = TITLE_LINE + ROW_LINE * len(label.rows)
    y = top + (height - block) / 2 + TITLE_LINE - 5
    lines = [_title(label.name, label.what, x, y, text, faint if label.name else text)]
    for style, row in label.rows:
        y += ROW_LINE
        on_dark = text == LIGHT["root-text"]
        lines.append(_text(row, x, y, NOTE_FONT, faint if on_dark or style in ("type", "facts") else LIGHT[STYLES[style]]))
    return "".join(lines)


def _title(name: str, what: str, x: float, y: float, text: str, faint: str, anchor: str = "") -> str:
    bold = f'<tspan font-weight="bold">{escape(name)}</tspan>' if name else ""
    rest = f'<tspan fill="{faint}">{escape((" " if name else "") + what)}</tspan>' if what else ""
    at = f' text-anchor="{anchor}"' if anchor else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" font-size="{FONT}" fill="{text}"{at} xml:space="preserve">{bold}{rest}</text>'


def _text(text: str, x: float, y: float, size: int, colour: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" fill="{colour}">{escape(text)}</text>'
