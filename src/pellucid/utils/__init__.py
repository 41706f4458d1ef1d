"""Public tools around training; `pellucid.utils.data` feeds it."""

from pellucid.utils import data

__all__ = ["data"]
