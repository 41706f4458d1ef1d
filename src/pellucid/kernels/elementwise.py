"""Ufuncs of large arrays on all threads: NumPy's results to the last bit, which it computes on one.

Who calls these has looked whether arrays are large (`LARGE`); what is not for the compiled form (arrays of other dtypes, or that do
not lie in memory alike) goes to NumPy.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .choice import CROSSOVERS, compiled
from .threads import threads_for

__all__ = ["LARGE", "add_to", "apply", "apply_to_two", "form_of"]

LARGE = CROSSOVERS["elementwise"]


def form_of(ufunc: np.ufunc | None) -> Callable | None:
    """Which function here applies a ufunc; None for those that are not NumPy's own, or have more operands or results."""
    if ufunc is None or ufunc is not getattr(np, ufunc.__name__, None) or ufunc.nout != 1:
        return None
    return {1: apply, 2: apply_to_two}.get(ufunc.nin)


def apply(ufunc: np.ufunc, x: np.ndarray) -> np.ndarray:
    """ufunc(x)."""
    made = _shared(ufunc, x, x, 0, None)
    return ufunc(x) if made is None else made


def apply_to_two(ufunc: np.ufunc, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """ufunc(a, b), where b may be an array of one number without dimensions."""
    made = None
    if not b.ndim or (b.shape == a.shape and b.strides == a.strides):
        made = _shared(ufunc, a, b, b.itemsize if b.ndim else 0, None)
    return ufunc(a, b) if made is None else made


def add_to(total: np.ndarray, more: np.ndarray) -> None:
    """total += more, in place; arrays of one shape and dtype."""
    alike = more.shape == total.shape and more.strides == total.strides
    if not alike or _shared(np.add, total, more, more.itemsize, total) is None:
        np.add(total, more, total)


def _shared(ufunc: np.ufunc, a: np.ndarray, b: np.ndarray, step_of_b: int, out: np.ndarray | None) -> np.ndarray | None:
    """What the compiled form makes of a, and of b if the ufunc takes two; None where it does not apply, as for arrays with gaps."""
    if not a.__class__ is b.__class__ is np.ndarray:  # the kernel reads where their data lie from the objects
        return None
    fast = compiled("elementwise", a.size, a, b) if a.flags.forc and a.flags.aligned and b.flags.aligned else None
    loop = fast and fast.loop_of(ufunc, a.dtype.char)
    if loop is None:
        return None
    code, data, kind = loop
    if out is None:
        out = np.empty_like(a, kind, subok=False)
    step, size = a.itemsize, a.size
    if ufunc.nin == 1:
        fast.apply(threads_for(size), size, code, data, (id(a), id(out), id(out)), (step, out.itemsize, 0))
    else:
        fast.apply(threads_for(size), size, code, data, (id(a), id(b), id(out)), (step, step_of_b, out.itemsize))
    return out
