"""`torch.compile` and `torch.jit.script` as programs call them: the program itself is returned and runs as written.

Nothing is compiled; results are those of the eager program.
"""

from __future__ import annotations

__all__ = ["compile", "script"]


def compile(model=None, *, fullgraph=False, dynamic=None, backend="eager", mode=None, options=None, disable=False):
    """The model or function itself; as a decorator with arguments, a decorator that returns its function."""
    return (lambda function: function) if model is None else model


def script(obj, *args, **kwargs):
    """The module or function itself."""
    return obj
