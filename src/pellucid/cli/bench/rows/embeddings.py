"""A model whose parameters are nearly all in an embedding: bags of 20 numbers out of 100,000, and a small perceptron."""

from __future__ import annotations

from typing import Any

from ..row import THEIRS, TRAINED, Cell, Row, Work, fill, training, whole_numbers

SPARSE = Cell("torch sparse", THEIRS, sparse=True)


def build(lib: Any, cell: Cell, entries: int, width: int, batch: int, bag: int, optimizer: str) -> Work:
    """Classification of bags into ten classes."""
    nn = lib.nn
    embedding = nn.EmbeddingBag(entries, width, mode="mean", **({"sparse": True} if cell.sparse else {}))
    layers = [nn.Linear(width, 128), nn.ReLU(), nn.Linear(128, 10)]
    model = fill(lib, nn.Sequential(embedding, *layers))
    x, y = whole_numbers(lib, entries, batch, bag), whole_numbers(lib, 10, batch, seed=3)
    return training(lib, cell, model, lambda: nn.functional.cross_entropy(model(x), y), optimizer)


ROWS = [
    Row(
        f"embedding-{optimizer}",
        f"EmbeddingBag 100,000 x 64 and MLP, batch 512 of 20, {words}",
        0.90,
        build,
        {"entries": 100_000, "width": 64, "batch": 512, "bag": 20, "optimizer": optimizer},
        {"entries": 100, "width": 4, "batch": 4, "bag": 3},
        cells=(*TRAINED, *more),
    )
    # Sparse gradients are the same step of plain SGD; Adam has none for them.
    for optimizer, words, more in (("sgd", "SGD", (SPARSE,)), ("adam", "Adam", ()))
]
