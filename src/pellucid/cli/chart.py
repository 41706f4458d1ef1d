"""The learning curve as an SVG picture: loss and accuracy of each epoch, in training and on held-out digits.

Curves only; how they are drawn is in `pellucid.core.charts`, and the picture of a computation graph in `pellucid.graph`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from pellucid.cli.training import Epoch
from pellucid.core.charts import Curve, Panel, ends, picture, round_steps

TRAINING, HELD_OUT = "#1f5fa8", "#c8501e"


def learning_curve(history: Sequence[Epoch]) -> str:
    """The SVG text of two panels side by side, loss and accuracy; `history` has one entry an epoch, at least one."""
    return picture("Learning curve", [loss_panel(history), accuracy_panel(history)])


def loss_panel(history: Sequence[Epoch]) -> Panel:
    """Loss on a logarithmic axis: what happens after the first epochs would be a flat line on another."""
    curves = [
        Curve("training", TRAINING, [decades(epoch.loss) for epoch in history]),
        Curve("held out", HELD_OUT, [decades(epoch.held_out_loss) for epoch in history]),
    ]
    low, high = ends(curves)
    ticks = list(range(math.floor(low), max(math.ceil(high), math.floor(low) + 1) + 1))
    return Panel("Loss", curves, ticks, [f"{10.0**tick:g}" for tick in ticks], "epoch")


def accuracy_panel(history: Sequence[Epoch]) -> Panel:
    """Accuracy in percent, from a round number below the lowest to 100."""
    curves = [
        Curve("training", TRAINING, [100 * epoch.accuracy for epoch in history]),
        Curve("held out", HELD_OUT, [100 * epoch.held_out_accuracy for epoch in history]),
    ]
    ticks = round_steps(min(ends(curves)[0], 99.0), 100.0)
    return Panel("Accuracy", curves, ticks, [f"{tick:g}%" for tick in ticks], "epoch")


def decades(value: float) -> float:
    """The decimal logarithm; NaN where there is none."""
    return math.log10(value) if 0 < value < math.inf else math.nan
