"""All texts of the pictures, in one dictionary, in English; `core/catalogue_zh/page.py` has them in Chinese.

`{name}` is filled in. A text that depends on a count has two forms, `...|one` and `...|many`, for `{n}`.
"""

# ruff: noqa: RUF001 (the sign of multiplication is meant)
from __future__ import annotations

from pellucid.core import language

__all__ = ["LOCALES", "TEXTS", "page_texts", "say"]

LOCALES = {"en": "en", "zh": "zh-CN"}  # as HTML calls the languages

TEXTS = {
    "list": ", ",
    # what is in a graph
    "graph of": "Graph of {title}",
    "graph": "Graph of",
    "results": "results",
    "the part that ran": "the part that ran",
    "operations|one": "{n} operation",
    "operations|many": "{n} operations",
    "leaves|one": "{n} leaf",
    "leaves|many": "{n} leaves",
    "inputs|one": "{n} input",
    "inputs|many": "{n} inputs",
    "cuts|one": "{n} cut",
    "cuts|many": "{n} cuts",
    "parameters|one": "{n} parameter",
    "parameters|many": "{n} parameters",
    "saved": "{size} saved",
    "freed": "saved values freed by backward",
    "dropped": "{n} earlier operations were not kept",
    # on boxes
    "leaf": "leaf",
    "input": "input",
    "constant": "constant",
    "scalar": "scalar",
    "unknown shape": "[?]",
    "more outputs": "and {n} more",
    "times": "{n} ×",
    "call": "(call {n})",
    "part": "operations {first} to {last}",
    "in backward": "ran in backward",
    "empty": "nothing ran here",
    "value": "= {value}",
    "gradient norm": "|grad| {norm}",
    "grad": "grad {value}",
    "nan": "{n} NaN",
    "inf": "{n} Inf",
    "bad gradient": "{counts} in the gradient",
    "bad inside": "NaN or Inf in a gradient",
    "failed": "failed: {error}",
    "stopped": "stopped by the error inside",
    "operand": "{name} {shape}",
    # on edges
    "derivative": "∂{result}/∂{operand} = {value}",
    "matrix": "{rows}×{columns} matrix",
    "carries": "{name} = {value}",
    "cut": "cut: {reason}",
    # pictures
    "fewer": "Open fewer levels of modules (expand=0), or write a page that opens them on a click: Graph.html(path).",
    # kinds of things, for the legend and for people who hear the page
    "legend": "Legend",
    "legend.leaf": "leaf: a tensor you made, gets a gradient",
    "legend.input": "input or constant: no gradient",
    "legend.operation": "operation",
    "legend.plain": "operation outside the gradient's path",
    "legend.module": "module: click or press Enter to open",
    "legend.fold": "equal blocks, folded",
    "legend.root": "result: backward starts here",
    "legend.gradient": "data that needs a gradient",
    "legend.constant": "data that needs none",
    "legend.cut": "cut: here the gradient's path ends",
    "legend.failed": "the operation that failed; NaN, Inf",
    # bars and buttons
    "find": "Find name, module or line",
    "hits": "Hits",
    "tools": "View",
    "result": "result",
    "found|one": "{n} hit",
    "found|many": "{n} hits",
    "found none": "nothing found",
    "zoom in": "Zoom in (+)",
    "zoom out": "Zoom out (-)",
    "fit": "Fit",
    "fit.title": "Show all of the picture (0)",
    "open all": "Open all",
    "close all": "Close all",
    "derivatives": "Derivatives",
    "derivatives.title": "Show the local derivative on each edge",
    "theme.title": "Dark or light",
    "panel": "Details",
    "panel.title": "Show or hide the details",
    "skip": "Skip to the outline in words",
    "help": (
        "Drag or arrow keys move the picture, Ctrl and wheel or + and - zoom, 0 shows all, / searches. Tab goes to the "
        "first box; arrow keys then follow the edges, Enter opens a module or shows the details, Esc closes it."
    ),
    "canvas": "Picture of the graph",
    "open it": "open",
    "close it": "close",
    "show each": "show all {n}",
    "show one": "show one",
    "opened": "{what} opened",
    "closed": "{what} closed",
    # details
    "details": "Details",
    "nothing selected": "Click a box, or go to one with Tab and the arrow keys.",
    "kind": "kind",
    "name": "name",
    "shape": "shape",
    "module": "module",
    "line": "line",
    "outputs": "results",
    "operands": "operands",
    "used by": "used by",
    "attributes": "attributes",
    "flops": "forward FLOPs",
    "bytes saved": "saved for backward",
    "saved values": "saved values",
    "gradient": "gradient",
    "gradient.norm": "norm {norm}",
    "gradient.zeros": "{share} zeros",
    "gradient.good": "no NaN, no Inf",
    "gradient.none": "not known: no backward has run, or it was not recorded",
    "value of": "value",
    "needs gradient": "needs a gradient",
    "yes": "yes",
    "no": "no",
    "unknown": "not known",
    "phase": "phase",
    "phase.backward": "backward: it computed a derivative",
    "inplace": "in place",
    "alike": "alike",
    "one of": "one of {n} equal blocks: {paths}",
    "contains": "contains",
    "type": "type",
    "path": "module path",
    "kind.leaf": "leaf",
    "kind.input": "input or constant",
    "kind.operation": "operation",
    "kind.module": "module",
    "kind.fold": "{n} equal blocks",
    "kind.part": "part of a long list",
    "kind.backward": "operations that ran in backward",
    "kind.constant": "constant",
    "kind.program": "program",
    # the failure
    "failure": "The program failed here",
    "failure.go": "Show it",
    # the chain rule
    "chain": "Chain rule",
    "chain.of": "derivative of",
    "chain.by": "with respect to",
    "chain.head": "∂{result}/∂{variable} = sum over {n}",
    "chain.paths|one": "{n} path",
    "chain.paths|many": "{n} paths",
    "chain.none": "No path leads from {variable} to {result}: the derivative is 0.",
    "chain.more": "and {n} more",
    "chain.total": "sum",
    "chain.unknown": "The numbers are not known: take the graph with values=True, before backward frees them.",
    "chain.show": "Show this path in the picture",
    # outline
    "outline": "Outline",
    "outline.label": "The graph in words: modules and operations in the order they ran",
    "outline.of": " of {operands}",
    # replay
    "replay": "Replay",
    "replay.play": "Play",
    "replay.pause": "Pause",
    "replay.back": "One step back",
    "replay.forward": "One step forward",
    "replay.slider": "Step of the replay: forward pass, then backward pass",
    "replay.position": "step {step} of {steps}: {caption}",
    "replay.forward pass": "Forward",
    "replay.backward pass": "Backward",
    "replay.start": "The leaves and inputs. Nothing has been computed yet.",
    "replay.leaves": "Leaves: {names}. Nothing has been computed yet.",
    "replay.computes": "{what} is computed",
    "replay.computes.value": "{what} is computed: {name} = {value}",
    "replay.computes.formula": "{what} = {value}",
    "replay.seed": "Backward starts at {name} with ∂{name}/∂{name} = 1.",
    "replay.seed.many": "Backward starts at {name} with a gradient of ones.",
    "replay.gives": "{what} hands its gradient {grad} on: {parts}",
    "replay.gives.unknown": "{what} hands its gradient on to {names}",
    "replay.part": "to {name} {grad} × {factor} = {product}",
    "replay.part.plain": "to {name} {product}",
    "replay.sum": "; {name}.grad = {parts} = {total}",
    "replay.all": "The whole graph. Press Play to watch the forward and the backward pass.",
}


def say(key: str, **values: object) -> str:
    """The text for a key, filled in. With `n` given, the form for one or for many is chosen where there are two."""
    text = TEXTS.get(key)
    if text is None:
        text = TEXTS[f"{key}|{'one' if values.get('n') == 1 else 'many'}"]
    if "n" in values and isinstance(values["n"], int):
        values["n"] = f"{values['n']:,}"
    return language.say(text, **values)


def page_texts() -> dict[str, str]:
    """The texts in the language that is on, for the program in the page to fill in."""
    return {key: language.translated(text) for key, text in TEXTS.items()}
