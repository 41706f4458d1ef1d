"""The handwritten digits that the demo learns, and the small network that learns them.

How it is trained is in `training.py`.
"""

from __future__ import annotations

import pickle
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

import pellucid
from pellucid import Tensor, nn
from pellucid.cli.errors import UsageError
from pellucid.nn import functional as F

CLASSES = 10


def load_digits(device: str = "cpu") -> tuple[Tensor, Tensor]:
    """The 1,797 digits of the UCI set: images float32 [1797, 1, 8, 8], ink from 0 to 1; labels int64 [1797], 0 to 9."""
    with resources.files("pellucid.cli").joinpath("assets/digits.npz").open("rb") as stream, np.load(stream) as arrays:
        images, labels = arrays["images"], arrays["labels"]
    ink = pellucid.from_numpy(images.astype(np.float32) / 16).unsqueeze(1)
    return ink.to(device), pellucid.from_numpy(labels.astype(np.int64)).to(device)


def split(labels: Tensor, seed: int, held_out: float = 0.2) -> tuple[Tensor, Tensor]:
    """Indices to train on and indices held out, int64 [*] each: of every digit the same part, drawn at random."""
    generator = pellucid.Generator().manual_seed(seed)
    train, test = [], []
    for digit in range(CLASSES):
        (indices,) = pellucid.where(labels == digit)
        indices = indices[pellucid.randperm(len(indices), generator=generator)]
        count = round(len(indices) * held_out)
        test.append(indices[:count])
        train.append(indices[count:])
    return pellucid.cat(train), pellucid.cat(test)


class DigitNet(nn.Module):
    """Two convolutions, then two linear layers; images [N, 1, 8, 8] in, one score for each digit [N, 10] out."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(1, 16, 3, padding=1)
        self.norm1 = nn.BatchNorm2d(16)
        self.conv2 = nn.Conv2d(16, 32, 3, padding=1)
        self.norm2 = nn.BatchNorm2d(32)
        self.dropout = nn.Dropout(0.25)
        self.hidden = nn.Linear(32 * 4 * 4, 64)
        self.scores = nn.Linear(64, CLASSES)

    def forward(self, images: Tensor) -> Tensor:
        features = F.relu(self.norm1(self.conv1(images)))
        features = F.relu(self.norm2(self.conv2(features)))
        features = F.max_pool2d(features, 2).flatten(1)
        return self.scores(F.relu(self.hidden(self.dropout(features))))


def load_network(path: str | Path) -> DigitNet:
    """The network of a checkpoint that `pellucid demo` wrote, ready to classify.

    Raises UsageError if the file cannot be read or is no such checkpoint.
    """
    network = DigitNet()
    restore(network, read_checkpoint(path)["network"], path)
    return network.eval()


def read_checkpoint(path: str | Path) -> dict[str, Any]:
    """What the demo's checkpoint at `path` holds; UsageError if it cannot be read or is another kind of file."""
    try:
        checkpoint = pellucid.load(path)
    except OSError as error:
        raise UsageError(f"cannot read the checkpoint {path}: {error.strerror or error}") from error
    except (RuntimeError, EOFError, ValueError, pickle.UnpicklingError) as error:
        raise UsageError(f"cannot read the checkpoint {path}: it is damaged, or no checkpoint at all") from error
    if not isinstance(checkpoint, dict) or checkpoint.get("kind") != "pellucid demo 1":
        raise UsageError(f"{path} is a file of another program: expected a checkpoint that pellucid demo wrote")
    return checkpoint


def restore(part: Any, state: Any, path: str | Path) -> None:
    """`part.load_state_dict(state)`, where a state that does not fit is the fault of the file at `path`."""
    try:
        part.load_state_dict(state)
    except (RuntimeError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise UsageError(f"the checkpoint {path} does not fit this version of the demo; train anew") from error
