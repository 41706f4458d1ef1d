"""Anomaly mode: a backward that fails or makes a NaN stops at once and names the operation and its line in the forward.

While it is on, `_watch` stands around every node that runs. It warns about the node that failed, and notes for each
node that a backward recorded (for a second derivative) which node it was made by, so that a failure in a derivative of
a derivative leads back to the line that the user wrote.
"""

from __future__ import annotations

import sys
import warnings

import numpy as np

from pellucid.autograd.around import Work
from pellucid.autograd.node import AccumulateGrad, Node, next_sequence
from pellucid.core.modes import modes
from pellucid.core.tensor import Tensor

__all__ = [
    "check_backward",
    "detect_anomaly",
    "is_anomaly_check_nan_enabled",
    "is_anomaly_enabled",
    "set_detect_anomaly",
]


def is_anomaly_enabled() -> bool:
    """Whether anomaly mode is on in this thread."""
    return bool(modes.anomaly)


def is_anomaly_check_nan_enabled() -> bool:
    """Whether anomaly mode, if it is on, also looks for NaN."""
    return modes.anomaly in (False, "nan")


def _switch(anomaly: bool | str) -> None:
    modes.anomaly = anomaly
    others = tuple(around for around in modes.around if around is not _watch)
    modes.around = (*others, _watch) if anomaly else others
    modes.update()


class set_detect_anomaly:
    """Switch anomaly mode on or off; as a context manager, for a block.

    Args:
        mode: on or off.
        check_nan: whether NaN gradients raise; without it only lines are named.
    """

    def __init__(self, mode: bool, check_nan: bool = True):
        self.before = modes.anomaly
        _switch("nan" if mode and check_nan else bool(mode))

    def __enter__(self) -> None:
        return None

    def __exit__(self, *exception) -> None:
        _switch(self.before)


class detect_anomaly(set_detect_anomaly):
    """A block in which a backward that makes a NaN raises RuntimeError naming the operation and its forward line.

    It also warns which operation failed where a backward fails in another way.
    """

    def __init__(self, check_nan: bool = True):
        warnings.warn(
            "Anomaly Detection has been enabled. This mode will increase the runtime and should only be enabled for "
            "debugging.",
            stacklevel=2,
        )
        self.before, self.check_nan = modes.anomaly, check_nan

    def __enter__(self) -> None:
        self.before = modes.anomaly
        _switch("nan" if self.check_nan else True)


# --- NaN -------------------------------------------------------------------------------------------------------------


def _has_nan(value) -> bool:
    array = value._array if isinstance(value, Tensor) else value
    return array is not None and array.dtype.kind in "fcV" and bool(np.isnan(array).any())


def check_backward(node, grad, outputs) -> None:
    """Raise if one of the gradients that a node made holds a NaN."""
    if modes.anomaly != "nan":
        return
    for index, output in enumerate(outputs):
        if output is not None and _has_nan(output):
            _explain(node)
            raise RuntimeError(
                f"Function '{node.name()}' returned nan values in its {index}th output: the operation ran at "
                f"{node.site}"
            )


# --- failures --------------------------------------------------------------------------------------------------------


def _watch(work: Work, subject, arguments: tuple, call):
    """Stand around a node: explain its failure, and tell the nodes that it records whose work they are."""
    if work is not Work.NODE:
        return call()
    start = next_sequence()
    try:
        outputs = call()
    except Exception:
        _explain(subject)
        raise
    _adopt(subject, outputs, start)
    return outputs


def _adopt(parent: Node, outputs, start: int) -> None:
    """Note in every node recorded since `start` that leads to `outputs` that `parent` made it."""
    stack = [o._edge[0] for o in outputs if isinstance(o, Tensor) and o._edge is not None]
    while stack:
        node = stack.pop()
        if node.sequence > start and not isinstance(node, AccumulateGrad) and "parent_" not in node.metadata:
            node.metadata["parent_"] = parent
            stack.extend(child for child, _ in node.next_functions if child is not None)


def _explain(node: Node) -> None:
    """Warn where the operation ran whose derivative failed, and whose derivatives led to it."""
    _warn(
        f"Error detected in {node.name()}. "
        + (
            f"Traceback of forward call that caused the error: {node.site}"
            if node.site
            else "No forward pass information available."
        )
    )
    while (parent := node.metadata.get("parent_")) is not None:
        _warn(
            f"Previous calculation was induced by {parent.name()}. Traceback of forward call that induced the previous "
            f"calculation: {parent.site}"
        )
        node = parent


def _warn(text: str) -> None:
    """Warn; where warnings are errors, print: the failure itself must surface."""
    try:
        warnings.warn(text, stacklevel=2)
    except UserWarning:
        print(text, file=sys.stderr)
