"""Sliding windows over images as columns of a matrix (unfold), and their sum back into an image (fold).

Convolutions use the same columns but do not pass here; windows along one dimension of any tensor are Tensor.unfold.
"""

from __future__ import annotations

import math

import numpy as np

from pellucid.autograd.operator import Array, composite, operator
from pellucid.autograd.operator import tensors as T
from pellucid.core.checks import require_kind
from pellucid.core.tensor import Tensor
from pellucid.kernels.convolution import add_columns, output_size, padded, windows

__all__ = ["fold", "unfold"]


# --- the two transposes ------------------------------------------------------------------------------------------------


@operator(module=None, exact=True, node="Im2ColBackward0", linear=True, batching="fold")
class im2col:
    """The windows of images as columns. input: [N, C, H, W]. Returns [N, C * kernel places, places of the window]."""

    def forward(xp, input: Array, kernel: tuple, dilation: tuple, padding: tuple, stride: tuple):
        places = output_size(input.shape[2:], kernel, stride, padding, dilation)
        view = windows(padded(input, padding), kernel, places, stride, dilation)
        made = xp.ascontiguousarray(view).reshape(len(input), input.shape[1] * math.prod(kernel), math.prod(places))
        return made.copy() if xp.may_share_memory(made, input) else made

    def vjp_input(F, grad, input_shape, kernel, dilation, padding, stride):
        return F.col2im(grad, input_shape[2:], kernel, dilation, padding, stride)

    def samples(make):
        yield (make(2, 3, 5, 4), (2, 3), (1, 1), (0, 0), (1, 1)), {}
        yield (make(2, 2, 6, 5), (2, 2), (2, 1), (1, 2), (2, 1)), {}
        yield (make(0, 2, 3, 3), (2, 2), (1, 1), (0, 0), (1, 1)), {}
        yield (make(1, 1, 3, 3), (1, 1), (1, 1), (0, 0), (1, 1)), {}


@operator(module=None, node="Col2ImBackward0", linear=True, batching="fold")
class col2im:
    """The transpose of `im2col`: columns added up where their windows lie. input: [N, C * K, P]. Returns [N, C, *size]."""

    def forward(xp, input: Array, size: tuple, kernel: tuple, dilation: tuple, padding: tuple, stride: tuple):
        places = output_size(size, kernel, stride, padding, dilation)
        images, channels = len(input), input.shape[1] // math.prod(kernel)
        whole = xp.zeros((images, channels, *(s + 2 * p for s, p in zip(size, padding, strict=True))), input.dtype)
        add_columns(whole, input.reshape(images, channels, *kernel, *places), kernel, places, stride, dilation)
        return whole[(..., *(slice(p, p + s) for p, s in zip(padding, size, strict=True)))]

    def vjp_input(F, grad, kernel, dilation, padding, stride): return F.im2col(grad, kernel, dilation, padding, stride)

    def samples(make):
        yield (make(2, 12, 4), (3, 3), (2, 2), (1, 1), (0, 0), (1, 1)), {}
        yield (make(1, 8, 6), (3, 4), (2, 2), (2, 1), (1, 1), (2, 2)), {}


# --- checks ------------------------------------------------------------------------------------------------------------


def _pair(name: str, value, function: str) -> tuple[int, int]:
    """One number for both dimensions, or two."""
    given = tuple(value) if isinstance(value, (tuple, list)) else (value, value)
    for position, each in enumerate(given):
        if isinstance(each, bool) or not isinstance(each, (int, np.integer)):
            raise TypeError(f"{function}(): argument '{name}' must be tuple of ints, but found element of type "
                            f"{type(each).__name__} at pos {position}")
    if len(given) != 2:
        raise RuntimeError(f"It is expected {name} equals to 2, but got size {len(given)}: give one number, or height and width")
    return int(given[0]), int(given[1])


def _options(function: str, kernel_size, dilation, padding, stride) -> tuple:
    """kernel, dilation, padding and stride as pairs; RuntimeError for sizes that are too small."""
    kernel, dilation = _pair("kernel_size", kernel_size, function), _pair("dilation", dilation, function)
    padding, stride = _pair("padding", padding, function), _pair("stride", stride, function)
    for what, short, value in (
        ("kernel size", "kernel", kernel),
        ("stride", "stride", stride),
        ("dilation", "dilation", dilation),
    ):
        if min(value) <= 0:
            raise RuntimeError(f"{what} should be greater than zero, but got {short}_height: {value[0]} {short}_width: {value[1]}")
    if min(padding) < 0:
        raise RuntimeError(f"padding should be non-negative, but got pad_height: {padding[0]} pad_width: {padding[1]}")
    return kernel, dilation, padding, stride


def _window(kernel: tuple, dilation: tuple, padding: tuple) -> str:
    return f"kernel_size={kernel}, dilation={dilation}, padding={padding}"


# --- nn.functional -----------------------------------------------------------------------------------------------------


@composite(module="nn.functional")
def unfold(input, kernel_size, dilation=1, padding=0, stride=1):
    """The windows of images as columns: each column holds what the window sees at one place, channel by channel.

    input: [N, C, H, W] or [C, H, W]; the options are numbers or pairs. Returns [N, C * kernel places, places] (or without N).
    Raises: RuntimeError for other ranks, empty images, options out of range, a window larger than the image.
    """
    kernel, dilation, padding, stride = _options("im2col", kernel_size, dilation, padding, stride)
    shape = input._array.shape
    if len(shape) < 3:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-len(shape)}, {len(shape) - 1}], but got 2): "
                         f"unfold takes [N, C, H, W] or [C, H, W], got {list(shape)}")
    if len(shape) > 4 or 0 in shape[-3:]:
        raise RuntimeError("Expected 3D or 4D (batch mode) tensor with possibly 0 batch size and other non-zero dimensions for "
                           f"input, but got: {list(shape)}")
    places = output_size(shape[-2:], kernel, stride, padding, dilation)
    if min(places) < 1:
        raise RuntimeError(f"Given input with spatial size {shape[-2:]}, {_window(kernel, dilation, padding)}, calculated shape of "
                           f"the array of sliding blocks as {places}, but its components must be at least one.")
    require_kind("im2col_out_cpu", input._array, "fcb")
    if len(shape) == 4:
        return T.im2col(input, kernel, dilation, padding, stride)
    return T.im2col(input.unsqueeze(0), kernel, dilation, padding, stride).squeeze(0)


def _check_columns(input: Tensor, size: tuple, kernel: tuple, dilation: tuple, padding: tuple, stride: tuple) -> None:
    shape = input._array.shape
    if len(shape) not in (2, 3) or 0 in shape[-2:]:
        raise RuntimeError("Expected 2D or 3D (batch mode) tensor for input with possibly 0 batch size and non-zero dimensions "
                           f"for input, but got: {list(shape)}")
    axis = len(shape) - 2
    if shape[-2] % math.prod(kernel):
        raise RuntimeError(f"Expected size of input's dimension {axis} to be divisible by the product of kernel_size, but got "
                           f"input.size({axis})={shape[-2]} and kernel_size={kernel}.")
    places = output_size(size, kernel, stride, padding, dilation)
    if math.prod(places) != shape[-1] or min(places) < 1:
        raise RuntimeError(f"Given output_size={size}, {_window(kernel, dilation, padding)}, stride={stride}, expected size of "
                           f"input's dimension {axis + 1} to match the calculated number of sliding blocks {places[0]} * "
                           f"{places[1]} = {math.prod(places)}, but got input.size({axis + 1})={shape[-1]}.")
    require_kind("col2im_out_cpu", input._array, "fcb")


@composite(module="nn.functional")
def fold(input, output_size, kernel_size, dilation=1, padding=0, stride=1):
    """Columns of windows added up into images, the transpose of `unfold`: where windows overlap, values add.

    input: [N, C * kernel places, places] or without N; the options are numbers or pairs. Returns [N, C, *output_size].
    Raises: RuntimeError for other ranks, options out of range, or sizes that do not fit together.
    """
    size = _pair("output_size", output_size, "col2im")
    kernel, dilation, padding, stride = _options("col2im", kernel_size, dilation, padding, stride)
    _check_columns(input, size, kernel, dilation, padding, stride)
    if input.dim() == 3:
        return T.col2im(input, size, kernel, dilation, padding, stride)
    return T.col2im(input.unsqueeze(0), size, kernel, dilation, padding, stride).squeeze(0)
