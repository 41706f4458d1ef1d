"""Weight norm and spectral norm in their older form: a hook before `forward` that sets the weight.

The newer form, in which the weight is computed whenever it is read, is in `parametrizations.py`.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

from pellucid.autograd.grad_mode import no_grad
from pellucid.core.tensor import Parameter
from pellucid.nn.modules.conv import ConvTranspose1d, ConvTranspose2d, ConvTranspose3d
from pellucid.nn.parameter import is_lazy
from pellucid.nn.utils.norms import as_matrix, norm_except_dim, power_iteration, random_unit, sigma, weight_of

if TYPE_CHECKING:
    from pellucid.core.tensor import Tensor
    from pellucid.nn.modules.module import Module

__all__ = ["remove_spectral_norm", "remove_weight_norm", "spectral_norm", "weight_norm"]


class WeightNorm:
    """The hook: `name` is computed from `name_g` and `name_v`."""

    def __init__(self, name: str, dim: int):
        self.name, self.dim = name, dim

    def compute_weight(self, module: Module) -> Tensor:
        """The weight."""
        return weight_of(getattr(module, self.name + "_v"), getattr(module, self.name + "_g"), self.dim)

    def __call__(self, module: Module, inputs) -> None:
        setattr(module, self.name, self.compute_weight(module))

    def remove(self, module: Module) -> None:
        """Make the weight a parameter again."""
        weight = self.compute_weight(module)
        for name in (self.name, self.name + "_g", self.name + "_v"):
            delattr(module, name)
        module.register_parameter(self.name, Parameter(weight.detach()))


class SpectralNorm:
    """The hook: `name` is computed from `name_orig`, with the estimates `name_u` and `name_v`."""

    def __init__(self, name: str, n_power_iterations: int, dim: int, eps: float):
        if n_power_iterations <= 0:
            raise ValueError(
                "Expected n_power_iterations to be positive, but got n_power_iterations=" f"{n_power_iterations}"
            )
        self.name, self.n_power_iterations, self.dim, self.eps = name, n_power_iterations, dim, eps

    def compute_weight(self, module: Module, do_power_iteration: bool) -> Tensor:
        """The weight, perhaps after an improvement of the estimates."""
        weight, u, v = (getattr(module, f"{self.name}_{part}") for part in ("orig", "u", "v"))
        matrix = as_matrix(weight, self.dim)
        if do_power_iteration:
            power_iteration(matrix, u, v, self.n_power_iterations, self.eps, u_first=False)
        return weight / sigma(matrix, u, v)

    def __call__(self, module: Module, inputs) -> None:
        setattr(module, self.name, self.compute_weight(module, module.training))

    def remove(self, module: Module) -> None:
        """Make the weight a parameter again."""
        with no_grad():
            weight = self.compute_weight(module, False)
        for suffix in ("", "_u", "_v", "_orig"):
            delattr(module, self.name + suffix)
        module.register_parameter(self.name, Parameter(weight.detach()))


def _check(module: Module, kind: type, name: str) -> None:
    """The module has no such hook on this weight yet, and the weight has a shape."""
    for hook in module._forward_pre_hooks.values():
        if isinstance(hook, kind) and hook.name == name:
            what = "weight_norm" if kind is WeightNorm else "spectral_norm"
            raise RuntimeError(f"Cannot register two {what} hooks on the same parameter {name}")
    if is_lazy(module._parameters.get(name)):
        raise ValueError(
            f"The module passed to `{kind.__name__}` can't have uninitialized parameters. Make sure to run the dummy "
            "forward before"
        )


def _remove(module: Module, kind: type, name: str, what: str) -> Module:
    for key, hook in list(module._forward_pre_hooks.items()):
        if isinstance(hook, kind) and hook.name == name:
            hook.remove(module)
            del module._forward_pre_hooks[key]
            return module
    raise ValueError(f"{what} of '{name}' not found in {module}")


def weight_norm(module: Module, name: str = "weight", dim: int | None = 0) -> Module:
    """Train the norm `name_g` and the direction `name_v` of a weight; see `parametrizations.weight_norm`."""
    warnings.warn(
        "`nn.utils.weight_norm` is deprecated in favor of `nn.utils.parametrizations.weight_norm`.",
        FutureWarning,
        stacklevel=2,
    )
    _check(module, WeightNorm, name)
    hook = WeightNorm(name, -1 if dim is None else dim)
    weight = getattr(module, name)
    delattr(module, name)
    module.register_parameter(name + "_g", Parameter(norm_except_dim(weight.detach(), hook.dim)))
    module.register_parameter(name + "_v", Parameter(weight.detach()))
    hook(module, ())
    module.register_forward_pre_hook(hook)
    return module


def remove_weight_norm(module: Module, name: str = "weight") -> Module:
    """Take `weight_norm` back; ValueError if it is not there."""
    return _remove(module, WeightNorm, name, "weight_norm")


def spectral_norm(
    module: Module, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None
) -> Module:
    """Keep the largest singular value of a weight at 1; see `parametrizations.spectral_norm`."""
    _check(module, SpectralNorm, name)
    if dim is None:
        dim = 1 if isinstance(module, (ConvTranspose1d, ConvTranspose2d, ConvTranspose3d)) else 0
    hook = SpectralNorm(name, n_power_iterations, dim, eps)
    weight = getattr(module, name)
    if weight is None:
        raise ValueError(f"`SpectralNorm` cannot be applied as parameter `{name}` is None")
    matrix = as_matrix(weight.detach(), dim)
    u, v = (random_unit(matrix, size, eps) for size in matrix.shape)
    delattr(module, name)
    module.register_parameter(name + "_orig", weight)
    setattr(module, name, weight.detach())  # until the first call, for code that asks for its shape
    module.register_buffer(name + "_u", u)
    module.register_buffer(name + "_v", v)
    module.register_forward_pre_hook(hook)
    return module


def remove_spectral_norm(module: Module, name: str = "weight") -> Module:
    """Take `spectral_norm` back; ValueError if it is not there."""
    return _remove(module, SpectralNorm, name, "spectral_norm")
