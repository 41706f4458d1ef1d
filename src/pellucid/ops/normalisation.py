"""Normalisation: batch, layer, group, instance, RMS and local response normalisation, and `normalize`.

All of the first four subtract a mean over some dimensions and divide by the deviation over the same dimensions; one fused
operator does that, and its gradient is an operator with a derivative of its own.
"""

from __future__ import annotations

import math

import numpy as np

from pellucid.autograd.grad_mode import no_grad
from pellucid.autograd.operator import Array, Index, composite, operator
from pellucid.autograd.operator import tensors as T
from pellucid.core.tensor import Tensor, wrap
from pellucid.ops.batch_places import in_front
from pellucid.ops.batches import differs, for_each
from pellucid.ops.checks import require_kind, scalar_name
from pellucid.ops.pooling import avg_pool2d
from pellucid.ops.products import sum_to_shape

__all__ = ["batch_norm", "group_norm", "instance_norm", "layer_norm", "local_response_norm", "rms_norm"]


# --- the fused operators --------------------------------------------------------------------------------------------


def _moments(xp, x: np.ndarray, dims: tuple, eps: float):
    """Mean, 1 / deviation and variance over `dims`, dimensions kept."""
    count = x.dtype.type(math.prod([x.shape[d] for d in dims]))
    mean = xp.add.reduce(x, axis=dims, keepdims=True)
    mean /= count
    away = x - mean
    var = xp.add.reduce(xp.multiply(away, away, out=away), axis=dims, keepdims=True)
    var /= count
    return mean, 1 / xp.sqrt(var + x.dtype.type(eps)), var


def _unit(input, mean, rstd):
    made = input - mean
    made *= rstd
    return made


class _Normalised:
    """(input - mean) * rstd * weight + bias, with the input's own mean and reciprocal deviation over `dims`; and these, and var.

    input: [*S]; weight, bias: broadcastable to [*S], or None. Returns [*S], and three of [*S with ones for dims], which are
    constants for derivatives. That of the input is rstd (h - m(h) - x̂ m(h x̂)), h being weight * grad, x̂ the normalised input,
    m the mean over `dims` (Ioffe and Szegedy, Batch normalization, 2015).
    """

    def forward(xp, input: Array, weight: Array | None = None, bias: Array | None = None, dims: tuple = (), eps: float = 0.0):
        mean, rstd, var = _moments(xp, input, dims, eps)
        if weight is not None and 4 * xp.broadcast(rstd, weight).size <= input.size:  # a factor and a term for a channel
            scale = rstd * weight
            made = input * scale
            made += (-mean) * scale if bias is None else bias - mean * scale
            return made, mean, rstd, var
        made = _unit(input, mean, rstd)
        if weight is not None:
            made *= weight
        if bias is not None:
            made += bias
        return made, mean, rstd, var

    def vjp_input(F, grad, input, weight, mean, rstd, dims):
        return F.normalised_backward(grad, input, weight, mean, rstd, dims)

    def vjp_weight(F, grad, input, weight_shape, mean, rstd, dims):
        return sum_to_shape(F, grad * F.normalised_unit(input, mean, rstd, dims), weight_shape)

    def vjp_bias(F, grad, bias_shape): return sum_to_shape(F, grad, bias_shape)

    def jvp(F, tangents, input, weight, mean, rstd, dims):
        moved, scaled, lifted = tangents
        parts = [] if lifted is None else [lifted]
        if moved is not None:
            part = F.normalised_backward(moved, input, None, mean, rstd, dims)  # the map is symmetric
            parts.append(part if weight is None else part * weight)
        if scaled is not None:
            parts.append(F.normalised_unit(input, mean, rstd, dims) * scaled)
        return sum(parts[1:], parts[0])

    def batch(F, size_of_batch, batched, input, weight, bias, dims, eps):
        input = for_each(F, input, "input" in batched, size_of_batch)
        weight, bias = _vectors_in_front(F, batched, input.ndim - 1, weight=weight, bias=bias)
        return F.normalised(input, weight, bias, tuple([d + 1 for d in dims]), eps)

    def samples(make):
        yield (make(3, 4), make(4), make(4), (1,), 1e-5), {}
        yield (make(3, 2, 4), None, None, (0, 2), 1e-5), {}
        yield (make(3, 2, 9), make(2, 1), make(2, 1), (0, 2), 1e-5), {}


def _vectors_in_front(F, batched: set, rank: int, **vectors) -> list:
    """Weights and biases, lined up with examples of the rank where each has its own."""
    return [v if name not in batched else in_front(F, v, rank) for name, v in vectors.items()]


for _name, _node, _fused in (
    ("normalised", "NativeLayerNormBackward0", True),
    ("normalised_batch", "NativeBatchNormBackward0", True),
    ("normalised_groups", "NativeGroupNormBackward0", False),
):
    _constant = ("mean", "rstd", "var")
    operator(module=None, name=_name, node=_node, fused=_fused, outputs=("result", *_constant), constant=_constant)(_Normalised)


@operator(module=None, batching="shift")
class normalised_unit:
    """(input - mean) * rstd, the normalised input; for formulas, which have its statistics over `dims`."""

    def forward(xp, input: Array, mean: Index, rstd: Index, dims: tuple): return _unit(input, mean, rstd)
    def vjp_input(F, grad, input, mean, rstd, dims): return F.normalised_backward(grad, input, None, mean, rstd, dims)

    def jvp_input(F, tangent, input, mean, rstd, dims):
        return F.normalised_backward(tangent, input, None, mean, rstd, dims)


@operator(module=None, node="NativeLayerNormBackwardBackward0")
class normalised_backward:
    """The gradient of `normalised`'s input: rstd (h - m(h) - x̂ m(h x̂)), h = input * weight.

    input is the gradient of the result, `image` what was normalised. In h this is a symmetric linear map N, so its own
    transpose. In the image it is the second derivative of <h, x̂>, symmetric as well: with v a vector, A = m(v h) - m(v) m(h),
    B = m(v x̂), C = m(h x̂): -rstd ^2 x̂ (A - B C) - rstd (C N(v) + B N(h)), from drstd = -rstd ^2 m(x̂ dx) and dx̂ = N(dx).
    """

    def forward(xp, input: Array, image: Array, weight: Array | None = None, mean: Index | None = None,
                rstd: Index | None = None, dims: tuple = ()):  # fmt: skip
        unit = _unit(image, mean, rstd)
        scaled = input if weight is None else input * weight
        count = scaled.dtype.type(math.prod([image.shape[d] for d in dims]))
        total = xp.add.reduce(scaled, axis=dims, keepdims=True)
        along = xp.add.reduce(scaled * unit, axis=dims, keepdims=True)
        unit *= along / count
        made = scaled - total / count
        made -= unit
        made *= rstd
        return made

    def vjp_input(F, grad, image, weight, mean, rstd, dims):
        back = F.normalised_backward(grad, image, None, mean, rstd, dims)
        return back if weight is None else back * weight

    def vjp_weight(F, grad, input, image, weight_shape, mean, rstd, dims):
        return sum_to_shape(F, input * F.normalised_backward(grad, image, None, mean, rstd, dims), weight_shape)

    def vjp_image(F, grad, input, image, weight, mean, rstd, dims):
        return _second(F, grad, input, image, weight, mean, rstd, dims)

    def jvp_input(F, tangent, image, weight, mean, rstd, dims):
        return F.normalised_backward(tangent, image, weight, mean, rstd, dims)

    def jvp_weight(F, tangent, input, image, mean, rstd, dims):
        return F.normalised_backward(input * tangent, image, None, mean, rstd, dims)

    def jvp_image(F, tangent, input, image, weight, mean, rstd, dims):
        return _second(F, tangent, input, image, weight, mean, rstd, dims)

    def batch(F, size_of_batch, batched, input, image, weight, mean, rstd, dims):
        whole = {"input": input, "image": image, "mean": mean, "rstd": rstd}
        input, image, mean, rstd = [for_each(F, t, name in batched, size_of_batch) for name, t in whole.items()]
        (weight,) = _vectors_in_front(F, batched, input.ndim - 1, weight=weight)
        return F.normalised_backward(input, image, weight, mean, rstd, tuple([d + 1 for d in dims]))


def _second(F, vector, input, image, weight, mean, rstd, dims):
    h = input if weight is None else input * weight
    unit = F.normalised_unit(image, mean, rstd, dims)
    a = F.mean_dim(vector * h, dims, True) - F.mean_dim(vector, dims, True) * F.mean_dim(h, dims, True)
    b, c = F.mean_dim(vector * unit, dims, True), F.mean_dim(h * unit, dims, True)
    back = F.normalised_backward(vector, image, None, mean, rstd, dims) * c
    back = back + F.normalised_backward(h, image, None, mean, rstd, dims) * b
    return -(rstd * rstd) * unit * (a - b * c) - rstd * back


@operator(module=None, name="normalised_fixed", node="NativeBatchNormBackward0", fused=True, elementwise=True)
class normalised_fixed:
    """(input - mean) / sqrt(var + eps) * weight + bias with given statistics, which do not depend on the input."""

    def forward(xp, input: Array, weight: Array | None = None, bias: Array | None = None, mean: Index | None = None,
                var: Index | None = None, eps: float = 0.0):  # fmt: skip
        rstd = 1 / xp.sqrt(var + var.dtype.type(eps))
        scale = rstd if weight is None else rstd * weight
        made = input * scale
        made += (-mean) * scale if bias is None else bias - mean * scale
        return made

    def vjp_input(F, grad, weight, var, eps):
        scale = F.rsqrt(var + eps)
        return grad * (scale if weight is None else scale * weight)

    def vjp_weight(F, grad, input, mean, var, eps): return grad * ((input - mean) * F.rsqrt(var + eps))
    def vjp_bias(F, grad): return grad

    def batch(F, size_of_batch, batched, input, weight, bias, mean, var, eps):
        input = for_each(F, input, "input" in batched, size_of_batch)
        vectors = _vectors_in_front(F, batched, input.ndim - 1, weight=weight, bias=bias, mean=mean, var=var)
        return F.normalised_fixed(input, *vectors, eps)

    def samples(make):
        yield (make(4, 3), make(3), make(3), make(3), make(3, low=0.5), 1e-5), {}
        yield (make(4, 3), None, None, make(3), make(3, low=0.5), 1e-5), {}


# --- batch and instance ---------------------------------------------------------------------------------------------


def _check_channel_vectors(channels: int, **vectors) -> None:
    for name, vector in vectors.items():
        if vector is not None and vector._array.size != channels:
            raise RuntimeError(f"{name} should contain {channels} elements not {vector._array.size}")


def _check_batch(function: str, input: Tensor) -> None:
    shape = input._array.shape
    if math.prod(shape) // max(shape[1], 1) == 1:
        raise ValueError(f"Expected more than 1 value per channel when training, got input size {input.shape}: {function} needs "
                         "several values for a channel. Use a larger batch, or eval().")  # fmt: skip


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
        _check_batch("batch_norm", input)
    elif running_mean is None or running_var is None:
        raise RuntimeError("Expected running_mean and running_var to be defined when training=False")
    channels = input._array.shape[1] if input._array.ndim > 1 else input._array.shape[-1]
    _check_channel_vectors(channels, running_mean=running_mean, running_var=running_var, weight=weight, bias=bias)
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
    _check_channel_vectors(shape[1], running_mean=running_mean, running_var=running_var, weight=weight, bias=bias)
    dims = tuple(range(2, len(shape)))
    ones = (1,) * len(dims)
    weight, bias = (v if v is None else v.reshape(shape[1], *ones) for v in (weight, bias))
    _check_running(input, running_mean, running_var)
    made, mean, _, var = T.normalised_batch(input, weight, bias, dims, eps)
    if running_mean is not None or running_var is not None:
        _learn(running_mean, running_var, mean.mean(0), var.mean(0), math.prod(shape[2:]), momentum)
    return made


# --- layer, group, RMS ----------------------------------------------------------------------------------------------


def _check_normalized_shape(input: Tensor, normalized_shape, weight, bias=None) -> tuple:
    size = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
    if not size:
        raise RuntimeError(f"Expected normalized_shape to be at least 1-dimensional, i.e., containing at least one element, but got "
                           f"normalized_shape = {list(size)}")  # fmt: skip
    for name, vector in (("weight", weight), ("bias", bias)):
        if vector is not None and vector._array.shape != size:
            raise RuntimeError(f"Expected {name} to be of same shape as normalized_shape, but got {name} of shape "
                               f"{list(vector.shape)} and normalized_shape = {list(size)}")  # fmt: skip
    if input._array.shape[-len(size) :] != size:
        raise RuntimeError(f"Given normalized_shape={list(size)}, expected input with shape [*, {', '.join(map(str, size))}], but got "
                           f"input of size{list(input.shape)}")  # fmt: skip
    return tuple(range(input._array.ndim - len(size), input._array.ndim))


@composite(module="nn.functional", name="layer_norm")
def layer_norm(input, normalized_shape, weight=None, bias=None, eps=1e-5):
    """The last dimensions normalised together: (x - mean) / sqrt(var + eps) * weight + bias.

    input: [*S, *normalized_shape], float; weight, bias: [*normalized_shape] or None. Returns the input's shape.
    Raises: RuntimeError for shapes that do not fit. Source: Ba and others, Layer normalization, 2016.
    """
    dims = _check_normalized_shape(input, normalized_shape, weight, bias)
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
    dims = _check_normalized_shape(input, normalized_shape, weight)
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
    dims = _check_normalized_shape(input, normalized_shape, weight, bias)
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
