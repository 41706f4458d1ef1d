"""Gamma, Dirichlet and binomial tensors, and how gamma and Dirichlet numbers move with their parameters.

The numbers come from `core/random`, the derivatives from `kernels/implicit_gradients.py`; other draws are in `randoms.py`.
"""

from __future__ import annotations

from pellucid.autograd.operator import Array, composite, operator
from pellucid.core.checks import scalar_name
from pellucid.core.random.rejection import binomial as draw_binomial
from pellucid.core.random.rejection import dirichlet, gamma
from pellucid.kernels.implicit_gradients import beta_gradient, gamma_gradient

__all__ = ["binomial", "dirichlet_grad", "sample_dirichlet", "standard_gamma", "standard_gamma_grad"]


def _floating(kernel: str, *arrays) -> None:
    """NotImplementedError unless all are float32 or float64: the kernels know no others."""
    for array in arrays:
        if array.dtype.name not in ("float32", "float64"):
            raise NotImplementedError(f"\"{kernel}\" not implemented for '{scalar_name(array)}'. Draw in float32 and convert.")


@operator(name="_standard_gamma", node="StandardGammaBackward0", widen=False, elementwise=True)
class standard_gamma:
    """Gamma numbers of rate 1, one for each concentration.

    input: [*S], positive, float32 or float64. Returns [*S]. The derivative is that at a fixed quantile: see
    `_standard_gamma_grad`.
    """

    def forward(xp, input: Array, generator=None): return gamma(input, generator)
    def vjp_input(F, grad, input, result): return grad * F._standard_gamma_grad(input, result)


@operator(name="_standard_gamma_grad", node="StandardGammaGradBackward0", widen=False, elementwise=True)
class standard_gamma_grad:
    """How a gamma number moves with its concentration, at a fixed quantile.

    self: concentrations [*S]; output: numbers drawn with them [*S]. Returns [*S].

    Source: Figurnov, Mohamed and Mnih, Implicit reparameterization gradients, 2018.
    """

    def forward(xp, self: Array, output: Array):
        _floating("_standard_gamma_grad_cpu", self, output)
        return gamma_gradient(*xp.broadcast_arrays(self, output))

    def vjp_self(F, grad): raise NotImplementedError("the derivative for '_standard_gamma_grad' is not implemented.")

    def vjp_output(F, grad):
        raise NotImplementedError("the derivative for '_standard_gamma_grad: output' is not implemented.")


@operator(name="_sample_dirichlet", node="SampleDirichletBackward0", widen=False, batching="leading")
class sample_dirichlet:
    """Dirichlet vectors along the last dimension.

    input: concentrations [*S, K], positive, float32 or float64. Returns [*S, K]. A concentration moves its own share as that of a
    beta number, at a fixed quantile, and the other shares in proportion.

    Source: Figurnov, Mohamed and Mnih, Implicit reparameterization gradients, 2018.
    """

    def forward(xp, input: Array, generator=None): return dirichlet(input, generator)

    def vjp_input(F, grad, input, result):
        moved = F._dirichlet_grad(result, input, F.sum_dim(input, (-1,), True))
        return moved * (grad - F.sum_dim(result * grad, (-1,), True))

    def jvp_input(F, tangent, input, result):
        moved = tangent * F._dirichlet_grad(result, input, F.sum_dim(input, (-1,), True))
        return moved - result * F.sum_dim(moved, (-1,), True)


@operator(name="_dirichlet_grad", node="DirichletGradBackward0", widen=False, elementwise=True)
class dirichlet_grad:
    """How the share x of a Dirichlet vector moves with its concentration, divided by 1 - x.

    x, alpha: shares and their concentrations [*S]; total: sums of concentrations, broadcastable. Returns [*S].
    """

    def forward(xp, x: Array, alpha: Array, total: Array):
        _floating("_dirichlet_grad_cpu", x, alpha, total)
        x, alpha, total = xp.broadcast_arrays(x, alpha, total)
        return beta_gradient(alpha, total - alpha, x) / (1 - x)

    def vjp_x(F, grad): raise NotImplementedError("the derivative for '_dirichlet_grad: x' is not implemented.")
    def vjp_alpha(F, grad): raise NotImplementedError("the derivative for '_dirichlet_grad: alpha' is not implemented.")
    def vjp_total(F, grad): raise NotImplementedError("the derivative for '_dirichlet_grad: total' is not implemented.")


@operator(module=None, name="binomial", widen=False, elementwise=True)
class binomial_of:
    """The raw form of `binomial`."""

    def forward(xp, count: Array, prob: Array, generator=None):
        return draw_binomial(*xp.broadcast_arrays(count, prob), generator)


@composite()
def binomial(count, prob, generator=None):
    """Binomial numbers: how many of `count` trials succeed, each with probability `prob`.

    count, prob: float32 or float64, of one dtype, broadcastable. Returns the common shape. Not differentiable.
    Raises: ValueError (an operand is not of a floating type), RuntimeError (shapes that do not broadcast, two dtypes, or an
        operand that is not finite).
    """
    for name, given in (("count", count), ("prob", prob)):
        if not given.is_floating_point():
            kind = scalar_name(given._array)
            raise ValueError(f"binomial only supports floating-point dtypes for {name}, got: {kind}. Convert it with .float().")
    return binomial_of(count, prob, generator)
