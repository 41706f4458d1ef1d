"""The device object. There is one kind of device here, the CPU; the others are named so that errors can name them."""

from __future__ import annotations

__all__ = ["device"]

_KNOWN = ("cpu", "cuda", "mps", "xpu", "meta", "mkldnn", "hip", "xla")


class device:
    """Where a tensor lives: `device("cpu")`.

    Raises:
        RuntimeError: an unknown device type, or one whose backend does not exist here (raised on use).
    """

    __slots__ = ("index", "type")

    def __init__(self, device: str | device = "cpu", index: int | None = None):
        if isinstance(device, type(self)):
            self.type, self.index = device.type, device.index
            return
        if not isinstance(device, str):
            raise TypeError(f"device(): argument 'type' must be str, not {type(device).__name__}")
        kind, _, number = device.partition(":")
        if kind not in _KNOWN or (number and not number.isdigit()):
            raise RuntimeError(f"Expected one of {', '.join(_KNOWN)} device type at start of device string: {device}")
        self.type = kind
        self.index = int(number) if number else index

    def __eq__(self, other) -> bool:
        return isinstance(other, device) and (self.type, self.index) == (other.type, other.index)

    def __hash__(self) -> int:
        return hash((self.type, self.index))

    def __repr__(self) -> str:
        return (
            f"device(type='{self.type}')" if self.index is None else f"device(type='{self.type}', index={self.index})"
        )

    def __str__(self) -> str:
        return self.type if self.index is None else f"{self.type}:{self.index}"

    def __reduce__(self):
        return (device, (str(self),))

    def __enter__(self):
        check_device(self)
        return self

    def __exit__(self, *exception) -> None:
        return None


CPU = device("cpu")


def check_device(value) -> device:
    """`value` as a device that tensors can live on; RuntimeError for any but the CPU."""
    if value is None:
        return CPU
    wanted = value if isinstance(value, device) else device(value)
    if wanted.type != "cpu":
        raise RuntimeError(
            f"device '{wanted}' is not available: this library computes on the CPU. "
            f"Use device='cpu', or choose by torch.cuda.is_available(), which is False here."
        )
    return wanted
