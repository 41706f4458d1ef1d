"""The memory under a tensor: `untyped_storage()` and `storage()`, objects of `core/storage.py`."""

from __future__ import annotations

from pellucid.autograd.operator import PUBLIC
from pellucid.core.storage import TypedStorage, UntypedStorage
from pellucid.core.tensor import Tensor

__all__ = ["TypedStorage", "UntypedStorage"]


def untyped_storage(self: Tensor) -> UntypedStorage:
    """The memory under this tensor, as bytes; shared by all of its views."""
    return UntypedStorage(self._array)


def storage(self: Tensor) -> TypedStorage:
    """The memory under this tensor, counted in its elements; shared by all of its views."""
    return TypedStorage(self._array)


Tensor.untyped_storage, Tensor.storage = untyped_storage, storage
PUBLIC["torch"].update(UntypedStorage=UntypedStorage, TypedStorage=TypedStorage)
