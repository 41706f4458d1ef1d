"""`finfo` and `iinfo`: the limits of element types."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from pellucid.core.dtype import bool, dtype, get_default_dtype

__all__ = ["finfo", "iinfo"]


class finfo:
    """Limits of a floating-point type (for a complex one, of its parts): `bits`, `eps`, `max`, `min`, `tiny`,
    `smallest_normal`, `resolution`, `dtype`.

    Raises:
        TypeError: not a floating-point type.
    """

    def __init__(self, type: dtype | None = None):
        type = type or get_default_dtype()
        if not (type.is_floating_point or type.is_complex):
            raise TypeError(f"torch.finfo() requires a floating point input type. Use torch.iinfo to handle '{type}'")
        info = ml_dtypes.finfo(type.to_real().numpy)
        self.bits, self.dtype = info.bits, type.to_real().name
        self.eps, self.max, self.min = float(info.eps), float(info.max), float(info.min)
        self.tiny = self.smallest_normal = float(info.tiny)
        self.resolution = float(info.resolution)

    def __repr__(self) -> str:
        return (f"finfo(resolution={self.resolution:g}, min={self.min:g}, max={self.max:g}, eps={self.eps:g}, "
                f"smallest_normal={self.smallest_normal:g}, tiny={self.tiny:g}, dtype={self.dtype})")  # fmt: skip


class iinfo:
    """Limits of an integer type: `bits`, `max`, `min`, `dtype`.

    Raises:
        TypeError: not an integer type.
    """

    def __init__(self, type: dtype):
        if type.is_floating_point or type.is_complex or type is bool:
            raise TypeError(f"torch.iinfo() requires an integer input type. Use torch.finfo to handle '{type}'")
        info = np.iinfo(type.numpy)
        self.bits, self.max, self.min, self.dtype = info.bits, int(info.max), int(info.min), type.name

    def __repr__(self) -> str:
        return f"iinfo(min={self.min}, max={self.max}, dtype={self.dtype})"
