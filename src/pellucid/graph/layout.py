"""Where the boxes and arrows of a directed acyclic graph go: layered layout after Sugiyama, Tagawa and Toda (1981).

Layers follow one another along the *main* axis; the boxes of a layer stand side by side along the *cross* axis. Which
of them is x and which is y is the caller's affair, and so is all drawing. Nothing here knows what the boxes mean.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

ORDER_SWEEPS = 8
PLACE_SWEEPS = 16
LEAF_PULL = 0.05
LANE = 14.0  # room along the cross axis for an arrow that passes a layer


class Edge(NamedTuple):
    """An arrow from box `source` to box `target`, where it enters port number `port`."""

    source: int
    target: int
    port: int


class Place(NamedTuple):
    """A box: its start and length along the main axis, its middle and width along the cross axis."""

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


@dataclass
class _Vertex:
    """A box, or the stretch of a long arrow in one layer."""

    width: float
    layer: int
    before: list[int] = field(default_factory=list)
    after: list[int] = field(default_factory=list)
    middle: float = 0.0
    pull: float = LEAF_PULL  # how much it draws its neighbours into line


def lay_out(sizes: Sequence[tuple[float, float]], edges: Sequence[Edge], layer_gap: float, box_gap: float) -> Layout:
    """Place boxes of `sizes` (length along the main axis, width along the cross axis) so that `edges` point forward.

    Boxes of one layer get the same length. Raises ValueError if the edges form a cycle.
    """
    layers_of = _layers(len(sizes), edges)
    vertices = [_Vertex(width, layer) for (_, width), layer in zip(sizes, layers_of, strict=True)]
    passing = [_split(vertices, edge) for edge in edges]
    layers = _ordered(vertices)
    _set_pulls(vertices, layers)
    _place(vertices, layers, box_gap)
    starts, lengths = _main_axis(sizes, layers, layer_gap)
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


def _layers(count: int, edges: Sequence[Edge]) -> list[int]:
    """The layer of each box: as late as its nearest consumer allows, so that a leaf stands beside what uses it."""
    consumers: list[list[int]] = [[] for _ in range(count)]
    producers: list[list[int]] = [[] for _ in range(count)]
    for edge in edges:
        consumers[edge.source].append(edge.target)
        producers[edge.target].append(edge.source)
    waiting = [len(targets) for targets in consumers]
    ready = [box for box in range(count) if not waiting[box]]
    to_end = [0] * count
    done = 0
    while ready:
        box = ready.pop()
        done += 1
        for source in producers[box]:
            to_end[source] = max(to_end[source], to_end[box] + 1)
            waiting[source] -= 1
            if not waiting[source]:
                ready.append(source)
    if done < count:
        raise ValueError("the edges form a cycle: expected a directed acyclic graph")
    last = max(to_end)
    return [last - distance for distance in to_end]


def _split(vertices: list[_Vertex], edge: Edge) -> list[int]:
    """Join the ends of `edge`, with a vertex for its lane in each layer between; return the lanes' numbers."""
    first, last = vertices[edge.source].layer, vertices[edge.target].layer
    lanes = list(range(len(vertices), len(vertices) + last - first - 1))
    vertices.extend(_Vertex(LANE, layer) for layer in range(first + 1, last))
    chain = [edge.source, *lanes, edge.target]
    for source, target in pairwise(chain):
        vertices[source].after.append(target)
        vertices[target].before.append(source)
    return lanes


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
            stack.extend(reversed(vertices[number].before))
    return order


def _sort_by_neighbours(vertices: list[_Vertex], layers: list[list[int]], index: int, backward: bool) -> None:
    """Sort layer `index` by the mean position of its neighbours in the layer after it (`backward`) or before it."""
    here = {number: spot for spot, number in enumerate(layers[index])}
    position = {number: spot for spot, number in enumerate(layers[index + 1 if backward else index - 1])}

    def mean(number: int) -> float:
        neighbours = vertices[number].after if backward else vertices[number].before
        spots = [position[neighbour] for neighbour in neighbours]
        return sum(spots) / len(spots) if spots else here[number]

    means = {number: mean(number) for number in layers[index]}
    layers[index].sort(key=means.__getitem__)


def _crossings(vertices: list[_Vertex], layers: list[list[int]]) -> int:
    """How many pairs of arrows between neighbouring layers cross."""
    total = 0
    for earlier, later in pairwise(layers):
        position = {number: spot for spot, number in enumerate(later)}
        ends: list[int] = []
        for number in earlier:
            spots = sorted(position[target] for target in vertices[number].after)
            total += sum(len(ends) - bisect_right(ends, spot) for spot in spots)
            for spot in spots:
                insort(ends, spot)
    return total


def _set_pulls(vertices: list[_Vertex], layers: list[list[int]]) -> None:
    """Let each vertex pull by how much lies before it: so long chains run straight, and what feeds them stands aside."""
    for layer in layers:
        for number in layer:
            vertex = vertices[number]
            vertex.pull = max((1 + vertices[source].pull for source in vertex.before), default=LEAF_PULL)


def _place(vertices: list[_Vertex], layers: list[list[int]], gap: float) -> None:
    """Set each vertex's middle: near its neighbours' mean, in the order of its layer, without overlap."""
    for layer in layers:
        _spread(vertices, layer, [0.0] * len(layer), gap)
    for sweep in range(PLACE_SWEEPS):
        forward, both = sweep % 2 == 1, sweep >= PLACE_SWEEPS - 2
        for layer in layers if forward else reversed(layers):
            _spread(vertices, layer, [_wanted(vertices, number, forward, both) for number in layer], gap)


def _wanted(vertices: list[_Vertex], number: int, forward: bool, both: bool) -> float:
    """The mean middle of a vertex's neighbours: those before it if `forward`, else those after it, or all if `both`."""
    vertex = vertices[number]
    near = vertex.before + vertex.after if both else vertex.before if forward else vertex.after
    weights = [min(vertex.pull, vertices[other].pull) for other in near]
    if not near:
        return vertex.middle
    return sum(weight * vertices[other].middle for weight, other in zip(weights, near, strict=True)) / sum(weights)


def _spread(vertices: list[_Vertex], layer: list[int], wanted: list[float], gap: float) -> None:
    """Give the vertices of `layer` the middles nearest to `wanted` (weighted least squares) that keep order and gaps.

    Less each vertex's distance from the first, the middles must only not decrease: isotonic regression, solved by
    pooling neighbours that violate the order (pool adjacent violators).
    """
    offsets = [0.0]
    for left, right in pairwise(layer):
        offsets.append(offsets[-1] + (vertices[left].width + vertices[right].width) / 2 + gap)
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
    sizes: Sequence[tuple[float, float]], layers: list[list[int]], gap: float
) -> tuple[list[float], list[float]]:
    """Start and length of each layer along the main axis: as long as its longest box."""
    starts, lengths, at = [], [], 0.0
    for layer in layers:
        length = max((sizes[number][0] for number in layer if number < len(sizes)), default=0.0)
        starts.append(at)
        lengths.append(length)
        at += length + gap
    return starts, lengths
