"""Weights as panels: [groups, taps, inner, outer] cut into pieces of PANEL_ROWS x PANEL_COLUMNS, each in one stretch of memory.

A piece fits a core's first cache, wherever the weights of other channels lie. `pack` makes panels, `unpack` goes back.
"""

from __future__ import annotations

import math

import numpy as np

from . import get_threads, inner, serial
from .convolution_blocks import (
    INPUT,
    PANEL_COLUMNS,
    PANEL_ROWS,
    WEIGHT,
    Geometry,
    as_numbers,
    from_numbers,
)
from .sharing import share
from .transposition import turn

__all__ = ["pack", "unpack"]


def pack(what: int, shape: Geometry, w: np.ndarray) -> np.ndarray:
    """Weights [groups, O, C, taps] as panels of [groups, taps, C, O], for INPUT of [groups, taps, O, C]; all flat."""
    panels = np.empty(w.size, w.dtype)
    _run(what, shape, w, panels.reshape(1, -1))
    return panels


def unpack(sums: np.ndarray, shape: Geometry) -> np.ndarray:
    """The sum over the first dimension of panels [workers, groups, taps, C, O] as weights [groups, O, C, taps], flat."""
    made = np.empty(shape.groups * shape.out_channels * shape.channels * math.prod(shape.kernel), sums.dtype)
    _run(WEIGHT, shape, made, sums)
    return made


def _run(what: int, shape: Geometry, w, panels) -> None:
    tasks = shape.groups * -(-shape.out_channels // PANEL_COLUMNS)
    _shared(tasks, get_threads(), what, as_numbers(shape), w, panels)


@serial
def _shared(tasks, threads, what, numbers, w, panels):
    share(tasks, threads, _some, (what, numbers, w, panels))


@inner
def _some(task, what, numbers, w, panels):
    """PANEL_COLUMNS of the output channels of one group: one read and one write of each weight."""
    shape = from_numbers(numbers)
    channels, outer = shape.channels, shape.out_channels
    taps = shape.kernel[0] * shape.kernel[1] * shape.kernel[2]
    each = (outer + PANEL_COLUMNS - 1) // PANEL_COLUMNS
    start, first = task // each * channels * outer * taps, task % each * PANEL_COLUMNS
    last = min(first + PANEL_COLUMNS, outer)
    if what == INPUT:
        _pack_turned(w, panels[0], start, first, last, channels, outer, taps)
        return
    for tap in range(taps):
        for row in range(0, channels, PANEL_ROWS):
            at = start + tap * channels * outer + row * outer + first * min(PANEL_ROWS, channels - row)
            size = min(PANEL_ROWS, channels - row) * (last - first)
            for worker in range(1, panels.shape[0]):
                for i in range(at, at + size):
                    panels[0, i] += panels[worker, i]
    _exchange(what, w, panels[0], start, first, last, channels, outer, taps)


@inner
def panel_place(i, o, inner, outer):
    """Where the weight between channels i and o lies among those of one tap [inner, outer]."""
    row, column = i // PANEL_ROWS * PANEL_ROWS, o // PANEL_COLUMNS * PANEL_COLUMNS
    depth, columns = min(PANEL_ROWS, inner - row), min(PANEL_COLUMNS, outer - column)
    return row * outer + column * depth + (i - row) * columns + o - column


@inner
def _exchange(what, w, panels, start, first, last, channels, outer, taps):
    """[O, C taps] to panels [taps, C, O], or for WEIGHT back, in squares."""
    side, width = 64 // w.itemsize, channels * taps
    in_w, in_panels = np.empty(side, np.int64), np.empty(side, np.int64)
    back = what == WEIGHT
    source, source_at, target, target_at = (panels, in_panels, w, in_w) if back else (w, in_w, panels, in_panels)
    for o in range(first, last, side):
        c, tap = 0, 0
        for column in range(0, width, side):
            count = min(side, width - column)
            for j in range(count):
                in_w[j] = start + (o + j) * width + column
                in_panels[j] = start + tap * channels * outer + panel_place(c, o, channels, outer)
                tap += 1
                if tap == taps:
                    c, tap = c + 1, 0
            if count == side and o + side <= last:
                turn(source, source_at, target, target_at)
                continue
            for i in range(min(side, last - o)):
                for j in range(count):
                    at, place = in_w[0] + i * width + j, in_panels[j] + i
                    target[at if back else place] = source[place if back else at]


@inner
def _pack_turned(w, panels, start, first, last, channels, outer, taps):
    """[O, C, taps] to panels [taps, O, C]."""
    for o in range(first, last):
        for c in range(channels):
            place = start + panel_place(o, c, outer, channels)
            for tap in range(taps):
                panels[place + tap * channels * outer] = w[start + (o * channels + c) * taps + tap]
