"""`torch.distributed`: one process, no group. Queries answer; forming a group is refused."""

from __future__ import annotations

__all__ = [
    "all_reduce",
    "barrier",
    "destroy_process_group",
    "get_rank",
    "get_world_size",
    "init_process_group",
    "is_available",
    "is_initialized",
]


def is_available() -> bool:
    """False."""
    return False


def is_initialized() -> bool:
    """False."""
    return False


def get_rank(group=None) -> int:
    """0."""
    return 0


def get_world_size(group=None) -> int:
    """1."""
    return 1


def _refuse(*args, **kwargs):
    """There is no group of processes."""
    raise RuntimeError(
        "torch.distributed is not available here: programs run in one process. Guard by "
        "torch.distributed.is_available()."
    )


init_process_group = destroy_process_group = all_reduce = barrier = _refuse
