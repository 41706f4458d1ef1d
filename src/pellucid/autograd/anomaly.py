"""Anomaly mode: a backward that makes a NaN stops at once and names the operation and its line in the forward."""

from __future__ import annotations

import warnings

import numpy as np

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


class set_detect_anomaly:
    """Switch anomaly mode on or off; as a context manager, for a block.

    Args:
        mode: on or off.
        check_nan: whether NaN gradients raise; without it only lines are named.
    """

    def __init__(self, mode: bool, check_nan: bool = True):
        self.before = modes.anomaly
        modes.anomaly = "nan" if mode and check_nan else bool(mode)

    def __enter__(self) -> None:
        return None

    def __exit__(self, *exception) -> None:
        modes.anomaly = self.before


class detect_anomaly(set_detect_anomaly):
    """A block in which a backward that makes a NaN raises RuntimeError naming the operation and its forward line."""

    def __init__(self, check_nan: bool = True):
        warnings.warn(
            "Anomaly Detection has been enabled. This mode will increase the runtime and should only be enabled for "
            "debugging.",
            stacklevel=2,
        )
        self.before, self.check_nan = modes.anomaly, check_nan

    def __enter__(self) -> None:
        self.before = modes.anomaly
        modes.anomaly = "nan" if self.check_nan else True


def _has_nan(value) -> bool:
    array = value._array if isinstance(value, Tensor) else value
    return array is not None and array.dtype.kind in "fcV" and bool(np.isnan(array).any())


def check_backward(node, grad, outputs) -> None:
    """Raise if a node turned gradients without NaN into one with NaN."""
    if modes.anomaly != "nan":
        return
    for index, output in enumerate(outputs):
        if output is not None and _has_nan(output):
            raise RuntimeError(
                f"Function '{node.name()}' returned nan values in its {index}th output: the operation ran at "
                f"{node.site}"
            )
