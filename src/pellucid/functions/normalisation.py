"""Normalisation as users call it: batch, layer, group, instance, RMS and local response normalisation, and running statistics.

The fused operators are in `ops/normalisation.py`.
"""

from __future__ import annotations

import math

import numpy as np

from pellucid.autograd.grad_mode import no_grad
from pellucid.autograd.operator import composite
from pellucid.autograd.operator import tensors as T
from pellucid.core.checks import require_kind, scalar_name
from pellucid.core.normalisation_checks import check_batch, check_channel_vectors, normalised_dims
from pellucid.core.tensor import Tensor, wrap
from pellucid.core.values import differs
from pellucid.functions.pooling import avg_pool2d

__all__ = ["batch_norm", "group_norm", "instance_norm", "layer_norm", "local_response_norm", "rms_norm"]


# --- batch and instance ---------------------------------------------------------------------------------------------


def _learn(running_mean, running_var, mean: Tensor, var: Tensor, count: int, momentum: float) -> None:
    """Move running statistics, in place, towards those of `count` values: x = (1 - momentum) * x + momentum * new."""
    for running, found, factor in ((running_mean, mean, 1.0), (running_var, var, count / max(count - 1, 1))):
        if running is not None and (running._wraps or found._wraps):
            with no_grad():
                running.mul_(1 - momentum).add_(found.reshape(running.shape) * factor, alpha=momentum)
        elif running is not None:  # the same, in a tenth of the time
            old, new = running._array, found._array.reshape(running._array.shape).astype(running._array.dtype)
            with np.errstate(all="ignore"):
                old[...] = old * old.dtype.type(1 - momentum) + new * old.dtype.type(factor) * old.dtype.type(momentum)
            running._bump_version()


def _check_running(input: Tensor, *running: Tensor | None) -> None:
    """Under vmap statistics that differ between examples cannot be written into what is the same for all."""
    if differs(input) and any(r is not None and not differs(r) for r in running):
        raise RuntimeError("Batch norm got a batched tensor as input while the running_mean or running_var, which will be updated "
                           "in place, were not batched. Set track_running_stats=False, use eval(), or give each example running "
                           "statistics of its own.")


@composite(module="nn.functional")
def batch_norm(input, running_mean, running_var, weight=None, bias=None, training=False, momentum=0.1, eps=1e-5):
    """Each channel normalised over batch and places: (x - mean) / sqrt(var + eps) * weight + bias.

    input: [N, C, *S], float; running_mean, running_var, weight, bias: [C] or None. In training the batch's own statistics
    are used (variance divided by the count), and the running ones, if given, move towards them by `momentum` (variance
    divided by the count less one). Otherwise the running ones are used. Returns [N, C, *S].
    Raises: ValueError for one value a channel in training, RuntimeError for vectors of another length.
    Source: Ioffe and Szegedy, Batch normalization, 2015.
    """
    require_kind("batch_norm", input._array, "f")
    if input._array.shape == (0,):
        return input.clone()
    if training:
        check_batch("batch_norm", input)
    elif running_mean is None or running_var is None:
        raise RuntimeError("Expected running_mean and running_var to be defined when training=False")
    channels = input._array.shape[1] if input._array.ndim > 1 else input._array.shape[-1]
    check_channel_vectors(input, channels, running_mean=running_mean, running_var=running_var, weight=weight, bias=bias)
    dims = tuple(d for d in range(input._array.ndim) if d != 1)
    shape = tuple(channels if d == 1 else 1 for d in range(input._array.ndim))
    if len(shape) > 2:
        weight, bias = (v if v is None else v.reshape(shape) for v in (weight, bias))
    if not training:
        mean, var = (v.reshape(shape) if v._wraps else wrap(v._array.reshape(shape)) for v in (running_mean, running_var))
        return T.normalised_fixed(input, weight, bias, mean, var, eps)
    _check_running(input, running_mean, running_var)
    made, mean, _, var = T.normalised_batch(input, weight, bias, dims, eps)
    if input._array.size:  # an empty batch has no statistics to learn from
        _learn(running_mean, running_var, mean, var, input._array.size // max(channels, 1), momentum)
    return made


@composite(module="nn.functional")
def instance_norm(input, running_mean=None, running_var=None, weight=None, bias=None, use_input_stats=True, momentum=0.1, eps=1e-5):
    """Each channel of each image normalised over its places; see `batch_norm`.

    input: [N, C, *S], float; the vectors: [C] or None. `use_input_stats` False takes the running statistics. Returns [N, C, *S].
    Raises: ValueError for images of one place, RuntimeError for vectors of another length.
    Source: Ulyanov and others, Instance normalization, 2016.
    """
    require_kind("instance_norm", input._array, "f")
    shape = input._array.shape
    if use_input_stats and math.prod(shape[2:]) == 1:
        raise ValueError(f"Expected more than 1 spatial element when training, got input size {input.shape}")
    if not use_input_stats:
        if running_mean is None or running_var is None:
            raise RuntimeError("Expected running_mean and running_var to be defined when use_input_stats=False")
        return batch_norm(input, running_mean, running_var, weight, bias, False, momentum, eps)
    check_channel_vectors(input, shape[1], running_mean=running_mean, running_var=running_var, weight=weight, bias=bias)
    dims = tuple(range(2, len(shape)))
    ones = (1,) * len(dims)
    weight, bias = (v if v is None else v.reshape(shape[1], *ones) for v in (weight, bias))
    _check_running(input, running_mean, running_var)
    made, mean, _, var = T.normalised_batch(input, weight, bias, dims, eps)
    if running_mean is not None or running_var is not None:
        _learn(running_mean, running_var, mean.mean(0), var.mean(0), math.prod(shape[2:]), momentum)
    return made


# --- layer, group, RMS ----------------------------------------------------------------------------------------------


@composite(module="nn.functional", name="layer_norm")
def layer_norm(input, normalized_shape, weight=None, bias=None, eps=1e-5):
    """The last dimensions normalised together: (x - mean) / sqrt(var + eps) * weight + bias.

    input: [*S, *normalized_shape], float; weight, bias: [*normalized_shape] or None. Returns the input's shape.
    Raises: RuntimeError for shapes that do not fit. Source: Ba and others, Layer normalization, 2016.
    """
    dims = normalised_dims(input, normalized_shape, weight, bias)
    require_kind("LayerNormKernelImpl", input._array, "f")
    narrow = input._array.dtype.itemsize == 2 and weight is not None and weight._array.dtype == np.float32
    if weight is not None and weight._array.dtype != input._array.dtype and not narrow:
        raise RuntimeError(f"expected scalar type {scalar_name(input._array)} but found {scalar_name(weight._array)}: layer_norm got "
                           "an input and a weight of two dtypes")  # fmt: skip
    return T.normalised(input, weight, bias, dims, eps)[0]


@composite(module="torch", name="layer_norm")
def torch_layer_norm(input, normalized_shape, weight=None, bias=None, eps=1e-5, cudnn_enable=True):
    """`nn.functional.layer_norm`."""
    return layer_norm(input, normalized_shape, weight, bias, eps)


@composite(module=("nn.functional", "torch"))
def rms_norm(input, normalized_shape, weight=None, eps=None):
    """The last dimensions divided by their root mean square: x / sqrt(mean(x^2) + eps) * weight.

    input: [*S, *normalized_shape]; weight: [*normalized_shape] or None; eps: the dtype's epsilon if None.
    Returns the input's shape. Raises: RuntimeError for shapes that do not fit.
    Source: Zhang and Sennrich, Root mean square layer normalization, 2019.
    """
    dims = normalised_dims(input, normalized_shape, weight)
    if input._array.dtype.kind == "f" and (weight is None or weight._array.dtype == input._array.dtype):
        eps = float(np.finfo(input._array.dtype).eps) if eps is None else eps
        return T.normalised_squares(input, weight, None, dims, eps, False)[0]
    wide = input.float() if input._array.dtype.itemsize == 2 else input
    if eps is None:
        eps = float(np.finfo(wide._array.dtype).eps)
    squares = (wide * wide).mean(dims, keepdim=True)
    made = wide * (squares + eps).rsqrt()
    made = made if weight is None else made * weight
    return made.to(input.dtype) if made.dtype is not input.dtype else made  # a 16-bit result is rounded once


@composite(module="nn.functional", name="group_norm")
def group_norm(input, num_groups, weight=None, bias=None, eps=1e-5):
    """Channels normalised in groups, each image by itself, over the group's channels and all places.

    input: [N, C, *S], float; weight, bias: [C] or None. Returns [N, C, *S].
    Raises: RuntimeError if the channels cannot be divided into the groups. Source: Wu and He, Group normalization, 2018.
    """
    shape = input._array.shape
    if len(shape) < 2:
        raise RuntimeError(f"Expected at least 2 dimensions for input tensor but received {len(shape)}")
    if num_groups <= 0:
        raise RuntimeError(f"Expected num groups to be greater than 0, got {num_groups}")
    if shape[1] % num_groups:
        raise RuntimeError(f"Expected number of channels in input to be divisible by num_groups, but got input of shape {list(shape)} "
                           f"and num_groups={num_groups}")  # fmt: skip
    for name, vector in (("weight", weight), ("bias", bias)):
        if vector is not None and vector._array.shape != (shape[1],):
            raise RuntimeError(f"Expected {name} to be a vector of size equal to the number of channels in input, but got {name} of "
                               f"shape {list(vector.shape)} and input of shape {list(shape)}")  # fmt: skip
    require_kind("GroupNormKernelImpl", input._array, "f")
    grouped = input.reshape(shape[0], num_groups, shape[1] // num_groups, math.prod(shape[2:]))
    weight, bias = (v if v is None else v.reshape(num_groups, -1, 1) for v in (weight, bias))
    return T.normalised_groups(grouped, weight, bias, (2, 3), eps)[0].reshape(shape)


@composite(module="torch", name="group_norm")
def torch_group_norm(input, num_groups, weight=None, bias=None, eps=1e-5, cudnn_enabled=True):
    """`nn.functional.group_norm`."""
    return group_norm(input, num_groups, weight, bias, eps)


@composite(module="torch", name="batch_norm")
def torch_batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps, cudnn_enabled=True):
    """`nn.functional.batch_norm`, with the arguments in another order."""
    return batch_norm(input, running_mean, running_var, weight, bias, training, momentum, eps)


# --- response and length --------------------------------------------------------------------------------------------


@composite(module="nn.functional")
def local_response_norm(input, size, alpha=1e-4, beta=0.75, k=1.0):
    """Each element divided by (k + alpha * mean of squares over `size` neighbouring channels) ^ beta.

    input: [N, C, *S]. Returns the same shape. Raises: ValueError for fewer than three dimensions.
    Source: Krizhevsky and others, ImageNet classification, 2012.
    """
    if input.dim() < 3:
        raise ValueError(f"Expected 3D or higher dimensionality input (got {input.dim()} dimensions)")
    if not input.numel():
        return input
    shape = input._array.shape
    squares = (input * input).reshape(shape[0], 1, shape[1], -1)
    mean = avg_pool2d(T.constant_pad_nd(squares, (0, 0, size // 2, (size - 1) // 2), 0), (size, 1), 1)
    return input / (mean.reshape(shape) * alpha + k).pow(beta)


# --- with the statistics --------------------------------------------------------------------------------------------


@composite()
def native_layer_norm(input, normalized_shape, weight, bias, eps):
    """`layer_norm`, and the mean and the reciprocal deviation it divided by."""
    dims = normalised_dims(input, normalized_shape, weight, bias)
    made, mean, rstd, _ = T.normalised(input, weight, bias, dims, eps)
    return made, mean.to(input.dtype), rstd.to(input.dtype)


@composite()
def native_group_norm(input, weight, bias, N, C, HxW, group, eps):
    """`group_norm`, and the mean and the reciprocal deviation of each group of channels of each image."""
    grouped = input.reshape(N, group, C // group * HxW)
    mean = grouped.mean(2)
    rstd = ((grouped - mean.unsqueeze(2)).square().mean(2) + eps).rsqrt()
    return group_norm(input, group, weight, bias, eps), mean, rstd


@composite()
def native_batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps):
    """`batch_norm`, and in training the mean and the reciprocal deviation of each channel (else two empty tensors)."""
    made = batch_norm(input, running_mean, running_var, weight, bias, training, momentum, eps)
    if not training:
        return made, input.new_empty(0), input.new_empty(0)
    dims = tuple(d for d in range(input._array.ndim) if d != 1)
    _, mean, rstd, _ = T.normalised_batch(input.detach(), None, None, dims, eps)
    return made, mean.flatten().to(input.dtype), rstd.flatten().to(input.dtype)
