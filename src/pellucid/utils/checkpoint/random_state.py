"""The random numbers of a recomputation are those of the forward; the stream around it goes on as if nothing was drawn.

There is one generator to take care of. What PyTorch keeps of other devices has names here and nothing to keep.
"""

from __future__ import annotations

from contextlib import contextmanager

from pellucid.core.random import get_rng_state, set_rng_state

__all__ = ["DefaultDeviceType", "get_device_states", "random_state", "set_device_states"]


@contextmanager
def random_state(state):
    """A block in which the default generator continues from `state`; afterwards it is where it was. None: no change."""
    if state is None:
        yield
        return
    before = get_rng_state()
    set_rng_state(state)
    try:
        yield
    finally:
        set_rng_state(before)


class DefaultDeviceType:
    """The device whose random state is kept beside the CPU's: settable, and without effect, for there is none."""

    _default_device_type: str | None = None

    @staticmethod
    def set_device_type(device: str = "cuda") -> None:
        """Name the device type."""
        DefaultDeviceType._default_device_type = device

    @staticmethod
    def get_device_type() -> str:
        """The device type named, "cpu" if none was."""
        return DefaultDeviceType._default_device_type or "cpu"


def get_device_states(*args) -> tuple[list, list]:
    """Devices other than the CPU that hold an argument, and their random states: two empty lists."""
    return [], []


def set_device_states(devices, states, *, device_type: str | None = None) -> None:
    """Set random states that `get_device_states` gave: there are none to set."""
