"""`pellucid kernels`: compile the kernels of this installation, all or some, and keep them on disk.

Each family has an exercise here: a small program of public functions that needs its kernels, forward and backward. What no
exercise needs is compiled when a program first needs it.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import time
from collections.abc import Callable

import pellucid as torch
from pellucid import nn
from pellucid.cli.errors import UsageError
from pellucid.kernels import choice, elementwise, few_rows, readiness, reductions
from pellucid.nn import functional as F

DESCRIPTION = "Compile the kernels of this installation now, so that no program has to wait for them or do without them."
DTYPES = {"float32": torch.float32, "float64": torch.float64}


def _leaf(*shape: int, dtype) -> torch.Tensor:
    return torch.ones(*shape, dtype=dtype).requires_grad_()


def _products(dtype) -> None:
    a, b = _leaf(64, 64, dtype=dtype), _leaf(64, 64, dtype=dtype)
    F.linear(a, b, _leaf(64, dtype=dtype)).sum().backward()
    torch.bmm(_leaf(2, 8, 8, dtype=dtype), _leaf(2, 8, 8, dtype=dtype)).sum().backward()


def _convolution(dtype) -> None:
    for channels, places, kernel, options in (
        (32, 24, 3, {"padding": 1}), (1, 24, 3, {"padding": 1}), (32, 8, 3, {"stride": 2, "padding": 1}), (64, 8, 1, {}),
        (32, 12, 3, {"padding": 1, "groups": 32}),
    ):  # fmt: skip
        x = _leaf(8, channels, places, places, dtype=dtype)
        w = _leaf(32, channels // options.get("groups", 1), kernel, kernel, dtype=dtype)
        torch.conv2d(x, w, _leaf(32, dtype=dtype), **options).sum().backward()


def _pooling(dtype) -> None:
    x = _leaf(2, 4, 12, 12, dtype=dtype)
    for pooled in (F.max_pool2d(x, 2), F.max_pool2d(x, 3, 2, 1), F.avg_pool2d(x, 2), F.max_pool2d(x, 2, return_indices=True)[0]):
        pooled.sum().backward()


def _normalisation(dtype) -> None:
    images, rows = _leaf(4, 8, 6, 6, dtype=dtype), _leaf(8, 16, dtype=dtype)
    layers = nn.BatchNorm2d(8), nn.GroupNorm(2, 8), nn.LayerNorm(16), nn.BatchNorm1d(16), nn.RMSNorm(16)
    for layer, x in zip(layers, (images, images, rows, rows, rows), strict=True):
        layer.to(dtype)(x).sum().backward()
    with torch.no_grad():
        layers[0].eval()(images)


def _rectifiers(dtype) -> None:
    for function in (F.relu, F.relu6):
        function(_leaf(8, 8, dtype=dtype)).sum().backward()


def _activations(dtype) -> None:
    x = _leaf(8, 8, dtype=dtype)
    for function in (F.gelu, F.silu, F.softplus, F.elu, F.hardswish, F.mish, F.logsigmoid, torch.sigmoid, torch.tanh, torch.erf):
        function(x).sum().backward()
    F.gelu(x, approximate="tanh").sum().backward()
    v = _leaf(8, 8, dtype=dtype)
    (first,) = torch.autograd.grad(torch.tanh(x), x, v, create_graph=True)
    (second,) = torch.autograd.grad(first, x, v, create_graph=True)
    (first + second).sum().backward()


def _sums(dtype) -> None:
    (_leaf(64, 64, dtype=dtype) * _leaf(64, dtype=dtype)).sum().backward()
    long = _leaf(reductions.LARGE, dtype=dtype)
    long.sum() + long.norm()


def _elementwise(dtype) -> None:
    _ = _leaf(elementwise.LARGE, dtype=dtype) + 1


def _softmax(dtype) -> None:
    x, target = _leaf(8, 8, dtype=dtype), torch.zeros(8, dtype=torch.int64)
    smoothed = F.cross_entropy(x, target, label_smoothing=0.1)
    for result in (F.softmax(x, 1).square(), F.log_softmax(x, 1), F.cross_entropy(x, target), smoothed):
        result.sum().backward()


def _attention(dtype) -> None:
    x = _leaf(1, 2, 16, 8, dtype=dtype)
    for causal in (False, True):
        F.scaled_dot_product_attention(x, x, x, is_causal=causal).sum().backward()


def _recurrent(dtype) -> None:
    for kind in (nn.LSTM, nn.GRU, nn.RNN):
        kind(8, 8).to(dtype)(_leaf(4, 2, 8, dtype=dtype))[0].sum().backward()


def _updates(dtype) -> None:
    p, table, optim = _leaf(64, dtype=dtype), _large_table(dtype), torch.optim
    p.grad = torch.ones_like(p)
    rules = [optim.SGD, optim.Adam, optim.NAdam, optim.RAdam, optim.Adamax, optim.Adagrad, optim.Adadelta, optim.RMSprop, optim.ASGD,
             optim.Rprop]  # fmt: skip
    for optimizer in (*[rule([p]) for rule in rules], optim.Adam([p], amsgrad=True), optim.RMSprop([p], centered=True)):
        optimizer.step()
    for optimizer in (optim.SGD([table], 0.1), optim.Adagrad([table])) * 2:  # the first step of each takes the whole gradient
        table.grad = None
        F.embedding(torch.arange(8), table).sum().backward()
        optimizer.step()


def _large_table(dtype) -> torch.Tensor:
    """A table whose gradient holds few rows where few are chosen."""
    return _leaf(few_rows.LARGE // 4, 4, dtype=dtype)


def _clipping(dtype) -> None:
    p = _leaf(64, dtype=dtype)
    p.grad = torch.ones_like(p)
    nn.utils.clip_grad_norm_([p], 1.0)


def _accumulation(dtype) -> None:
    for table in (_leaf(8, 4, dtype=dtype), _large_table(dtype)):
        F.embedding(torch.zeros(4, dtype=torch.int64), table).sum().backward()
        F.embedding_bag(torch.zeros(2, 2, dtype=torch.int64), table).sum().backward()
    torch.zeros(8, dtype=dtype).scatter_add(0, torch.zeros(8, dtype=torch.int64), _leaf(8, dtype=dtype)).sum().backward()


def _mersenne(dtype) -> None:
    F.dropout(_leaf(64, 64, dtype=dtype), 0.5)


EXERCISES: dict[str, Callable] = {
    "products": _products, "updates": _updates, "softmax": _softmax, "rectifiers": _rectifiers, "convolution": _convolution,
    "pooling": _pooling, "normalisation": _normalisation, "accumulation": _accumulation, "activations": _activations,
    "mersenne": _mersenne, "recurrent": _recurrent, "attention": _attention, "clipping": _clipping, "sums": _sums,
    "elementwise": _elementwise,
}  # fmt: skip


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `pellucid kernels`."""
    parser.add_argument("families", nargs="*", metavar="FAMILY", help=f"which: {', '.join(EXERCISES)}; all by default")
    parser.add_argument("--dtype", choices=[*DTYPES, "all"], default="float32", help="for which type of numbers (float32)")
    parser.add_argument("--listen", action="store_true", help=argparse.SUPPRESS)  # read lines "FAMILY DTYPE", see readiness.py


def run(options: argparse.Namespace) -> int:
    """Compile what was asked for."""
    unknown = [name for name in options.families if name not in EXERCISES]
    if unknown:
        raise UsageError(f"there are no kernels called {', '.join(unknown)}; there are {', '.join(EXERCISES)}")
    if options.listen:
        return _listen()
    if not readiness.are_wanted():
        raise UsageError("the environment variable PELLUCID_KERNELS turns compiled kernels off")
    for dtype in DTYPES if options.dtype == "all" else [options.dtype]:
        for family in options.families or EXERCISES:
            print(f"{family:15} {dtype:8}", end="", flush=True)
            start = time.perf_counter()
            compile_family(family, dtype)
            print(f"{time.perf_counter() - start:6.1f} s", flush=True)
    return 0


def compile_family(family: str, dtype: str) -> None:
    """Run the exercise of a family, whatever the sizes, and note that its kernels are there."""
    with choice.always(), torch.enable_grad():
        EXERCISES[family](DTYPES[dtype])
    readiness.mark(family, dtype)


def give_way() -> None:
    """Run only where a processor is idle, if there is more than one.

    To be nice is not enough: NumPy's BLAS waits for its threads spinning, and one of them that is held up for a slice of time holds
    up all; steps that take half a second took four.
    """
    with contextlib.suppress(OSError):
        if hasattr(os, "SCHED_IDLE") and len(os.sched_getaffinity(0)) > 1:
            os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
            return
    if hasattr(os, "nice"):
        os.nice(10)


def _listen() -> int:
    """Compile what another process asks for, and give way to it; what others have compiled since is left."""
    give_way()
    for line in sys.stdin:
        family, dtype = line.split()
        if family in EXERCISES and dtype in DTYPES:
            with readiness.alone():
                if not readiness.is_marked(family, dtype):
                    compile_family(family, dtype)
    return 0
