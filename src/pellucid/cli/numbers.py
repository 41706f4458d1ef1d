"""Numbers on the command line: functions for argparse that say what they expected."""

from __future__ import annotations

import argparse
import math


def whole(text: str) -> int:
    """A whole number from 0 to 2**63 - 1."""
    try:
        number = int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"expected a whole number, got {text!r}") from None
    if not 0 <= number < 2**63:
        raise argparse.ArgumentTypeError(f"expected a whole number from 0 to 2**63 - 1, got {text}")
    return number


def positive_whole(text: str) -> int:
    """A whole number from 1 up."""
    number = whole(text)
    if number == 0:
        raise argparse.ArgumentTypeError("expected a whole number from 1 up, got 0")
    return number


def positive(text: str) -> float:
    """A finite number above 0."""
    try:
        number = float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"expected a number, got {text!r}") from None
    if not (number > 0 and math.isfinite(number)):
        raise argparse.ArgumentTypeError(f"expected a finite number above 0, got {text}")
    return number
