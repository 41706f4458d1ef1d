"""`torch.amp`: automatic mixed precision for GPUs that are not here."""

from __future__ import annotations

import warnings

from pellucid.cuda.amp import GradScaler

__all__ = ["GradScaler", "autocast"]


class autocast:
    """A block in which PyTorch would compute in a narrower type on `device_type`.

    For "cuda" it warns and does nothing, as PyTorch does without a GPU. For "cpu" it is refused unless disabled, so that
    no program takes full precision for the narrow one.
    """

    def __init__(self, device_type: str = "cuda", dtype=None, enabled: bool = True, cache_enabled: bool | None = None):
        if enabled and device_type == "cpu":
            raise NotImplementedError(
                "autocast on the CPU is not available: pass enabled=False, or convert the model with .to(torch.bfloat16)"
            )
        if enabled:
            warnings.warn("User provided device_type of 'cuda', but CUDA is not available. Disabling", stacklevel=2)

    def __enter__(self):
        return self

    def __exit__(self, *exception) -> None:
        return None

    def __call__(self, function):
        return function
