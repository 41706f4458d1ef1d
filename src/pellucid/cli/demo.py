"""`pellucid demo`: train a small convolutional network on handwritten digits and show what came of it.

This is the command: its options, its files, its closing words. The network is in `digits.py`, the training in
`training.py`, the pictures in `chart.py` and `pellucid.graph`.
"""

from __future__ import annotations

import argparse
import sys
import textwrap
import time
from pathlib import Path

import pellucid
from pellucid.cli.chart import learning_curve
from pellucid.cli.errors import EXIT_INTERRUPTED, UsageError
from pellucid.cli.files import write_text
from pellucid.cli.interrupt import EndEarly
from pellucid.cli.numbers import positive, positive_whole, whole
from pellucid.cli.progress import Progress, choose_progress
from pellucid.cli.training import EPOCHS, Settings, Training
from pellucid.graph import draw_svg
from pellucid.kernels import choice
from pellucid.nn import functional as F

DESCRIPTION = "Train a small convolutional network on 1,797 handwritten digits, a fifth of them held out to test it."
CHECKPOINT = "checkpoint.pt"
CURVE = "learning-curve.svg"
GRAPH = "graph.svg"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `pellucid demo`. Those that fix a run are None unless given: a resumed run has its own."""
    usual = Settings()
    parser.add_argument("--epochs", type=positive_whole, default=EPOCHS, help=f"times through the data ({EPOCHS})")
    parser.add_argument("--seed", type=whole, help=f"for weights, shuffling, dropout and the split ({usual.seed})")
    parser.add_argument("--batch-size", type=positive_whole, help=f"digits in one step ({usual.batch_size})")
    parser.add_argument("--lr", type=positive, help=f"the highest learning rate ({usual.lr:g})")
    parser.add_argument("--device", default="cpu", help="where to compute (cpu)")
    parser.add_argument("--out", type=Path, default=Path("demo"), help="folder for checkpoint and pictures (demo)")
    parser.add_argument(
        "--resume", type=Path, nargs="?", const=True, metavar="CHECKPOINT", help="go on from a checkpoint (OUT's own)"
    )
    parser.add_argument("--quiet", action="store_true", help="print the result only")


def run(options: argparse.Namespace) -> int:
    """Train, draw, report; the exit status. UsageError: an option, a file or the device cannot be used."""
    check_device(options.device)
    pellucid.set_num_threads(1)  # its products are so small that handing them to threads takes longer than computing them
    training = prepare(options)
    make_folder(options.out)
    from threadpoolctl import threadpool_limits  # slow import

    begin = time.perf_counter()
    # One thread: two that wait for each other while something else runs take twenty times as long over small matrices.
    # NumPy: arrays so small gain nothing by compiled kernels, and nobody should wait for those to see a network learn.
    with threadpool_limits(1), choice.never():
        ended_early = train(training, options, choose_progress(options.epochs, options.quiet))
    seconds = time.perf_counter() - begin
    if training.history:
        draw(training, options.out)
        report(training, options.out, seconds)
    if not ended_early:
        return 0
    if training.history:
        arguments = f"--epochs {options.epochs} --out {options.out} --resume"
        print(f"ended early; to go on: {python_command()} -m pellucid demo {arguments}")
    else:
        print("ended before the first epoch was done: there is nothing to keep yet")
    return EXIT_INTERRUPTED


def prepare(options: argparse.Namespace) -> Training:
    """A training at its start, or where the checkpoint left it."""
    given = {name: getattr(options, name) for name in ("seed", "batch_size", "lr")}
    given = {name: value for name, value in given.items() if value is not None}
    if options.resume is None:
        return Training(Settings(**given), options.epochs, options.device)
    path = options.out / CHECKPOINT if options.resume is True else options.resume
    training = Training.resume(path, options.epochs, options.device)
    for name, value in given.items():
        trained = getattr(training.settings, name)
        if value != trained:
            option = "--" + name.replace("_", "-")
            raise UsageError(f"{path} was trained with {option} {trained} and cannot go on with {option} {value}")
    return training


def train(training: Training, options: argparse.Namespace, progress: Progress) -> bool:
    """Train until `options.epochs`, with a checkpoint after each; True if Ctrl-C ended it before.

    The first Ctrl-C lets the epoch finish, so its work is kept; the second stops at once, and the checkpoint of the
    epoch before stays.
    """
    first = len(training.history) + 1
    with progress, EndEarly(lambda: progress.say("Ctrl-C: ending after this epoch (again: at once)")) as end:
        if first > options.epochs:
            progress.say(f"the checkpoint has {first - 1} epochs already: nothing to train")
        try:
            for number in range(first, options.epochs + 1):
                epoch = training.train_epoch(lambda batch, number=number: progress.batch(number, batch))
                training.save(options.out / CHECKPOINT)
                progress.epoch(number, epoch)
                if end.wished:
                    return number < options.epochs
        except KeyboardInterrupt:
            return True
    if first > options.epochs:
        training.save(options.out / CHECKPOINT)
    return False


def draw(training: Training, folder: Path) -> None:
    """Write the pictures: the learning curve, and the graph that one digit's loss is computed by."""
    write_text(folder / CURVE, learning_curve(training.history))
    image = training.held_out_images[:1].clone().requires_grad_()
    scores = training.network.eval()(image)
    loss = F.cross_entropy(scores, training.held_out_labels[:1])
    names = {"image": image, "scores": scores, "loss": loss, **dict(training.network.named_parameters())}
    write_text(folder / GRAPH, draw_svg(loss, names, direction="down"))


def report(training: Training, folder: Path, seconds: float) -> None:
    """Print the result, where the files are, and how to use them."""
    checkpoint = folder / CHECKPOINT
    accuracy = training.history[-1].held_out_accuracy
    print(f"\n{accuracy:.2%} of {len(training.held_out)} held-out digits are read right; training took {seconds:.1f} s")
    print(f"learning curve     {folder / CURVE}")
    print(f"computation graph  {folder / GRAPH}")
    print(f"checkpoint         {checkpoint}\n")
    print(f"To read a digit with it, in {python_command()}:\n")
    print(textwrap.indent(example(checkpoint, int(training.held_out[0])), "    "), end="\n\n")


def example(checkpoint: Path, digit: int) -> str:
    """Three lines of Python that load the checkpoint and classify one digit."""
    return "\n".join(
        [
            "from pellucid.cli.digits import load_digits, load_network",
            f"network, (images, labels) = load_network({str(checkpoint)!r}), load_digits()",
            f"print(labels[{digit}].item(), 'is read as', network(images[{digit}:{digit + 1}]).argmax().item())",
        ]
    )


def python_command() -> str:
    """What starts this Python from the current folder."""
    python = Path(sys.executable)
    return str(python.relative_to(Path.cwd()) if python.is_relative_to(Path.cwd()) else python)


def check_device(name: str) -> None:
    try:
        pellucid.empty(0, device=name)
    except RuntimeError as error:
        raise UsageError(f"--device {name}: {str(error).splitlines()[0]}") from error


def make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"--out {folder}: cannot make this folder: {error.strerror}") from error
