"""Pooling to a given size (adaptive), with random windows (fractional), and back (max_unpool), as users call them.

The operators are in `ops/pooling_adaptive.py`.
"""

from __future__ import annotations

import math

import numpy as np

from pellucid.autograd.operator import composite
from pellucid.autograd.operator import tensors as T
from pellucid.core.checks import every_value, require_kind, scalar_name
from pellucid.core.pooling_checks import check_image, window
from pellucid.core.tensor import Tensor, wrap
from pellucid.functions.randoms import rand
from pellucid.ops.pooling_adaptive import adaptive_max_indices, fractional_indices

__all__ = [
    "adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d", "adaptive_max_pool1d",
    "adaptive_max_pool2d", "adaptive_max_pool3d", "fractional_max_pool2d", "fractional_max_pool3d",
    "max_unpool1d", "max_unpool2d", "max_unpool3d",
]  # fmt: skip


# --- adaptive -------------------------------------------------------------------------------------------------------


def _target(function: str, input: Tensor, output_size, count: int) -> tuple:
    """The wanted spatial shape, None standing for the input's own; checked."""
    shape = input._array.shape
    if count > 1 and isinstance(output_size, (tuple, list)) and len(shape) <= len(output_size):
        raise ValueError(f"Input dimension should be at least {len(output_size) + 1}: {function} got shape {list(shape)}")
    if len(shape) not in (count + 1, count + 2):
        colon = "" if "avg" in function else ":"
        raise RuntimeError(f"{function}(): Expected {count + 1}D or {count + 2}D tensor, but got{colon} {list(shape)}")
    for d in range(len(shape) - count - (0 if len(shape) == count + 1 else 1), len(shape)):
        if not shape[d] and (d or len(shape) == count + 1):
            raise RuntimeError(f"{function}(): Expected input to have non-zero size for non-batch dimensions, but input has sizes "
                               f"{list(shape)} with dimension {d} being empty")  # fmt: skip
    size = tuple(output_size) if isinstance(output_size, (tuple, list)) else (output_size,) * count
    if len(size) != count:
        raise RuntimeError(f"{function}: output_size must be {count}: got {size}")
    size = tuple(s if n is None else int(n) for n, s in zip(size, shape[-count:], strict=True))
    if any(n < 0 for n in size):
        raise RuntimeError(f"{function}: elements of output_size must be greater than or equal to 0 but received {size}")
    return size


def _adaptive_mean(function: str, count: int, input: Tensor, output_size) -> Tensor:
    size = _target(function, input, output_size, count)
    require_kind(function, input._array, "fc")
    if all(n == 1 for n in size):
        return input.mean(tuple(range(-count, 0)), keepdim=True)
    return T._adaptive_avg_pool(input, size)


def _adaptive_max(function: str, count: int, input: Tensor, output_size, return_indices: bool):
    chosen = adaptive_max_indices(input, _target(function, input, output_size, count))
    return _gathered(input, chosen, count, return_indices)


def _gathered(input: Tensor, chosen: Tensor, count: int, return_indices: bool):
    """The elements of each image with the numbers `chosen`, and the numbers if wanted."""
    made = T._image_gather(input, chosen, count)
    return (made, chosen) if return_indices else made


def _adaptive(count: int, shape: str):
    """The adaptive functions of one rank: mean, maximum, maximum with indices."""

    def mean(input, output_size):
        return _adaptive_mean(f"adaptive_avg_pool{count}d", count, input, output_size)

    def maximum(input, output_size, return_indices=False):
        return _adaptive_max(f"adaptive_max_pool{count}d", count, input, output_size, return_indices)

    def both(input, output_size, return_indices=True):
        return _adaptive_max(f"adaptive_max_pool{count}d", count, input, output_size, True)

    mean.__name__, maximum.__name__ = f"adaptive_avg_pool{count}d", f"adaptive_max_pool{count}d"
    both.__name__ = f"adaptive_max_pool{count}d_with_indices"
    for function, what in ((mean, "mean"), (maximum, "largest value"), (both, "largest value, and where it is,")):
        function.__doc__ = f"""The {what} of each of as many windows as `output_size` says, which cover the image evenly.

    input: [N, C, {shape}] or [C, {shape}]; output_size: a number or {count}, None keeping the input's size.
    Returns [N, C, *output_size]. Raises: RuntimeError for shapes that do not fit.
    """
    where = ("nn.functional", "torch") if count == 1 else "nn.functional"
    return composite(module=where)(mean), composite(module=where)(maximum), composite(module="nn.functional")(both)


adaptive_avg_pool1d, adaptive_max_pool1d, adaptive_max_pool1d_with_indices = _adaptive(1, "L")


adaptive_avg_pool2d, adaptive_max_pool2d, adaptive_max_pool2d_with_indices = _adaptive(2, "H, W")


adaptive_avg_pool3d, adaptive_max_pool3d, adaptive_max_pool3d_with_indices = _adaptive(3, "D, H, W")


# --- fractional -----------------------------------------------------------------------------------------------------


def _fractional(function: str, count: int, input, kernel_size, output_size, output_ratio, return_indices, samples):
    if output_size is None and output_ratio is None:
        raise ValueError(f"{function} requires specifying either an output_size or an output_ratio")
    size, shape = window(function, "kernel_size", kernel_size, count), input._array.shape
    check_image(function, input, count)
    if output_size is None:
        ratio = output_ratio if isinstance(output_ratio, (tuple, list)) else (output_ratio,) * count
        if any(not 0 < r < 1 for r in ratio):
            raise ValueError(f"{function}: output_ratio must be between 0 and 1 (got {tuple(ratio)})")
        output_size = tuple(int(s * r) for s, r in zip(shape[-count:], ratio, strict=True))
    parts = window(function, "output_size", output_size, count)
    for name, whole, k, n in zip(("time", "height", "width")[-count:], shape[-count:], size, parts, strict=True):
        if n + k - 1 > whole:
            raise RuntimeError(f"{function}(): pool {name} {k} too large relative to input {name} {whole} for output size {n}")
    images = shape[0] if len(shape) == count + 2 else 1
    if samples is None:
        samples = rand(images, shape[-count - 1], count, dtype=input.dtype)
    whole = input.reshape(images, shape[-count - 1], *shape[-count:])
    chosen = fractional_indices(whole, samples, size, parts).reshape(*shape[:-count], *parts)
    return _gathered(input, chosen, count, return_indices)


def _fractional_family(count: int, shape: str):
    def plain(input, kernel_size, output_size=None, output_ratio=None, return_indices=False, _random_samples=None):
        return _fractional(f"fractional_max_pool{count}d", count, input, kernel_size, output_size, output_ratio, return_indices, _random_samples)

    def both(input, kernel_size, output_size=None, output_ratio=None, return_indices=True, _random_samples=None):
        return _fractional(f"fractional_max_pool{count}d", count, input, kernel_size, output_size, output_ratio, True, _random_samples)

    plain.__name__, both.__name__ = f"fractional_max_pool{count}d", f"fractional_max_pool{count}d_with_indices"
    plain.__doc__ = both.__doc__ = f"""The largest value in each of randomly placed windows, `output_size` many.

    input: [N, C, {shape}] or [C, {shape}]; `output_ratio` gives the number of windows as a share of the input's size.
    Returns [N, C, *output_size], and with `return_indices` where each value was found.
    Raises: ValueError without a size or ratio, RuntimeError for shapes that do not fit. Source: Graham, 2014.
    """
    return composite(module="nn.functional")(plain), composite(module="nn.functional")(both)


fractional_max_pool2d, fractional_max_pool2d_with_indices = _fractional_family(2, "H, W")


fractional_max_pool3d, fractional_max_pool3d_with_indices = _fractional_family(3, "D, H, W")


# --- back -----------------------------------------------------------------------------------------------------------


def _unpool_size(input: Tensor, size: tuple, stride: tuple, padding: tuple, output_size) -> tuple:
    default = tuple((s - 1) * t + k - 2 * p for s, t, k, p in zip(input._array.shape[-len(size) :], stride, size, padding, strict=True))
    if output_size is None:
        return default
    output_size = tuple(output_size)
    if len(output_size) == len(size) + 2:
        output_size = output_size[2:]
    if len(output_size) != len(size):
        raise ValueError(f"output_size should be a sequence containing {len(size)} or {len(size) + 2} elements, but it has a length of "
                         f"'{len(output_size)}'")  # fmt: skip
    for n, d, t in zip(output_size, default, stride, strict=True):
        if not d - t < n < d + t:
            raise ValueError(f'invalid output_size "{output_size}" (dim 0 must be between {d - t} and {d + t})')
    return output_size


def _unpool(function: str, count: int, input: Tensor, indices: Tensor, kernel_size, stride, padding, output_size) -> Tensor:
    size = window(function, "kernel_size", kernel_size, count)
    stride = size if stride is None else window(function, "stride", stride, count)
    whole = _unpool_size(input, size, stride, window(function, "padding", padding, count), output_size)
    if indices._array.dtype != np.int64:
        raise RuntimeError(f"elements in indices should be type int64 but got: {scalar_name(indices._array)}")
    if indices._array.shape != input._array.shape:
        raise RuntimeError(f"Expected shape of indices to be same as that of the input tensor ({list(input.shape)}) but got indices tensor "
                           f"with shape: {list(indices.shape)}")  # fmt: skip
    if input._array.ndim not in (count + 1, count + 2):
        raise RuntimeError(f"Input to {function} should be a {count + 1}d or {count + 2}d Tensor, but got {input._array.ndim}d")
    lead, places = input._array.shape[:-count], math.prod(whole)
    numbers = every_value(indices)
    if numbers.size and (numbers.min() < 0 or numbers.max() >= places):
        bad = numbers[(numbers < 0) | (numbers >= places)].flat[0]
        raise RuntimeError(f"Found an invalid max index: {bad} (output volumes are of size {'x'.join(map(str, whole))})")
    empty = wrap(np.zeros((*lead, places), input._array.dtype))
    return empty.scatter(-1, indices.flatten(-count), input.flatten(-count)).reshape(*lead, *whole)


def _unpool_family(count: int, shape: str):
    """`max_unpoolNd`."""

    def unpool(input, indices, kernel_size, stride=None, padding=0, output_size=None):
        return _unpool(f"max_unpool{count}d", count, input, indices, kernel_size, stride, padding, output_size)

    unpool.__name__ = f"max_unpool{count}d"
    unpool.__doc__ = f"""Maxima put back where `max_pool{count}d` found them, zeros elsewhere.

    input, indices: [N, C, {shape}] or [C, {shape}]. Returns [N, C, *output_size].
    Raises: ValueError or RuntimeError for what does not fit.
    """
    return composite(module="nn.functional")(unpool)


max_unpool1d, max_unpool2d, max_unpool3d = _unpool_family(1, "L"), _unpool_family(2, "H, W"), _unpool_family(3, "D, H, W")
