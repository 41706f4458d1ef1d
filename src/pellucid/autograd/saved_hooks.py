"""Blocks in which tensors saved for backward go through hooks; the packing itself is in `autograd/saved.py`."""

from __future__ import annotations

from pellucid.core.modes import modes

__all__ = ["disable_saved_tensors_hooks", "save_on_cpu", "saved_tensors_hooks", "saved_tensors_hooks_is_enabled"]


class saved_tensors_hooks:
    """A block in which tensors saved for backward go through `pack_hook`, and through `unpack_hook` when used.

    Args:
        pack_hook: tensor -> anything.
        unpack_hook: what `pack_hook` returned -> tensor of the same value.
    """

    def __init__(self, pack_hook, unpack_hook):
        self.pack_hook, self.unpack_hook = pack_hook, unpack_hook

    def __enter__(self) -> None:
        if modes.saved_hooks_disabled:
            raise RuntimeError(modes.saved_hooks_disabled)
        modes.saved_hooks = (*modes.saved_hooks, (self.pack_hook, self.unpack_hook))
        modes.update()

    def __exit__(self, *exception) -> None:
        modes.saved_hooks = modes.saved_hooks[:-1]
        modes.update()


class save_on_cpu(saved_tensors_hooks):
    """A block in which saved tensors are kept as copies (there is no other device to bring them from)."""

    def __init__(self, pin_memory: bool = False, device_type: str = "cpu"):
        super().__init__(lambda t: t.detach().clone(), lambda packed: packed)


class disable_saved_tensors_hooks:
    """A block in which using `saved_tensors_hooks` raises RuntimeError with the given message."""

    def __init__(self, error_message: str):
        self.message = error_message

    def __enter__(self) -> None:
        if modes.saved_hooks:
            raise RuntimeError(self.message)
        self.before = modes.saved_hooks_disabled
        modes.saved_hooks_disabled = self.message

    def __exit__(self, *exception) -> None:
        modes.saved_hooks_disabled = self.before


def saved_tensors_hooks_is_enabled() -> bool:
    """Whether hooks on saved tensors may be set here: not inside `disable_saved_tensors_hooks`."""
    return modes.saved_hooks_disabled is None
