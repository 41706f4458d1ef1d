"""Which boxes and arrows a picture has, given which blocks are opened. `scene.js` does the same in a browser."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

from pellucid.core.language import message
from pellucid.graph.draw import FONT, text_width
from pellucid.graph.layout_nested import Arrow, Box, Nested, lay_out_nested
from pellucid.graph.page.blocks import FEW_BOXES, Block
from pellucid.graph.page.content import FEW_OPERATIONS, Content
from pellucid.graph.page.texts import say
from pellucid.graph.snapshot import Graph

__all__ = ["Scene", "opened_at_first", "opened_to", "scene_of"]

BUTTON = 30.0  # in a heading, for the mark that closes it


def opened_at_first(graph: Graph, blocks: list[Block]) -> set[int]:
    """The blocks that are open at first: outermost modules, as long as the picture stays small, modules that only wrap
    another one, and those around the operation that failed."""
    opened, shown = {0}, len(blocks[0].items)
    inside = [item for item in blocks[0].items if isinstance(item, Block) and item.kind == "module"]
    while inside:
        module = inside.pop()
        alone = module.parent is not None and len(module.parent.items) == 1
        wraps = any(isinstance(item, Block) for item in module.items)
        if shown + len(module.items) - 1 <= FEW_BOXES and (alone or (wraps and module.parent is blocks[0])):
            opened.add(module.id)
            shown += len(module.items) - 1
            inside += [item for item in module.items if isinstance(item, Block) and len(module.items) == 1]
    return opened | _around_failure(graph, blocks)


def _around_failure(graph: Graph, blocks: list[Block]) -> set[int]:
    failed = graph.failure.node if graph.failure is not None else None
    return set() if failed is None else {block.id for block in blocks if block.kind != "fold" and failed in block.operations()}


def opened_to(blocks: list[Block], levels: int | None) -> set[int]:
    """The blocks that are open when so many levels of modules are. None: all, also parts of long lists; of equal blocks
    the first."""
    depth = {0: 0}
    opened = {0}
    for block in blocks[1:]:
        parent = block.parent or blocks[0]
        modules = block.kind == "module" or (block.kind == "fold" and any(isinstance(item, Block) for item in block.items))
        depth[block.id] = depth[parent.id] + (modules and parent.kind != "fold")
        if parent.id in opened and (levels is None or (block.kind in ("module", "fold") and depth[block.id] <= levels)):
            opened.add(block.id)
    return opened


@dataclass
class Scene:
    """A picture before it is drawn.

    things: for each box what it stands for: a Block or the number of a node. arrows: as laid out. carried: the edges
    that each arrow stands for. backward: the numbers of arrows that point against the picture's direction.
    """

    things: list[Block | int] = field(default_factory=list)
    boxes: list[Box] = field(default_factory=list)
    arrows: list[Arrow] = field(default_factory=list)
    carried: list[list[int]] = field(default_factory=list)
    backward: set[int] = field(default_factory=set)
    layout: Nested | None = None


def scene_of(content: Content, opened: Collection[int], direction: str = "down", most: int | None = None) -> Scene:
    """Boxes and arrows, and where they go; ValueError for more than `most` boxes, leaves not counted."""
    making = _Making(content, set(opened), direction == "right")
    drawn = sum(not box.source for box in making.made.boxes)
    if most is not None and drawn > most:
        first = f"the picture would have {drawn:,} boxes, more than {most:,}: too many to read"
        raise ValueError(message(first, say("fewer")))
    return making.scene()


class _Making:
    def __init__(self, content: Content, opened: set[int], sideways: bool):
        self.content, self.opened, self.sideways = content, opened, sideways
        self.made = Scene()
        self.shown: dict[int, int] = {}  # node -> the box that it is or is in
        self.order: dict[int, int] = {}  # operation -> its place, that of the first of the equal ones it is drawn as
        self._enter(content.blocks[0], None)

    def scene(self) -> Scene:
        self._connect()
        made = self.made
        copies = self.content.operations > FEW_OPERATIONS
        made.layout = lay_out_nested(made.boxes, made.arrows, copies=copies, heading_first=not self.sideways)
        return made

    # --- boxes --------------------------------------------------------------------------------------------------------

    def _enter(self, block: Block, box: int | None) -> None:
        """Add what is in an opened block. Of a fold the first member stands for all."""
        if block.kind != "fold":
            self._add_leaves(block, box)
            for item in block.items:
                self._add(item, box)
            return
        first, *others = block.items
        self._add_leaves(block, box)
        if isinstance(first, Block):
            self._enter(first, box)
        else:
            self._add(first, box)
        names = first.operations() if isinstance(first, Block) else [first]
        for other in others:
            alike = other.operations() if isinstance(other, Block) else [other]
            for name, number in zip(names, alike, strict=True):
                self.shown[number], self.order[number] = self.shown[name], self.order[name]

    def _add_leaves(self, block: Block, box: int | None) -> None:
        for number in (*block.leaves, *self.content.constants_in(block)):
            self.shown[number] = self._box(number, self._sized(self.content.size(number), box, source=True))

    def _add(self, item: Block | int, box: int | None) -> None:
        if not isinstance(item, Block):
            self.shown[item] = self._box(item, self._sized(self.content.size(item), box))
            self.order[item] = item
        elif item.id in self.opened and item.items:
            label = self.content.heading(item)
            head = text_width(" ".join(text for text in label if text), FONT) + BUTTON
            self._enter(item, self._box(item, Box(box, opened=True, head=head)))
        else:
            closed = self._box(item, self._sized(self.content.size(item), box))
            self._hide(item, closed)

    def _hide(self, block: Block, box: int) -> None:
        """Note that all in a closed block is drawn as one box."""
        stack = [block]
        while stack:
            inner = stack.pop()
            self.shown.update(dict.fromkeys((*inner.leaves, *self.content.constants_in(inner)), box))
            for item in inner.items:
                if isinstance(item, Block):
                    stack.append(item)
                else:
                    self.shown[item], self.order[item] = box, item

    def _box(self, thing: Block | int, box: Box) -> int:
        self.made.things.append(thing)
        self.made.boxes.append(box)
        return len(self.made.boxes) - 1

    def _sized(self, size: tuple[float, float], parent: int | None, source: bool = False) -> Box:
        height, width = size
        return Box(parent, width, height, source=source) if self.sideways else Box(parent, height, width, source=source)

    # --- arrows -------------------------------------------------------------------------------------------------------

    def _connect(self) -> None:
        found: dict[tuple, int] = {}
        for number, edge in enumerate(self.content.edges):
            source, target = self.shown.get(edge.source), self.shown.get(edge.target)
            if source is None or target is None or source == target or self._repeats(edge.source, edge.target):
                continue
            port = edge.input if not isinstance(self.made.things[target], Block) else 0
            key = source, target, edge.kind, port
            if key in found:
                self.made.carried[found[key]].append(number)
            else:
                found[key] = len(self.made.carried)
                self.made.carried.append([number])
        depths = self._depths()
        for (source, target, kind, port), number in found.items():
            size = self.content.edge_size(self.made.carried[number])
            label = None if size is None else size[::-1] if self.sideways else size
            if self._against(source, target, depths):
                self.made.backward.add(number)
                source, target, kind = target, source, f"{kind} back"
            self.made.arrows.append(Arrow(source, target, port, kind, label))

    def _repeats(self, source: int, target: int) -> bool:
        """Whether an edge leads from one of equal blocks to the next, which is drawn as the same."""
        return source in self.order and target in self.order and self.order[source] >= self.order[target]

    def _depths(self) -> list[int]:
        """How deep each box is nested."""
        depths: list[int] = []
        for box in self.made.boxes:
            depths.append(0 if box.parent is None else depths[box.parent] + 1)
        return depths

    def _against(self, source: int, target: int, depths: list[int]) -> bool:
        """Whether an arrow would lead from a later box to an earlier one, on the level where it crosses over."""
        boxes = self.made.boxes
        if boxes[source].source:
            return False
        while boxes[source].parent != boxes[target].parent:
            if depths[source] >= depths[target]:
                source = boxes[source].parent or 0
            else:
                target = boxes[target].parent or 0
        return source > target
