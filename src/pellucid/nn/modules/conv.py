"""Convolutions of one, two and three dimensions, and their transposes.

Input and output are [N, C, *spatial] or [C, *spatial]. The `Lazy` classes learn `in_channels` from their first input.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from pellucid.nn import functional as F
from pellucid.nn import init
from pellucid.nn.modules.lazy import LazyModuleMixin
from pellucid.nn.modules.linear import reset_bias, weight_and_bias
from pellucid.nn.modules.module import Module
from pellucid.nn.modules.utils import _ntuple
from pellucid.nn.parameter import UninitializedParameter, empty_parameter

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pellucid.core.tensor import Tensor

    Size = int | tuple[int, ...]

__all__ = [
    "Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d", "LazyConv1d", "LazyConv2d",
    "LazyConv3d", "LazyConvTranspose1d", "LazyConvTranspose2d", "LazyConvTranspose3d",
]

PADDING_MODES = ("zeros", "reflect", "replicate", "circular")


class _ConvNd(Module):
    """What all convolutions share: settings, checks, weight and bias, printing."""

    _dims = 1

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: tuple[int, ...], stride: tuple[int, ...],
        padding: str | tuple[int, ...], dilation: tuple[int, ...], transposed: bool, output_padding: tuple[int, ...],
        groups: int, bias: bool, padding_mode: str, device=None, dtype=None,
    ):
        super().__init__()
        _check_channels(in_channels, out_channels, groups)
        _check_padding(padding, padding_mode, stride)
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.kernel_size = kernel_size
        self.stride = stride
        self.padding = padding
        self.dilation = dilation
        self.transposed = transposed
        self.output_padding = output_padding
        self.groups = groups
        self.padding_mode = padding_mode
        self._reversed_padding_repeated_twice = _pad_sizes(padding, kernel_size, dilation)
        self.weight = empty_parameter(*self._weight_shape(), device=device, dtype=dtype)
        self.register_parameter("bias", empty_parameter(out_channels, device=device, dtype=dtype) if bias else None)
        self.reset_parameters()

    def _weight_shape(self) -> tuple[int, ...]:
        """[out, in, *kernel], transposed [in, out, *kernel]; the second counts one group only."""
        first, second = self.out_channels, self.in_channels
        if self.transposed:
            first, second = second, first
        return (first, second // self.groups, *self.kernel_size)

    def reset_parameters(self) -> None:
        """Draw weight and bias uniformly, within 1 / sqrt(inputs of an output) of 0."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            reset_bias(self.bias, self.weight)

    def extra_repr(self) -> str:
        """Sizes, and the settings that are not the usual ones."""
        dims = len(self.kernel_size)
        shown = [f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}"]
        for name, usual in (("padding", (0,) * dims), ("dilation", (1,) * dims), ("output_padding", (0,) * dims),
                            ("groups", 1)):
            if getattr(self, name) != usual:
                shown.append(f"{name}={getattr(self, name)}")
        if self.bias is None:
            shown.append("bias=False")
        if self.padding_mode != "zeros":
            shown.append(f"padding_mode={self.padding_mode}")
        return ", ".join(shown)


def _check_channels(in_channels: int, out_channels: int, groups: int) -> None:
    if groups <= 0:
        raise ValueError(f"groups must be a positive integer, got {groups}")
    if in_channels % groups:
        raise ValueError(f"in_channels must be divisible by groups: got in_channels={in_channels}, groups={groups}")
    if out_channels % groups:
        raise ValueError(f"out_channels must be divisible by groups: got out_channels={out_channels}, groups={groups}")


def _check_padding(padding: str | tuple[int, ...], padding_mode: str, stride: tuple[int, ...]) -> None:
    if isinstance(padding, str):
        if padding not in ("same", "valid"):
            raise ValueError(f"Invalid padding string {padding!r}, should be one of 'same', 'valid'")
        if padding == "same" and any(step != 1 for step in stride):
            raise ValueError(f"padding='same' is not supported for strided convolutions, got stride={stride}")
    if padding_mode not in PADDING_MODES:
        raise ValueError(f"padding_mode must be one of {PADDING_MODES}, but got padding_mode='{padding_mode}'")


def _pad_sizes(padding: str | tuple[int, ...], kernel_size: tuple[int, ...], dilation: tuple[int, ...]) -> tuple:
    """What `F.pad` is to be given so that it pads as the convolution would: before and after, the last dimension
    first."""
    sizes = []
    for place in reversed(range(len(kernel_size))):
        if not isinstance(padding, str):
            sizes += [padding[place], padding[place]]
        elif padding == "same":
            total = dilation[place] * (kernel_size[place] - 1)
            sizes += [total // 2, total - total // 2]
        else:
            sizes += [0, 0]
    return tuple(sizes)


# --- convolutions ----------------------------------------------------------------------------------------------------


class _Convolution(_ConvNd):
    """Slide a kernel over the input."""

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Size, stride: Size = 1, padding: str | Size = 0,
        dilation: Size = 1, groups: int = 1, bias: bool = True, padding_mode: str = "zeros", device=None, dtype=None,
    ):
        several = _ntuple(self._dims)
        super().__init__(
            in_channels, out_channels, several(kernel_size), several(stride),
            padding if isinstance(padding, str) else several(padding), several(dilation), False, several(0), groups,
            bias,
            padding_mode, device, dtype,
        )

    def forward(self, input: Tensor) -> Tensor:
        """Convolve."""
        return self._conv_forward(input, *weight_and_bias(self))

    def _convolve(self, function: Callable, input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        """Convolve with the module's settings; padding that is not zeros is added first."""
        padding = self.padding
        if self.padding_mode != "zeros":
            input = F.pad(input, self._reversed_padding_repeated_twice, mode=self.padding_mode)
            padding = 0
        return function(input, weight, bias, self.stride, padding, self.dilation, self.groups)


class Conv1d(_Convolution):
    """A convolution over one dimension: [N, C, L] or [C, L].

    Args:
        in_channels, out_channels: sizes of the channel dimension.
        kernel_size, stride, dilation: a number, or one for each dimension.
        padding: elements added on both sides; "valid" for none, "same" for as many as keep the size.
        groups: parts into which the channels are divided; each output sees one part of the input.
        bias: whether there is one.
        padding_mode: "zeros", "reflect", "replicate" or "circular".
        device, dtype: of weight [out_channels, in_channels / groups, *kernel_size] and bias [out_channels].

    Raises:
        ValueError: channels cannot be divided by `groups`, or an unknown padding.
    """

    def _conv_forward(self, input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        return self._convolve(F.conv1d, input, weight, bias)


class Conv2d(_Convolution):
    """A convolution over two dimensions: [N, C, H, W] or [C, H, W]; arguments as for `Conv1d`."""

    _dims = 2

    def _conv_forward(self, input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        return self._convolve(F.conv2d, input, weight, bias)


class Conv3d(_Convolution):
    """A convolution over three dimensions: [N, C, D, H, W] or [C, D, H, W]; arguments as for `Conv1d`."""

    _dims = 3

    def _conv_forward(self, input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        return self._convolve(F.conv3d, input, weight, bias)


# --- transposed ------------------------------------------------------------------------------------------------------


class _ConvTransposeNd(_ConvNd):
    """The derivative of a convolution with respect to its input, used as a layer: it makes images larger."""

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Size, stride: Size = 1, padding: Size = 0,
        output_padding: Size = 0, groups: int = 1, bias: bool = True, dilation: Size = 1, padding_mode: str = "zeros",
        device=None, dtype=None,
    ):
        if padding_mode != "zeros":
            raise ValueError(f'Only "zeros" padding mode is supported for {type(self).__name__}, got {padding_mode!r}')
        several = _ntuple(self._dims)
        super().__init__(
            in_channels, out_channels, several(kernel_size), several(stride), several(padding), several(dilation), True,
            several(output_padding), groups, bias, padding_mode, device, dtype,
        )

    def _convolve(self, function: Callable, input: Tensor, output_size: Sequence[int] | None) -> Tensor:
        extra = self.output_padding if output_size is None else self._output_padding(input, list(output_size))
        weight, bias = weight_and_bias(self)
        return function(input, weight, bias, self.stride, self.padding, extra, self.groups, self.dilation)

    def _output_padding(self, input: Tensor, output_size: list[int]) -> list[int]:
        """The output padding that gives this size; ValueError if none does."""
        dims = self._dims
        lead = 2 if input.dim() == dims + 2 else 1
        if len(output_size) == lead + dims:
            output_size = output_size[lead:]
        if len(output_size) != dims:
            raise ValueError(
                f"ConvTranspose{dims}D: for {input.dim()}D input, output_size must have {dims} or {lead + dims} "
                "elements "
                f"(got {len(output_size)})"
            )
        settings = zip(
            input.shape[lead:], self.stride, self.padding, self.dilation, self.kernel_size, strict=True
        )
        least = [(n - 1) * s - 2 * p + d * (k - 1) + 1 for n, s, p, d, k in settings]
        most = [low + step - 1 for low, step in zip(least, self.stride, strict=True)]
        if not all(low <= size <= high for low, size, high in zip(least, output_size, most, strict=True)):
            raise ValueError(
                f"requested an output size of {output_size}, but valid sizes range from {least} to {most} "
                f"(for an input of {tuple(input.shape[lead:])})"
            )
        return [size - low for size, low in zip(output_size, least, strict=True)]


class ConvTranspose1d(_ConvTransposeNd):
    """A transposed convolution over one dimension, [N, C, L] or [C, L]: it makes the input longer.

    Args:
        in_channels, out_channels: sizes of the channel dimension.
        kernel_size, stride, dilation: a number, or one for each dimension.
        padding: what the convolution would have added on both sides; as much is cut off here.
        output_padding: elements added on one side, where several output sizes would fit.
        groups, bias, device, dtype: as for a convolution; weight is [in_channels, out_channels / groups, *kernel_size].
        padding_mode: only "zeros".

    Raises:
        ValueError: channels cannot be divided by `groups`, or another padding mode.
    """

    def forward(self, input: Tensor, output_size: Sequence[int] | None = None) -> Tensor:
        """Convolve; `output_size` instead of `output_padding`."""
        return self._convolve(F.conv_transpose1d, input, output_size)


class ConvTranspose2d(_ConvTransposeNd):
    """A transposed convolution over two dimensions, [N, C, H, W] or [C, H, W]; arguments as for `ConvTranspose1d`."""

    _dims = 2

    def forward(self, input: Tensor, output_size: Sequence[int] | None = None) -> Tensor:
        """Convolve; `output_size` instead of `output_padding`."""
        return self._convolve(F.conv_transpose2d, input, output_size)


class ConvTranspose3d(_ConvTransposeNd):
    """A transposed convolution over three dimensions, [N, C, D, H, W] or [C, D, H, W]; arguments as for
    `ConvTranspose1d`."""

    _dims = 3

    def forward(self, input: Tensor, output_size: Sequence[int] | None = None) -> Tensor:
        """Convolve; `output_size` instead of `output_padding`."""
        return self._convolve(F.conv_transpose3d, input, output_size)


# --- lazy ------------------------------------------------------------------------------------------------------------


class _LazyConv(LazyModuleMixin):
    """The part of a lazy convolution that waits for the input, and then knows `in_channels`."""

    def _make_lazy(self, out_channels: int, bias: bool, device, dtype) -> None:
        self.out_channels = out_channels
        self.weight = UninitializedParameter(device=device, dtype=dtype)
        if bias:
            self.bias = UninitializedParameter(device=device, dtype=dtype)

    def reset_parameters(self) -> None:
        """Draw the values, once there are any."""
        if not self.has_uninitialized_params() and self.in_channels != 0:
            super().reset_parameters()

    def initialize_parameters(self, input: Tensor, *args, **kwargs) -> None:
        """Take the channel dimension of the input as `in_channels`."""
        if input.dim() not in (self._dims + 1, self._dims + 2):
            raise RuntimeError(
                f"Expected {self._dims + 1}D (unbatched) or {self._dims + 2}D (batched) input to "
                f"{type(self).__name__}, "
                f"but got input of size: {list(input.shape)}"
            )
        self.in_channels = input.shape[-self._dims - 1]
        if self.in_channels % self.groups:
            raise ValueError(f"in_channels must be divisible by groups: got {self.in_channels} and {self.groups}")
        if self.has_uninitialized_params():  # they may have got a shape from a state that was loaded
            self.weight.materialize(self._weight_shape())
            if self.bias is not None:
                self.bias.materialize((self.out_channels,))
            self.reset_parameters()


class _LazyConvolution(_LazyConv):
    def __init__(
        self, out_channels: int, kernel_size: Size, stride: Size = 1, padding: str | Size = 0, dilation: Size = 1,
        groups: int = 1, bias: bool = True, padding_mode: str = "zeros", device=None, dtype=None,
    ):
        super().__init__(
            0, 0, kernel_size, stride, padding, dilation, groups, False, padding_mode, device=device, dtype=dtype
        )
        self._make_lazy(out_channels, bias, device, dtype)


class _LazyConvTranspose(_LazyConv):
    def __init__(
        self, out_channels: int, kernel_size: Size, stride: Size = 1, padding: Size = 0, output_padding: Size = 0,
        groups: int = 1, bias: bool = True, dilation: Size = 1, padding_mode: str = "zeros", device=None, dtype=None,
    ):
        super().__init__(
            0, 0, kernel_size, stride, padding, output_padding, groups, False, dilation, padding_mode, device=device,
            dtype=dtype,
        )
        self._make_lazy(out_channels, bias, device, dtype)


class LazyConv1d(_LazyConvolution, Conv1d):
    """A `Conv1d` that learns `in_channels` from its first input."""

    cls_to_become = Conv1d


class LazyConv2d(_LazyConvolution, Conv2d):
    """A `Conv2d` that learns `in_channels` from its first input."""

    cls_to_become = Conv2d


class LazyConv3d(_LazyConvolution, Conv3d):
    """A `Conv3d` that learns `in_channels` from its first input."""

    cls_to_become = Conv3d


class LazyConvTranspose1d(_LazyConvTranspose, ConvTranspose1d):
    """A `ConvTranspose1d` that learns `in_channels` from its first input."""

    cls_to_become = ConvTranspose1d


class LazyConvTranspose2d(_LazyConvTranspose, ConvTranspose2d):
    """A `ConvTranspose2d` that learns `in_channels` from its first input."""

    cls_to_become = ConvTranspose2d


class LazyConvTranspose3d(_LazyConvTranspose, ConvTranspose3d):
    """A `ConvTranspose3d` that learns `in_channels` from its first input."""

    cls_to_become = ConvTranspose3d
