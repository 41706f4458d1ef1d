"""Pooling: modules that reduce windows of the last one, two or three dimensions of [N, C, *] or [C, *].

Sizes are a number or one for each dimension. `stride` is the kernel size unless given. The functions of `nn.functional`
say what shapes come out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pellucid.nn import functional as F
from pellucid.nn.modules.declared import Declared, declared
from pellucid.nn.modules.module import Module
from pellucid.nn.modules.utils import _pair, _single, _triple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pellucid.core.tensor import Tensor

    Size = int | tuple[int, ...]
    OutputSize = int | None | tuple[int | None, ...]

__all__ = [
    "AdaptiveAvgPool1d", "AdaptiveAvgPool2d", "AdaptiveAvgPool3d", "AdaptiveMaxPool1d", "AdaptiveMaxPool2d",
    "AdaptiveMaxPool3d", "AvgPool1d", "AvgPool2d", "AvgPool3d", "FractionalMaxPool2d", "FractionalMaxPool3d",
    "LPPool1d",
    "LPPool2d", "LPPool3d", "MaxPool1d", "MaxPool2d", "MaxPool3d", "MaxUnpool1d", "MaxUnpool2d", "MaxUnpool3d",
]


# --- maximum ---------------------------------------------------------------------------------------------------------


@declared
class _MaxPoolNd(Declared):
    """The largest value of each window; with `return_indices` also where it was."""

    kernel_size: Size
    stride: Size | None = None
    padding: Size = 0
    dilation: Size = 1
    return_indices: bool = False
    ceil_mode: bool = False
    _shown = ("kernel_size", "stride", "padding", "dilation", "ceil_mode")

    def _settle(self) -> None:
        if self.stride is None:
            self.stride = self.kernel_size

    def _pool(self, function, input: Tensor) -> Any:
        return function(
            input, self.kernel_size, self.stride, self.padding, self.dilation, ceil_mode=self.ceil_mode,
            return_indices=self.return_indices,
        )


class MaxPool1d(_MaxPoolNd):
    """The largest value of each window of one dimension."""

    def forward(self, input: Tensor) -> Any:
        """Pool."""
        return self._pool(F.max_pool1d, input)


class MaxPool2d(_MaxPoolNd):
    """The largest value of each window of two dimensions."""

    def forward(self, input: Tensor) -> Any:
        """Pool."""
        return self._pool(F.max_pool2d, input)


class MaxPool3d(_MaxPoolNd):
    """The largest value of each window of three dimensions."""

    def forward(self, input: Tensor) -> Any:
        """Pool."""
        return self._pool(F.max_pool3d, input)


@declared
class _MaxUnpoolNd(Declared):
    """The inverse of max pooling: values go where the indices say, zeros elsewhere."""

    kernel_size: Size
    stride: Size | None = None
    padding: Size = 0
    _shown = ("kernel_size", "stride", "padding")
    _tuple = staticmethod(_single)

    def _settle(self) -> None:
        self.stride = self._tuple(self.kernel_size if self.stride is None else self.stride)
        self.kernel_size = self._tuple(self.kernel_size)
        self.padding = self._tuple(self.padding)


class MaxUnpool1d(_MaxUnpoolNd):
    """The inverse of `MaxPool1d`, as far as there is one."""

    def forward(self, input: Tensor, indices: Tensor, output_size: Sequence[int] | None = None) -> Tensor:
        """Put the values back; `output_size` decides where several sizes would fit."""
        return F.max_unpool1d(input, indices, self.kernel_size, self.stride, self.padding, output_size)


class MaxUnpool2d(_MaxUnpoolNd):
    """The inverse of `MaxPool2d`, as far as there is one."""

    _tuple = staticmethod(_pair)

    def forward(self, input: Tensor, indices: Tensor, output_size: Sequence[int] | None = None) -> Tensor:
        """Put the values back; `output_size` decides where several sizes would fit."""
        return F.max_unpool2d(input, indices, self.kernel_size, self.stride, self.padding, output_size)


class MaxUnpool3d(_MaxUnpoolNd):
    """The inverse of `MaxPool3d`, as far as there is one."""

    _tuple = staticmethod(_triple)

    def forward(self, input: Tensor, indices: Tensor, output_size: Sequence[int] | None = None) -> Tensor:
        """Put the values back; `output_size` decides where several sizes would fit."""
        return F.max_unpool3d(input, indices, self.kernel_size, self.stride, self.padding, output_size)


class _FractionalMaxPoolNd(Module):
    """Max pooling over windows whose places are drawn, to reach an output of a given size or ratio."""

    _dims = 2

    def __init__(
        self, kernel_size: Size, output_size: Size | None = None, output_ratio: float | tuple[float, ...] | None = None,
        return_indices: bool = False, _random_samples: Tensor | None = None,
    ):
        super().__init__()
        several = _pair if self._dims == 2 else _triple
        name = type(self).__name__
        if (output_size is None) == (output_ratio is None):
            which = "only one of output_size and output_ratio may be specified" if output_size is not None else (
                "requires specifying either an output size, or a pooling ratio"
            )
            raise ValueError(f"{name} {which}: got output_size={output_size}, output_ratio={output_ratio}")
        self.kernel_size = several(kernel_size)
        self.return_indices = return_indices
        self.register_buffer("_random_samples", _random_samples)
        self.output_size = None if output_size is None else several(output_size)
        self.output_ratio = None if output_ratio is None else several(output_ratio)
        if self.output_ratio is not None and not all(0 < ratio < 1 for ratio in self.output_ratio):
            raise ValueError(f"output_ratio must be between 0 and 1 (got {output_ratio})")

    def _pool(self, function, input: Tensor) -> Any:
        return function(
            input, self.kernel_size, self.output_size, self.output_ratio, self.return_indices,
            _random_samples=self._random_samples,
        )


class FractionalMaxPool2d(_FractionalMaxPoolNd):
    """Max pooling over windows of two dimensions whose places are drawn.

    Source: Graham, Fractional max-pooling, 2014.
    """

    def forward(self, input: Tensor) -> Any:
        """Pool."""
        return self._pool(F.fractional_max_pool2d, input)


class FractionalMaxPool3d(_FractionalMaxPoolNd):
    """Max pooling over windows of three dimensions whose places are drawn."""

    _dims = 3

    def forward(self, input: Tensor) -> Any:
        """Pool."""
        return self._pool(F.fractional_max_pool3d, input)


@declared
class _AdaptiveMaxPoolNd(Declared):
    """The largest value of each window, the windows being chosen so as to give an output of this size."""

    output_size: OutputSize
    return_indices: bool = False
    _shown = ("output_size",)


class AdaptiveMaxPool1d(_AdaptiveMaxPoolNd):
    """Max pooling to a given length."""

    def forward(self, input: Tensor) -> Any:
        """Pool."""
        return F.adaptive_max_pool1d(input, self.output_size, self.return_indices)


class AdaptiveMaxPool2d(_AdaptiveMaxPoolNd):
    """Max pooling to a given height and width; None keeps that of the input."""

    def forward(self, input: Tensor) -> Any:
        """Pool."""
        return F.adaptive_max_pool2d(input, self.output_size, self.return_indices)


class AdaptiveMaxPool3d(_AdaptiveMaxPoolNd):
    """Max pooling to a given depth, height and width; None keeps that of the input."""

    def forward(self, input: Tensor) -> Any:
        """Pool."""
        return F.adaptive_max_pool3d(input, self.output_size, self.return_indices)


# --- average ---------------------------------------------------------------------------------------------------------


@declared
class AvgPool1d(Declared):
    """The mean of each window of one dimension; padding counts as zeros unless `count_include_pad` is off."""

    kernel_size: Size
    stride: Size | None = None
    padding: Size = 0
    ceil_mode: bool = False
    count_include_pad: bool = True
    _shown = ("kernel_size", "stride", "padding")

    def _settle(self) -> None:
        self.stride = _single(self.kernel_size if self.stride is None else self.stride)
        self.kernel_size, self.padding = _single(self.kernel_size), _single(self.padding)

    def forward(self, input: Tensor) -> Tensor:
        """Pool."""
        return F.avg_pool1d(
            input, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad
        )


@declared
class _AvgPoolNd(Declared):
    """The mean of each window; `divisor_override` is what to divide by instead of the count."""

    kernel_size: Size
    stride: Size | None = None
    padding: Size = 0
    ceil_mode: bool = False
    count_include_pad: bool = True
    divisor_override: int | None = None
    _shown = ("kernel_size", "stride", "padding")

    def _settle(self) -> None:
        if self.stride is None:
            self.stride = self.kernel_size

    def _pool(self, function, input: Tensor) -> Tensor:
        return function(
            input, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad,
            self.divisor_override,
        )


class AvgPool2d(_AvgPoolNd):
    """The mean of each window of two dimensions."""

    def forward(self, input: Tensor) -> Tensor:
        """Pool."""
        return self._pool(F.avg_pool2d, input)


class AvgPool3d(_AvgPoolNd):
    """The mean of each window of three dimensions."""

    def forward(self, input: Tensor) -> Tensor:
        """Pool."""
        return self._pool(F.avg_pool3d, input)


@declared
class _AdaptiveAvgPoolNd(Declared):
    """The mean of each window, the windows being chosen so as to give an output of this size."""

    output_size: OutputSize
    _shown = ("output_size",)


class AdaptiveAvgPool1d(_AdaptiveAvgPoolNd):
    """Average pooling to a given length."""

    def forward(self, input: Tensor) -> Tensor:
        """Pool."""
        return F.adaptive_avg_pool1d(input, self.output_size)


class AdaptiveAvgPool2d(_AdaptiveAvgPoolNd):
    """Average pooling to a given height and width; None keeps that of the input."""

    def forward(self, input: Tensor) -> Tensor:
        """Pool."""
        return F.adaptive_avg_pool2d(input, self.output_size)


class AdaptiveAvgPool3d(_AdaptiveAvgPoolNd):
    """Average pooling to a given depth, height and width; None keeps that of the input."""

    def forward(self, input: Tensor) -> Tensor:
        """Pool."""
        return F.adaptive_avg_pool3d(input, self.output_size)


# --- power mean ------------------------------------------------------------------------------------------------------


@declared
class _LPPoolNd(Declared):
    """(sum of x^p)^(1/p) over each window."""

    norm_type: float
    kernel_size: Size
    stride: Size | None = None
    ceil_mode: bool = False
    _shown = ("norm_type", "kernel_size", "stride", "ceil_mode")

    def _pool(self, function, input: Tensor) -> Tensor:
        return function(input, float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode)


class LPPool1d(_LPPoolNd):
    """(sum of x^p)^(1/p) over each window of one dimension."""

    def forward(self, input: Tensor) -> Tensor:
        """Pool."""
        return self._pool(F.lp_pool1d, input)


class LPPool2d(_LPPoolNd):
    """(sum of x^p)^(1/p) over each window of two dimensions."""

    def forward(self, input: Tensor) -> Tensor:
        """Pool."""
        return self._pool(F.lp_pool2d, input)


class LPPool3d(_LPPoolNd):
    """(sum of x^p)^(1/p) over each window of three dimensions."""

    def forward(self, input: Tensor) -> Tensor:
        """Pool."""
        return self._pool(F.lp_pool3d, input)
