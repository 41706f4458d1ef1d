"""`unfold` and `fold` of `nn.functional`: arguments checked, images without a batch. The operators are in `ops/folding.py`."""

from __future__ import annotations

from pellucid.autograd.operator import composite
from pellucid.autograd.operator import tensors as T
from pellucid.core.checks import require_kind
from pellucid.core.window_checks import check_columns, pair, window_options, window_text
from pellucid.kernels.convolution import output_size

__all__ = ["fold", "unfold"]


@composite(module="nn.functional")
def unfold(input, kernel_size, dilation=1, padding=0, stride=1):
    """The windows of images as columns: each column holds what the window sees at one place, channel by channel.

    input: [N, C, H, W] or [C, H, W]; the options are numbers or pairs. Returns [N, C * kernel places, places] (or without N).
    Raises: RuntimeError for other ranks, empty images, options out of range, a window larger than the image.
    """
    kernel, dilation, padding, stride = window_options("im2col", kernel_size, dilation, padding, stride)
    shape = input._array.shape
    if len(shape) < 3:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-len(shape)}, {len(shape) - 1}], but got 2): "
                         f"unfold takes [N, C, H, W] or [C, H, W], got {list(shape)}")
    if len(shape) > 4 or 0 in shape[-3:]:
        raise RuntimeError("Expected 3D or 4D (batch mode) tensor with possibly 0 batch size and other non-zero dimensions for "
                           f"input, but got: {list(shape)}")
    places = output_size(shape[-2:], kernel, stride, padding, dilation)
    if min(places) < 1:
        raise RuntimeError(f"Given input with spatial size {shape[-2:]}, {window_text(kernel, dilation, padding)}, calculated shape of "
                           f"the array of sliding blocks as {places}, but its components must be at least one.")
    require_kind("im2col_out_cpu", input._array, "fcb")
    if len(shape) == 4:
        return T.im2col(input, kernel, dilation, padding, stride)
    return T.im2col(input.unsqueeze(0), kernel, dilation, padding, stride).squeeze(0)


@composite(module="nn.functional")
def fold(input, output_size, kernel_size, dilation=1, padding=0, stride=1):
    """Columns of windows added up into images, the transpose of `unfold`: where windows overlap, values add.

    input: [N, C * kernel places, places] or without N; the options are numbers or pairs. Returns [N, C, *output_size].
    Raises: RuntimeError for other ranks, options out of range, or sizes that do not fit together.
    """
    size = pair("output_size", output_size, "col2im")
    kernel, dilation, padding, stride = window_options("col2im", kernel_size, dilation, padding, stride)
    check_columns(input, size, kernel, dilation, padding, stride)
    if input.dim() == 3:
        return T.col2im(input, size, kernel, dilation, padding, stride)
    return T.col2im(input.unsqueeze(0), size, kernel, dilation, padding, stride).squeeze(0)
