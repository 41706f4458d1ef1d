"""Convolutions of other kinds: in three dimensions, and depthwise in blocks like MobileNet's."""

from __future__ import annotations

import math
from typing import Any

from ..row import CONVOLVED, LOOSE, Cell, Row, Work, arranged, fill, images, training, whole_numbers


def volumes(lib: Any, cell: Cell, batch: int, depth: int, side: int, width: int) -> Work:
    """Two convolutions of 3 by 3 by 3 with pooling after each; Adam."""
    nn = lib.nn
    model = nn.Sequential(
        nn.Conv3d(1, width, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool3d(2),
        nn.Conv3d(width, 2 * width, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool3d(2),
        nn.Flatten(),
        nn.Linear(2 * width * depth // 4 * (side // 4) ** 2, 10),
    )
    model = arranged(lib, cell, fill(lib, model), 5)
    x, y = images(lib, cell, batch, 1, depth, side, side), whole_numbers(lib, 10, batch)
    return training(lib, cell, model, lambda: nn.functional.cross_entropy(model(x), y), "adam")


def depthwise(lib: Any, cell: Cell, batch: int, side: int, width: int, blocks: int) -> Work:
    """Blocks that widen by 6, convolve each channel by itself, and narrow again; SGD with momentum."""
    nn, wide = lib.nn, 6 * width

    class Block(nn.Module):
        """An inverted residual."""

        def __init__(self) -> None:
            super().__init__()
            self.inner = nn.Sequential(
                nn.Conv2d(width, wide, 1, bias=False),
                nn.BatchNorm2d(wide),
                nn.ReLU6(inplace=True),
                nn.Conv2d(wide, wide, 3, padding=1, groups=wide, bias=False),
                nn.BatchNorm2d(wide),
                nn.ReLU6(inplace=True),
                nn.Conv2d(wide, width, 1, bias=False),
                nn.BatchNorm2d(width),
            )

        def forward(self, x: Any) -> Any:
            return x + self.inner(x)

    stem = nn.Conv2d(3, width, 3, 2, 1, bias=False)
    head = [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, 10)]
    model = nn.Sequential(stem, nn.BatchNorm2d(width), *(Block() for _ in range(blocks)), *head)
    model = arranged(lib, cell, fill(lib, model, gain=math.sqrt(3)))
    x, y = images(lib, cell, batch, 3, side, side), whole_numbers(lib, 10, batch)
    return training(lib, cell, model, lambda: nn.functional.cross_entropy(model(x), y), "momentum")


ROWS = [
    Row(
        "conv3d",
        "3-D CNN 16-32 on 16 x 32 x 32, batch 8, Adam",
        0.90,
        volumes,
        {"batch": 8, "depth": 16, "side": 32, "width": 16},
        {"batch": 2, "depth": 4, "side": 4, "width": 2},
        cells=CONVOLVED,
        tolerance=LOOSE,
    ),
    Row(
        "depthwise",
        "three blocks like MobileNet's, width 32, on 64 x 64, batch 16, SGD with momentum",
        0.90,
        depthwise,
        {"batch": 16, "side": 64, "width": 32, "blocks": 3},
        {"batch": 2, "side": 8, "width": 4, "blocks": 1},
        cells=CONVOLVED,
        tolerance=LOOSE,
    ),
]
