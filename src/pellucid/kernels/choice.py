"""Which form of a kernel runs: plain NumPy, or the one compiled by Numba. One table says from which size on.

A family of kernels has two files: `kernels/<family>.py`, what operators call, with the plain form of everything, and
`kernels/compiled/<family>.py`, the compiled forms of what is worth it. The plain form asks

    fast = compiled("softmax", x.size, x)
    if fast:
        return fast.softmax(x)

and goes on in NumPy where the answer is None: for small arrays, which never load Numba, and while a fresh installation has
not compiled the family yet (`readiness.py`).
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
from types import ModuleType

import numpy as np

__all__ = ["CROSSOVERS", "always", "are_loaded", "compiled", "never"]

# The size from which on the compiled form is faster: numbers of elements of the largest array, unless a comment says
# otherwise. `python benchmarks/crossovers.py` measures them.
CROSSOVERS = {
    "accumulation": 1 << 10,  # values that are added
    "activations": 1 << 14,
    "activations.long": 1 << 10,
    "attention": 1 << 17,  # multiplications of all queries with all keys
    "clipping": 1 << 15,  # elements of all arrays
    "convolution": 1 << 18,  # multiplications
    "elementwise": 1 << 15,
    "mersenne": 1 << 14,  # numbers drawn
    "normalisation": 1 << 10,
    "normalisation.fixed": 1 << 12,
    "pooling": 1 << 11,
    "products": 1 << 18,  # multiplications of one product: from here on OpenBLAS would wake its threads
    "products.batch": 1 << 21,  # multiplications of all products, where NumPy would compute each on one thread
    "products.outer": 1 << 12,  # elements of the product of a column and a row
    "rectifiers": 1 << 16,
    "rectifiers.gate": 1 << 12,
    "recurrent": 1 << 16,  # multiplications of states by weights, of all steps
    "softmax": 1 << 9,
    "sums": 1 << 12,
    "sums.rows": 1 << 13,
    "updates": 1 << 15,  # elements of all parameters of a group, and more for each: see `kernels/updates.py`
}

FLOATS = (np.dtype(np.float32), np.dtype(np.float64))
_LOADED: dict[np.dtype, dict[str, ModuleType]] = {dtype: {} for dtype in FLOATS}  # of each, key of CROSSOVERS -> compiled forms


class _Choice:
    """What is chosen at present, for the whole process."""

    possible: bool | None = None  # False without Numba, or where the environment forbids it; None until it is asked
    least: int | None = None  # a size that stands in for every crossover


def compiled(name: str, size: int, *arrays: np.ndarray) -> ModuleType | None:
    """The compiled forms of a family, or None where the plain one is to be used.

    Args:
        name: a key of CROSSOVERS: "family", or "family.kernel" for a kernel that has a crossover of its own.
        size: what is compared with the crossover.
        arrays: what the kernel will get; all float32 or all float64, otherwise the plain form is used.
    """
    least = _Choice.least
    if size < (CROSSOVERS[name] if least is None else least) or _Choice.possible is False:
        return None
    dtype = arrays[0].dtype
    for array in arrays:
        if array.dtype is not dtype and array.dtype != dtype:
            return None
    loaded = _LOADED.get(dtype)
    if loaded is None or (_Choice.possible is None and not _is_possible()):
        return None
    module = loaded.get(name)
    if module is None:
        from .readiness import is_ready

        family = name.partition(".")[0]
        if least is None and not is_ready(family, dtype):
            return None
        module = loaded[name] = importlib.import_module(f"pellucid.kernels.compiled.{family}")
    return module


def are_loaded(dtype: np.dtype) -> bool:
    """Whether some family is in use already, so that another one costs no import of Numba."""
    return bool(_LOADED.get(dtype))


def _is_possible() -> bool:
    """Whether Numba is there, and compiled kernels are wanted."""
    # Imported here, for it brings what a program of small arrays need not wait for: subprocess, importlib.metadata, ...
    from .readiness import are_wanted

    _Choice.possible = are_wanted() and importlib.util.find_spec("numba") is not None
    return _Choice.possible


@contextlib.contextmanager
def always():
    """Use compiled forms whatever the size (for tests)."""
    with _least(0):
        yield


@contextlib.contextmanager
def never():
    """Use plain forms whatever the size (for tests and comparisons)."""
    with _least(1 << 62):
        yield


@contextlib.contextmanager
def _least(size: int):
    before, _Choice.least = _Choice.least, size
    try:
        yield
    finally:
        _Choice.least = before
