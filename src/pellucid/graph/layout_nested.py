"""Where boxes inside boxes go: each opened box is laid out on its own by `layout.py`, from the innermost outwards.

An arrow that leaves or enters an opened box does so by a *port* on its border: inside, the port is a box without extent
in the first or last layer; outside, it is where the arrow touches. So no arrow crosses a box or a heading.
`page/nested.js` does the same in a browser, number for number.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from pellucid.graph.layout import LANE, LANE_GAP, Edge, Layout, Span, lay_out, layer_numbers

__all__ = ["Arrow", "Box", "Line", "Nested", "Rect", "lay_out_nested"]

LAYER_GAP, BOX_GAP = 22.0, 20.0
PADDING = 14.0  # between the border of an opened box and what is in it
WAY_OUT = 2.0  # the same where arrows leave, which keep their distance themselves
HEADING = 26.0  # height of the strip with an opened box's heading
BEND = 18.0  # below the heading, where arrows turn aside to pass it
WIDENED = 90.0  # by how much a box is made wider at most so that they need not
PORT_ROOM = 26.0  # between arrows into one box
CORNER = 12.0  # of a box that arrows keep clear of
REACH = 3  # layers between two users of a source that is drawn once for both


class Box(NamedTuple):
    """A box to place: its length along the main axis and width along the cross axis, unless it is opened.

    parent: the number of the opened box that it is in, a lower number; None outermost. head: the width of an opened
    box's heading. source: whether nothing leads into it; it may then be drawn several times, beside each of its users.
    """

    parent: int | None
    length: float = 0.0
    width: float = 0.0
    opened: bool = False
    head: float = 0.0
    source: bool = False


class Arrow(NamedTuple):
    """An arrow between two boxes that are not opened; `port` orders those into one box.

    track: arrows of one source and one track share lines and ports. label: length and width of a text that stands
    on the arrow.
    """

    source: int
    target: int
    port: int = 0
    track: str = ""
    label: tuple[float, float] | None = None


class Rect(NamedTuple):
    """A rectangle: where it starts along the main and the cross axis, and its extent along both."""

    main: float
    cross: float
    length: float
    width: float


class Line(NamedTuple):
    """A drawn line: its straight stretches, and the arrows it is a piece of.

    head: whether it ends at a box that is not opened. part: "before" or "after" the label of its arrows, else "".
    """

    spans: list[Span]
    arrows: list[int]
    head: bool = False
    part: str = ""


@dataclass
class Nested:
    """The result. `places[i]` are the rectangles of box i, several for a source drawn several times; `labels[k]` is that
    of arrow k's label; `heads[i]` is where the heading of opened box i begins, along the cross axis."""

    places: list[list[Rect]]
    labels: list[Rect | None]
    heads: dict[int, float]
    lines: list[Line]
    length: float
    width: float


class _Thing(NamedTuple):
    """What is placed within a level: a "box", a "port" of the level's border or a "label" of an arrow."""

    kind: str
    number: int
    copy: int = 0


@dataclass
class _Tie:
    """A connection within one level. leave, enter: the ports of opened boxes at its ends."""

    source: _Thing
    target: _Thing
    leave: int | None
    enter: int | None
    order: int
    arrows: list[int]
    part: str = ""


@dataclass
class _Level:
    """What is in one opened box, or outermost: boxes and labels, ports, connections."""

    things: list[_Thing] = field(default_factory=list)
    inward: list[int] = field(default_factory=list)
    outward: list[int] = field(default_factory=list)
    ties: list[_Tie] = field(default_factory=list)

    @property
    def ports(self) -> list[_Thing]:
        return [_Thing("port", port) for port in (*self.inward, *self.outward)]


@dataclass
class _Solved:
    """A level laid out, in coordinates of its own. doors: where each port is on the border, along the cross axis. head:
    where the heading begins."""

    length: float
    width: float
    rects: list[tuple[_Thing, Rect]]
    lines: list[Line]
    doors: dict[int, float]
    head: float = PADDING


def lay_out_nested(
    boxes: Sequence[Box], arrows: Sequence[Arrow], *, copies: bool = False, heading_first: bool = True
) -> Nested:
    """Place boxes and arrows.

    copies: whether sources are drawn again beside users far from one another. heading_first: whether headings stand
    where the main axis begins; else where the cross axis does.

    Raises ValueError if the arrows form a cycle.
    """
    levels = _Levels(boxes, arrows)
    solved: dict[int | None, _Solved] = {}
    for number in (*reversed([n for n, box in enumerate(boxes) if box.opened]), None):
        level = levels.of[number]
        solved[number] = _solve(levels, level, solved, copies)
        if number is not None:
            framed = _headed_first if heading_first else _headed_aside
            solved[number] = framed(levels, level, solved[number], boxes[number].head)
    return _gathered(levels, solved)


def _gathered(levels: _Levels, solved: dict[int | None, _Solved]) -> Nested:
    """All levels in the coordinates of the outermost."""
    outermost = solved[None]
    made = Nested([[] for _ in levels.boxes], [None] * len(levels.arrows), {}, [], outermost.length, outermost.width)
    stack: list[tuple[int | None, float, float]] = [(None, 0.0, 0.0)]
    while stack:
        level, main, cross = stack.pop()
        for thing, rect in solved[level].rects:
            placed = rect._replace(main=rect.main + main, cross=rect.cross + cross)
            if thing.kind == "label":
                made.labels[thing.number] = placed
            else:
                made.places[thing.number].append(placed)
                if levels.boxes[thing.number].opened:
                    made.heads[thing.number] = placed.cross + solved[thing.number].head
                    stack.append((thing.number, placed.main, placed.cross))
        made.lines.extend(_moved(solved[level].lines, main, cross))
    return made


# --- arrows in pieces, one for each level they run in -----------------------------------------------------------------


class _Levels:
    """The levels, by the number of the opened box. through: the arrows that pass each port."""

    def __init__(self, boxes: Sequence[Box], arrows: Sequence[Arrow]):
        self.boxes, self.arrows = boxes, arrows
        self.of: dict[int | None, _Level] = {None: _Level()}
        self.through: list[list[int]] = []
        self._ports: dict[Hashable, int] = {}
        self._ties: dict[Hashable, _Tie] = {}
        for number, box in enumerate(boxes):
            self.of[box.parent].things.append(_Thing("box", number))
            if box.opened:
                self.of[number] = _Level()
        for number in range(len(arrows)):
            self._add(number)

    def _add(self, number: int) -> None:
        """Take an arrow out of the boxes around its source, and into those around its target."""
        arrow = self.arrows[number]
        left, common, entered = self._between(arrow.source, arrow.target)
        at, leave = _Thing("box", arrow.source), None
        for frame in left:
            port = self._port(frame, "out", number)
            tie = _Tie(at, _Thing("port", port), leave, None, 0, [number], self.part(number, "before"))
            self._tie(frame, tie, arrow.track)
            at, leave = _Thing("box", frame), port
        level = common
        for frame in entered:
            port = self._port(frame, "in", number)
            self._join(level, _Tie(at, _Thing("box", frame), leave, port, 0, [number]), level == common)
            at, leave, level = _Thing("port", port), None, frame
        self._join(level, _Tie(at, _Thing("box", arrow.target), leave, None, arrow.port, [number]), level == common)

    def part(self, number: int, part: str) -> str:
        """The part of an arrow, if it has a label that divides it."""
        return "" if self.arrows[number].label is None else part

    def _between(self, source: int, target: int) -> tuple[list[int], int | None, list[int]]:
        """The opened boxes that an arrow leaves, innermost first, the one it stays in, those it enters, outermost first."""
        left, entered, common = self._around(source), self._around(target), None
        while left and entered and left[-1] == entered[-1]:
            common = left.pop()
            entered.pop()
        return left, common, entered[::-1]

    def _around(self, number: int) -> list[int]:
        found = []
        parent = self.boxes[number].parent
        while parent is not None:
            found.append(parent)
            parent = self.boxes[parent].parent
        return found

    def _port(self, frame: int, way: str, number: int) -> int:
        arrow = self.arrows[number]
        key = frame, way, arrow.source, arrow.track
        if key not in self._ports:
            self._ports[key] = len(self._ports)
            self.through.append([])
            level = self.of[frame]
            (level.inward if way == "in" else level.outward).append(self._ports[key])
        self.through[self._ports[key]].append(number)
        return self._ports[key]

    def _join(self, at: int | None, tie: _Tie, outermost: bool) -> None:
        """Add a connection; with the arrow's label on it where the arrow is outermost."""
        (number,) = tie.arrows
        if not outermost or self.arrows[number].label is None:
            tie.part = self.part(number, "after")
            self._tie(at, tie, self.arrows[number].track)
            return
        label = _Thing("label", number)
        self.of[at].things.append(label)
        self.of[at].ties.append(_Tie(tie.source, label, tie.leave, None, 0, [number], "before"))
        self.of[at].ties.append(_Tie(label, tie.target, None, tie.enter, tie.order, [number], "after"))

    def _tie(self, at: int | None, tie: _Tie, track: str) -> None:
        """Add a connection, or the arrow to one that is there."""
        key = at, tie.source, tie.target, tie.leave, tie.enter, tie.order, track
        if key in self._ties:
            self._ties[key].arrows.extend(tie.arrows)
        else:
            self._ties[key] = tie
            self.of[at].ties.append(tie)


# --- one level --------------------------------------------------------------------------------------------------------


def _solve(levels: _Levels, level: _Level, solved: dict[int | None, _Solved], copies: bool) -> _Solved:
    """Lay out what is in a level; opened boxes in it have been solved."""
    things, ties = _with_copies(levels, level) if copies else (level.things, level.ties)
    things = [*things, *level.ports]
    if not things:
        return _Solved(0.0, 0.0, [], [], {})
    numbers = {thing: number for number, thing in enumerate(things)}
    sizes = [_size(levels, solved, thing) for thing in things]
    edges = _edges(ties, numbers, sizes, solved)
    inward, outward = ([numbers[_Thing("port", port)] for port in ports] for ports in (level.inward, level.outward))
    layout = lay_out(sizes, edges, LAYER_GAP, BOX_GAP, inward, outward)
    sources = [thing.kind == "box" and levels.boxes[thing.number].source for thing in things]
    rects = [_rect(*each) for each in zip(sizes, layout.places, sources, strict=True)]
    lines = [
        Line(_spans(layout, rects, edge, k), tie.arrows, tie.target.kind == "box" and tie.enter is None, tie.part)
        for k, (edge, tie) in enumerate(zip(edges, ties, strict=True))
    ]
    placed = list(zip(things, rects, strict=True))
    doors = {thing.number: rect.cross + rect.width / 2 for thing, rect in placed if thing.kind == "port"}
    return _Solved(layout.length, layout.width, [pair for pair in placed if pair[0].kind != "port"], lines, doors)


def _size(levels: _Levels, solved: dict[int | None, _Solved], thing: _Thing) -> tuple[float, float]:
    if thing.kind == "port":
        return 0.0, LANE
    if thing.kind == "label":
        return levels.arrows[thing.number].label or (0.0, 0.0)
    box = levels.boxes[thing.number]
    inside = solved[thing.number] if box.opened else box
    return inside.length, inside.width


def _rect(size: tuple[float, float], place: tuple[float, float, float, float], source: bool) -> Rect:
    """A box in its layer: in the middle, a source at the end, near what it goes into."""
    start, length, middle, width = place
    room = length - size[0]
    return Rect(start + (room if source else room / 2), middle - width / 2, *size)


def _edges(
    ties: list[_Tie], numbers: dict[_Thing, int], sizes: list[tuple[float, float]], solved: dict[int | None, _Solved]
) -> list[Edge]:
    orders: dict[_Thing, set[int]] = {}
    for tie in ties:
        orders.setdefault(tie.target, set()).add(tie.order)
    edges = []
    for tie in ties:
        source, target = numbers[tie.source], numbers[tie.target]
        leave = 0.0 if tie.leave is None else _door(solved, tie.source, tie.leave)
        if tie.enter is not None:
            enter = _door(solved, tie.target, tie.enter)
        else:
            enter = _beside(tie.order, sorted(orders[tie.target]), sizes[target][1])
        edges.append(Edge(source, target, tie.order, leave, enter))
    return edges


def _door(solved: dict[int | None, _Solved], box: _Thing, port: int) -> float:
    """Where a port of an opened box is, from the box's middle."""
    inside = solved[box.number]
    return inside.doors[port] - inside.width / 2


def _beside(order: int, orders: list[int], width: float) -> float:
    """Where an arrow enters a box, among the others that do, from the box's middle: in the order of the operands."""
    if len(orders) == 1:
        return 0.0
    room = max(min(width - 2 * CORNER, PORT_ROOM * (len(orders) - 1)), 0.0)
    return room * (orders.index(order) / (len(orders) - 1) - 0.5)


def _spans(layout: Layout, rects: list[Rect], edge: Edge, number: int) -> list[Span]:
    """The straight stretches of an arrow: out of its source, through the lanes, into its target."""
    source, target = rects[edge.source], rects[edge.target]
    leave, enter = layout.places[edge.source], layout.places[edge.target]
    return [
        Span(source.main + source.length, leave.start + leave.length, leave.middle + edge.leave),
        *layout.lanes[number],
        Span(enter.start, target.main, enter.middle + edge.enter),
    ]


def _with_copies(levels: _Levels, level: _Level) -> tuple[list[_Thing], list[_Tie]]:
    """The things and connections of a level, with sources repeated beside users that are far from one another."""
    sources = {thing for thing in level.things if thing.kind == "box" and levels.boxes[thing.number].source}
    rest = [thing for thing in level.things if thing not in sources] + level.ports
    numbers = {thing: number for number, thing in enumerate(rest)}
    edges = [Edge(numbers[tie.source], numbers[tie.target]) for tie in level.ties if tie.source not in sources]
    layers = layer_numbers(len(rest), edges, [numbers[_Thing("port", port)] for port in level.inward])
    begun: dict[_Thing, tuple[int, int]] = {}  # source -> the first layer that its last copy serves, the copy's number
    ties = list(level.ties)
    made = dict.fromkeys(level.things)
    users = [k for k, tie in enumerate(ties) if tie.source in sources]
    for k in sorted(users, key=lambda k: layers[numbers[ties[k].target]]):
        tie, layer = ties[k], layers[numbers[ties[k].target]]
        start, copy = begun.get(tie.source, (layer, 0))
        if layer - start > REACH:
            start, copy = layer, copy + 1
        begun[tie.source] = start, copy
        source = tie.source._replace(copy=copy)
        made[source] = None
        ties[k] = _Tie(source, tie.target, tie.leave, tie.enter, tie.order, tie.arrows, tie.part)
    return list(made), ties


# --- the border of an opened box --------------------------------------------------------------------------------------


def _headed_first(levels: _Levels, level: _Level, inside: _Solved, head: float) -> _Solved:
    """A border, with the heading where the main axis begins: arrows that come in do so beside it."""
    width = max(inside.width + 2 * PADDING, head + 2 * PADDING + (LANE + LANE_GAP) * len(level.inward))
    doors, start, outer = _beside_heading(level, inside, head, width)
    missing = 2 * (_right_of(head) - min((doors[port] for port in level.inward), default=0.0))
    if outer and missing <= WIDENED:
        width += missing
        doors, start, outer = _beside_heading(level, inside, head, width)
    aside = (width - inside.width) / 2
    top = HEADING + (BEND if outer else 0.0)
    length = top + inside.length + (WAY_OUT if level.outward else PADDING)
    lines = _moved(inside.lines, top, aside)
    for port in level.inward:
        spans = [Span(0.0, HEADING, outer.get(port, doors[port])), Span(top, top, doors[port])]
        lines.append(Line(spans, levels.through[port], part=levels.part(levels.through[port][0], "after")))
    lines += _ways(levels, level.outward, doors, top + inside.length, length, "before")
    return _Solved(length, width, _shifted(inside.rects, top, aside), lines, doors | outer, start)


def _beside_heading(
    level: _Level, inside: _Solved, head: float, width: float
) -> tuple[dict[int, float], float, dict[int, float]]:
    """For a box of a width: where its ports are, where its heading begins, and where arrows come in that turn aside."""
    aside = (width - inside.width) / 2
    doors = {port: at + aside for port, at in inside.doors.items()}
    return doors, *_clear_of_heading([(doors[port], port) for port in level.inward], head, width)


def _right_of(head: float) -> float:
    """The first place to the right of a heading at the left where an arrow can come in."""
    return PADDING + head + (LANE + LANE_GAP) / 2


def _clear_of_heading(ports: list[tuple[float, int]], head: float, width: float) -> tuple[float, dict[int, float]]:
    """Where a heading begins so that no arrow that comes in runs through it: left of the first, between two, or right of
    the last. Where there is no room the arrows come in to the right of it; then also where each does."""
    step = LANE + LANE_GAP
    start = PADDING
    for at, _ in [*sorted(ports), (width - PADDING + step / 2, -1)]:
        if start + head + step / 2 <= at:
            return start, {}
        start = max(start, at + step / 2)
    return PADDING, {port: max(at, _right_of(head) + place * step) for place, (at, port) in enumerate(sorted(ports))}


def _headed_aside(levels: _Levels, level: _Level, inside: _Solved, head: float) -> _Solved:
    """A border, with the heading where the cross axis begins: no arrow comes in there."""
    length = max(inside.length + 2 * PADDING, head + 2 * PADDING)
    before = (length - inside.length) / 2
    doors = {port: at + HEADING for port, at in inside.doors.items()}
    lines = _moved(inside.lines, before, HEADING)
    lines += _ways(levels, level.inward, doors, 0.0, before, "after")
    lines += _ways(levels, level.outward, doors, before + inside.length, length, "before")
    rects = _shifted(inside.rects, before, HEADING)
    return _Solved(length, HEADING + inside.width + PADDING, rects, lines, doors)


def _ways(
    levels: _Levels, ports: list[int], doors: dict[int, float], start: float, end: float, part: str
) -> list[Line]:
    """Straight lines between the border and what is in it."""
    through = [(port, levels.through[port]) for port in ports]
    return [Line([Span(start, end, doors[port])], arrows, part=levels.part(arrows[0], part)) for port, arrows in through]


def _moved(lines: Iterable[Line], main: float, cross: float) -> list[Line]:
    return [
        line._replace(spans=[Span(s.start + main, s.end + main, s.middle + cross) for s in line.spans]) for line in lines
    ]


def _shifted(rects: list[tuple[_Thing, Rect]], main: float, cross: float) -> list[tuple[_Thing, Rect]]:
    return [(thing, rect._replace(main=rect.main + main, cross=rect.cross + cross)) for thing, rect in rects]
