"""What the user sees while the demo trains: a moving bar on a terminal if rich is installed, one line an epoch elsewhere, or nothing."""

from __future__ import annotations

import importlib.util
import sys
from typing import Protocol, Self

from pellucid.cli.training import Batch, Epoch


class Progress(Protocol):
    """A context in which epochs are trained. `say` prints a line that stays."""

    def __enter__(self) -> Self: ...
    def __exit__(self, *exception: object) -> None: ...
    def say(self, text: str) -> None: ...
    def batch(self, number: int, batch: Batch) -> None: ...
    def epoch(self, number: int, epoch: Epoch) -> None: ...


def choose_progress(epochs: int, quiet: bool) -> Progress:
    """The display that suits standard output."""
    if quiet:
        return Quiet()
    return Bar(epochs) if sys.stdout.isatty() and importlib.util.find_spec("rich") else Lines(epochs)


def epoch_line(number: int, epochs: int, epoch: Epoch) -> str:
    """An epoch in one line, its columns under those of the epoch before."""
    return (
        f"epoch {number:>{len(str(epochs))}}/{epochs}  loss {epoch.loss:.4f}  accuracy {epoch.accuracy:6.1%}  "
        f"held out {epoch.held_out_accuracy:6.1%}  {epoch.samples_per_second:7,.0f} samples/s"
    )


class Quiet:
    """Prints nothing."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        pass

    def say(self, text: str) -> None:
        pass

    def batch(self, number: int, batch: Batch) -> None:
        pass

    def epoch(self, number: int, epoch: Epoch) -> None:
        pass


class Lines(Quiet):
    """One line for each epoch: for files, pipes and logs."""

    def __init__(self, epochs: int) -> None:
        self.epochs = epochs

    def say(self, text: str) -> None:
        print(text, flush=True)

    def epoch(self, number: int, epoch: Epoch) -> None:
        self.say(epoch_line(number, self.epochs, epoch))


class Bar(Lines):
    """The same lines, and under them a bar that moves with every batch."""

    def __init__(self, epochs: int) -> None:
        super().__init__(epochs)
        # Not at the top of the file: rich takes longer to import than all of the library.
        from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn

        self._progress = Progress(
            TextColumn("epoch {task.fields[number]}/" + str(epochs)),
            BarColumn(bar_width=24),
            TaskProgressColumn(),
            TextColumn("loss {task.fields[loss]:.4f}  accuracy {task.fields[accuracy]:.1%}"),
            TextColumn("{task.fields[rate]:,.0f} samples/s"),
            transient=True,
        )
        self._task = self._progress.add_task("", visible=False, number=1, loss=0.0, accuracy=0.0, rate=0.0)

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._progress.stop()

    def say(self, text: str) -> None:
        self._progress.console.print(text, highlight=False, markup=False)

    def batch(self, number: int, batch: Batch) -> None:
        self._progress.update(
            self._task,
            visible=True,
            total=batch.total,
            completed=batch.samples,
            number=number,
            loss=batch.loss,
            accuracy=batch.accuracy,
            rate=batch.samples_per_second,
        )
