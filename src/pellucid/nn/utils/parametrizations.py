"""Ready-made parametrizations: weight norm, spectral norm and, from `orthogonal.py`, orthogonal matrices."""

from __future__ import annotations

from pellucid.core.tensor import Tensor
from pellucid.nn import functional as F
from pellucid.nn.modules.conv import ConvTranspose1d, ConvTranspose2d, ConvTranspose3d
from pellucid.nn.modules.module import Module
from pellucid.nn.utils.norms import as_matrix, norm_except_dim, power_iteration, random_unit, sigma, weight_of
from pellucid.nn.utils.orthogonal import orthogonal
from pellucid.nn.utils.parametrize import register_parametrization

__all__ = ["orthogonal", "spectral_norm", "weight_norm"]


class _WeightNorm(Module):
    """weight = original0 * original1 / |original1|, the norm taken over every dimension but `dim`."""

    def __init__(self, dim: int | None = 0):
        super().__init__()
        self.dim = -1 if dim is None else dim

    def forward(self, weight_g: Tensor, weight_v: Tensor) -> Tensor:
        """The weight."""
        return weight_of(weight_v, weight_g, self.dim)

    def right_inverse(self, weight: Tensor) -> tuple[Tensor, Tensor]:
        """Norm and direction."""
        return norm_except_dim(weight, self.dim), weight


def weight_norm(module: Module, name: str = "weight", dim: int | None = 0) -> Module:
    """Train the norm and the direction of a weight apart from each other.

    Args:
        module: the module that has the weight.
        name: its name.
        dim: the dimension of which each element has a norm of its own; None for a single norm.

    States saved with the older `nn.utils.weight_norm` can be loaded.

    Source: Salimans and Kingma, Weight normalization, 2016.
    """
    register_parametrization(module, name, _WeightNorm(dim), unsafe=True)

    def rename(state_dict, prefix, *_):
        for old, new in (("g", "original0"), ("v", "original1")):
            key = f"{prefix}{name}_{old}"
            if key in state_dict:
                state_dict[f"{prefix}parametrizations.{name}.{new}"] = state_dict.pop(key)

    module._register_load_state_dict_pre_hook(rename)
    return module


class _SpectralNorm(Module):
    """weight = original / its largest singular value, which is estimated by power iteration."""

    def __init__(self, weight: Tensor, n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12):
        super().__init__()
        if not -weight.ndim <= dim < weight.ndim:
            raise IndexError(
                f"Dimension out of range (expected to be in range of [-{weight.ndim}, {weight.ndim - 1}] but got {dim})"
            )
        if n_power_iterations <= 0:
            raise ValueError(
                "Expected n_power_iterations to be positive, but got n_power_iterations=" f"{n_power_iterations}"
            )
        self.dim = dim % weight.ndim
        self.eps = eps
        if weight.ndim > 1:
            self.n_power_iterations = n_power_iterations
            matrix = as_matrix(weight, self.dim)
            self.register_buffer("_u", random_unit(matrix, matrix.shape[0], eps))
            self.register_buffer("_v", random_unit(matrix, matrix.shape[1], eps))
            power_iteration(matrix, self._u, self._v, 15, eps, u_first=True)

    def forward(self, weight: Tensor) -> Tensor:
        """The weight; in training the estimate is improved first."""
        if weight.ndim == 1:
            return F.normalize(weight, dim=0, eps=self.eps)
        matrix = as_matrix(weight, self.dim)
        if self.training:
            power_iteration(matrix, self._u, self._v, self.n_power_iterations, self.eps, u_first=True)
        return weight / sigma(matrix, self._u, self._v)

    def right_inverse(self, value: Tensor) -> Tensor:
        """The value itself, on trust that its norm is right."""
        return value


def spectral_norm(
    module: Module, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None
) -> Module:
    """Keep the largest singular value of a weight at 1.

    Args:
        module: the module that has the weight.
        name: its name.
        n_power_iterations: how many steps of the estimate are taken each time the weight is read, in training.
        eps: the least norm to divide by.
        dim: the dimension of the outputs; 0, and 1 for transposed convolutions, if None.

    Raises:
        ValueError: there is no such weight.

    Source: Miyato and others, Spectral normalization for generative adversarial networks, 2018.
    """
    weight = getattr(module, name, None)
    if not isinstance(weight, Tensor):
        raise ValueError(f"Module '{type(module).__name__}' has no parameter or buffer with name '{name}'")
    if dim is None:
        dim = 1 if isinstance(module, (ConvTranspose1d, ConvTranspose2d, ConvTranspose3d)) else 0
    return register_parametrization(module, name, _SpectralNorm(weight, n_power_iterations, dim, eps))
