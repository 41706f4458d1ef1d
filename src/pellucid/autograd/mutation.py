"""`allow_mutation_on_saved_tensors`: a block in which values saved for backward may be overwritten.

A saved tensor is copied only when something is about to write to its memory (every in-place operation
calls `before_write`); what backward reads is the copy.
"""

from __future__ import annotations

import weakref

from pellucid.autograd.saved_hooks import saved_tensors_hooks
from pellucid.core.modes import modes
from pellucid.core.tensor import Tensor, storage_of, wrap

__all__ = ["allow_mutation_on_saved_tensors"]


class _Handle:
    """A saved tensor, or the copy made when it was overwritten."""

    __slots__ = ("__weakref__", "context", "value")

    def __init__(self, context: _Context, value: Tensor):
        self.context, self.value = context, value


class _Context:
    """What the block gives: `cloned`, the copies made so far, and `clear()`."""

    def __init__(self):
        self.cloned: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()
        self.saved: dict[int, weakref.WeakSet] = {}  # id of a storage -> handles of what is saved of it
        self.active = True

    def clear(self) -> None:
        """Forget the copies."""
        self.cloned.clear()
        self.saved.clear()

    def pack(self, tensor: Tensor) -> _Handle:
        """Note a saved tensor by its memory."""
        handle = _Handle(self, tensor)
        self.saved.setdefault(id(storage_of(tensor._array)), weakref.WeakSet()).add(handle)
        return handle

    def unpack(self, handle: _Handle) -> Tensor:
        """The saved tensor, or its copy."""
        if not handle.context.active:
            raise AssertionError(
                "Trying to backward outside of the 'allow_mutation_on_saved_tensors' context in which the graph was "
                "originally recorded."
            )
        return handle.value

    def before_write(self, tensor: Tensor) -> None:
        """Copy what is saved of the memory that an in-place operation is about to write to."""
        copies: dict[int, Tensor] = {}
        for handle in list(self.saved.pop(id(storage_of(tensor._array)), ())):
            saved = handle.value
            if id(saved) not in copies:
                copies[id(saved)] = self.cloned[handle] = wrap(saved._array.copy())
            handle.value = copies[id(saved)]


class allow_mutation_on_saved_tensors:
    """A block in which saved tensors may be overwritten: those that are get copied first. Backward must run inside it.

    Raises:
        RuntimeError: a block inside another.
    """

    def __enter__(self) -> _Context:
        if modes.mutation is not None:
            raise RuntimeError("allow_mutation_on_saved_tensors contexts cannot be nested")
        self.context = modes.mutation = _Context()
        self.hooks = saved_tensors_hooks(self.context.pack, self.context.unpack)
        self.hooks.__enter__()
        return self.context

    def __exit__(self, *exception) -> None:
        self.hooks.__exit__(*exception)
        modes.mutation = None
        self.context.active = False
        self.context.clear()
