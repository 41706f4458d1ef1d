"""The tree of blocks that a picture opens and closes: modules, folded repetitions, parts of long lists.

A block is closed (one box) or opened (a frame with what is in it). Leaves and inputs live in a block too: parameters
and nameless constants in the innermost one around all their users, inputs with a name of their own outermost.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from pellucid.graph.folding import runs
from pellucid.graph.outline import Group, grouped, what_it_does
from pellucid.graph.selecting import consumers, leading_to
from pellucid.graph.snapshot import Graph

__all__ = ["Block", "blocks_of"]

FOLDED_FROM = 3  # equal modules in a row
LOOP_FROM = 40  # operations in a block, before repetitions among them are looked for
MOST_ITEMS = 120  # in a block, before it is divided into parts
FEW_BOXES = 40  # that the picture may have when more blocks are opened at first


@dataclass(eq=False)
class Block:
    """One block.

    kind: "program" (outermost), "module", "fold" (equal blocks in a row, `items`), "part" (of a long list), "backward"
        (what ran in a backward and leads to no result).
    items: blocks and numbers of operations, in the order they ran. leaves: numbers of leaves and inputs.
    call: of a module. count: operations in all of it. first, last: the first and last operation in it, -1 for none.
    """

    id: int
    kind: str
    parent: Block | None
    items: list[Block | int] = field(default_factory=list)
    leaves: list[int] = field(default_factory=list)
    call: int | None = None
    count: int = 0
    first: int = -1
    last: int = -1

    def operations(self) -> list[int]:
        """The numbers of all operations in it, in order."""
        found: list[int] = []
        stack: list[Block | int] = [self]
        while stack:
            item = stack.pop()
            if isinstance(item, Block):
                stack.extend(reversed(item.items))
            else:
                found.append(item)
        return found


def blocks_of(graph: Graph) -> list[Block]:
    """All blocks, the outermost first and each after the one that it is in; `id` is the place in the list."""
    made = _Making(graph)
    outermost = made.new("program", None)
    forward, backward = _divided(graph, grouped(graph).items)
    made.fill(outermost, forward)
    if backward:
        made.fill(made.new("backward", outermost), backward)
    _count(made.blocks)
    _place_leaves(graph, made.blocks)
    return made.blocks


def _divided(graph: Graph, items: list[Group | int]) -> tuple[list[Group | int], list[Group | int]]:
    """What belongs to the picture, and what only ran in a backward, such as a checkpoint's second forward."""
    if all(node.phase == "forward" for node in graph.nodes):
        return items, []
    wanted = leading_to(graph, graph.roots)

    def belongs(item: Group | int) -> bool:
        if isinstance(item, Group):
            return any(belongs(inner) for inner in item.items)
        return graph.nodes[item].phase == "forward" or item in wanted

    return [item for item in items if belongs(item)], [item for item in items if not belongs(item)]


class _Making:
    def __init__(self, graph: Graph):
        self.graph = graph
        self.blocks: list[Block] = []

    def new(self, kind: str, parent: Block | None, call: int | None = None) -> Block:
        block = Block(len(self.blocks), kind, parent, call=call)
        self.blocks.append(block)
        if parent is not None:
            parent.items.append(block)
        return block

    def fill(self, block: Block, items: list[Group | int]) -> None:
        """Put groups and operations into a block: equal ones folded, long lists divided."""
        keys = [item.signature if isinstance(item, Group) else ("node", item) for item in items]
        longest = 1
        if len(items) > LOOP_FROM:
            keys = [item.signature if isinstance(item, Group) else what_it_does(self.graph.nodes[item]) for item in items]
            longest = LOOP_FROM
        pieces = []
        for start, length, times in runs(keys, longest):
            alone = length == 1 and not isinstance(items[start], Group)
            if times < FOLDED_FROM or (alone and times * length < LOOP_FROM):
                pieces += [[item] for item in items[start : start + length * times]]
            else:
                pieces.append([items[start + k * length : start + (k + 1) * length] for k in range(times)])
        self._put(block, pieces)

    def _put(self, block: Block, pieces: list[list]) -> None:
        """pieces: lists of one item, or of several equal lists of items, which are folded."""
        if len(pieces) > MOST_ITEMS:
            parts = -(-len(pieces) // MOST_ITEMS)
            size = -(-len(pieces) // min(max(parts, 8), MOST_ITEMS))
            for start in range(0, len(pieces), size):
                self._put(self.new("part", block), pieces[start : start + size])
            return
        for piece in pieces:
            if len(piece) == 1:
                self._add(block, piece[0])
            else:
                fold = self.new("fold", block)
                for items in piece:
                    self._member(fold, items)

    def _member(self, fold: Block, items: list[Group | int]) -> None:
        """Add one of the equal blocks that are folded."""
        if len(items) == 1:
            self._add(fold, items[0])
            return
        part = self.new("part", fold)
        for item in items:
            self._add(part, item)

    def _add(self, block: Block, item: Group | int) -> None:
        if isinstance(item, Group):
            self.fill(self.new("module", block, item.call), item.items)
        else:
            block.items.append(item)


def _count(blocks: list[Block]) -> None:
    for block in reversed(blocks):
        for item in block.items:
            inner = (item.first, item.last, item.count) if isinstance(item, Block) else (item, item, 1)
            if inner[2]:
                block.first = inner[0] if block.first < 0 else min(block.first, inner[0])
                block.last = max(block.last, inner[1])
                block.count += inner[2]


def _place_leaves(graph: Graph, blocks: list[Block]) -> None:
    """Put each leaf and input into a block."""
    home: dict[int, Block] = {}
    for block in blocks:
        home.update(dict.fromkeys((item for item in block.items if not isinstance(item, Block)), block))
    depth = {blocks[0].id: 0}
    for block in blocks[1:]:
        depth[block.id] = depth[block.parent.id] + 1 if block.parent else 0
    paths = {call.path for call in graph.calls}
    users, roots = consumers(graph), {node for node, _ in graph.roots}
    for node in graph.nodes:
        if node.kind == "operation":
            continue
        at = [home[edge.target] for edge in users[node.id] if edge.target in home]
        if users[node.id] and not at and node.id not in roots:
            continue  # used in the forward of a custom Function only, which stands for it
        name = node.outputs[0].name if node.outputs else ""
        block = _around(at, depth, blocks[0])
        if name and name.rpartition(".")[0] not in paths and block.kind != "backward":
            block = blocks[0]
        block.leaves.append(node.id)


def _around(inner: list[Block], depth: dict[int, int], outermost: Block) -> Block:
    """The innermost block around some blocks."""
    if not inner:
        return outermost
    found = inner[0]
    for other in inner[1:]:
        while found is not other:
            if depth[found.id] >= depth[other.id]:
                found = found.parent or outermost
            else:
                other = other.parent or outermost
    return found
