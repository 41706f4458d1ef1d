"""Initial values for parameters. Every function fills a tensor in place, outside the graph, and returns it.

The draws are those of the tensor's own `uniform_` and `normal_`, so a seed gives the numbers that PyTorch gives.
Functions that take a `generator` draw from it instead of the default one.
"""

from __future__ import annotations

import functools
import math
import warnings
from typing import TYPE_CHECKING

import numpy as np

from pellucid.autograd.grad_mode import no_grad
from pellucid.core.tensor import Tensor, wrap

if TYPE_CHECKING:
    from collections.abc import Callable

    from pellucid.core.random import Generator

__all__ = [
    "calculate_gain", "constant_", "dirac_", "eye_", "kaiming_normal_", "kaiming_uniform_", "normal_", "ones_",
    "orthogonal_", "sparse_", "trunc_normal_", "uniform_", "xavier_normal_", "xavier_uniform_", "zeros_",
]

GAINS = {"sigmoid": 1.0, "tanh": 5.0 / 3, "relu": math.sqrt(2.0), "selu": 3.0 / 4}
LINEAR = (
    "linear", "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d",
)


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """The factor by which weights before this function are to be larger than before a linear one.

    Args:
        nonlinearity: a name from `nn.functional`: a linear function, "sigmoid", "tanh", "relu", "leaky_relu", "selu".
        param: the negative slope of "leaky_relu", 0.01 if None.

    Raises:
        ValueError: another name, or a slope that is no number.
    """
    if nonlinearity in LINEAR:
        return 1
    if nonlinearity == "leaky_relu":
        slope = 0.01 if param is None else param
        if isinstance(slope, bool) or not isinstance(slope, (int, float)):
            raise ValueError(f"negative_slope {slope} not a valid number")
        return math.sqrt(2.0 / (1 + slope**2))
    if nonlinearity not in GAINS:
        raise ValueError(
            f"Unsupported nonlinearity {nonlinearity}: expected one of {', '.join((*LINEAR, 'leaky_relu', *GAINS))}"
        )
    return GAINS[nonlinearity]


# --- fixed values ----------------------------------------------------------------------------------------------------


def constant_(tensor: Tensor, val: float) -> Tensor:
    """Fill with one value."""
    with no_grad():
        return tensor.fill_(val)


def ones_(tensor: Tensor) -> Tensor:
    """Fill with 1."""
    return constant_(tensor, 1.0)


def zeros_(tensor: Tensor) -> Tensor:
    """Fill with 0."""
    with no_grad():
        return tensor.zero_()


def eye_(tensor: Tensor) -> Tensor:
    """Fill a matrix with ones on the diagonal and zeros elsewhere; ValueError unless it has 2 dimensions."""
    _check_dims(tensor, (2,), "2 dimensions")
    return _write(tensor, np.eye(*tensor.shape))


def dirac_(tensor: Tensor, groups: int = 1) -> Tensor:
    """Fill the weight of a convolution so that it gives out its input, channel by channel.

    Args:
        tensor: [out, in, *kernel] with one to three kernel dimensions.
        groups: how many groups of output channels give out the input channels again.

    Raises:
        ValueError: another number of dimensions, or `out` cannot be divided by `groups`.
    """
    _check_dims(tensor, (3, 4, 5), "3, 4, or 5 dimensions")
    out_channels, in_channels, *kernel = tensor.shape
    if out_channels % groups:
        raise ValueError(f"dim 0 must be divisible by groups: got size {out_channels} and groups={groups}")
    values = np.zeros(tensor.shape)
    centre = tuple(size // 2 for size in kernel)
    for group in range(groups):
        for channel in range(min(out_channels // groups, in_channels)):
            values[(group * (out_channels // groups) + channel, channel, *centre)] = 1
    return _write(tensor, values)


# --- draws -----------------------------------------------------------------------------------------------------------


def uniform_(tensor: Tensor, a: float = 0.0, b: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Draw uniformly from [a, b)."""
    with no_grad():
        return tensor.uniform_(a, b, generator=generator)


def normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Draw from the normal distribution."""
    with no_grad():
        return tensor.normal_(mean, std, generator=generator)


def trunc_normal_(
    tensor: Tensor, mean: float = 0.0, std: float = 1.0, a: float = -2.0, b: float = 2.0,
    generator: Generator | None = None,
) -> Tensor:
    """Draw from the normal distribution, within [a, b].

    Where [a, b] holds a good part of the distribution, draws outside it are repeated. Otherwise points are drawn
    uniformly from [a, b] and accepted in proportion to the density.
    """
    if mean < a - 2 * std or mean > b + 2 * std:
        warnings.warn(
            "mean is more than 2 std from [a, b] in nn.init.trunc_normal_. The distribution of values may be "
            "incorrect.",
            stacklevel=2,
        )
    inside = _normal_cdf((b - mean) / std) - _normal_cdf((a - mean) / std)
    with no_grad():
        if inside > 0.3:
            _redraw_outside(tensor, mean, std, a, b, generator)
        else:
            _accept_by_density(tensor, mean, std, a, b, generator)
    return tensor


def _normal_cdf(x: float) -> float:
    return (1.0 + math.erf(x / math.sqrt(2.0))) / 2.0


def _redraw_outside(tensor: Tensor, mean: float, std: float, a: float, b: float, generator) -> None:
    """Draw all numbers anew until none is left outside, and keep those that were inside already."""
    low, high = (tensor._array.dtype.type(bound) for bound in (a, b))
    values = tensor.normal_(mean, std, generator=generator)._array
    outside = (values < low) | (values > high)
    if not outside.any():
        return
    values, fresh = values.copy(), _like(tensor)
    while outside.any():
        fresh.normal_(mean, std, generator=generator)
        values[outside] = fresh._array[outside]
        outside = (values < low) | (values > high)
    _write(tensor, values)


def _accept_by_density(tensor: Tensor, mean: float, std: float, a: float, b: float, generator) -> None:
    """Draw points of [a, b] anew until all are accepted, and keep those that were accepted already."""
    mode = max(a, min(mean, b))
    log_peak = -0.5 * ((mode - mean) / std) ** 2
    candidates, level = _like(tensor), _like(tensor)
    values = np.empty_like(tensor._array)
    pending = np.ones(values.shape, bool)
    while pending.any():
        drawn = candidates.uniform_(a, b, generator=generator)._array
        values[pending] = drawn[pending]
        log_density = ((drawn - mean) / std) ** 2 * -0.5 - log_peak
        pending &= np.log(level.uniform_(generator=generator)._array) > log_density
    _write(tensor, values)


def xavier_uniform_(tensor: Tensor, gain: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Draw uniformly, with variance gain^2 * 2 / (fan_in + fan_out).

    Source: Glorot and Bengio, Understanding the difficulty of training deep feedforward neural networks, 2010.
    """
    bound = math.sqrt(3.0) * _xavier_std(tensor, gain)
    return uniform_(tensor, -bound, bound, generator)


def xavier_normal_(tensor: Tensor, gain: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Draw from the normal distribution with variance gain^2 * 2 / (fan_in + fan_out); see `xavier_uniform_`."""
    return normal_(tensor, 0.0, _xavier_std(tensor, gain), generator)


def _xavier_std(tensor: Tensor, gain: float) -> float:
    fan_in, fan_out = _calculate_fan_in_and_fan_out(tensor)
    return gain * math.sqrt(2.0 / float(fan_in + fan_out))


def kaiming_uniform_(
    tensor: Tensor, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu",
    generator: Generator | None = None,
) -> Tensor:
    """Draw uniformly, with variance gain^2 / fan.

    Args:
        tensor: the weight, of 2 dimensions or more.
        a: the negative slope, for "leaky_relu".
        mode: "fan_in" keeps the size of values on the way forward, "fan_out" that of gradients on the way back.
        nonlinearity: the function that follows; see `calculate_gain`.
        generator: where the draws come from.

    Source: He and others, Delving deep into rectifiers, 2015.
    """
    std = _kaiming_std(tensor, a, mode, nonlinearity)
    if std is None:
        return tensor
    bound = math.sqrt(3.0) * std
    return uniform_(tensor, -bound, bound, generator)


def kaiming_normal_(
    tensor: Tensor, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu",
    generator: Generator | None = None,
) -> Tensor:
    """Draw from the normal distribution with variance gain^2 / fan; see `kaiming_uniform_`."""
    std = _kaiming_std(tensor, a, mode, nonlinearity)
    return tensor if std is None else normal_(tensor, 0, std, generator)


def _kaiming_std(tensor: Tensor, a: float, mode: str, nonlinearity: str) -> float | None:
    """The standard deviation; None for a tensor without elements, with a warning."""
    if 0 in tensor.shape:
        warnings.warn("Initializing zero-element tensors is a no-op", stacklevel=3)
        return None
    return calculate_gain(nonlinearity, a) / math.sqrt(_calculate_correct_fan(tensor, mode))


def orthogonal_(tensor: Tensor, gain: float = 1, generator: Generator | None = None) -> Tensor:
    """Fill with `gain` times a random orthogonal matrix [rows, everything else]; ValueError for fewer than 2
    dimensions.

    Source: Saxe and others, Exact solutions to the nonlinear dynamics of learning, 2013; the signs that make the
    distribution uniform after Mezzadri, How to generate random matrices from the classical compact groups, 2007.
    """
    if tensor.ndim < 2:
        raise ValueError(f"Only tensors with 2 or more dimensions are supported: got shape {tuple(tensor.shape)}")
    if tensor.numel() == 0:
        return tensor
    rows = tensor.shape[0]
    drawn = wrap(np.empty((rows, tensor.numel() // rows), tensor._array.dtype))
    with no_grad():
        matrix = drawn.normal_(0, 1, generator=generator)._array
    wide = matrix.shape[0] < matrix.shape[1]
    q, r = np.linalg.qr(matrix.T if wide else matrix)
    q = q * np.sign(np.diagonal(r))
    return _write(tensor, (q.T if wide else q).reshape(tensor.shape) * gain)


def sparse_(tensor: Tensor, sparsity: float, std: float = 0.01, generator: Generator | None = None) -> Tensor:
    """Draw a matrix from the normal distribution and set a share `sparsity` of each column to zero.

    Raises:
        ValueError: the tensor has not 2 dimensions.
    """
    from pellucid.functions.randoms import randperm

    _check_dims(tensor, (2,), "2 dimensions")
    rows, columns = tensor.shape
    zeros = math.ceil(sparsity * rows)
    values = normal_(tensor, 0, std, generator)._array.copy()
    for column in range(columns):
        values[randperm(rows)._array[:zeros], column] = 0
    return _write(tensor, values)


# --- shared ----------------------------------------------------------------------------------------------------------


def _calculate_fan_in_and_fan_out(tensor: Tensor) -> tuple[int, int]:
    """How many inputs an output has, and how many outputs an input has, for a weight [out, in, *kernel]."""
    if tensor.ndim < 2:
        raise ValueError(
            "Fan in and fan out can not be computed for tensor with fewer than 2 dimensions: "
            f"got shape {tuple(tensor.shape)}"
        )
    field = math.prod(tensor.shape[2:])
    return tensor.shape[1] * field, tensor.shape[0] * field


def _calculate_correct_fan(tensor: Tensor, mode: str) -> int:
    fans = dict(zip(("fan_in", "fan_out"), _calculate_fan_in_and_fan_out(tensor), strict=True))
    if mode.lower() not in fans:
        raise ValueError(f"Mode {mode} not supported, please use one of {list(fans)}")
    return fans[mode.lower()]


def _check_dims(tensor: Tensor, allowed: tuple[int, ...], text: str) -> None:
    if tensor.ndim not in allowed:
        raise ValueError(f"Only tensors with {text} are supported: got shape {tuple(tensor.shape)}")


def _like(tensor: Tensor) -> Tensor:
    """An uninitialised tensor of the same shape and dtype, for draws."""
    return wrap(np.empty(tensor.shape, tensor._array.dtype))


def _write(tensor: Tensor, values: np.ndarray) -> Tensor:
    """Put values into a tensor, outside the graph."""
    tensor._array[...] = values
    tensor._bump_version()
    return tensor


def _old_name(function: Callable) -> Callable:
    """The function under its name without the underscore, with a warning."""
    old = function.__name__[:-1]

    @functools.wraps(function)
    def renamed(*args, **kwargs):
        warnings.warn(
            f"`nn.init.{old}` is now deprecated in favor of `nn.init.{function.__name__}`.", FutureWarning, stacklevel=2
        )
        return function(*args, **kwargs)

    return renamed


uniform = _old_name(uniform_)
normal = _old_name(normal_)
constant = _old_name(constant_)
eye = _old_name(eye_)
dirac = _old_name(dirac_)
xavier_uniform = _old_name(xavier_uniform_)
xavier_normal = _old_name(xavier_normal_)
kaiming_uniform = _old_name(kaiming_uniform_)
kaiming_normal = _old_name(kaiming_normal_)
orthogonal = _old_name(orthogonal_)
sparse = _old_name(sparse_)
