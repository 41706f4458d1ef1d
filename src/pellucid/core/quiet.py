"""Floating-point exceptions in this library's arithmetic are values (inf, nan), as in PyTorch, and never warnings.

`quiet()` is `numpy.errstate(all="ignore")`, cheaper: NumPy builds a new state object at every entry, one is enough.
"""

from __future__ import annotations

import functools
import warnings
from typing import Any

import numpy as np

__all__ = ["hush", "quiet", "speak"]


class _Quiet:
    """A re-entrant context in which NumPy reports no floating-point events."""

    __slots__ = ("token",)

    def __enter__(self):
        self.token = _variable.set(_state)

    def __exit__(self, *exception):
        _variable.reset(self.token)


class _Errstate:
    """The same by NumPy's public means, for a NumPy whose inside looks different."""

    def __enter__(self):
        self.state = np.errstate(all="ignore")
        self.state.__enter__()

    def __exit__(self, *exception):
        self.state.__exit__(None, None, None)


def _hush_publicly() -> Any:
    state = _Errstate()
    state.__enter__()
    return state


def _speak_publicly(state: Any) -> None:
    state.__exit__(None, None, None)


# quiet: a context; hush and speak: the same without a with statement, for the shortest road. Give speak what hush returned.
quiet: Any = _Errstate
hush: Any = _hush_publicly
speak: Any = _speak_publicly
try:
    from numpy._core.umath import _extobj_contextvar as _variable  # pyright: ignore
    from numpy._core.umath import _make_extobj  # pyright: ignore

    _state = _make_extobj(all="ignore")
    with _Quiet():
        np.float32(1) / np.float32(0)
    quiet, hush, speak = _Quiet, functools.partial(_variable.set, _state), _variable.reset
except (ImportError, TypeError):  # the public means stay
    pass

# The shortest road (autograd/operator.py) runs plain ufuncs outside `quiet`: an overflow there warns nobody either.
warnings.filterwarnings("ignore", category=RuntimeWarning, module=r"pellucid\.")
