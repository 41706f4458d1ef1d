"""Pooling to a given size (adaptive) and with random windows (fractional). The arithmetic is in kernels/pooling_adaptive.py.

The functions that users call are in `functions/pooling_adaptive.py`; windows of a fixed size are in pooling.py.
"""

from __future__ import annotations

from pellucid.autograd.operator import Array, Index, operator
from pellucid.kernels import pooling_adaptive as kernel

__all__: list[str] = []


@operator(module=None, name="_adaptive_avg_pool", node="AdaptiveAvgPool2DBackward0", fused=True, exact=True, linear=True, batching="leading")
class _adaptive_avg_pool:
    """Means of windows that cover the last dimensions evenly, `size` many of them."""

    def forward(xp, input: Array, size: tuple):
        return kernel.average(input, size)

    def vjp_input(F, grad, input_shape, size):
        return F._adaptive_avg_pool_backward(grad, tuple(input_shape[-len(size) :]), size)

    def samples(make):
        yield (make(2, 3, 5, 6), (2, 3)), {}
        yield (make(2, 5), (4,)), {}


@operator(module=None, node="AdaptiveAvgPool2DBackwardBackward0", exact=True, linear=True, batching="leading")
class _adaptive_avg_pool_backward:
    """The transpose of `_adaptive_avg_pool`: each gradient spread evenly over its window of an image of that spatial shape."""

    def forward(xp, input: Array, shape: tuple, size: tuple):
        return kernel.average_gradient(input, shape, size)

    def vjp_input(F, grad, size): return F._adaptive_avg_pool(grad, size)


@operator(module=None, name="_image_gather", node="AdaptiveMaxPool2DBackward0", fused=True, exact=True, linear=True, batching="leading")
class _image_gather:
    """Of each image (the last `count` dimensions) the elements with the numbers `indices`, which count it flattened."""

    def forward(xp, input: Array, indices: Index, count: int):
        return kernel.gather(input, indices, count)

    def vjp_input(F, grad, input_shape, indices, count):
        return F._image_scatter(grad, indices, tuple(input_shape[-count:]), count)

    def samples(make): yield (make(2, 3, 4), make.integers(2, 2, 2, high=12), 2), {}


@operator(module=None, name="_image_scatter", node="AdaptiveMaxPool2DBackwardBackward0", exact=True, linear=True, batching="leading")
class _image_scatter:
    """The transpose of `_image_gather`: gradients added up at their numbers in images of that size."""

    def forward(xp, input: Array, indices: Index, size: tuple, count: int):
        return kernel.scatter(input, indices, size, count)

    def vjp_input(F, grad, indices, count): return F._image_gather(grad, indices, count)


@operator(module=None, batching="leading")
class adaptive_max_indices:
    """Where in its image the largest element of each window is, counted through it as one row; windows as `_adaptive_avg_pool`'s."""

    def forward(xp, input: Index, size: tuple):
        return kernel.largest(input, size)


@operator(module=None, batching="leading")
class fractional_indices:
    """Where in its image the largest element of each randomly placed window is. input: [*L, *S]; samples: [*L, number of sizes]."""

    def forward(xp, input: Index, samples: Index, size: tuple, parts: tuple):
        return kernel.largest_at_random(input, samples, size, parts)
