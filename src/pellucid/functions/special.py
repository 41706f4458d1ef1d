"""Special functions that are sums of others."""

from __future__ import annotations

import math

from pellucid.autograd.operator import composite
from pellucid.core.dtype import get_default_dtype
from pellucid.ops.special import lgamma

__all__ = ["mvlgamma"]


def mvlgamma_(input, p: int):
    """In-place form of `mvlgamma`."""
    return input.copy_(mvlgamma(input, p))


@composite(method=True, inplace=mvlgamma_)
def mvlgamma(input, p: int, *, out=None):
    """Logarithm of the multivariate gamma function of dimension p.

    Raises: RuntimeError (p is less than one).
    """
    if p < 1:
        raise RuntimeError(f"p has to be greater than or equal to 1: got {p}")
    if not input.is_floating_point():
        input = input.to(get_default_dtype())
    total = sum((lgamma(input - j / 2) for j in range(p)), p * (p - 1) / 4 * math.log(math.pi))
    return total if out is None else out.copy_(total)


composite(name="multigammaln", module="special")(mvlgamma)
