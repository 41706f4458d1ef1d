"""Writes docs/operators.md from the declarations: python docs/make_operators.py [--check]"""

from __future__ import annotations

import inspect
import sys
from pathlib import Path

import pellucid
from pellucid.autograd.batching import rule_name
from pellucid.autograd.declaration import MISSING, OPERATORS, Operator
from pellucid.autograd.forward_mode import rule_name as forward_rule
from pellucid.autograd.operator import PUBLIC
from pellucid.graph.cost_rules import rule_text

HERE = Path(__file__).parent
PAGE = HERE / "operators.md"
CONVENTIONS = (HERE / "conventions.md").read_text(encoding="utf-8")
TITLES = {
    "torch": "`pellucid`",
    "nn.functional": "`pellucid.nn.functional`",
    "linalg": "`pellucid.linalg`",
    "special": "`pellucid.special`",
    "fft": "`pellucid.fft`",
    "masked": "`pellucid.masked`",
    "signal.windows": "`pellucid.signal.windows`",
}
COLUMNS = ["call", "what it computes", "derivative", "forward mode", "batching", "cost", "kinks"]
HEAD = """# Operators

Made from the declarations by `python docs/make_operators.py`; a test holds this page to them.

- **Derivative**: *any order* where the operator has a formula, which is made of operators itself; *of parts* for a function that
  is composed of operators and has their derivatives; *none* where there is nothing to differentiate.
- **Forward mode**: how tangents pass. *formula*: its own; *linear*: it is called on the tangents; *elementwise*: its Jacobian is
  diagonal; *transposed*: the reverse formula is transposed.
- **Batching**: what `vmap` does. *formula*: its own; *elementwise*, *shift*, *leading*, *fold*: see
  `src/pellucid/autograd/batching.py`; *loop*: one call for each example.
- **Cost**: the rule that `graph.cost` counts floating-point operations by.
- **Kinks**: whether [conventions.md](conventions.md) has rows for its values and derivatives at kinks, ties or poles.
- Methods and forms in place (`add_`) are not listed beside their functions.
"""


def table(rows: list[str]) -> list[str]:
    """The lines of a table."""
    return ["", f"| {' | '.join(COLUMNS)} |", f"| {' | '.join(['---'] * len(COLUMNS))} |", *rows, ""]


def signature(function) -> str:
    """The call as users write it."""
    op = getattr(function, "operator", None)
    if isinstance(op, Operator) and op.public is function:
        return f"({', '.join(parameters(op))})"
    try:
        found = inspect.signature(function)
    except (TypeError, ValueError):
        return "(...)"
    plain = [p.replace(annotation=inspect.Parameter.empty) for p in found.parameters.values()]
    return str(found.replace(parameters=plain, return_annotation=inspect.Signature.empty))


def parameters(op: Operator) -> list[str]:
    """The parameters of an operator's public function."""
    parts: list[str] = []
    for p in op.parameters:
        if p.keyword and "*" not in parts:
            parts.append("*")
        parts.append(p.name if p.default is MISSING else f"{p.name}={p.default!r}")
    return parts


def row(module: str, name: str, function) -> str:
    """One line of a table."""
    op = getattr(function, "operator", None)
    where = "torch" if module == "torch" else "F" if module == "nn.functional" else f"torch.{module}"
    kinks = "yes" if f"{where}.{name}(" in CONVENTIONS or f"x.{name}(" in CONVENTIONS else ""
    call = f"{name}{signature(function)}".replace("|", "\\|")
    if not isinstance(op, Operator):
        facts = ["of parts", "of parts", "of parts", "of parts"]
    elif op.differentiable:
        facts = ["any order", forward_rule(op), rule_name(op), rule_text(op.name)]
    else:
        facts = ["none", "", rule_name(op), rule_text(op.name)]
    purpose = (inspect.getdoc(function) or "").partition("\n")[0].replace("|", "\\|")
    return f"| `{call}` | {purpose} | {' | '.join(f.replace('|', ' ') for f in facts)} | {kinks} |"


def page() -> str:
    """The whole page."""
    lines = [HEAD]
    for module, title in TITLES.items():
        exported = PUBLIC[module]
        functions = {name: f for name, f in exported.items() if not name.startswith("_") and not inspect.isclass(f)}
        functions = {name: f for name, f in functions.items() if not (name.endswith("_") and name[:-1] in exported)}
        lines += [f"## {title}", "", f"{len(functions)} functions."]
        lines += table([row(module, name, functions[name]) for name in sorted(functions)])
    exported = {id(f) for module in PUBLIC.values() for f in module.values()}
    inner = sorted((op for op in OPERATORS.values() if id(op.public) not in exported), key=lambda op: op.name)
    lines += ["## Operators behind these", "", f"{len(inner)} operators that public functions and derivative formulas are made of."]
    lines += table([row("torch", op.name, op.public) for op in inner])
    return "\n".join(lines[:-1]) + "\n"


if __name__ == "__main__":
    pellucid.func  # noqa: B018 (the last of the folders that declare anything)
    if "--check" in sys.argv:
        sys.exit(PAGE.read_text(encoding="utf-8") != page())
    PAGE.write_text(page(), encoding="utf-8")
