"""The safetensors format: named tensors and text, nothing else. Names and behaviour are those of `safetensors.torch`.

The format itself is the `safetensors` package's business; here tensors become arrays and back.
"""

from __future__ import annotations

import os
from collections import defaultdict
from typing import Any

import ml_dtypes
import numpy as np

from pellucid.core.atomic import writing
from pellucid.core.device import device as device_type
from pellucid.core.dtype import DTYPES
from pellucid.core.tensor import Tensor, wrap
from pellucid.io.tensors import owner_of

__all__ = ["load", "load_file", "save", "save_file"]

_CODES = {
    "F64": np.float64, "F32": np.float32, "F16": np.float16, "BF16": ml_dtypes.bfloat16, "C64": np.complex64,
    "I64": np.int64, "I32": np.int32, "I16": np.int16, "I8": np.int8, "U8": np.uint8, "BOOL": np.bool_,
}


def save(tensors: dict[str, Tensor], metadata: dict[str, str] | None = None) -> bytes:
    """Named tensors as the bytes of a safetensors file.

    Args:
        tensors: contiguous tensors that share no memory, by name; complex128 is not part of the format.
        metadata: text to keep with them.

    Raises:
        ValueError: this is no dictionary of tensors, or one of them is not contiguous.
        RuntimeError: tensors share memory.
        TypeError: a name or metadata is not text, or the format has no such element type.
    """
    from safetensors import numpy as format_of_arrays  # optional package

    arrays = _checked(tensors)
    for key, value in (metadata or {}).items():
        if not isinstance(key, str) or not isinstance(value, str):
            raise TypeError(f"metadata must be text by text: {key!r} is {type(value).__name__}; write str(value)")
    return format_of_arrays.save(arrays, metadata)


def save_file(tensors: dict[str, Tensor], filename: str | os.PathLike, metadata: dict[str, str] | None = None) -> None:
    """Write named tensors to a safetensors file, in one step: a save that fails leaves the file that was there.

    Args and errors are those of `save`, and those of `open` for the file.
    """
    data = save(tensors, metadata)
    with writing(filename) as stream:
        stream.write(data)


def load(data: bytes) -> dict[str, Tensor]:
    """The named tensors in the bytes of a safetensors file.

    Raises:
        TypeError: these are not bytes, or a tensor has an element type that does not exist here.
        safetensors.SafetensorError: the bytes are not of this format, or damaged.
    """
    from safetensors import deserialize  # optional package

    if not isinstance(data, bytes):
        raise TypeError(f"argument 'bytes': '{type(data).__name__}' object is not an instance of 'bytes'")
    return {name: wrap(_array(name, found)) for name, found in sorted(deserialize(data))}


def load_file(filename: str | os.PathLike, device: Any = "cpu") -> dict[str, Tensor]:
    """The named tensors in a safetensors file.

    Args:
        filename: its path.
        device: "cpu"; there for programs that pass it.

    Raises:
        FileNotFoundError: there is no such file.
        RuntimeError: another device than the CPU.
        TypeError: a tensor has an element type that does not exist here.
        safetensors.SafetensorError: the file is not of this format, or damaged.
    """
    if device_type(device).type != "cpu":
        raise RuntimeError(f"cannot load to {device}: this library computes on the CPU. Use device='cpu'.")
    from safetensors import SafetensorError

    with open(filename, "rb") as stream:
        data = stream.read()
    try:
        return load(data)
    except (SafetensorError, TypeError) as error:
        raise type(error)(f"{os.fsdecode(os.fspath(filename))!r}: {error}") from None


def _array(name: str, found: dict) -> np.ndarray:
    kind = _CODES.get(found["dtype"])
    if kind is None:
        raise TypeError(
            f"the tensor {name!r} has the element type {found['dtype']}, which does not exist here; expected one of "
            f"{', '.join(_CODES)}. Convert it before it is saved"
        )
    array = np.frombuffer(found["data"], kind).reshape(found["shape"])
    return array if array.flags.writeable and array.flags.aligned else array.copy()


def _checked(tensors: Any) -> dict[str, np.ndarray]:
    if not isinstance(tensors, dict):
        raise ValueError(f"Expected a dict of [str, torch.Tensor] but received {type(tensors)}")
    for name, value in tensors.items():
        if not isinstance(name, str):
            raise TypeError(f"the names of tensors must be text: {name!r} is {type(name).__name__}")
        if not isinstance(value, Tensor):
            raise ValueError(f"Key `{name}` is invalid, expected torch.Tensor but received {type(value)}")
    _refuse_shared(tensors)
    for name, value in tensors.items():
        if not value._array.flags.c_contiguous:
            raise ValueError(
                f"You are trying to save a non contiguous tensor: `{name}` which is not allowed. If it is part of "
                "another one, save that one and take the part after loading; otherwise save its `.contiguous()`."
            )
        if value.dtype is DTYPES["complex128"]:
            raise TypeError(
                f"the tensor `{name}` is complex128, which the format does not have. Save view_as_real() of it, or "
                "complex64 values"
            )
    return {name: value._array for name, value in tensors.items()}


def _refuse_shared(tensors: dict[str, Tensor]) -> None:
    """RuntimeError if the memory of two tensors overlaps; parts of one storage side by side are fine."""
    by_storage = defaultdict(list)
    for name, value in tensors.items():
        if value._array.size:
            start, end = np.lib.array_utils.byte_bounds(value._array)
            by_storage[id(owner_of(value._array))].append((start, end, name))
    shared = [names for areas in by_storage.values() for names in _overlapping(sorted(areas))]
    if shared:
        listed = ", ".join("{" + ", ".join(map(repr, sorted(names))) + "}" for names in shared)
        raise RuntimeError(
            "Some tensors share memory, this will lead to duplicate memory on disk and potential differences when "
            f"loading them again: [{listed}]. Save one of each group, or a clone() of the others."
        )


def _overlapping(areas: list[tuple[int, int, str]]) -> list[list[str]]:
    """Groups of two or more names whose areas overlap one after the other; areas come in order of their start."""
    groups: list[list[str]] = []
    reached = -1
    for start, end, name in areas:
        if start < reached:
            groups[-1].append(name)
        else:
            groups.append([name])
        reached = max(reached, end)
    return [group for group in groups if len(group) > 1]
