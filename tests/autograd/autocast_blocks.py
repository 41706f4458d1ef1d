"""Short names for the tests of autocast: the block, the types, and tensors of evenly spaced numbers."""

from library import torch

bf16, f16, f32, f64 = torch.bfloat16, torch.float16, torch.float32, torch.float64


def block(dtype=bf16, **options):
    """Autocast on the CPU."""
    return torch.autocast("cpu", dtype, **options)


def ramp(*shape, dtype=f32):
    """Numbers from -1 to 1 in a shape."""
    count = 1
    for size in shape:
        count *= size
    return torch.linspace(-1, 1, count).reshape(shape).to(dtype)
