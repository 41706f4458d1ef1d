"""What stands on boxes and edges, and how large that makes them. The page and the SVG write the same texts."""

# ruff: noqa: RUF001 (the sign of multiplication is meant)
from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from pellucid.graph.draw import FONT, NOTE_FONT, text_width
from pellucid.graph.page.blocks import Block
from pellucid.graph.page.texts import say
from pellucid.graph.snapshot import Derivative, Edge, Graph, Node, Output

__all__ = [
    "GRAD_CHARACTERS",
    "Label",
    "bad_gradient",
    "block_label",
    "constants",
    "edge_label",
    "edge_size",
    "node_label",
    "number_text",
    "shortened",
    "size_of",
]

LONGEST = 34  # characters of a title or a row
LONGEST_FORMULA = 22
TITLE_LINE, ROW_LINE = 18.0, 15.0
SIDE, ABOVE = 12.0, 11.0  # padding of a box: at each side, above and below together
SIGN = 16.0  # for the mark that a box can be opened
STACK = 6.0  # for the edges of folded boxes behind one another
GRAD_CHARACTERS = 16  # room on an edge for the number that the replay writes
NUMBER = re.compile(r"[-+]?[\d.]+(e[-+]?\d+)?")
OPERANDS = ("input", "other", "exponent")  # attributes that are operands, given as Python numbers
SIGNS = {
    "Add": "{} + {}", "Sub": "{} - {}", "Rsub": "{1} - {0}", "Mul": "{} × {}", "Div": "{} / {}", "Pow": "{} ^ {}",
    "Mm": "{} @ {}", "Bmm": "{} @ {}", "Mv": "{} @ {}", "Dot": "{} @ {}", "Matmul": "{} @ {}", "Neg": "-{}",
    "Exp": "exp({})", "Log": "log({})", "Tanh": "tanh({})", "Sin": "sin({})", "Cos": "cos({})", "Sqrt": "sqrt({})",
    "Relu": "relu({})", "Sigmoid": "sigmoid({})", "Sum": "sum({})", "Mean": "mean({})", "Square": "{}²",
}  # fmt: skip


@dataclass
class Label:
    """The texts of a box: `name` in bold, `what` beside it, `rows` of (style, text) below.

    Styles: "type", "value", "grad", "facts", "bad" (in red).
    """

    name: str
    what: str
    rows: list[tuple[str, str]] = field(default_factory=list)


def size_of(label: Label, opens: bool = False, stacked: bool = False) -> tuple[float, float]:
    """Height and width of a box."""
    title = " ".join(text for text in (label.name, label.what) if text)
    widths = [text_width(title, FONT) + (SIGN if opens else 0)]
    widths += [text_width(text, NOTE_FONT) for _, text in label.rows]
    extra = STACK if stacked else 0.0
    return ABOVE + TITLE_LINE + ROW_LINE * len(label.rows) + extra, max(widths) + 2 * SIDE + extra


def shortened(text: str, most: int = LONGEST) -> str:
    """A text of at most so many characters; the end of a name says more than its beginning."""
    return text if len(text) <= most else f"{text[: most // 3]}…{text[-(most - most // 3 - 1) :]}"


# --- boxes ------------------------------------------------------------------------------------------------------------


def node_label(graph: Graph, node: Node, into: Sequence[Edge], learning: bool) -> Label:
    """What stands on an operation, a leaf or an input.

    into: the edges that lead into it. learning: show values and gradients as numbers.
    """
    output = node.outputs[0] if node.outputs else None
    label = Label(*_title(graph, node, into, learning))
    if graph.failure is not None and graph.failure.node == node.id:
        label.rows = _failure_rows(graph)
        return label
    label.rows = [("type", _type_row(node))] if node.outputs else []
    if output is not None and learning:
        if output.value is not None:
            label.rows.append(("value", shortened(say("value", value=value_text(output.value)))))
        if output.requires_grad:
            label.rows.append(("grad", _room_for_gradient(output)))
    bad = bad_gradient(node)
    return label if not bad else Label(label.name, label.what, [*label.rows, ("bad", bad)])


def _room_for_gradient(output: Output) -> str:
    """A text as wide as the gradient that the replay will write there."""
    items = 1
    for length in output.shape or ():
        items *= length
    return say("grad", value="-0.0000" if items == 1 else value_text([-0.123] * min(items, 3)))


def _title(graph: Graph, node: Node, into: Sequence[Edge], learning: bool) -> tuple[str, str]:
    """What stands in bold, and what beside it."""
    name = next((shortened(output.name) for output in node.outputs if output.name), "")
    if node.kind != "operation":
        return (name, "") if name else ("", say(node.kind))
    short = re.sub(r"Backward\d*$", "", node.name)
    formula = _formula(graph, node, into, short) if learning else ""
    if formula and name:
        return name, f"= {formula}"
    if formula:
        return f"#{node.id}", f"= {formula}"
    return (name, short) if name and len(name) + len(short) <= LONGEST else (short, "")


def _formula(graph: Graph, node: Node, into: Sequence[Edge], short: str) -> str:
    """The operation as it is written in mathematics, or an empty text."""
    names: dict[str, str] = {edge.name: _source_name(graph, edge) for edge in into}
    names.update({name: number_text(text) for name, text in constants(node)})
    pattern = SIGNS.get(short, "")
    operands = [names[name] for name in ("input", "self", "mat1", "vec", *OPERANDS[1:], "mat2", "tensor") if name in names]
    if short == "Pow" and len(operands) == 2 and operands[1] == "2":
        pattern = "{}²"
    if pattern.count("{") > len(operands) or not operands or len(operands) < len(names):
        return ""
    text = pattern.format(*operands)
    return text if len(text) <= LONGEST_FORMULA else ""


def _source_name(graph: Graph, edge: Edge) -> str:
    outputs = graph.nodes[edge.source].outputs
    name = outputs[edge.output].name if edge.output < len(outputs) else ""
    return name or f"#{edge.source}"


def constants(node: Node) -> list[tuple[str, str]]:
    """The operands of an operation that were given as Python numbers: name and text of each."""
    return [(name, text) for name, text in node.attributes.items() if name in OPERANDS and NUMBER.fullmatch(text)]


def _type_row(node: Node) -> str:
    text = type_text(node.outputs[0])
    return text if len(node.outputs) == 1 else f"{text} {say('more outputs', n=len(node.outputs) - 1)}"


def type_text(output: Output) -> str:
    """Shape and dtype."""
    if output.shape is None:
        shape = say("unknown shape")
    else:
        shape = f"[{', '.join(map(str, output.shape))}]" if output.shape else say("scalar")
    return f"{shape} {output.dtype}".strip()


def _failure_rows(graph: Graph) -> list[tuple[str, str]]:
    failure = graph.failure
    assert failure is not None
    rows = [("bad", shortened(say("failed", error=failure.error)))]
    for name, operand in zip(failure.names, failure.operands, strict=True):
        rows.append(("bad", shortened(say("operand", name=name, shape=type_text(operand)))))
    return rows


def bad_gradient(node: Node) -> str:
    """How many NaN and infinities its gradients have; empty for none."""
    found = [output.gradient for output in node.outputs if output.gradient is not None]
    nan, inf = sum(gradient.nan for gradient in found), sum(gradient.inf for gradient in found)
    counts = [say("nan", n=nan)] * bool(nan) + [say("inf", n=inf)] * bool(inf)
    return say("bad gradient", counts=say("list").join(counts)) if counts else ""


def block_label(graph: Graph, block: Block, parent_path: str, bad: bool) -> Label:
    """What stands on a closed block.

    parent_path: the path of the module that it is in. bad: whether gradients in it have NaN or infinities.
    """
    members = block.items if block.kind == "fold" else [block]
    first = members[0] if members else block
    name, what = _block_title(graph, block, first, parent_path)
    label = Label(name, what)
    if block.last >= 0 and graph.nodes[block.last].outputs:
        call = graph.calls[block.call] if block.call is not None else None
        row = type_text(graph.nodes[block.last].outputs[0])
        if call is not None and call.output and not row.startswith(call.output):
            row = call.output
        label.rows.append(("type", shortened(row)))
    facts = _block_facts(graph, [member for member in members if isinstance(member, Block)], block)
    label.rows += [("facts", facts)] if facts else []
    if bad:
        label.rows.append(("bad", say("bad inside")))
    if block.call is not None and not graph.calls[block.call].finished:
        label.rows.append(("bad", say("stopped")))
    return label


def _block_title(graph: Graph, block: Block, first: Block | int, parent_path: str) -> tuple[str, str]:
    if block.kind == "fold":
        return say("times", n=len(block.items)), _member_title(graph, first)
    if block.kind == "part":
        return say("part", first=f"{block.first:,}", last=f"{block.last:,}"), ""
    if block.kind == "backward":
        return say("in backward"), ""
    if block.call is None:
        return "", ""
    call = graph.calls[block.call]
    name = call.path.removeprefix(f"{parent_path}.") if parent_path else call.path
    if call.number:
        name = f"{name} {say('call', n=call.number + 1)}"
    return shortened(name), shortened(call.type, LONGEST - min(len(name), 20))


def _member_title(graph: Graph, member: Block | int) -> str:
    """What is repeated: a module's type, or the operations."""
    if isinstance(member, Block) and member.call is not None:
        return graph.calls[member.call].type
    numbers = member.operations() if isinstance(member, Block) else [member]
    names = [re.sub(r"Backward\d*$", "", graph.nodes[number].name) for number in numbers[:4]]
    return shortened(", ".join(names) + (", …" if len(numbers) > 4 else ""))


def _block_facts(graph: Graph, members: list[Block], block: Block) -> str:
    calls = [member.call for member in members if member.call is not None]
    parameters = sum(graph.calls[call].parameters for call in calls)
    facts = [say("parameters", n=parameters)] if parameters else []
    if block.count != 1:
        facts.append(say("operations", n=block.count) if block.count else say("empty"))
    return say("list").join(facts)


# --- edges ------------------------------------------------------------------------------------------------------------


def edge_label(graph: Graph, edges: Sequence[Edge], learning: bool) -> list[tuple[str, str]]:
    """The rows on an arrow that stands for some edges: why it is cut, or the local derivative and the value."""
    edge = edges[0]
    if edge.kind == "cut":
        reasons = list(dict.fromkeys(each.reason for each in edges if each.reason))
        rows = [("bad", shortened(say("cut", reason=say("list").join(reasons))))]
        return rows + ([("site", shortened(f"{_file(edge.site.file)}:{edge.site.line}"))] if edge.site else [])
    if not learning or len(edges) > 1 or edge.derivative is None or edge.kind != "gradient":
        return []
    target = graph.nodes[edge.target].outputs
    result = target[0].name if target and target[0].name else f"#{edge.target}"
    operand = _source_name(graph, edge)
    value = derivative_text(edge.derivative)
    return [("derivative", shortened(say("derivative", result=result, operand=operand, value=value)))]


def edge_size(rows: Sequence[tuple[str, str]], replayed: bool = False) -> tuple[float, float]:
    """Height and width of an arrow's label; with a row more for what the replay writes."""
    texts = [text for _, text in rows] + (["0" * GRAD_CHARACTERS] if replayed else [])
    return ROW_LINE * len(texts) + 4.0, max(text_width(text, NOTE_FONT) for text in texts) + 8.0


def _file(path: str) -> str:
    return re.split(r"[\\/]", path)[-1]


# --- numbers ----------------------------------------------------------------------------------------------------------


def derivative_text(derivative: Derivative) -> str:
    """A local derivative in a few characters."""
    if derivative.kind == "matrix" and derivative.values and len(derivative.values) > 1:
        return say("matrix", rows=len(derivative.values), columns=len(derivative.values[0]))
    if derivative.kind == "matrix" and derivative.values:
        return value_text(derivative.values[0])
    if derivative.kind == "outputs":
        return "…"
    return value_text(derivative.values)


def value_text(value: Any) -> str:
    """A number or nested lists of numbers, at most four in a list."""
    if isinstance(value, list):
        shown = [value_text(item) for item in value[:4]]
        return f"[{', '.join(shown + ['…'] * (len(value) > 4))}]"
    return number_text(value)


def number_text(value: Any) -> str:
    """A number in at most about eight characters."""
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            return value
    if isinstance(value, bool):
        return str(value)
    return f"{value:.4g}"
