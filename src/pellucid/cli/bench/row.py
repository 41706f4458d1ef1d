"""What a row of the benchmark is: work declared once for a library given by hand, its sizes, its target, and its cells.

Rows must run in a process that has only one of the two libraries, so nothing here or in `rows/` imports either: they are
given `lib`, which is `pellucid` or `torch`, and use the names that both have. How rows are run is in `worker.py` and
`rounds.py`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

OURS, THEIRS = "pellucid", "torch"
LOOSE = 1e-3  # how far losses may differ where convolutions may be computed by Winograd's method
STRICT = 1e-4


@dataclass(frozen=True)
class Cell:
    """One library with one choice of settings.

    Args:
        name: what the table calls it.
        library: the module's name.
        optimizer: further arguments of the optimizer.
        channels_last: whether images and weights are laid out with channels innermost.
        sparse: whether an embedding's gradient is a sparse tensor.
    """

    name: str
    library: str
    optimizer: Mapping[str, Any] = field(default_factory=dict)
    channels_last: bool = False
    sparse: bool = False


DEFAULT = Cell("pellucid", OURS)
PLAIN = Cell("torch", THEIRS)
FOREACH = Cell("torch foreach", THEIRS, {"foreach": True})
FUSED = Cell("torch fused", THEIRS, {"fused": True})
FUSED_LAST = Cell("torch fused, channels last", THEIRS, {"fused": True}, channels_last=True)
PLAIN_LAST = Cell("torch channels last", THEIRS, channels_last=True)
PLAINLY = (DEFAULT, PLAIN)
TRAINED = (DEFAULT, PLAIN, FOREACH, FUSED)
CONVOLVED = (DEFAULT, PLAIN, FUSED, FUSED_LAST)


class Work(NamedTuple):
    """What a cell repeats: `step` does it once, and `value` turns what it returned into the number to compare."""

    step: Callable[[], Any]
    value: Callable[[Any], float] = lambda result: float(result.item())


@dataclass(frozen=True)
class Row:
    """One line of the table.

    Args:
        name: such as `b2-512-adam`; what precedes the first dash names its group.
        title: the work in words.
        target: our time over the best of PyTorch's; None where there is nothing to reach.
        build: makes the work: `build(lib, cell, **sizes)`.
        sizes: arguments of `build`.
        quick: those that are smaller in a quick run.
        cells: ours first.
        tolerance: relative difference that the losses may have.
        per: operations in a step, if times are given for one operation.
        amount: what a step does, with its unit in a second: `(17e9, "GFLOP/s")` in units of a billion.
        memory: whether the peak memory has the target of `MEMORY_TARGET`.
        workers: whether the work is done by further processes, whose time the processor's clock of a cell does not have.
    """

    name: str
    title: str
    target: float | None
    build: Callable[..., Work]
    sizes: Mapping[str, Any] = field(default_factory=dict)
    quick: Mapping[str, Any] = field(default_factory=dict)
    cells: tuple[Cell, ...] = TRAINED
    tolerance: float = STRICT
    per: int = 1
    amount: tuple[float, str] | None = None
    memory: bool = False
    workers: bool = False

    def make(self, lib: Any, cell: Cell, quick: bool) -> Work:
        """The work of one cell."""
        return self.build(lib, cell, **{**self.sizes, **(self.quick if quick else {})})

    def cell(self, name: str) -> Cell:
        """The cell of that name; KeyError if there is none."""
        return {cell.name: cell for cell in self.cells}[name]

    def compared(self) -> tuple[Cell, ...]:
        """The cells whose losses are compared: ours, PyTorch's with its default settings, and its one with channels last.

        The last two say how far PyTorch's own roundings lead apart.
        """
        return (*self.cells[:2], *(cell for cell in self.cells[2:] if cell.channels_last))


MEMORY_TARGET = 0.9


def fill(lib: Any, model: Any, gain: float = 1.0, seed: int = 1) -> Any:
    """Give a model weights that are the same in both libraries, and return it.

    Matrices and kernels are uniform with limits `gain / sqrt(inputs)`, vectors called `weight` are ones, others zeros.
    """
    rng = np.random.default_rng(seed)
    with lib.no_grad():
        for name, parameter in model.named_parameters():
            shape = tuple(parameter.shape)
            if len(shape) > 1:
                limit = gain / math.sqrt(math.prod(shape[1:]))
                values = rng.uniform(-limit, limit, shape).astype(np.float32)
            else:
                values = np.full(shape, 1.0 if name.endswith("weight") else 0.0, np.float32)
            parameter.copy_(lib.from_numpy(values))
    return model


def images(lib: Any, cell: Cell, *shape: int) -> Any:
    """Normally distributed images [batch, channels, ...] in the layout that the cell asks for."""
    made = lib.from_numpy(np.random.default_rng(0).standard_normal(shape, dtype=np.float32))
    return arranged(lib, cell, made, len(shape))


def arranged(lib: Any, cell: Cell, what: Any, dims: int = 4) -> Any:
    """A tensor or module in the layout that the cell asks for, for images of `dims` dimensions."""
    if not cell.channels_last:
        return what
    layout = lib.channels_last if dims == 4 else lib.channels_last_3d
    return what.to(memory_format=layout)


def whole_numbers(lib: Any, below: int, *shape: int, seed: int = 2) -> Any:
    """Random whole numbers from 0, of type int64."""
    return lib.from_numpy(np.random.default_rng(seed).integers(0, below, shape))


def optimizer_of(lib: Any, cell: Cell, parameters: Any, name: str) -> Any:
    """The optimizer that a row names, with the cell's settings."""
    kinds = {
        "sgd": (lib.optim.SGD, {"lr": 0.01}),
        "momentum": (lib.optim.SGD, {"lr": 0.01, "momentum": 0.9}),
        "adam": (lib.optim.Adam, {"lr": 1e-3}),
        "adamw": (lib.optim.AdamW, {"lr": 1e-3, "weight_decay": 0.1, "betas": (0.9, 0.99)}),
    }
    kind, settings = kinds[name]
    return kind(parameters, **settings, **cell.optimizer)


def training(lib: Any, cell: Cell, model: Any, loss: Callable[[], Any], optimizer: str) -> Work:
    """Steps of training: gradients set to None, forward, backward, the optimizer; the value is the loss."""
    chosen = optimizer_of(lib, cell, model.parameters(), optimizer)

    def step() -> Any:
        chosen.zero_grad()
        result = loss()
        result.backward()
        chosen.step()
        return result.detach()

    return Work(step)
