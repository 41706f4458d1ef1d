"""The training of the demo's network, one epoch at a time, and its checkpoint: everything needed to go on exactly.

What the user sees of it is in `progress.py`; the command itself is `demo.py`.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import pellucid
from pellucid import Tensor
from pellucid.cli.digits import DigitNet, load_digits, read_checkpoint, restore, split
from pellucid.cli.errors import UsageError
from pellucid.nn import functional as F
from pellucid.optim import AdamW
from pellucid.optim.lr_scheduler import LambdaLR
from pellucid.utils.data import DataLoader, TensorDataset

EPOCHS = 12
WEIGHT_DECAY = 0.01


@dataclass(frozen=True)
class Settings:
    """What fixes a run: the same settings give the same numbers."""

    seed: int = 0
    batch_size: int = 32
    lr: float = 2e-3


@dataclass(frozen=True)
class Epoch:
    """What one epoch brought. Loss is the mean cross-entropy in nats; accuracy is a fraction."""

    loss: float
    accuracy: float
    held_out_loss: float
    held_out_accuracy: float
    lr: float
    samples_per_second: float


@dataclass(frozen=True)
class Batch:
    """How far an epoch has come: means over the `samples` of `total` that it has seen."""

    samples: int
    total: int
    loss: float
    accuracy: float
    samples_per_second: float


class Training:
    """A network on its way, with all that it needs to go on: optimizer, rate, random numbers, history.

    settings: seed, batch size and peak rate.
    epochs: how many there are to be; the rate falls along a cosine until then.
    """

    def __init__(self, settings: Settings, epochs: int, device: str = "cpu") -> None:
        self.settings = settings
        self.history: list[Epoch] = []
        images, labels = load_digits(device)
        train, held_out = split(labels, settings.seed)
        self.held_out = held_out
        self.held_out_images, self.held_out_labels = images[held_out], labels[held_out]
        # Everything random below draws from the one default generator, so one state in the checkpoint is enough.
        pellucid.manual_seed(settings.seed)
        self.network = DigitNet().to(device)
        self.batches = DataLoader(TensorDataset(images[train], labels[train]), settings.batch_size, shuffle=True)
        self.optimizer = AdamW(self.network.parameters(), lr=settings.lr, weight_decay=WEIGHT_DECAY)
        # A short run follows the first part of the usual curve: so its epochs are those of a longer run, to the digit.
        horizon = max(epochs, EPOCHS)
        self.schedule = LambdaLR(self.optimizer, warm_up_then_cosine(len(self.batches), horizon * len(self.batches)))

    def train_epoch(self, report: Callable[[Batch], None]) -> Epoch:
        """Train on every batch once, then measure on the held-out digits; `report` hears of each batch."""
        self.network.train()
        lr = self.optimizer.param_groups[0]["lr"]
        samples, total, loss_sum, right = 0, len(self.batches.dataset), 0.0, 0
        start = time.perf_counter()
        for images, labels in self.batches:
            scores = self.network(images)
            loss = F.cross_entropy(scores, labels)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            self.schedule.step()
            samples += len(labels)
            loss_sum += loss.item() * len(labels)
            right += count_right(scores, labels)
            rate = samples / (time.perf_counter() - start)
            report(Batch(samples, total, loss_sum / samples, right / samples, rate))
        epoch = Epoch(loss_sum / total, right / total, *self.measure(), lr, rate)
        self.history.append(epoch)
        return epoch

    def measure(self) -> tuple[float, float]:
        """Loss and accuracy on the held-out digits."""
        self.network.eval()
        with pellucid.no_grad():
            scores = self.network(self.held_out_images)
            loss = F.cross_entropy(scores, self.held_out_labels).item()
        return loss, count_right(scores, self.held_out_labels) / len(self.held_out_labels)

    def save(self, path: Path) -> None:
        """Write the checkpoint; a process killed meanwhile leaves the old file or the new one.

        Raises UsageError if it cannot be written.
        """
        checkpoint = {
            "kind": "pellucid demo 1",
            "network": self.network.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "schedule": self.schedule.state_dict(),
            "random": pellucid.get_rng_state(),
            "settings": asdict(self.settings),
            "history": [asdict(epoch) for epoch in self.history],
        }
        try:
            pellucid.save(checkpoint, path)
        except OSError as error:
            raise UsageError(f"cannot write the checkpoint {path}: {error.strerror or error}") from error

    @classmethod
    def resume(cls, path: Path, epochs: int, device: str = "cpu") -> Training:
        """The training that `save` wrote to `path`, to go on until `epochs` as if it had never stopped.

        Raises UsageError if the file cannot be read or does not hold a training.
        """
        checkpoint = read_checkpoint(path)
        try:
            training = cls(Settings(**checkpoint["settings"]), epochs, device)
            training.history = [Epoch(**epoch) for epoch in checkpoint["history"]]
            parts = [(getattr(training, name), checkpoint[name]) for name in ("network", "optimizer", "schedule")]
            random_state = checkpoint["random"]
        except (KeyError, TypeError) as error:
            raise UsageError(f"the checkpoint {path} does not fit this version of the demo; train anew") from error
        for part, state in parts:
            restore(part, state, path)
        pellucid.set_rng_state(random_state)  # last: making the network drew from the generator
        return training


def warm_up_then_cosine(warm_up: int, total: int) -> Callable[[int], float]:
    """The factor on the rate at each step: up to 1 in `warm_up` steps, then down to 0 at `total` along a cosine."""

    def factor(step: int) -> float:
        if step < warm_up:
            return (step + 1) / warm_up
        progress = min(1.0, (step - warm_up) / (total - warm_up))
        return 0.5 * (1 + math.cos(math.pi * progress))

    return factor


def count_right(scores: Tensor, labels: Tensor) -> int:
    """How many rows of `scores` [N, C] are highest at their label [N]."""
    return int((scores.argmax(dim=1) == labels).sum().item())
