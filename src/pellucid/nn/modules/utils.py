"""Sizes that may be given as one number for every dimension: `_pair(3)` is (3, 3), `_pair((1, 2))` is (1, 2)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

__all__ = ["_ntuple", "_pair", "_quadruple", "_single", "_triple"]


def _ntuple(count: int, name: str = "parse") -> Callable[[Any], tuple]:
    """The function that makes a tuple of `count` of a number, and a tuple of whatever can be iterated over."""

    def parse(value: Any) -> tuple:
        return tuple(value) if isinstance(value, Iterable) else (value,) * count

    parse.__name__ = name
    return parse


_single = _ntuple(1, "_single")
_pair = _ntuple(2, "_pair")
_triple = _ntuple(3, "_triple")
_quadruple = _ntuple(4, "_quadruple")
