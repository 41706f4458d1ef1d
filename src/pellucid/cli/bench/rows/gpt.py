"""B5: a language model of characters in the manner of GPT: 6 layers, 6 heads, width 384, 128 tokens, no dropout."""

from __future__ import annotations

from typing import Any

from ..row import Cell, Row, Work, fill, training, whole_numbers

CHARACTERS = 65


def network(lib: Any, layers: int, heads: int, width: int, length: int) -> Any:
    """The model; its last product shares the matrix of the character embedding."""
    nn, F = lib.nn, lib.nn.functional

    class Block(nn.Module):
        """Attention, then two linear layers with GELU between; each after a layer norm and beside a shortcut."""

        def __init__(self) -> None:
            super().__init__()
            self.norm1, self.norm2 = nn.LayerNorm(width, bias=False), nn.LayerNorm(width, bias=False)
            self.heads, self.joined = nn.Linear(width, 3 * width, bias=False), nn.Linear(width, width, bias=False)
            self.wide, self.narrow = nn.Linear(width, 4 * width, bias=False), nn.Linear(4 * width, width, bias=False)

        def attend(self, x: Any) -> Any:
            batch, length, _ = x.shape
            parts = self.heads(x).split(width, 2)
            q, k, v = (part.view(batch, length, heads, width // heads).transpose(1, 2) for part in parts)
            found = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            return self.joined(found.transpose(1, 2).contiguous().view(batch, length, width))

        def forward(self, x: Any) -> Any:
            x = x + self.attend(self.norm1(x))
            return x + self.narrow(F.gelu(self.wide(self.norm2(x))))

    class Model(nn.Module):
        """Embeddings of characters and of positions, the blocks, and scores for the next character."""

        def __init__(self) -> None:
            super().__init__()
            self.characters, self.positions = nn.Embedding(CHARACTERS, width), nn.Embedding(length, width)
            self.blocks, self.norm = nn.Sequential(*(Block() for _ in range(layers))), nn.LayerNorm(width, bias=False)

        def forward(self, text: Any) -> Any:
            x = self.characters(text) + self.positions(lib.arange(text.shape[1]))
            return self.norm(self.blocks(x)) @ self.characters.weight.T

    return Model()


def build(lib: Any, cell: Cell, batch: int, layers: int, heads: int, width: int, length: int) -> Work:
    """Training on random text by AdamW."""
    model = fill(lib, network(lib, layers, heads, width, length))
    x, y = whole_numbers(lib, CHARACTERS, batch, length), whole_numbers(lib, CHARACTERS, batch, length, seed=3)

    def loss() -> Any:
        return lib.nn.functional.cross_entropy(model(x).view(-1, CHARACTERS), y.view(-1))

    return training(lib, cell, model, loss, "adamw")


ROWS = [
    Row(
        "b5",
        "character GPT, 6 layers, 6 heads, width 384, batch 8, 128 tokens, AdamW",
        0.85,
        build,
        {"batch": 8, "layers": 6, "heads": 6, "width": 384, "length": 128},
        {"batch": 2, "layers": 1, "heads": 2, "width": 16, "length": 8},
        memory=True,
    )
]
