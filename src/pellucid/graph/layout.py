"""Where the boxes and arrows of a directed acyclic graph go: layered layout after Sugiyama, Tagawa and Toda (1981).

Layers follow one another along the *main* axis; the boxes of a layer stand side by side along the *cross* axis. Which
of them is x and which is y is the caller's affair, and so is all drawing. Nothing here knows what the boxes mean.
Boxes that hold boxes are laid out in `layout_nested.py`, level by level, each level by this file.
`page/layout.js` does the same in a browser, number for number; a test holds the two together.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

ORDER_SWEEPS = 8
PLACE_SWEEPS = 16
LEAF_PULL = 0.05
LANE = 10.0  # room along the cross axis for an arrow that passes a layer
LANE_GAP = 6.0
STIFF = 8.0  # how much more than boxes the pieces of one long arrow draw one another into line
STEEPEST = 0.1  # room between two layers for each unit that an arrow goes sideways there
WIDEST_GAP = 90.0


class Edge(NamedTuple):
    """An arrow from box `source` to box `target`, where it enters port number `port`.

    leave, enter: where it touches the boxes, along the cross axis from their middles.
    """

    source: int
    target: int
    port: int = 0
    leave: float = 0.0
    enter: float = 0.0


class Place(NamedTuple):
    """A box: start and length along the main axis of its layer, its middle and width along the cross axis."""

    start: float
    length: float
    middle: float
    width: float


class Span(NamedTuple):
    """A stretch where an arrow runs straight along the main axis, at `middle` of the cross axis."""

    start: float
    end: float
    middle: float


@dataclass
class Layout:
    """The result: `places[i]` is box i; `lanes[k]` are the spans that edge k takes through the layers it passes."""

    places: list[Place]
    lanes: list[list[Span]]
    length: float
    width: float


class _Tie(NamedTuple):
    """A neighbour of a vertex. shift: where the arrow touches the neighbour less where it touches the vertex, each from
    its middle; fraction: where it touches the neighbour, from -1/2 to 1/2 of its width."""

    other: int
    shift: float
    fraction: float


@dataclass
class _Vertex:
    """A box, or the stretch of a long arrow in one layer."""

    width: float
    layer: int
    gap: float
    before: list[_Tie] = field(default_factory=list)
    after: list[_Tie] = field(default_factory=list)
    middle: float = 0.0
    pull: float = LEAF_PULL  # how much it draws its neighbours into line
    lane: bool = False


def lay_out(
    sizes: Sequence[tuple[float, float]],
    edges: Sequence[Edge],
    layer_gap: float,
    box_gap: float,
    first: Collection[int] = (),
    last: Collection[int] = (),
) -> Layout:
    """Place boxes of `sizes` (length along the main axis, width along the cross axis) so that `edges` point forward.

    Boxes of one layer get the same length. first, last: boxes that stand in the first and the last layer, with no others
    there. Raises ValueError if the edges form a cycle.
    """
    layers_of = layer_numbers(len(sizes), edges, first, last)
    vertices = [_Vertex(width, layer, box_gap) for (_, width), layer in zip(sizes, layers_of, strict=True)]
    for number in (*first, *last):
        vertices[number].gap = LANE_GAP
    passing = [_split(vertices, edge) for edge in edges]
    layers = _ordered(vertices)
    _set_pulls(vertices, layers)
    _place(vertices, layers)
    starts, lengths = _main_axis(sizes, vertices, layers, layer_gap)
    left = min(vertex.middle - vertex.width / 2 for vertex in vertices)
    right = max(vertex.middle + vertex.width / 2 for vertex in vertices)
    places = [
        Place(starts[vertex.layer], lengths[vertex.layer], vertex.middle - left, vertex.width)
        for vertex in vertices[: len(sizes)]
    ]
    ends = [start + length for start, length in zip(starts, lengths, strict=True)]
    lanes = [[vertices[number] for number in numbers] for numbers in passing]
    spans = [[Span(starts[lane.layer], ends[lane.layer], lane.middle - left) for lane in edge] for edge in lanes]
    return Layout(places, spans, ends[-1], right - left)


# --- layers -----------------------------------------------------------------------------------------------------------


def layer_numbers(
    count: int, edges: Sequence[Edge], first: Collection[int] = (), last: Collection[int] = ()
) -> list[int]:
    """The layer of each box: as early as what goes into it allows; then later, where that makes its arrows shorter, so
    that a leaf stands beside what uses it. Raises ValueError for a cycle."""
    targets: list[list[int]] = [[] for _ in range(count)]
    sources: list[list[int]] = [[] for _ in range(count)]
    for edge in edges:
        targets[edge.source].append(edge.target)
        sources[edge.target].append(edge.source)
    order = _in_order(sources, targets)
    layers = [0 if number in first or not first else 1 for number in range(count)]
    for number in order:
        for target in targets[number]:
            layers[target] = max(layers[target], layers[number] + 1)
    for number in reversed(order):
        if targets[number] and number not in first and len(sources[number]) <= len(targets[number]):
            layers[number] = min(layers[target] for target in targets[number]) - 1
    end = max((layers[number] for number in range(count) if number not in last), default=-1)
    for number in last:
        layers[number] = end + 1
    return _without_gaps(layers)


def _in_order(sources: list[list[int]], targets: list[list[int]]) -> list[int]:
    """The boxes, each after all that it needs."""
    waiting = [len(found) for found in sources]
    order = [number for number, count in enumerate(waiting) if not count]
    for number in order:
        for target in targets[number]:
            waiting[target] -= 1
            if not waiting[target]:
                order.append(target)
    if len(order) < len(sources):
        raise ValueError("the edges form a cycle: expected a directed acyclic graph")
    return order


def _without_gaps(layers: list[int]) -> list[int]:
    new = {layer: number for number, layer in enumerate(sorted(set(layers)))}
    return [new[layer] for layer in layers]


def _split(vertices: list[_Vertex], edge: Edge) -> list[int]:
    """Join the ends of `edge`, with a vertex for its lane in each layer between; return the lanes' numbers."""
    first, last = vertices[edge.source].layer, vertices[edge.target].layer
    lanes = list(range(len(vertices), len(vertices) + last - first - 1))
    vertices.extend(_Vertex(LANE, layer, LANE_GAP, lane=True) for layer in range(first + 1, last))
    chain = [edge.source, *lanes, edge.target]
    for source, target in pairwise(chain):
        leave = edge.leave if source == edge.source else 0.0
        enter = edge.enter if target == edge.target else 0.0
        before, after = vertices[source], vertices[target]
        before.after.append(_Tie(target, enter - leave, _fraction(enter, after)))
        after.before.append(_Tie(source, leave - enter, _fraction(leave, before)))
    return lanes


def _fraction(offset: float, vertex: _Vertex) -> float:
    return offset / vertex.width if vertex.width else 0.0


# --- order within layers ----------------------------------------------------------------------------------------------


def _ordered(vertices: list[_Vertex]) -> list[list[int]]:
    """The vertices of each layer, in an order with few crossings.

    Each layer is sorted by the mean position of its neighbours, sweeping back and forth; the best order seen is kept.
    """
    layers: list[list[int]] = [[] for _ in range(1 + max(vertex.layer for vertex in vertices))]
    for number in _depth_first(vertices):
        layers[vertices[number].layer].append(number)
    best, fewest = [list(layer) for layer in layers], _crossings(vertices, layers)
    for sweep in range(ORDER_SWEEPS):
        if not fewest:
            break
        backward = sweep % 2 == 0
        for index in range(len(layers) - 2, -1, -1) if backward else range(1, len(layers)):
            _sort_by_neighbours(vertices, layers, index, backward)
        crossings = _crossings(vertices, layers)
        if crossings < fewest:
            best, fewest = [list(layer) for layer in layers], crossings
    return best


def _depth_first(vertices: list[_Vertex]) -> list[int]:
    """All vertices, from the ends of the graph back to its sources: inputs in the order of the ports they enter."""
    stack = [number for number, vertex in enumerate(vertices) if not vertex.after]
    seen: set[int] = set()
    order = []
    while stack:
        number = stack.pop()
        if number not in seen:
            seen.add(number)
            order.append(number)
            stack.extend(tie.other for tie in reversed(vertices[number].before))
    return order


def _sort_by_neighbours(vertices: list[_Vertex], layers: list[list[int]], index: int, backward: bool) -> None:
    """Sort layer `index` by the mean position of its neighbours in the layer after it (`backward`) or before it."""
    here = {number: spot for spot, number in enumerate(layers[index])}
    position = {number: spot for spot, number in enumerate(layers[index + 1 if backward else index - 1])}

    def mean(number: int) -> float:
        ties = vertices[number].after if backward else vertices[number].before
        spots = [position[tie.other] + tie.fraction for tie in ties]
        return sum(spots) / len(spots) if spots else here[number]

    means = {number: mean(number) for number in layers[index]}
    layers[index].sort(key=means.__getitem__)


def _crossings(vertices: list[_Vertex], layers: list[list[int]]) -> int:
    """How many pairs of arrows between neighbouring layers cross."""
    total = 0
    for earlier, later in pairwise(layers):
        position = {number: spot for spot, number in enumerate(later)}
        ends: list[float] = []
        for number in earlier:
            spots = sorted(position[tie.other] + tie.fraction for tie in vertices[number].after)
            total += sum(len(ends) - bisect_right(ends, spot) for spot in spots)
            for spot in spots:
                insort(ends, spot)
    return total


# --- places -----------------------------------------------------------------------------------------------------------


def _set_pulls(vertices: list[_Vertex], layers: list[list[int]]) -> None:
    """Let each vertex pull by how much lies before it: so long chains run straight, and what feeds them stands aside."""
    for layer in layers:
        for number in layer:
            vertex = vertices[number]
            vertex.pull = max((1 + vertices[tie.other].pull for tie in vertex.before), default=LEAF_PULL)


def _place(vertices: list[_Vertex], layers: list[list[int]]) -> None:
    """Set each vertex's middle: near its neighbours' mean, in the order of its layer, without overlap."""
    for layer in layers:
        _spread(vertices, layer, [0.0] * len(layer))
    for sweep in range(PLACE_SWEEPS):
        forward, both = sweep % 2 == 1, sweep >= PLACE_SWEEPS - 2
        for layer in layers if forward else reversed(layers):
            _spread(vertices, layer, [_wanted(vertices, number, forward, both) for number in layer])


def _wanted(vertices: list[_Vertex], number: int, forward: bool, both: bool) -> float:
    """The mean middle of a vertex's neighbours: those before it if `forward`, else those after it, or all if `both`."""
    vertex = vertices[number]
    near = vertex.before + vertex.after if both else vertex.before if forward else vertex.after
    if not near:
        return vertex.middle
    total = weights = 0.0
    for other, shift, _ in near:
        weight = min(vertex.pull, vertices[other].pull)
        if vertex.lane and vertices[other].lane:
            weight *= STIFF
        total += weight * (vertices[other].middle + shift)
        weights += weight
    return total / weights


def _spread(vertices: list[_Vertex], layer: list[int], wanted: list[float]) -> None:
    """Give the vertices of `layer` the middles nearest to `wanted` (weighted least squares) that keep order and gaps.

    Less each vertex's distance from the first, the middles must only not decrease: isotonic regression, solved by
    pooling neighbours that violate the order (pool adjacent violators).
    """
    offsets = [0.0]
    for left, right in pairwise(layer):
        near, far = vertices[left], vertices[right]
        offsets.append(offsets[-1] + (near.width + far.width + near.gap + far.gap) / 2)
    pools: list[tuple[float, float, int]] = []  # a run of vertices: its mean, its weight, how many they are
    for number, want, offset in zip(layer, wanted, offsets, strict=True):
        mean, weight, count = want - offset, vertices[number].pull, 1
        while pools and pools[-1][0] > mean:
            other, other_weight, others = pools.pop()
            mean = (mean * weight + other * other_weight) / (weight + other_weight)
            weight, count = weight + other_weight, count + others
        pools.append((mean, weight, count))
    means = [mean for mean, _, count in pools for _ in range(count)]
    for number, mean, offset in zip(layer, means, offsets, strict=True):
        vertices[number].middle = mean + offset


def _main_axis(
    sizes: Sequence[tuple[float, float]], vertices: list[_Vertex], layers: list[list[int]], gap: float
) -> tuple[list[float], list[float]]:
    """Start and length of each layer along the main axis: as long as its longest box, and further from the one before
    the further an arrow goes sideways between them."""
    starts, lengths, at = [], [], 0.0
    for index, layer in enumerate(layers):
        if index:
            at += gap + min(STEEPEST * _sideways(vertices, layer), WIDEST_GAP)
        starts.append(at)
        lengths.append(max((sizes[number][0] for number in layer if number < len(sizes)), default=0.0))
        at += lengths[-1]
    return starts, lengths


def _sideways(vertices: list[_Vertex], layer: list[int]) -> float:
    """How far the arrows into a layer go sideways at most."""
    distances = (
        abs(vertices[tie.other].middle + tie.shift - vertices[number].middle)
        for number in layer
        for tie in vertices[number].before
    )
    return max(distances, default=0.0)
