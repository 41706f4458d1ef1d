"""What is set around checkpoints rather than passed to one: early stop, debug mode, groups of backwards; their error."""

from __future__ import annotations

from contextlib import contextmanager

from pellucid.core.modes import modes

__all__ = [
    "CheckpointError",
    "GraphExecGroup",
    "set_checkpoint_debug_enabled",
    "set_checkpoint_early_stop",
    "settings",
]


class CheckpointError(RuntimeError):
    """What was recomputed does not fit what the forward saved, or was asked for twice."""


class _Settings:
    """What the blocks below have set; None leaves the choice to the arguments of `checkpoint`."""

    early_stop: bool | None = None
    debug: bool | None = None


settings = _Settings()


@contextmanager
def set_checkpoint_early_stop(enable: bool):
    """A block in which checkpoints recompute to the last tensor needed (True) or to the end (False).

    It counts where the forward runs and goes before the argument `early_stop`.
    """
    before, settings.early_stop = settings.early_stop, enable
    try:
        yield
    finally:
        settings.early_stop = before


@contextmanager
def set_checkpoint_debug_enabled(enabled: bool | None):
    """A block in which checkpoints keep a log of their operators, to show if the recomputation does not fit.

    It counts where the forward runs and goes before the argument `debug`; None leaves the choice to the argument.
    """
    before, settings.debug = settings.debug, enabled
    try:
        yield
    finally:
        settings.debug = before


class GraphExecGroup:
    """A block whose backwards share what checkpoints recompute: each checkpoint is recomputed at most once in it.

    The backwards must not need the same saved value twice, even with `retain_graph=True`.

    Raises:
        RuntimeError: a block inside another.
        CheckpointError: in the block, two backwards need the same saved value.
    """

    def __enter__(self) -> GraphExecGroup:
        if modes.execution_group is not None:
            raise RuntimeError(
                f"GraphExecGroup contexts cannot be nested: this thread is inside {modes.execution_group} already"
            )
        modes.execution_group = self
        return self

    def __exit__(self, *exception) -> None:
        modes.execution_group = None

    @classmethod
    def _get_current_group(cls) -> GraphExecGroup | None:
        """The group this thread is inside, or None."""
        return modes.execution_group
