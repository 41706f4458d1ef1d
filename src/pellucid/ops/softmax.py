"""Softmax and its logarithm, with their gradients. The functions that users call are in `functions/softmax.py`.

`logsumexp` is a reduction and lives with the reductions.
"""

from __future__ import annotations

from pellucid.autograd.operator import Array, operator
from pellucid.core.checks import scalar_name
from pellucid.core.dims import one_dim
from pellucid.kernels import softmax as kernels

__all__: list[str] = []


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
