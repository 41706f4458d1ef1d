"""relu, functions with bounds, and their gradients in one pass over memory, a block of elements a task. Plain forms: `kernels/rectifiers.py`."""

from __future__ import annotations

from . import serial
from .sharing import share

__all__ = ["between", "pass_above", "pass_inside", "relu"]

BLOCK = 1 << 15  # elements: 128 or 256 KiB, so that a task is long beside its start


@serial
def _relu(block, x, out):
    part, target = x[block * BLOCK : (block + 1) * BLOCK], out[block * BLOCK : (block + 1) * BLOCK]
    zero = x.dtype.type(0)
    for i in range(part.size):
        target[i] = zero if part[i] < zero else part[i]


@serial
def relu(threads, x, out):
    """out [n] = max(x, 0); NaN stays, and so does -0. Traffic: x read, `out` written. One comparison each."""
    share((x.size + BLOCK - 1) // BLOCK, threads, _relu, (x, out))


@serial
def _between(block, x, low, high, out):
    part, target = x[block * BLOCK : (block + 1) * BLOCK], out[block * BLOCK : (block + 1) * BLOCK]
    for i in range(part.size):
        value = low if part[i] < low else part[i]
        target[i] = high if value > high else value


@serial
def between(threads, x, low, high, out):
    """out [n] = min(max(x, low), high); NaN stays, and so does -0. Traffic: x read, `out` written. Two comparisons each."""
    share((x.size + BLOCK - 1) // BLOCK, threads, _between, (x, low, high, out))


@serial
def _pass_above(block, grad, point, low, out):
    start, stop = block * BLOCK, (block + 1) * BLOCK
    part, at, target = grad[start:stop], point[start:stop], out[start:stop]
    zero = grad.dtype.type(0)
    for i in range(part.size):
        target[i] = zero if at[i] <= low else part[i]


@serial
def pass_above(threads, grad, point, low, out):
    """out [n] = grad where point is over `low` or NaN, else 0. Traffic: grad, point read, `out` written. One comparison each."""
    share((grad.size + BLOCK - 1) // BLOCK, threads, _pass_above, (grad, point, low, out))


@serial
def _pass_inside(block, grad, point, low, high, out):
    start, stop = block * BLOCK, (block + 1) * BLOCK
    part, at, target = grad[start:stop], point[start:stop], out[start:stop]
    zero = grad.dtype.type(0)
    for i in range(part.size):
        target[i] = zero if at[i] <= low or at[i] >= high else part[i]


@serial
def pass_inside(threads, grad, point, low, high, out):
    """out [n] = grad where point is between `low` and `high` or NaN, else 0. Traffic as of `pass_above`. Two comparisons each."""
    share((grad.size + BLOCK - 1) // BLOCK, threads, _pass_inside, (grad, point, low, high, out))
