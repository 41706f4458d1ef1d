"""A picture of a tensor's computation graph, as textbooks draw it: leaves green, operations blue, arrows with the data.

The graph is read from `grad_fn` and `next_functions` alone; where boxes go is decided in `layout.py`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from html import escape
from itertools import pairwise
from typing import Any

from pellucid.core.language import say
from pellucid.core.tensor import Tensor
from pellucid.graph.layout import Edge, Layout, Place, Span, lay_out
from pellucid.graph.tables import cells

MAX_OPERATIONS = 500
TOO_MANY = (
    f"the graph has more than {MAX_OPERATIONS} operations: too many for a picture; draw a smaller part of it, such as one "
    "step of a loop or one layer of the model"
)

FONT = 13
NOTE_FONT = 11
# Every monospaced face sets a character 0.60 em wide or a hair more: so the width of a text is known without its font.
CHARACTER = 0.62
FAMILY = "ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace"
MARGIN = 16.0
PADDING = 12.0
BOX_HEIGHT = 42.0
BOX_GAP = 18.0
LAYER_GAP = {"right": 44.0, "down": 30.0}
COLOURS = {  # fill, outline
    "leaf": ("#dcf2d8", "#2e7d32"),
    "operation": ("#dceafb", "#1f5fa8"),
    "result": ("#ffffff", "#444444"),
    "input": ("#eeeeee", "#777777"),
    "module": ("#efe4fb", "#6a3fa0"),
}


@dataclass
class Box:
    """One box of the picture: a leaf, an operation or the result, with a title and a note under it."""

    kind: str
    title: str
    note: str


def draw_svg(tensor: Tensor, params: Mapping[str, Tensor] | None = None, *, direction: str = "right") -> str:
    """The computation graph that made `tensor`, as the text of an SVG picture.

    tensor: any shape and dtype; must require grad.
    params: names for tensors of the graph, leaves or not (`dict(model.named_parameters())`, `{"x": x, "y": y}`).
    direction: where the data flows in the picture, "right" or "down".

    Raises RuntimeError if `tensor` does not require grad, ValueError for a graph of more than 500 operations or an
    unknown direction.
    """
    if direction not in LAYER_GAP:
        raise ValueError(f"direction must be 'right' or 'down', got {direction!r}")
    boxes, edges = _read_graph(tensor, params or {})
    return picture(boxes, edges, direction, boxes[0].title)


def picture(boxes: list[Box], edges: list[Edge], direction: str, title: str, broken: Collection[int] = ()) -> str:
    """A picture of boxes and arrows, as the text of an SVG.

    direction: where the arrows point, "right" or "down".
    broken: the numbers of arrows that are drawn dashed and red.

    Raises ValueError for more than 500 boxes or an unknown direction.
    """
    if direction not in LAYER_GAP:
        raise ValueError(f"direction must be 'right' or 'down', got {direction!r}")
    if sum(box.kind not in ("leaf", "input") for box in boxes) > MAX_OPERATIONS + 1:
        raise ValueError(TOO_MANY)
    sizes = [(_width(box), BOX_HEIGHT) for box in boxes]
    if direction == "down":
        sizes = [(height, width) for width, height in sizes]
    layout = lay_out(sizes, edges, LAYER_GAP[direction], BOX_GAP)
    return _picture(boxes, edges, layout, direction == "down", title, broken)


def _read_graph(tensor: Tensor, names: Mapping[str, Tensor]) -> tuple[list[Box], list[Edge]]:
    """The boxes and arrows of `tensor`'s graph. Iterative: a graph may be deeper than Python's stack."""
    if not tensor.requires_grad:
        raise RuntimeError(
            "the tensor does not require grad and has no graph to draw: compute it from a tensor made with "
            "requires_grad=True, outside no_grad()"
        )
    leaf_names = {id(value): name for name, value in names.items()}
    result_names = {
        (value.grad_fn, value.output_nr): name
        for name, value in names.items()
        if value.grad_fn is not None and value is not tensor
    }
    boxes = [Box("result", leaf_names.get(id(tensor)) or say("result"), _shape(tensor))]
    edges: list[Edge] = []
    if tensor.grad_fn is None:
        boxes.append(_leaf_box(tensor, leaf_names))
        return boxes, [Edge(1, 0, 0)]
    numbers: dict[Any, int] = {}
    stack = [(tensor.grad_fn, tensor.output_nr, 0, 0)]
    while stack:
        node, output_nr, consumer, port = stack.pop()
        if node not in numbers:
            if len(numbers) == MAX_OPERATIONS:
                raise ValueError(TOO_MANY)
            numbers[node] = len(boxes)
            boxes.append(_node_box(node, output_nr, leaf_names, result_names))
            inputs = [edge for edge in node.next_functions if edge[0] is not None]
            stack.extend((*edge, numbers[node], at) for at, edge in reversed(list(enumerate(inputs))))
        edges.append(Edge(numbers[node], consumer, port))
    return boxes, edges


def _node_box(node: Any, output_nr: int, leaf_names: dict[int, str], result_names: dict[tuple, str]) -> Box:
    variable = getattr(node, "variable", None)
    if variable is not None:
        return _leaf_box(variable, leaf_names)
    return Box("operation", node.name(), result_names.get((node, output_nr), ""))


def _leaf_box(leaf: Tensor, names: dict[int, str]) -> Box:
    return Box("leaf", names.get(id(leaf)) or say("leaf"), _shape(leaf))


def _shape(tensor: Tensor) -> str:
    return f"[{', '.join(map(str, tensor.shape))}]" if tensor.dim() else say("scalar")


def text_width(text: str, size: float) -> float:
    """The width of a text in a monospaced face of a size."""
    return cells(text) * CHARACTER * size


def _width(box: Box) -> float:
    return max(text_width(box.title, FONT), text_width(box.note, NOTE_FONT)) + 2 * PADDING


def _picture(
    boxes: list[Box], edges: list[Edge], layout: Layout, flip: bool, title: str, broken: Collection[int]
) -> str:
    """The whole SVG. With `flip` the main axis runs down, otherwise to the right."""
    width, height = (layout.width, layout.length) if flip else (layout.length, layout.width)
    width, height = width + 2 * MARGIN, height + 2 * MARGIN
    ports = _port_counts(edges)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.1f} {height:.1f}" font-family="{FAMILY}" text-anchor="middle">',
        f"<title>{escape(say('Computation graph of {title}', title=title))}</title>",
        '<defs><marker id="arrow" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" orient="auto">'
        '<path d="M0,0.5 L8,4 L0,7.5 z" fill="#666"/></marker></defs>',
        '<rect width="100%" height="100%" fill="#ffffff"/>',
        f'<g transform="translate({MARGIN:g},{MARGIN:g})">',
        '<g fill="none" stroke="#666" stroke-width="1.3">',
    ]
    for number, (edge, lanes) in enumerate(zip(edges, layout.lanes, strict=True)):
        spans = _spans(layout.places[edge.source], layout.places[edge.target], lanes, edge.port, ports[edge.target])
        style = ' stroke="#c62828" stroke-dasharray="5 4"' if number in broken else ""
        parts.append(f'<path d="{path_of(spans, flip)}"{style} marker-end="url(#arrow)"/>')
    parts.append("</g>")
    parts.extend(_box(box, place, flip) for box, place in zip(boxes, layout.places, strict=True))
    return "\n".join([*parts, "</g>", "</svg>", ""])


def _port_counts(edges: list[Edge]) -> dict[int, int]:
    counts: dict[int, int] = {}
    for edge in edges:
        counts[edge.target] = max(counts.get(edge.target, 0), edge.port + 1)
    return counts


def _spans(source: Place, target: Place, lanes: list[Span], port: int, ports: int) -> list[Span]:
    """The straight stretches of an arrow: out of its source, through the lanes, into its port of the target."""
    leave, enter = source.start + source.length, target.start
    room = min(target.width - 2 * PADDING, 26.0 * (ports - 1))
    at = target.middle + (room * (port / (ports - 1) - 0.5) if ports > 1 else 0.0)
    return [Span(leave, leave, source.middle), *lanes, Span(enter - 5, enter - 1, at)]


def path_of(spans: list[Span], flip: bool) -> str:
    """An SVG path along `spans`, joined by curves that leave and arrive along the main axis.

    flip: whether the main axis runs down, otherwise to the right.
    """

    def point(main: float, cross: float) -> str:
        return f"{cross:.1f},{main:.1f}" if flip else f"{main:.1f},{cross:.1f}"

    steps = [f"M{point(spans[0].start, spans[0].middle)}"]
    if spans[0].end > spans[0].start:
        steps.append(f"L{point(spans[0].end, spans[0].middle)}")
    for span, following in pairwise(spans):
        half = (span.end + following.start) / 2
        curve = (point(half, span.middle), point(half, following.middle), point(following.start, following.middle))
        steps.append(f"C{' '.join(curve)} L{point(following.end, following.middle)}")
    return " ".join(steps)


def _box(box: Box, place: Place, flip: bool) -> str:
    width, height = (place.width, place.length) if flip else (place.length, place.width)
    centre_x, centre_y = (
        (place.middle, place.start + place.length / 2) if flip else (place.start + place.length / 2, place.middle)
    )
    fill, outline = COLOURS[box.kind]
    corner = height / 2 if box.kind in ("leaf", "input") else 5
    shape = (
        f'<rect x="{centre_x - width / 2:.1f}" y="{centre_y - height / 2:.1f}" width="{width:.1f}" '
        f'height="{height:.1f}" rx="{corner:g}" fill="{fill}" stroke="{outline}" stroke-width="1.3"/>'
    )
    if not box.note:
        return shape + _text(box.title, centre_x, centre_y + FONT * 0.35, FONT, "#111")
    return (
        shape
        + _text(box.title, centre_x, centre_y - 3, FONT, "#111")
        + _text(box.note, centre_x, centre_y + NOTE_FONT + 2, NOTE_FONT, "#555")
    )


def _text(text: str, x: float, y: float, size: int, colour: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" fill="{colour}">{escape(text)}</text>'
