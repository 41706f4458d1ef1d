"""Attention: a transformer encoder over sequences of different lengths, and one attention over 2,048 tokens."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..row import PLAINLY, Cell, Row, Work, fill, training, whole_numbers

WORDS = 1000


def encoder(lib: Any, cell: Cell, batch: int, length: int, width: int, heads: int, layers: int) -> Work:
    """Training of an encoder without dropout to name each word; padding is masked and has no loss.

    By SGD with momentum: Adam would divide gradients that are nothing but rounding, those of the keys' biases, by their own size.
    """
    nn = lib.nn
    layer = nn.TransformerEncoderLayer(width, heads, 4 * width, dropout=0.0, batch_first=True)

    class Model(nn.Module):
        """Takes word numbers [batch, length] and which of them are padding."""

        def __init__(self) -> None:
            super().__init__()
            self.embedding, self.scores = nn.Embedding(WORDS, width), nn.Linear(width, WORDS)
            self.layers = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)

        def forward(self, text: Any, padding: Any) -> Any:
            return self.scores(self.layers(self.embedding(text), src_key_padding_mask=padding))

    model = fill(lib, Model())
    x, y = whole_numbers(lib, WORDS, batch, length), whole_numbers(lib, WORDS, batch, length, seed=3)
    lengths = np.random.default_rng(4).integers(length // 2, length + 1, (batch, 1))
    padding = lib.from_numpy(np.arange(length) >= lengths)
    y[padding] = -100

    def loss() -> Any:
        return nn.functional.cross_entropy(model(x, padding).view(-1, WORDS), y.view(-1), ignore_index=-100)

    return training(lib, cell, model, loss, "momentum")


def long(lib: Any, cell: Cell, length: int, heads: int, width: int) -> Work:
    """Causal attention forward and backward; the value is made of the result and the gradients."""
    rng = np.random.default_rng(0)
    q, k, v, weight = (lib.from_numpy(rng.standard_normal((1, heads, length, width), dtype=np.float32)) for _ in range(4))
    for leaf in (q, k, v):
        leaf.requires_grad_()

    def step() -> Any:
        for leaf in (q, k, v):
            leaf.grad = None
        result = lib.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        result.backward(weight)
        return result

    def value(result: Any) -> float:
        return sum(float(one.abs().mean()) for one in (result.detach(), q.grad, k.grad, v.grad))

    return Work(step, value)


ROWS = [
    Row(
        "encoder",
        "transformer encoder 4 x 256, 8 heads, batch 16 of up to 128 tokens with padding mask, SGD with momentum",
        0.90,
        encoder,
        {"batch": 16, "length": 128, "width": 256, "heads": 8, "layers": 4},
        {"batch": 2, "length": 6, "width": 8, "heads": 2, "layers": 1},
    ),
    Row(
        "attention",
        "causal attention over 2,048 tokens, 8 heads of 64, backward",
        0.90,
        long,
        {"length": 2048, "heads": 8, "width": 64},
        {"length": 16, "heads": 2, "width": 4},
        cells=PLAINLY,
    ),
]
