"""A DataLoader with two workers that read, cut and flip images of 3 by 32 by 32."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..row import PLAINLY, Cell, Row, Work

MARGIN = 4


class Images:
    """Images with labels; each is cut out of its padded original, flipped or not, and scaled to floats."""

    def __init__(self, lib: Any, count: int) -> None:
        rng = np.random.default_rng(0)
        self.lib = lib
        self.pixels = rng.integers(0, 256, (count, 3, 32 + 2 * MARGIN, 32 + 2 * MARGIN), dtype=np.uint8)
        self.labels = rng.integers(0, 10, count)

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, number: int) -> tuple[Any, int]:
        top, left, flip = number % (2 * MARGIN + 1), number // 3 % (2 * MARGIN + 1), number % 2
        image = self.pixels[number, :, top : top + 32, left : left + 32]
        image = (image[:, :, ::-1] if flip else image).astype(np.float32)
        image = (image / 255 - 0.5) / 0.25
        return self.lib.from_numpy(image), int(self.labels[number])


def build(lib: Any, cell: Cell, count: int, batch: int, workers: int) -> Work:
    """Once through the images, whose workers stay; the value is the mean of all pixels."""
    data = Images(lib, count)
    loader = lib.utils.data.DataLoader(data, batch_size=batch, num_workers=workers, persistent_workers=True)

    def step() -> list[Any]:
        return [images.mean() for images, _ in loader]

    return Work(step, lambda means: float(sum(float(mean) for mean in means)))


ROWS = [
    Row(
        "loader",
        "DataLoader with 2 workers, batches of 64 images; one image",
        0.90,
        build,
        {"count": 2048, "batch": 64, "workers": 2},
        {"count": 8, "batch": 4},
        cells=PLAINLY,
        per=2048,
        workers=True,
    )
]
