"""Sliding windows over images as columns of a matrix (unfold), and their sum back into an image (fold).

The public functions are in functions/folding.py. Convolutions use the same columns but do not pass here; windows along one
dimension of any tensor are Tensor.unfold.
"""

from __future__ import annotations

from pellucid.autograd.operator import Array, operator
from pellucid.kernels.convolution import added_columns, as_columns

# --- the two transposes ------------------------------------------------------------------------------------------------


@operator(module=None, exact=True, node="Im2ColBackward0", linear=True, batching="fold")
class im2col:
    """The windows of images as columns. input: [N, C, H, W]. Returns [N, C * kernel places, places of the window]."""

    def forward(xp, input: Array, kernel: tuple, dilation: tuple, padding: tuple, stride: tuple):
        return as_columns(input, kernel, dilation, padding, stride)

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
        return added_columns(input, size, kernel, dilation, padding, stride)

    def vjp_input(F, grad, kernel, dilation, padding, stride): return F.im2col(grad, kernel, dilation, padding, stride)

    def samples(make):
        yield (make(2, 12, 4), (3, 3), (2, 2), (1, 1), (0, 0), (1, 1)), {}
        yield (make(1, 8, 6), (3, 4), (2, 2), (2, 1), (1, 1), (2, 2)), {}
