"""Normalisation without a batch: LayerNorm, RMSNorm, GroupNorm, and normalisation across neighbouring channels."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pellucid.nn import functional as F
from pellucid.nn import init
from pellucid.nn.modules.declared import Declared, declared
from pellucid.nn.modules.linear import weight_and_bias
from pellucid.nn.modules.module import Module
from pellucid.nn.parameter import empty_parameter

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pellucid.core.tensor import Tensor

__all__ = ["CrossMapLRN2d", "GroupNorm", "LayerNorm", "LocalResponseNorm", "RMSNorm"]


def _shape(normalized_shape: int | Sequence[int]) -> tuple[int, ...]:
    return (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)


class LayerNorm(Module):
    """Bring the last dimensions to mean 0 and variance 1: [*, *normalized_shape].

    Args:
        normalized_shape: the last dimensions, or the size of the last one.
        eps: added to the variance.
        elementwise_affine: whether a weight and a bias follow.
        bias: whether there is one.
        device, dtype: of weight and bias, each [*normalized_shape].

    Source: Ba, Kiros and Hinton, Layer normalization, 2016.
    """

    def __init__(
        self, normalized_shape: int | Sequence[int], eps: float = 1e-5, elementwise_affine: bool = True,
        bias: bool = True,
        device=None, dtype=None,
    ):
        super().__init__()
        self.normalized_shape = _shape(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        for name, there in (("weight", elementwise_affine), ("bias", elementwise_affine and bias)):
            values = empty_parameter(*self.normalized_shape, device=device, dtype=dtype) if there else None
            self.register_parameter(name, values)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Weight 1, bias 0."""
        if self.elementwise_affine:
            init.ones_(self.weight)
            if self.bias is not None:
                init.zeros_(self.bias)

    def forward(self, input: Tensor) -> Tensor:
        """Normalise."""
        weight, bias = weight_and_bias(self)
        return F.layer_norm(input, self.normalized_shape, weight, bias, self.eps)

    def extra_repr(self) -> str:
        """All settings."""
        return (
            f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}, "
            f"bias={self.bias is not None}"
        )


class RMSNorm(Module):
    """Divide the last dimensions by the root of their mean square: [*, *normalized_shape].

    Args:
        normalized_shape: the last dimensions, or the size of the last one.
        eps: added to the mean square; None takes the smallest step of the dtype at 1.
        elementwise_affine: whether a weight follows.
        device, dtype: of the weight [*normalized_shape].

    Source: Zhang and Sennrich, Root mean square layer normalization, 2019.
    """

    def __init__(
        self, normalized_shape: int | Sequence[int], eps: float | None = None, elementwise_affine: bool = True,
        device=None, dtype=None,
    ):
        super().__init__()
        self.normalized_shape = _shape(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        weight = empty_parameter(*self.normalized_shape, device=device, dtype=dtype) if elementwise_affine else None
        self.register_parameter("weight", weight)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Weight 1."""
        if self.elementwise_affine:
            init.ones_(self.weight)

    def forward(self, input: Tensor) -> Tensor:
        """Normalise."""
        return F.rms_norm(input, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self) -> str:
        """All settings."""
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"


class GroupNorm(Module):
    """Bring groups of channels to mean 0 and variance 1: [N, C, *].

    Args:
        num_groups: how many groups.
        num_channels: C, which they divide.
        eps: added to the variance.
        affine: whether a weight and a bias follow.
        device, dtype: of weight and bias, each [C].
        bias: whether there is one.

    Raises:
        ValueError: `num_channels` cannot be divided by `num_groups`.

    Source: Wu and He, Group normalization, 2018.
    """

    def __init__(
        self, num_groups: int, num_channels: int, eps: float = 1e-5, affine: bool = True, device=None, dtype=None, *,
        bias: bool = True,
    ):
        super().__init__()
        if num_channels % num_groups:
            raise ValueError(f"num_channels ({num_channels}) must be divisible by num_groups ({num_groups})")
        self.num_groups = num_groups
        self.num_channels = num_channels
        self.eps = eps
        self.affine = affine
        for name, there in (("weight", affine), ("bias", affine and bias)):
            self.register_parameter(name, empty_parameter(num_channels, device=device, dtype=dtype) if there else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Weight 1, bias 0."""
        if self.affine:
            init.ones_(self.weight)
            if self.bias is not None:
                init.zeros_(self.bias)

    def forward(self, input: Tensor) -> Tensor:
        """Normalise."""
        weight, bias = weight_and_bias(self)
        return F.group_norm(input, self.num_groups, weight, bias, self.eps)

    def extra_repr(self) -> str:
        """All settings."""
        return (
            f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.affine}, "
            f"bias={self.bias is not None}"
        )


@declared
class LocalResponseNorm(Declared):
    """Divide by (k + alpha * mean square over `size` neighbouring channels)^beta: [N, C, *]."""

    size: int
    alpha: float = 0.0001
    beta: float = 0.75
    k: float = 1.0

    def forward(self, input: Tensor) -> Tensor:
        """Normalise."""
        return F.local_response_norm(input, self.size, self.alpha, self.beta, self.k)

    def extra_repr(self) -> str:
        """All settings."""
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"


@declared
class CrossMapLRN2d(LocalResponseNorm):
    """`LocalResponseNorm` of images; an older name."""

    k: float = 1
