"""B2: a multilayer perceptron 784-256-128-10."""

from __future__ import annotations

from typing import Any

from ..row import Cell, Row, Work, fill, images, training, whole_numbers

OPTIMIZERS = {"momentum": "SGD with momentum", "adam": "Adam"}


def build(lib: Any, cell: Cell, batch: int, optimizer: str) -> Work:
    """Classification of random vectors into ten classes."""
    nn = lib.nn
    layers = [nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 128), nn.ReLU(), nn.Linear(128, 10)]
    model = fill(lib, nn.Sequential(*layers))
    x, y = images(lib, cell, batch, 784), whole_numbers(lib, 10, batch)
    return training(lib, cell, model, lambda: nn.functional.cross_entropy(model(x), y), optimizer)


ROWS = [
    Row(
        f"b2-{batch}-{'sgd' if optimizer == 'momentum' else optimizer}",
        f"MLP 784-256-128-10, batch {batch}, {words}",
        0.70,
        build,
        {"batch": batch, "optimizer": optimizer},
        {"batch": 4},
        memory=batch == 512 and optimizer == "adam",
    )
    for batch in (64, 512)
    for optimizer, words in OPTIMIZERS.items()
]
