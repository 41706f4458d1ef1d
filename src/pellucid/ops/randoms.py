"""Random tensors with given parameters: normal, Bernoulli and Poisson numbers, and indices; the same as PyTorch's for a seed.

The numbers come from `core/random`. Inside vmap they are drawn for each example or once for all, as its `randomness` says:
`BatchLevel.call` asks for it. Factories and in-place methods are in `functions/randoms.py`.
"""

from __future__ import annotations

from pellucid.autograd.operator import Array, operator
from pellucid.core import random as draws

__all__ = ["bernoulli", "multinomial", "poisson"]


# --- draws with parameters -------------------------------------------------------------------------------------------
# Their derivatives count as zero, as in PyTorch.

RANDOM = {"elementwise": True, "widen": False}


@operator(**RANDOM, module=None, name="normal", node="NormalBackward1")
class normal_of:
    """Normal numbers around given means, with given standard deviations."""

    def forward(xp, mean: Array, std: Array, *, generator=None):
        if mean.dtype.kind == "c" or std.dtype.kind == "c":
            raise RuntimeError("normal expects standard deviation to be non-complex")
        kind = xp.promote_types(mean.dtype, std.dtype) if mean.dtype.kind != "V" else mean.dtype
        return draws.normal(xp.broadcast_shapes(mean.shape, std.shape), kind, mean, std, generator)

    def vjp_mean(F, grad): return grad * 0
    vjp_std = vjp_mean


@operator(**RANDOM, method=True)
class bernoulli:
    """Ones with probability `input` (or the number p, in the shape of `input`) and zeros.

    input: [*S]. Returns [*S] of the same dtype. Raises: RuntimeError for a probability outside [0, 1].
    """

    def forward(xp, input: Array, p: float | None = None, *, generator=None):
        if p is not None:
            return draws.bernoulli(float(p), input.shape, input.dtype, generator)
        return draws.bernoulli(input, None, input.dtype, generator)

    def vjp_input(F, grad): return grad * 0


@operator(**RANDOM)
class poisson:
    """Poisson numbers, one for each rate. input: [*S]. Returns [*S] of the same dtype; RuntimeError for a negative rate."""

    def forward(xp, input: Array, generator=None): return draws.poisson(input, generator)
    def vjp_input(F, grad): return grad * 0


@operator(method=True, widen=False)
class multinomial:
    """Indices drawn in proportion to weights.

    input: non-negative weights, [categories] or [rows, categories]. Returns int64 [num_samples] or [rows, num_samples].
    Raises: RuntimeError for weights that cannot be drawn from.
    """

    def forward(xp, input: Array, num_samples: int, replacement: bool = False, *, generator=None):
        return xp.ascontiguousarray(draws.multinomial(input, num_samples, replacement, generator))

    def batch(F, input, num_samples, replacement, generator):
        rows = F.reshape(input, (-1, input.shape[-1]))
        return F.reshape(F.multinomial(rows, num_samples, replacement, generator=generator), (*input.shape[:-1], num_samples))
