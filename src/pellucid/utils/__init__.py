"""Public tools around training: `data` feeds it, `checkpoint` trades time for its memory."""

from pellucid.utils import checkpoint, data

__all__ = ["checkpoint", "data"]
