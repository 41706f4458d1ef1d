"""Maxima, means and norms of windows as users call them: max_pool, avg_pool, lp_pool in one to three dimensions.

The operators are in `ops/pooling.py`; pooling to a given size and the inverse of max_pool are in `pooling_adaptive.py`.
"""

from __future__ import annotations

import math

from pellucid.autograd.operator import composite
from pellucid.autograd.operator import tensors as T
from pellucid.core.checks import require_kind
from pellucid.core.pooling_checks import geometry, window

__all__ = [
    "avg_pool1d", "avg_pool2d", "avg_pool3d", "lp_pool1d", "lp_pool2d", "lp_pool3d", "max_pool1d",
    "max_pool1d_with_indices", "max_pool2d", "max_pool2d_with_indices", "max_pool3d", "max_pool3d_with_indices",
]  # fmt: skip


# --- arguments ------------------------------------------------------------------------------------------------------


def _max(function: str, count: int, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices):
    windows = geometry(function, count, input, kernel_size, stride, padding, dilation, ceil_mode)
    require_kind(function, input._array, "fi")
    best = T._max_pool(input, *windows)
    if not return_indices:
        return best
    return best, T.max_pool_indices(input, best, *windows)


def _mean(function: str, count: int, input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor):
    places, size, stride, padding, _ = geometry(function, count, input, kernel_size, stride, padding, 1, ceil_mode)
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
