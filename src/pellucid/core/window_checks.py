"""Checks of windows that slide over images, and of columns made of them."""

from __future__ import annotations

import math

import numpy as np

from pellucid.core.checks import require_kind
from pellucid.core.tensor import Tensor
from pellucid.kernels.convolution import output_size

__all__ = ["check_columns", "pair", "window_options", "window_text"]


def pair(name: str, value, function: str) -> tuple[int, int]:
    """One number for both dimensions, or two."""
    given = tuple(value) if isinstance(value, (tuple, list)) else (value, value)
    for position, each in enumerate(given):
        if isinstance(each, bool) or not isinstance(each, (int, np.integer)):
            raise TypeError(f"{function}(): argument '{name}' must be tuple of ints, but found element of type "
                            f"{type(each).__name__} at pos {position}")
    if len(given) != 2:
        raise RuntimeError(f"It is expected {name} equals to 2, but got size {len(given)}: give one number, or height and width")
    return int(given[0]), int(given[1])


def window_options(function: str, kernel_size, dilation, padding, stride) -> tuple:
    """kernel, dilation, padding and stride as pairs; RuntimeError for sizes that are too small."""
    kernel, dilation = pair("kernel_size", kernel_size, function), pair("dilation", dilation, function)
    padding, stride = pair("padding", padding, function), pair("stride", stride, function)
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


def window_text(kernel: tuple, dilation: tuple, padding: tuple) -> str:
    """How errors describe a window."""
    return f"kernel_size={kernel}, dilation={dilation}, padding={padding}"


def check_columns(input: Tensor, size: tuple, kernel: tuple, dilation: tuple, padding: tuple, stride: tuple) -> None:
    """RuntimeError unless the input is columns of windows over images of that size, with or without a batch."""
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
        raise RuntimeError(f"Given output_size={size}, {window_text(kernel, dilation, padding)}, stride={stride}, expected size of "
                           f"input's dimension {axis + 1} to match the calculated number of sliding blocks {places[0]} * "
                           f"{places[1]} = {math.prod(places)}, but got input.size({axis + 1})={shape[-1]}.")
    require_kind("col2im_out_cpu", input._array, "fcb")
