"""`pellucid.utils.checkpoint`: recompute what backward needs instead of keeping it. The names are PyTorch's."""

from pellucid.utils.checkpoint.entry import checkpoint, checkpoint_sequential, noop_context_fn
from pellucid.utils.checkpoint.random_state import DefaultDeviceType, get_device_states, set_device_states
from pellucid.utils.checkpoint.reentrant import CheckpointFunction, check_backward_validity, detach_variable
from pellucid.utils.checkpoint.selective import (
    SAC_IGNORED_OPS,
    CheckpointPolicy,
    SelectiveCheckpointContext,
    create_selective_checkpoint_contexts,
)
from pellucid.utils.checkpoint.settings import (
    CheckpointError,
    GraphExecGroup,
    set_checkpoint_debug_enabled,
    set_checkpoint_early_stop,
)

__all__ = [
    "SAC_IGNORED_OPS",
    "CheckpointError",
    "CheckpointFunction",
    "CheckpointPolicy",
    "DefaultDeviceType",
    "GraphExecGroup",
    "SelectiveCheckpointContext",
    "check_backward_validity",
    "checkpoint",
    "checkpoint_sequential",
    "create_selective_checkpoint_contexts",
    "detach_variable",
    "get_device_states",
    "noop_context_fn",
    "set_checkpoint_debug_enabled",
    "set_checkpoint_early_stop",
    "set_device_states",
]
