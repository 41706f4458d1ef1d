"""Arithmetic of two arrays, element by element, a block of elements a task. Plain forms: NumPy's ufuncs, equal to the last bit.

Each reads its operands once and writes its result once; 1 FLOP an element. Arrays are one-dimensional, contiguous, all of one dtype.
"""

from __future__ import annotations

from . import compile_kernel
from .sharing import share

__all__ = ["add", "add_to", "divide", "multiply", "subtract"]

BLOCK = 1 << 14  # elements: each thread has a few blocks of the smallest arrays that come here


def exact(function):
    """Compile for one thread; each operation is rounded by itself."""
    return compile_kernel(function, fastmath=False)


@exact
def _add(block, a, b, out):
    start, stop = block * BLOCK, (block + 1) * BLOCK
    first, second, target = a[start:stop], b[start:stop], out[start:stop]
    for i in range(first.size):
        target[i] = first[i] + second[i]


@exact
def add(threads, a, b, out):
    """out [n] = a + b."""
    share((a.size + BLOCK - 1) // BLOCK, threads, _add, (a, b, out))


@exact
def _add_to(block, total, more):
    target, second = total[block * BLOCK : (block + 1) * BLOCK], more[block * BLOCK : (block + 1) * BLOCK]
    for i in range(target.size):
        target[i] += second[i]


@exact
def add_to(threads, total, more):
    """total [n] += more."""
    share((total.size + BLOCK - 1) // BLOCK, threads, _add_to, (total, more))


@exact
def _subtract(block, a, b, out):
    start, stop = block * BLOCK, (block + 1) * BLOCK
    first, second, target = a[start:stop], b[start:stop], out[start:stop]
    for i in range(first.size):
        target[i] = first[i] - second[i]


@exact
def subtract(threads, a, b, out):
    """out [n] = a - b."""
    share((a.size + BLOCK - 1) // BLOCK, threads, _subtract, (a, b, out))


@exact
def _multiply(block, a, b, out):
    start, stop = block * BLOCK, (block + 1) * BLOCK
    first, second, target = a[start:stop], b[start:stop], out[start:stop]
    for i in range(first.size):
        target[i] = first[i] * second[i]


@exact
def multiply(threads, a, b, out):
    """out [n] = a b."""
    share((a.size + BLOCK - 1) // BLOCK, threads, _multiply, (a, b, out))


@exact
def _divide(block, a, b, out):
    start, stop = block * BLOCK, (block + 1) * BLOCK
    first, second, target = a[start:stop], b[start:stop], out[start:stop]
    for i in range(first.size):
        target[i] = first[i] / second[i]


@exact
def divide(threads, a, b, out):
    """out [n] = a / b."""
    share((a.size + BLOCK - 1) // BLOCK, threads, _divide, (a, b, out))
