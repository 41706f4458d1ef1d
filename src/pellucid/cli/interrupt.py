"""Ctrl-C as a wish to end early. What to do about it is for the program to decide."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import Self


class EndEarly:
    """While the context lasts, the first Ctrl-C sets `wished` and calls `notice`; the second interrupts as usual.

    Signals reach the main thread only: in any other thread the context changes nothing.
    """

    def __init__(self, notice: Callable[[], None]) -> None:
        self.wished = False
        self._notice = notice
        self._before: object = None
        self._active = False

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            self._before = signal.signal(signal.SIGINT, self._pressed)
            self._active = True
        return self

    def __exit__(self, *exception: object) -> None:
        self._restore()

    def _pressed(self, number: int, frame: FrameType | None) -> None:
        self._restore()
        self.wished = True
        self._notice()

    def _restore(self) -> None:
        if self._active:
            signal.signal(signal.SIGINT, self._before)
            self._active = False
