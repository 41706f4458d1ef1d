"""Batch normalisation: each channel is brought to mean 0 and variance 1 over the batch.

In training the statistics are those of the batch, and a running average of them is kept; in evaluation that average is
used. The `Lazy` classes learn `num_features` from their first input. `_NormBase` serves `instancenorm.py` too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pellucid.core.tensor import wrap
from pellucid.nn import functional as F
from pellucid.nn import init
from pellucid.nn.modules.lazy import LazyModuleMixin
from pellucid.nn.modules.linear import weight_and_bias
from pellucid.nn.modules.module import Module
from pellucid.nn.parameter import UninitializedBuffer, UninitializedParameter, empty_parameter

if TYPE_CHECKING:
    from pellucid.core.tensor import Tensor

__all__ = [
    "BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "LazyBatchNorm1d", "LazyBatchNorm2d", "LazyBatchNorm3d",
    "SyncBatchNorm",
]


class _NormBase(Module):
    """Weight, bias and running statistics, one number for each channel."""

    _version = 2  # since then there is num_batches_tracked
    _input_dims: tuple[int, ...] = ()  # how many dimensions an input may have

    def __init__(
        self, num_features: int, eps: float = 1e-5, momentum: float | None = 0.1, affine: bool = True,
        track_running_stats: bool = True, device=None, dtype=None, *, bias: bool = True,
    ):
        super().__init__()
        self.num_features = num_features
        self.eps = eps
        self.momentum = momentum
        self.affine = affine
        self.track_running_stats = track_running_stats
        for name, there in (("weight", affine), ("bias", affine and bias)):
            self.register_parameter(name, empty_parameter(num_features, device=device, dtype=dtype) if there else None)
        for name in ("running_mean", "running_var"):
            values = empty_parameter(num_features, device=device, dtype=dtype).detach() if track_running_stats else None
            self.register_buffer(name, values)
        self.register_buffer("num_batches_tracked", wrap(np.zeros((), np.int64)) if track_running_stats else None)
        self.reset_parameters()

    def reset_running_stats(self) -> None:
        """Forget the batches seen so far: mean 0, variance 1."""
        if self.track_running_stats:
            self.running_mean.zero_()
            self.running_var.fill_(1)
            self.num_batches_tracked.zero_()

    def reset_parameters(self) -> None:
        """Weight 1, bias 0, and no batches seen."""
        self.reset_running_stats()
        if self.affine:
            init.ones_(self.weight)
            if self.bias is not None:
                init.zeros_(self.bias)

    def _check_input_dim(self, input: Tensor) -> None:
        if input.dim() not in self._input_dims:
            allowed = " or ".join(f"{dims}D" for dims in self._input_dims)
            raise ValueError(f"expected {allowed} input (got {input.dim()}D input)")

    def extra_repr(self) -> str:
        """All settings."""
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, "
            f"bias={self.bias is not None}, track_running_stats={self.track_running_stats}"
        )

    def _load_from_state_dict(self, state_dict, prefix, local_metadata, *rest) -> None:
        """States of version 1 have no num_batches_tracked: keep the module's own."""
        if (local_metadata.get("version") or 1) < 2 and self.track_running_stats:
            state_dict.setdefault(prefix + "num_batches_tracked", self.num_batches_tracked)
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *rest)

    _load_from_state_dict.planned = True


class _BatchNorm(_NormBase):
    """Normalise over every dimension but that of the channels, which is the second."""

    def forward(self, input: Tensor) -> Tensor:
        """Normalise; ValueError for an input of another number of dimensions."""
        self._check_input_dim(input)
        mean, var = self._buffers["running_mean"], self._buffers["running_var"]
        factor = 0.0 if self.momentum is None else self.momentum
        if self.training:
            if self.track_running_stats:
                factor = self._count_batch(factor)
            else:
                mean = var = None
        use_batch = self.training or (mean is None and var is None)
        weight, bias = weight_and_bias(self)
        return F.batch_norm(input, mean, var, weight, bias, use_batch, factor, self.eps)

    def _count_batch(self, factor: float) -> float:
        """Count a batch; return the weight it has in the running average, equal for all batches without momentum."""
        tracked = self._buffers["num_batches_tracked"]
        if tracked is None:
            return factor
        tracked.add_(1)
        return 1.0 / float(tracked) if self.momentum is None else factor


class BatchNorm1d(_BatchNorm):
    """Batch normalisation of [N, C] or [N, C, L].

    Args:
        num_features: C.
        eps: added to the variance.
        momentum: weight of the newest batch in the running average; None weighs all batches equally.
        affine: whether a weight and a bias follow.
        track_running_stats: whether there is a running average; without one the batch's statistics are always used.
        device, dtype: of weight, bias and statistics, each [C].
        bias: whether there is one.

    Source: Ioffe and Szegedy, Batch normalization, 2015.
    """

    _input_dims = (2, 3)


class BatchNorm2d(_BatchNorm):
    """Batch normalisation of [N, C, H, W]; arguments as for `BatchNorm1d`."""

    _input_dims = (4,)


class BatchNorm3d(_BatchNorm):
    """Batch normalisation of [N, C, D, H, W]; arguments as for `BatchNorm1d`."""

    _input_dims = (5,)


class SyncBatchNorm(_BatchNorm):
    """Batch normalisation of [N, C, *] over all processes; with a single process, as here, over the batch."""

    def __init__(
        self, num_features: int, eps: float = 1e-5, momentum: float | None = 0.1, affine: bool = True,
        track_running_stats: bool = True, process_group=None, device=None, dtype=None, *, bias: bool = True,
    ):
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)
        self.process_group = process_group

    def _check_input_dim(self, input: Tensor) -> None:
        if input.dim() < 2:
            raise ValueError(f"expected at least 2D input (got {input.dim()}D input)")

    @classmethod
    def convert_sync_batchnorm(cls, module: Module, process_group=None) -> Module:
        """The module with every batch normalisation in it turned into this class, statistics and all."""
        if isinstance(module, _BatchNorm):
            converted = cls(
                module.num_features, module.eps, module.momentum, module.affine, module.track_running_stats,
                process_group
            )
            converted._parameters.update(module._parameters)
            converted._buffers.update(module._buffers)
            converted.training = module.training
            return converted
        for name, child in module.named_children():
            module.add_module(name, cls.convert_sync_batchnorm(child, process_group))
        return module


class _LazyNorm(LazyModuleMixin):
    """The part of a lazy normalisation that waits for the input, and then knows `num_features`."""

    def __init__(
        self, eps: float = 1e-5, momentum: float | None = 0.1, affine: bool = True, track_running_stats: bool = True,
        device=None, dtype=None, *, bias: bool = True,
    ):
        super().__init__(0, eps, momentum, False, False, device, dtype, bias=False)
        self.affine = affine
        self.track_running_stats = track_running_stats
        if affine:
            self.weight = UninitializedParameter(device=device, dtype=dtype)
            if bias:
                self.bias = UninitializedParameter(device=device, dtype=dtype)
        if track_running_stats:
            self.running_mean = UninitializedBuffer(device=device, dtype=dtype)
            self.running_var = UninitializedBuffer(device=device, dtype=dtype)
            self.num_batches_tracked = wrap(np.zeros((), np.int64))

    def reset_parameters(self) -> None:
        """Set the values, once there are any."""
        if not self.has_uninitialized_params() and self.num_features != 0:
            super().reset_parameters()

    def initialize_parameters(self, input: Tensor) -> None:
        """Take the second dimension of the input as `num_features`."""
        self.num_features = input.shape[1]
        if self.has_uninitialized_params():  # they may have got a shape from a state that was loaded
            for value in (*self._parameters.values(), self.running_mean, self.running_var):
                if value is not None:
                    value.materialize((self.num_features,))
            self.reset_parameters()


class LazyBatchNorm1d(_LazyNorm, BatchNorm1d):
    """A `BatchNorm1d` that learns `num_features` from its first input."""

    cls_to_become = BatchNorm1d


class LazyBatchNorm2d(_LazyNorm, BatchNorm2d):
    """A `BatchNorm2d` that learns `num_features` from its first input."""

    cls_to_become = BatchNorm2d


class LazyBatchNorm3d(_LazyNorm, BatchNorm3d):
    """A `BatchNorm3d` that learns `num_features` from its first input."""

    cls_to_become = BatchNorm3d
