"""What a picture shows of a graph, worked out once: blocks, labels, sizes, and the numbers that operations were given."""

from __future__ import annotations

from functools import cached_property

from pellucid.graph.page.blocks import Block, blocks_of
from pellucid.graph.page.labels import (
    Label,
    bad_gradient,
    block_label,
    constants,
    edge_label,
    edge_size,
    node_label,
    number_text,
    shortened,
    size_of,
)
from pellucid.graph.page.texts import say
from pellucid.graph.selecting import feeding
from pellucid.graph.snapshot import Edge, Graph

__all__ = ["FEW_OPERATIONS", "Content"]

# Of a graph that is shown for learning: with values, derivatives and constants, and each leaf once.
FEW_OPERATIONS = 40


class Content:
    """A graph with what its picture says of it.

    blocks: the outermost first. nodes: the graph's, then the constants. edges: the graph's, then those of the constants.
    learning: whether values and local derivatives are shown.
    replayed: whether there is room on boxes and edges for the numbers of the replay.
    """

    def __init__(self, graph: Graph, replayed: bool = False):
        self.graph, self.replayed = graph, replayed
        self.blocks = blocks_of(graph)
        self.operations = self.blocks[0].count
        self.into = feeding(graph)
        few = self.operations <= FEW_OPERATIONS
        self.learning = few and any(edge.derivative is not None for edge in graph.edges)
        self.edges = list(graph.edges)
        self.constants: list[tuple[int, str, str]] = []  # operation, operand, text
        self._home: dict[int, list[int]] = {}
        if few:
            self._add_constants()
        self._labels: dict[object, Label] = {}

    def _add_constants(self) -> None:
        for block in self.blocks:
            for number in block.items:
                if not isinstance(number, Block):
                    for name, text in constants(self.graph.nodes[number]):
                        self._add_constant(block, number, name, text)

    def _add_constant(self, block: Block, target: int, name: str, text: str) -> None:
        made = len(self.graph.nodes) + len(self.constants)
        self.constants.append((target, name, text))
        self._home.setdefault(block.id, []).append(made)
        place = len(self.into[target])
        self.edges.append(Edge(made, 0, target, place, name, kind="constant"))

    def constants_in(self, block: Block) -> list[int]:
        """The numbers of the constants that are drawn in a block."""
        return self._home.get(block.id, [])

    @cached_property
    def roots(self) -> set[int]:
        """The nodes that were asked about."""
        return {node for node, _ in self.graph.roots}

    @cached_property
    def _bad(self) -> set[int]:
        """The nodes whose gradients have NaN or infinities."""
        return {node.id for node in self.graph.nodes if bad_gradient(node)}

    def kind(self, thing: Block | int) -> str:
        """How a closed box looks: "leaf", "input", "operation", "plain" (needs no gradient), "root", "failed", "module"."""
        if isinstance(thing, Block):
            failed = any(call is not None and not self.graph.calls[call].finished for call in (thing.call,))
            return "failed" if failed else "module"
        if thing >= len(self.graph.nodes):
            return "input"
        node = self.graph.nodes[thing]
        if self.graph.failure is not None and self.graph.failure.node == thing:
            return "failed"
        if node.kind != "operation":
            return node.kind
        if thing in self.roots:
            return "root"
        return "operation" if any(output.requires_grad for output in node.outputs) else "plain"

    def holds_root(self, thing: Block | int) -> bool:
        """Whether a box is a result or a closed block with one in it."""
        return bool(self.roots.intersection(thing.operations())) if isinstance(thing, Block) else thing in self.roots

    # --- texts and sizes ----------------------------------------------------------------------------------------------

    def label(self, thing: Block | int) -> Label:
        """The texts on a box."""
        key = ("block", thing.id) if isinstance(thing, Block) else thing
        if key not in self._labels:
            self._labels[key] = self._make_label(thing)
        return self._labels[key]

    def _make_label(self, thing: Block | int) -> Label:
        if isinstance(thing, Block):
            bad = not self._bad.isdisjoint(thing.operations()) if self._bad else False
            return block_label(self.graph, thing, self._path_around(thing), bad)
        if thing >= len(self.graph.nodes):
            return Label(number_text(self.constants[thing - len(self.graph.nodes)][2]), "")
        node = self.graph.nodes[thing]
        label = node_label(self.graph, node, self.into[thing], self.learning)
        if node.kind != "operation":
            self._shorten_name(thing, label)
        if not self.replayed:
            label.rows = [row for row in label.rows if row[0] != "grad"] + self._measured(thing)
        return label

    def _shorten_name(self, number: int, label: Label) -> None:
        """Of a parameter, leave out the path of the module it is drawn in; a nameless input goes by its number, as
        in formulas, or by its operand's name."""
        output = self.graph.nodes[number].outputs[0]
        block = self._block_of_leaf.get(number)
        path = "" if block is None else self._path_of(block)
        if path and output.name.startswith(f"{path}."):
            label.name = shortened(output.name.removeprefix(f"{path}."))
        uses = self._uses.get(number, [])
        if not output.name and self.learning:
            label.name, label.what = f"#{number}", ""
        elif not output.name and len(uses) == 1 and uses[0]:
            label.what = shortened(uses[0])

    @cached_property
    def _block_of_leaf(self) -> dict[int, Block]:
        return {number: block for block in self.blocks for number in block.leaves}

    @cached_property
    def _uses(self) -> dict[int, list[str]]:
        """Under which operand names each leaf or input is used."""
        found: dict[int, list[str]] = {}
        for edge in self.graph.edges:
            if self.graph.nodes[edge.source].kind != "operation":
                found.setdefault(edge.source, []).append(edge.name)
        return found

    def _measured(self, number: int) -> list[tuple[str, str]]:
        """The gradient that a backward left, for a still picture."""
        outputs = self.graph.nodes[number].outputs
        found = outputs[0].gradient if outputs else None
        if not self.learning or found is None or found.nan or found.inf:
            return []
        return [("grad", say("gradient norm", norm=number_text(found.norm)))]

    def _path_around(self, block: Block) -> str:
        return "" if block.parent is None else self._path_of(block.parent)

    def _path_of(self, block: Block | None) -> str:
        """The path of the innermost module around what is in a block."""
        while block is not None and block.call is None:
            block = block.parent
        return "" if block is None or block.call is None else self.graph.calls[block.call].path

    def heading(self, block: Block) -> tuple[str, str]:
        """The heading of an opened block: in bold, and beside it."""
        label = self.label(block)
        return label.name, label.what

    def size(self, thing: Block | int) -> tuple[float, float]:
        """Height and width of a closed box."""
        if isinstance(thing, Block):
            return size_of(self.label(thing), opens=True, stacked=thing.kind == "fold")
        return size_of(self.label(thing))

    def edge_rows(self, numbers: list[int]) -> list[tuple[str, str]]:
        """What stands on an arrow that stands for some edges."""
        return edge_label(self.graph, [self.edges[number] for number in numbers], self.learning)

    def edge_size(self, numbers: list[int]) -> tuple[float, float] | None:
        """Height and width of that; None where nothing stands there."""
        rows = self.edge_rows(numbers)
        if not rows:
            return None
        return edge_size(rows, self.replayed and self.edges[numbers[0]].kind == "gradient")
