"""Softmax and its logarithm. `logsumexp` is a reduction and lives with the reductions."""

from __future__ import annotations

import warnings

import numpy as np

from pellucid.autograd.operator import Array, composite, operator
from pellucid.autograd.operator import tensors as F
from pellucid.core.checks import scalar_name
from pellucid.core.dims import one_dim
from pellucid.core.random import exponential
from pellucid.kernels import softmax as kernels
from pellucid.ops.factories import zeros_like
from pellucid.ops.randoms import drawn

__all__ = ["log_softmax", "softmax", "softmin"]


def _canonical(input, dim: int) -> int:
    if input.dtype.kind not in "fcV":
        raise NotImplementedError(
            f"\"softmax_lastdim_kernel_impl\" not implemented for '{scalar_name(input)}': convert the input with .float(), or pass dtype="
        )
    return one_dim(dim, input.ndim)


def _canonical_pair(input, output, dim: int) -> int:
    return dim % max(input.ndim, 1)


def _samples(make):
    yield (make(3, 4), 1), {}
    yield (make(3, 4), 0), {}
    yield (make(), 0), {}
    yield (make(2, 3, 2), -2), {}


def _pair_samples(make):
    yield (make(3, 4), make(3, 4), 1), {}
    yield (make(), make(), 0), {}


@operator(module=None, name="softmax")
class _softmax:
    """exp(input) / sum(exp(input)) along one dimension.

    input: [*S], float. Returns [*S]. Derivative, from the result r: r * (grad - sum(grad * r)); it is symmetric.
    """

    canonical = _canonical
    samples = _samples

    def forward(xp, input: Array, dim: int):
        return kernels.softmax(input, dim) if input.size else input.copy()

    def vjp_input(F, grad, result, dim): return F.softmax_backward(grad, result, dim)
    def jvp_input(F, tangent, result, dim): return F.softmax_backward(tangent, result, dim)


@operator(module=None, batching="shift")
class softmax_backward:
    """Gradient of softmax's input, from that of its result and the result: output * (input - sum(input * output))."""

    canonical = _canonical_pair
    samples = _pair_samples

    def forward(xp, input: Array, output: Array, dim: int):
        return kernels.softmax_backward(input, output, dim)

    def vjp_input(F, grad, output, dim): return F.softmax_backward(grad, output, dim)

    def vjp_output(F, grad, input, output, dim):
        return grad * (input - F.sum_dim(input * output, dim, True)) - input * F.sum_dim(grad * output, dim, True)

    def jvp_input(F, tangent, output, dim): return F.softmax_backward(tangent, output, dim)

    def jvp_output(F, tangent, input, output, dim):
        return tangent * (input - F.sum_dim(input * output, dim, True)) - output * F.sum_dim(input * tangent, dim, True)


@operator(module=None, name="log_softmax")
class _log_softmax:
    """Logarithm of softmax along one dimension: input - log(sum(exp(input))), without overflow.

    input: [*S], float. Returns [*S]. Derivative, from the result r: grad - exp(r) * sum(grad).
    """

    canonical = _canonical
    samples = _samples

    def forward(xp, input: Array, dim: int):
        return kernels.log_softmax(input, dim) if input.size else input.copy()

    def vjp_input(F, grad, result, dim): return F.log_softmax_backward(grad, result, dim)
    def jvp_input(F, tangent, result, dim): return tangent - F.sum_dim(tangent * F.exp(result), dim, True)


@operator(module=None, batching="shift")
class log_softmax_backward:
    """Gradient of log_softmax's input, from that of its result and the result: input - exp(output) * sum(input)."""

    canonical = _canonical_pair
    samples = _pair_samples

    def forward(xp, input: Array, output: Array, dim: int):
        return kernels.log_softmax_backward(input, output, dim)

    def vjp_input(F, grad, output, dim): return grad - F.sum_dim(grad * F.exp(output), dim, True)
    def vjp_output(F, grad, input, output, dim): return -grad * F.exp(output) * F.sum_dim(input, dim, True)
    def jvp_input(F, tangent, output, dim): return F.log_softmax_backward(tangent, output, dim)
    def jvp_output(F, tangent, input, output, dim): return -tangent * F.exp(output) * F.sum_dim(input, dim, True)


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
