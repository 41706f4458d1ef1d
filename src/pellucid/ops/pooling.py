"""Maxima and means of windows, over any number of dimensions. The arithmetic is in kernels/pooling.py.

max_pool, avg_pool and lp_pool are in `functions/pooling.py`; pooling to a given size is in pooling_adaptive.py.
"""

from __future__ import annotations

from pellucid.autograd.operator import Array, Index, operator
from pellucid.kernels import pooling as kernel

__all__: list[str] = []


# --- operators ------------------------------------------------------------------------------------------------------

LINEAR = {"linear": True, "batching": "leading"}


@operator(module=None, name="_max_pool", node="MaxPool2DWithIndicesBackward0", fused=True, exact=True, batching="leading")
class _max_pool:
    """The largest value in each window, over as many last dimensions as `size` has."""

    def forward(xp, input: Array, places: tuple, size: tuple, stride: tuple, padding: tuple, dilation: tuple):
        return kernel.maxima(input, places, size, stride, padding, dilation)

    def vjp_input(F, grad, input, result, places, size, stride, padding, dilation):
        return F._max_pool_backward(grad, input, result, places, size, stride, padding, dilation)

    def jvp_input(F, tangent, input, result, places, size, stride, padding, dilation):
        return F._max_pool_picked(tangent, input, result, places, size, stride, padding, dilation)

    def samples(make):
        yield (make.distinct(2, 3, 4, 6), (2, 3), (2, 2), (2, 2), (0, 0), (1, 1)), {}
        yield (make.distinct(2, 5), (3,), (3,), (2,), (1,), (1,)), {}


@operator(module=None, name="_max_pool_backward", node="MaxPool2DWithIndicesBackwardBackward0", **LINEAR, exact=True)
class _max_pool_backward:
    """Each gradient (input) at the place of the first maximum of its window of the image (other)."""

    def forward(xp, input: Array, other: Array, best: Array, places: tuple, size: tuple, stride: tuple, padding: tuple, dilation: tuple):
        return kernel.maxima_gradient(input, other, best, places, size, stride, padding, dilation)

    def vjp_input(F, grad, other, best, places, size, stride, padding, dilation):
        return F._max_pool_picked(grad, other, best, places, size, stride, padding, dilation)


@operator(module=None, name="_max_pool_picked", **LINEAR, exact=True)
class _max_pool_picked:
    """Of `input`, shaped like the image (other), the values at the first maximum of each window of the image."""

    def forward(xp, input: Array, other: Array, best: Array, places: tuple, size: tuple, stride: tuple, padding: tuple, dilation: tuple):
        return kernel.picked(input, other, best, places, size, stride, padding, dilation)

    def vjp_input(F, grad, other, best, places, size, stride, padding, dilation):
        return F._max_pool_backward(grad, other, best, places, size, stride, padding, dilation)


@operator(module=None, batching="leading")
class max_pool_indices:
    """Where in its image (the last dimensions) each maximum was found, counted through it as one row."""

    def forward(xp, input: Index, best: Index, places: tuple, size: tuple, stride: tuple, padding: tuple, dilation: tuple):
        return kernel.maxima_indices(input, best, places, size, stride, padding, dilation)


@operator(module=None, name="_avg_pool", node="AvgPool2DBackward0", fused=True, **LINEAR)
class _avg_pool:
    """The mean of each window, over as many last dimensions as `size` has; of integers rounded towards zero."""

    def forward(xp, input: Array, places: tuple, size: tuple, stride: tuple, padding: tuple, include_pad: bool, divisor):
        if input.dtype.kind in "iu":
            total = kernel.average(input.astype(xp.float64), places, size, stride, padding, include_pad, divisor)
            return total.astype(input.dtype)
        return kernel.average(input, places, size, stride, padding, include_pad, divisor)

    def vjp_input(F, grad, input_shape, places, size, stride, padding, include_pad, divisor):
        return F._avg_pool_backward(grad, tuple(input_shape[-len(size) :]), places, size, stride, padding, include_pad, divisor)

    def samples(make):
        yield (make(2, 3, 4, 6), (2, 3), (2, 2), (2, 2), (0, 0), True, None), {}
        yield (make(2, 5), (3,), (3,), (2,), (1,), False, None), {}


@operator(module=None, name="_avg_pool_backward", node="AvgPool2DBackwardBackward0", **LINEAR)
class _avg_pool_backward:
    """The transpose of `_avg_pool`: each gradient spread evenly over its window; `whole` is the image's spatial shape."""

    def forward(xp, input: Array, whole: tuple, places: tuple, size: tuple, stride: tuple, padding: tuple, include_pad: bool, divisor):
        return kernel.average_gradient(input, whole, size, stride, padding, include_pad, divisor)

    def vjp_input(F, grad, places, size, stride, padding, include_pad, divisor):
        return F._avg_pool(grad, places, size, stride, padding, include_pad, divisor)
