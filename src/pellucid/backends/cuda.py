"""`torch.backends.cuda`: not here; its switches can be set."""

from __future__ import annotations


def is_built() -> bool:
    """False."""
    return False


class _Matmul:
    """Switches of GPU matrix products."""

    allow_tf32 = False
    allow_fp16_reduced_precision_reduction = True


matmul = _Matmul()
