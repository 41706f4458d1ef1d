"""B3: a small convolutional network in the manner of LeNet on images of 28 by 28."""

from __future__ import annotations

from typing import Any

from ..row import CONVOLVED, LOOSE, Cell, Row, Work, arranged, fill, images, training, whole_numbers


def build(lib: Any, cell: Cell, batch: int) -> Work:
    """Two convolutions of 3 by 3, one pooling, two linear layers; Adam."""
    nn = lib.nn
    model = nn.Sequential(
        nn.Conv2d(1, 32, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(32, 64, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(64 * 14 * 14, 128),
        nn.ReLU(),
        nn.Linear(128, 10),
    )
    model = arranged(lib, cell, fill(lib, model))
    x, y = images(lib, cell, batch, 1, 28, 28), whole_numbers(lib, 10, batch)
    return training(lib, cell, model, lambda: nn.functional.cross_entropy(model(x), y), "adam")


ROWS = [
    Row(
        "b3",
        "LeNet-like CNN on 28 x 28, batch 64, Adam",
        0.80,
        build,
        {"batch": 64},
        {"batch": 2},
        cells=CONVOLVED,
        tolerance=LOOSE,
    )
]
