"""Instance normalisation: each channel of each sample is brought to mean 0 and variance 1.

The `Lazy` classes learn `num_features` from their first input.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

from pellucid.nn import functional as F
from pellucid.nn.modules.batchnorm import _LazyNorm, _NormBase

if TYPE_CHECKING:
    from pellucid.core.tensor import Tensor

__all__ = [
    "InstanceNorm1d", "InstanceNorm2d", "InstanceNorm3d", "LazyInstanceNorm1d", "LazyInstanceNorm2d",
    "LazyInstanceNorm3d",
]


class _InstanceNorm(_NormBase):
    """Normalise over every dimension but those of samples and channels."""

    def __init__(
        self, num_features: int, eps: float = 1e-5, momentum: float = 0.1, affine: bool = False,
        track_running_stats: bool = False, device=None, dtype=None, *, bias: bool = True,
    ):
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)

    def forward(self, input: Tensor) -> Tensor:
        """Normalise; ValueError for an input of another number of dimensions, or of channels."""
        self._check_input_dim(input)
        unbatched_dims = self._input_dims[0]
        self._check_channels(input, input.dim() - unbatched_dims)
        if input.dim() == unbatched_dims:
            return self._normalise(input.unsqueeze(0)).squeeze(0)
        return self._normalise(input)

    def _normalise(self, input: Tensor) -> Tensor:
        use_input = self.training or not self.track_running_stats
        momentum = 0.0 if self.momentum is None else self.momentum
        return F.instance_norm(
            input, self.running_mean, self.running_var, self.weight, self.bias, use_input, momentum, self.eps
        )

    def _check_channels(self, input: Tensor, dim: int) -> None:
        if input.size(dim) == self.num_features:
            return
        if self.affine:
            raise ValueError(
                f"expected input's size at dim={dim} to match num_features ({self.num_features}), but got: "
                f"{input.size(dim)}."
            )
        warnings.warn(
            f"input's size at dim={dim} does not match num_features ({self.num_features}), which is not used because "
            "affine=False. You can silence this warning by passing the right number.",
            stacklevel=4,
        )


class InstanceNorm1d(_InstanceNorm):
    """Instance normalisation of [N, C, L] or [C, L].

    Args:
        num_features: C.
        eps: added to the variance.
        momentum: weight of the newest batch in the running average.
        affine: whether a weight and a bias follow.
        track_running_stats: whether there is a running average, to be used in evaluation.
        device, dtype: of weight, bias and statistics, each [C].
        bias: whether there is one.

    Source: Ulyanov and others, Instance normalization, 2016.
    """

    _input_dims = (2, 3)


class InstanceNorm2d(_InstanceNorm):
    """Instance normalisation of [N, C, H, W] or [C, H, W]; arguments as for `InstanceNorm1d`."""

    _input_dims = (3, 4)


class InstanceNorm3d(_InstanceNorm):
    """Instance normalisation of [N, C, D, H, W] or [C, D, H, W]; arguments as for `InstanceNorm1d`."""

    _input_dims = (4, 5)


class LazyInstanceNorm1d(_LazyNorm, InstanceNorm1d):
    """An `InstanceNorm1d` that learns `num_features` from its first input."""

    cls_to_become = InstanceNorm1d


class LazyInstanceNorm2d(_LazyNorm, InstanceNorm2d):
    """An `InstanceNorm2d` that learns `num_features` from its first input."""

    cls_to_become = InstanceNorm2d


class LazyInstanceNorm3d(_LazyNorm, InstanceNorm3d):
    """An `InstanceNorm3d` that learns `num_features` from its first input."""

    cls_to_become = InstanceNorm3d
