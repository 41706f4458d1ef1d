"""Softmax, its logarithm and softmin as users call them: with a dtype, with the dimension guessed, with Gumbel noise.

The operators and their kernels are in `ops/softmax.py`; `logsumexp` is a reduction.
"""

from __future__ import annotations

import warnings

import numpy as np

from pellucid.autograd.operator import composite
from pellucid.autograd.operator import tensors as F
from pellucid.core.random import exponential
from pellucid.functions.factories import zeros_like
from pellucid.functions.randoms import drawn

__all__ = ["log_softmax", "softmax", "softmin"]


def _implicit_dim(name: str, ndim: int) -> int:
    warnings.warn(
        f"Implicit dimension choice for {name} has been deprecated. Change the call to include dim=X as an argument.",
        UserWarning, stacklevel=4)  # fmt: skip
    return 0 if ndim in (0, 1, 3) else 1


@composite(method=True, module=("torch", "special"))
def softmax(input, dim, dtype=None):
    """exp(input) / sum(exp(input)) along `dim`.

    input: [*S], float, converted to `dtype` first if that is given. Returns [*S].
    Raises: IndexError for a dimension that is not there, NotImplementedError for integers without `dtype`.
    """
    return F.softmax(input if dtype is None else input.to(dtype), dim)


@composite(method=True, module=("torch", "special"))
def log_softmax(input, dim, dtype=None):
    """Logarithm of softmax along `dim`, computed without overflow.

    input: [*S], float, converted to `dtype` first if that is given. Returns [*S].
    Raises: IndexError for a dimension that is not there, NotImplementedError for integers without `dtype`.
    """
    return F.log_softmax(input if dtype is None else input.to(dtype), dim)


@composite(module="nn.functional", name="softmax")
def functional_softmax(input, dim=None, _stacklevel=3, dtype=None):
    """`softmax` with the dimension guessed, and a warning, if it is None."""
    return softmax(input, _implicit_dim("softmax", input.ndim) if dim is None else dim, dtype)


@composite(module="nn.functional", name="log_softmax")
def functional_log_softmax(input, dim=None, _stacklevel=3, dtype=None):
    """`log_softmax` with the dimension guessed, and a warning, if it is None."""
    return log_softmax(input, _implicit_dim("log_softmax", input.ndim) if dim is None else dim, dtype)


@composite(module="nn.functional")
def softmin(input, dim=None, _stacklevel=3, dtype=None):
    """Softmax of -input along `dim`."""
    return softmax(-input, _implicit_dim("softmin", input.ndim) if dim is None else dim, dtype)


@composite(module="nn.functional")
def gumbel_softmax(logits, tau=1, hard=False, eps=1e-10, dim=-1):
    """Samples from the Gumbel-softmax distribution: softmax((logits + g) / tau), g being Gumbel noise.

    logits: [*S], unnormalised log-probabilities. `hard` rounds to one-hot vectors whose gradient is that of the soft ones.
    Source: Jang and others, Categorical reparameterization with Gumbel-softmax, 2017.
    """
    if eps != 1e-10:
        warnings.warn("`eps` parameter is deprecated and has no effect.", stacklevel=2)
    noise = drawn(lambda shape: -np.log(exponential(shape, logits._array.dtype)), logits._array.shape)
    soft = softmax((logits + noise) / tau, dim)
    if not hard:
        return soft
    value = soft.detach()
    return zeros_like(value).scatter_(dim, value.argmax(dim, True), 1.0) - value + soft
