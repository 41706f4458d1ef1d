"""`torch.amp`: automatic mixed precision on the CPU, and scaling of losses."""

from pellucid.amp.autocast_mode import autocast, custom_bwd, custom_fwd, is_autocast_available
from pellucid.amp.grad_scaler import GradScaler

__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd", "is_autocast_available"]
