"""Maxima and means of windows: max_pool, avg_pool, lp_pool in one to three dimensions. The arithmetic is in kernels/pooling.py.

Pooling to a given size and the inverse of max_pool are in pooling_adaptive.py.
"""

from __future__ import annotations

import math

from pellucid.autograd.operator import Array, Index, composite, operator
from pellucid.autograd.operator import tensors as T
from pellucid.core.checks import require_kind
from pellucid.kernels import pooling as kernel

__all__ = [
    "avg_pool1d", "avg_pool2d", "avg_pool3d", "lp_pool1d", "lp_pool2d", "lp_pool3d", "max_pool1d", "max_pool1d_with_indices",
    "max_pool2d", "max_pool2d_with_indices", "max_pool3d", "max_pool3d_with_indices",
]  # fmt: skip


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


# --- arguments ------------------------------------------------------------------------------------------------------

_WORDS = {1: "one int", 2: "two ints", 3: "three ints"}


def window(function: str, name: str, value, count: int) -> tuple:
    """A size or step as a tuple; RuntimeError for one with another number of dimensions."""
    if isinstance(value, (tuple, list)):
        if len(value) == 1:
            return (int(value[0]),) * count
        if len(value) != count:
            if count == 1:
                raise RuntimeError(f"{function}() {name} must be an int, list of ints or tuple of ints of size 1 but got size {len(value)}")
            raise RuntimeError(f"{function}: {name} must either be a single int, or a tuple of {_WORDS[count]}: got {tuple(value)}")
        return tuple(int(v) for v in value)
    return (int(value),) * count


def check_image(function: str, input, count: int) -> None:
    """Refuse inputs without the right rank, or with nothing in a dimension other than the batch."""
    shape = input._array.shape
    good = len(shape) in (count + 1, count + 2) and all(shape[1:]) and (len(shape) == count + 2 or shape[0])
    if good:
        return
    if len(shape) not in (count + 1, count + 2) and count > 1:
        raise RuntimeError(f"non-empty {count + 1}D or {count + 2}D (batch mode) tensor expected for input: {function} got shape {list(shape)}")
    start = f"{function}: " if count == 1 else ""
    raise RuntimeError(f"{start}Expected {count + 1}D or {count + 2}D (batch mode) tensor with optional 0 dim batch size for "
                       f"input, but got:{list(shape)}")


def _check_window(function: str, size: tuple, stride: tuple, padding: tuple, dilation: tuple, single: bool) -> None:
    if any(s <= 0 for s in stride) or any(k <= 0 for k in size):
        text = f"{function}() kernel_size and stride must be greater than zero" if single else "stride should not be zero"
        raise RuntimeError(f"{text}: got kernel_size={size}, stride={stride}")
    if any(d <= 0 for d in dilation):
        raise RuntimeError(f"dilation should be greater than zero, but got dilation={dilation}")
    if any(p < 0 for p in padding):
        raise RuntimeError(f"pad must be non-negative, but got pad: {min(padding)}" if not single else
                           f"{function}() padding must be non-negative, but got {min(padding)}")  # fmt: skip
    for p, k, d in zip(padding, size, dilation, strict=True):
        if p > (d * (k - 1) + 1) // 2:
            if single:
                raise RuntimeError(f"{function}() padding should be at most half of kernel size, but got padding={p} and kernel_size={k}")
            raise RuntimeError(f"pad should be at most half of effective kernel size, but got pad={p}, kernel_size={k} and dilation={d}")


def _geometry(function: str, count: int, input, kernel_size, stride, padding, dilation, ceil_mode: bool):
    """Everything about the windows, checked: (places, size, stride, padding, dilation)."""
    size = window(function, "kernel_size", kernel_size, count)
    stride = size if stride is None or stride in ([], ()) else window(function, "stride", stride, count)
    padding = window(function, "padding", padding, count)
    dilation = window(function, "dilation", dilation, count)
    check_image(function, input, count)
    _check_window(function, size, stride, padding, dilation, function == "max_pool1d")
    shape = input._array.shape
    places = kernel.output_size(shape[-count:], size, stride, padding, dilation, ceil_mode)
    if any(q < 1 for q in places):
        channels = shape[-count - 1]
        raise RuntimeError(f"Given input size: ({'x'.join(map(str, shape[-count - 1 :]))}). Calculated output size: "
                           f"({channels}x{'x'.join(str(max(q, 0)) for q in places)}). Output size is too small")
    return places, size, stride, padding, dilation


def _max(function: str, count: int, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices):
    geometry = _geometry(function, count, input, kernel_size, stride, padding, dilation, ceil_mode)
    require_kind(function, input._array, "fi")
    best = T._max_pool(input, *geometry)
    if not return_indices:
        return best
    return best, T.max_pool_indices(input, best, *geometry)


def _mean(function: str, count: int, input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor):
    places, size, stride, padding, _ = _geometry(function, count, input, kernel_size, stride, padding, 1, ceil_mode)
    if divisor == 0:
        raise RuntimeError("divisor must be not zero: got divisor_override=0")
    require_kind(function, input._array, "fi")
    return T._avg_pool(input, places, size, stride, padding, bool(count_include_pad), divisor)


# --- public functions -----------------------------------------------------------------------------------------------

WHERE = ("nn.functional", "torch")


def _max_family(count: int, shape: str):
    """`max_poolNd` and `max_poolNd_with_indices`."""

    def plain(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):
        return _max(f"max_pool{count}d", count, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)

    def both(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=True):
        return _max(f"max_pool{count}d", count, input, kernel_size, stride, padding, dilation, ceil_mode, True)

    plain.__name__, both.__name__ = f"max_pool{count}d", f"max_pool{count}d_with_indices"
    plain.__doc__ = f"""The largest value in each window.

    input: [N, C, {shape}] or [C, {shape}]. `stride` is the kernel's size by default; the border of `padding` counts as minus
    infinity; with `ceil_mode` windows may hang over the end. Returns the maxima and, with `return_indices`, where in its
    image each was found. The gradient goes to the first maximum of a window.
    Raises: RuntimeError for shapes or steps that do not fit.
    """
    both.__doc__ = plain.__doc__
    return composite(module=WHERE)(plain), composite(module=("nn.functional", "torch") if count == 1 else "nn.functional")(both)


max_pool1d, max_pool1d_with_indices = _max_family(1, "L")
max_pool2d, max_pool2d_with_indices = _max_family(2, "H, W")
max_pool3d, max_pool3d_with_indices = _max_family(3, "D, H, W")


@composite(module=WHERE)
def avg_pool1d(input, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True):
    """The mean of each window.

    input: [N, C, L] or [C, L]. `stride` is the kernel's size by default; with `count_include_pad` the zeros of the border
    count. Returns [N, C, places]. Raises: RuntimeError for shapes or steps that do not fit.
    """
    return _mean("avg_pool1d", 1, input, kernel_size, stride, padding, ceil_mode, count_include_pad, None)


def _mean_family(count: int, shape: str):
    """`avg_pool2d` and `avg_pool3d`."""

    def mean(input, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True, divisor_override=None):
        return _mean(f"avg_pool{count}d", count, input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)

    mean.__name__ = f"avg_pool{count}d"
    mean.__doc__ = f"""The mean of each window, or its sum over `divisor_override`.

    input: [N, C, {shape}] or [C, {shape}]; see `avg_pool1d`. Raises: RuntimeError for shapes or steps that do not fit.
    """
    return composite(module="nn.functional")(mean)


def _norm_family(count: int, shape: str):
    """`lp_poolNd`."""

    def norm(input, norm_type, kernel_size, stride=None, ceil_mode=False):
        size = window(f"lp_pool{count}d", "kernel_size", kernel_size, count)
        mean = _mean(f"avg_pool{count}d", count, input.pow(norm_type), size, stride, 0, ceil_mode, True, None)
        return (mean.sign() * T.relu(mean.abs()) * math.prod(size)).pow(1.0 / norm_type)

    norm.__name__ = f"lp_pool{count}d"
    norm.__doc__ = f"The p-norm of each window: (sum x^p)^(1/p). input: [N, C, {shape}] or [C, {shape}]."
    return composite(module="nn.functional")(norm)


avg_pool2d, avg_pool3d = _mean_family(2, "H, W"), _mean_family(3, "D, H, W")
lp_pool1d, lp_pool2d, lp_pool3d = _norm_family(1, "L"), _norm_family(2, "H, W"), _norm_family(3, "D, H, W")
