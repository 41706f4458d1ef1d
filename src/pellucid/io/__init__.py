"""Files: PyTorch's `.pt` format and safetensors, read and written."""

from pellucid.io.safetensors import load_file as load_safetensors
from pellucid.io.safetensors import save_file as save_safetensors
from pellucid.io.serialization import (
    add_safe_globals,
    clear_safe_globals,
    get_safe_globals,
    get_unsafe_globals_in_checkpoint,
    load,
    safe_globals,
    save,
)

__all__ = [
    "add_safe_globals",
    "clear_safe_globals",
    "get_safe_globals",
    "get_unsafe_globals_in_checkpoint",
    "load",
    "load_safetensors",
    "safe_globals",
    "save",
    "save_safetensors",
]
