"""B6: a language model of words with two LSTM layers of 256 and a vocabulary of 5,000."""

from __future__ import annotations

from typing import Any

from ..row import Cell, Row, Work, fill, training, whole_numbers


def network(lib: Any, words: int, width: int) -> Any:
    """Embedding, two layers of LSTM, scores for the next word."""
    nn = lib.nn

    class Model(nn.Module):
        """Takes word numbers [time, batch]."""

        def __init__(self) -> None:
            super().__init__()
            self.embedding, self.layers = nn.Embedding(words, width), nn.LSTM(width, width, 2)
            self.scores = nn.Linear(width, words)

        def forward(self, text: Any) -> Any:
            return self.scores(self.layers(self.embedding(text))[0])

    return Model()


def build(lib: Any, cell: Cell, batch: int, words: int, width: int, length: int) -> Work:
    """Training on random text by plain SGD, each step from a zero state."""
    model = fill(lib, network(lib, words, width))
    x, y = whole_numbers(lib, words, length, batch), whole_numbers(lib, words, length, batch, seed=3)

    def loss() -> Any:
        return lib.nn.functional.cross_entropy(model(x).view(-1, words), y.view(-1))

    return training(lib, cell, model, loss, "sgd")


ROWS = [
    Row(
        "b6",
        "LSTM language model 2 x 256, vocabulary 5,000, 35 steps, batch 20, SGD",
        0.80,
        build,
        {"batch": 20, "words": 5000, "width": 256, "length": 35},
        {"batch": 2, "words": 50, "width": 8, "length": 5},
    )
]
