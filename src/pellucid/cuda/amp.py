"""`torch.cuda.amp` where there is no GPU: a gradient scaler that scales nothing."""

from __future__ import annotations

import warnings

__all__ = ["GradScaler"]


class GradScaler:
    """Passes losses and steps through unchanged: loss scaling is for GPUs, and is disabled without one.

    Args:
        enabled: True warns, since there is nothing to enable.
    """

    def __init__(self, device: str = "cuda", init_scale: float = 65536.0, growth_factor: float = 2.0,
                 backoff_factor: float = 0.5, growth_interval: int = 2000, enabled: bool = True):  # fmt: skip
        if enabled and device == "cuda":
            warnings.warn("GradScaler is enabled, but CUDA is not available.  Disabling.", stacklevel=2)

    def scale(self, outputs):
        """The loss itself."""
        return outputs

    def unscale_(self, optimizer) -> None:
        """Nothing was scaled."""

    def step(self, optimizer, *args, **kwargs):
        """Step the optimizer."""
        return optimizer.step(*args, **kwargs)

    def update(self, new_scale=None) -> None:
        """No scale to update."""

    def get_scale(self) -> float:
        """1.0."""
        return 1.0

    def is_enabled(self) -> bool:
        """False."""
        return False

    def state_dict(self) -> dict:
        """Nothing to save."""
        return {}

    def load_state_dict(self, state_dict: dict) -> None:
        """Nothing to load."""
