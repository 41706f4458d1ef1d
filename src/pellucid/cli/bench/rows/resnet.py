"""B4: ResNet-18 for images of 32 by 32, in training; and the same network evaluated, its statistics fixed."""

from __future__ import annotations

import math
from typing import Any

from ..row import (
    CONVOLVED,
    DEFAULT,
    LOOSE,
    PLAIN,
    PLAIN_LAST,
    Cell,
    Row,
    Work,
    arranged,
    fill,
    images,
    training,
    whole_numbers,
)

WIDTHS, STRIDES = (64, 128, 256, 512), (1, 2, 2, 2)


def network(lib: Any, width: int, blocks: int) -> Any:
    """The network; `width` is that of its first stage, `blocks` how many each of the four stages has."""
    nn, F = lib.nn, lib.nn.functional

    class Block(nn.Module):
        """Two convolutions beside a shortcut, which is a convolution of 1 by 1 where the shape changes."""

        def __init__(self, before: int, after: int, stride: int) -> None:
            super().__init__()
            self.conv1 = nn.Conv2d(before, after, 3, stride, 1, bias=False)
            self.norm1 = nn.BatchNorm2d(after)
            self.conv2 = nn.Conv2d(after, after, 3, 1, 1, bias=False)
            self.norm2 = nn.BatchNorm2d(after)
            same = stride == 1 and before == after
            parts = [] if same else [nn.Conv2d(before, after, 1, stride, bias=False), nn.BatchNorm2d(after)]
            self.shortcut = nn.Sequential(*parts)

        def forward(self, x: Any) -> Any:
            inner = F.relu(self.norm1(self.conv1(x)), inplace=True)
            return F.relu(self.norm2(self.conv2(inner)) + self.shortcut(x), inplace=True)

    layers, before = [nn.Conv2d(3, width, 3, 1, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(inplace=True)], width
    for scale, first in zip(WIDTHS, STRIDES, strict=True):
        after = width * scale // WIDTHS[0]
        for number in range(blocks):
            layers.append(Block(before, after, 1 if number else first))
            before = after
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(before, 10))


def prepared(lib: Any, cell: Cell, width: int, blocks: int) -> Any:
    """The network with its weights, laid out as the cell asks."""
    model = fill(lib, network(lib, width, blocks), gain=math.sqrt(6))
    fill(lib, model[-1])  # scores near zero: from larger ones the first steps leap, and rounding grows with them
    return arranged(lib, cell, model)


def trained(lib: Any, cell: Cell, batch: int, width: int, blocks: int) -> Work:
    """Training with batch statistics, by SGD with momentum."""
    model, cross_entropy = prepared(lib, cell, width, blocks), lib.nn.functional.cross_entropy
    x, y = images(lib, cell, batch, 3, 32, 32), whole_numbers(lib, 10, batch)
    return training(lib, cell, model, lambda: cross_entropy(model(x), y), "momentum")


def evaluated(lib: Any, cell: Cell, batch: int, width: int, blocks: int) -> Work:
    """Forward only, with running statistics, in inference mode."""
    model = prepared(lib, cell, width, blocks).eval()
    x = images(lib, cell, batch, 3, 32, 32)

    def step() -> Any:
        with lib.inference_mode():
            return model(x)

    return Work(step, lambda scores: float(scores.abs().mean()))


RESNET18 = {"batch": 32, "width": 64, "blocks": 2}
SMALL = {"batch": 2, "width": 8, "blocks": 1}
ROWS = [
    Row(
        "b4",
        "ResNet-18 on 32 x 32, batch 32, SGD with momentum",
        0.95,
        trained,
        RESNET18,
        SMALL,
        cells=CONVOLVED,
        tolerance=LOOSE,
        memory=True,
    ),
    Row(
        "eval",
        "the same ResNet-18 in eval and inference mode, batch 32",
        0.90,
        evaluated,
        RESNET18,
        SMALL,
        cells=(DEFAULT, PLAIN, PLAIN_LAST),
        tolerance=LOOSE,
    ),
]
