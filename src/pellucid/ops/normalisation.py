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
from pellucid.core.checks import require_kind, scalar_name
from pellucid.core.tensor import Tensor, wrap
from pellucid.kernels import normalisation as kernel
from pellucid.ops.batch_places import in_front
from pellucid.ops.batches import differs, for_each
from pellucid.ops.pooling import avg_pool2d
from pellucid.ops.products import sum_to_shape

__all__ = ["batch_norm", "group_norm", "instance_norm", "layer_norm", "local_response_norm", "rms_norm"]


# --- the fused operators --------------------------------------------------------------------------------------------


class _Normalised:
    """(input - mean) * rstd * weight + bias, with the input's own mean and reciprocal deviation over `dims`; and these, and var.

    input: [*S]; weight, bias: broadcastable to [*S], or None; not `centred`, the mean is 0 and the deviation the root mean
    square. Returns [*S], and three of [*S with ones for dims], which are constants for derivatives. That of the input is
    rstd (h - m(h) - x̂ m(h x̂)), h being weight * grad, x̂ the normalised input, m the mean over `dims` (Ioffe and Szegedy, Batch
    normalization, 2015); not centred, without m(h).
    """

    def forward(xp, input: Array, weight: Array | None = None, bias: Array | None = None, dims: tuple = (), eps: float = 0.0,
                centred: bool = True):  # fmt: skip
        return kernel.normalised(input, weight, bias, dims, eps, centred)

    def vjp(F, grad, needs, input, weight, weight_shape, bias_shape, mean, rstd, dims, centred):
        if not any(needs):
            return (None, None, None)
        shapes = (weight_shape if needs[1] else None, bias_shape if needs[2] else None)
        return _placed(F.normalised_gradients(grad, input, weight, mean, rstd, dims, centred, needs[0], *shapes), needs)

    def jvp(F, tangents, input, weight, mean, rstd, dims, centred):
        moved, scaled, lifted = tangents
        parts = [] if lifted is None else [lifted]
        if moved is not None:
            part = F.normalised_backward(moved, input, None, mean, rstd, dims, centred)  # the map is symmetric
            parts.append(part if weight is None else part * weight)
        if scaled is not None:
            parts.append(F.normalised_unit(input, mean, rstd, dims, centred) * scaled)
        return sum(parts[1:], parts[0])

    def batch(F, size_of_batch, batched, input, weight, bias, dims, eps, centred):
        input = for_each(F, input, "input" in batched, size_of_batch)
        weight, bias = _vectors_in_front(F, batched, input.ndim - 1, weight=weight, bias=bias)
        return F.normalised(input, weight, bias, tuple([d + 1 for d in dims]), eps, centred)

    def samples(make):
        yield (make(3, 4), make(4), make(4), (1,), 1e-5), {}
        yield (make(3, 2, 4), None, None, (0, 2), 1e-5), {}
        yield (make(3, 2, 9), make(2, 1), make(2, 1), (0, 2), 1e-5), {}
        yield (make(3, 4), make(4), None, (1,), 1e-5, False), {}


class _NormalisedGroups(_Normalised):
    """`_Normalised`, but the bias's gradient is no function of the operands, as it is not in PyTorch's group norm."""

    def vjp(F, grad, needs, input, weight, weight_shape, bias_shape, mean, rstd, dims, centred):
        apart = F is T and needs[2]  # on arrays nobody can tell, and one pass gives all
        together = (needs[0], needs[1], needs[2] and not apart)
        found = _Normalised.vjp(F, grad, together, input, weight, weight_shape, bias_shape, mean, rstd, dims, centred)
        return (*found[:2], sum_to_shape(F, grad, bias_shape)) if apart else found


def _placed(found, wanted: tuple) -> tuple:
    """What was wanted, each in its place, with None in the others."""
    each = iter(found)
    return tuple([next(each) if want else None for want in wanted])


def _vectors_in_front(F, batched: set, rank: int, **vectors) -> list:
    """Weights and biases, lined up with examples of the rank where each has its own."""
    return [v if name not in batched else in_front(F, v, rank) for name, v in vectors.items()]


for _name, _node, _declaration in (
    ("normalised", "NativeLayerNormBackward0", _Normalised),
    ("normalised_batch", "NativeBatchNormBackward0", _Normalised),
    ("normalised_groups", "NativeGroupNormBackward0", _NormalisedGroups),
    ("normalised_squares", "FusedRmsNormBackward0", _Normalised),
):
    _constant, _fused = ("mean", "rstd", "var"), _declaration is _Normalised
    operator(module=None, name=_name, node=_node, fused=_fused, outputs=("result", *_constant), constant=_constant)(_declaration)


@operator(module=None, batching="shift")
class normalised_unit:
    """(input - mean) * rstd, the normalised input; for formulas, which have its statistics over `dims`."""

    def forward(xp, input: Array, mean: Index, rstd: Index, dims: tuple, centred: bool = True):
        return kernel.unit(input, mean, rstd)

    def vjp_input(F, grad, input, mean, rstd, dims, centred):
        return F.normalised_backward(grad, input, None, mean, rstd, dims, centred)

    def jvp_input(F, tangent, input, mean, rstd, dims, centred):
        return F.normalised_backward(tangent, input, None, mean, rstd, dims, centred)


@operator(module=None, node="NativeLayerNormBackwardBackward0")
class normalised_backward:
    """The gradient of `normalised`'s input: rstd (h - m(h) - x̂ m(h x̂)), h = input * weight; not centred, without m(h).

    input is the gradient of the result, `image` what was normalised. In h this is a symmetric linear map N, so its own
    transpose. In the image it is the second derivative of <h, x̂>, symmetric as well: with v a vector, A = m(v h) - m(v) m(h)
    (not centred, m(v h)), B = m(v x̂), C = m(h x̂): -rstd ^2 x̂ (A - B C) - rstd (C N(v) + B N(h)), from
    drstd = -rstd ^2 m(x̂ dx) and dx̂ = N(dx).
    """

    def forward(xp, input: Array, image: Array, weight: Array | None = None, mean: Index | None = None,
                rstd: Index | None = None, dims: tuple = (), centred: bool = True):  # fmt: skip
        return kernel.gradients(input, image, weight, mean, rstd, dims, centred)[0]

    def vjp_input(F, grad, image, weight, mean, rstd, dims, centred):
        back = F.normalised_backward(grad, image, None, mean, rstd, dims, centred)
        return back if weight is None else back * weight

    def vjp_weight(F, grad, input, image, weight_shape, mean, rstd, dims, centred):
        return sum_to_shape(F, input * F.normalised_backward(grad, image, None, mean, rstd, dims, centred), weight_shape)

    def vjp_image(F, grad, input, image, weight, mean, rstd, dims, centred):
        return _second(F, grad, input, image, weight, mean, rstd, dims, centred)

    def jvp_input(F, tangent, image, weight, mean, rstd, dims, centred):
        return F.normalised_backward(tangent, image, weight, mean, rstd, dims, centred)

    def jvp_weight(F, tangent, input, image, mean, rstd, dims, centred):
        return F.normalised_backward(input * tangent, image, None, mean, rstd, dims, centred)

    def jvp_image(F, tangent, input, image, weight, mean, rstd, dims, centred):
        return _second(F, tangent, input, image, weight, mean, rstd, dims, centred)

    def batch(F, size_of_batch, batched, input, image, weight, mean, rstd, dims, centred):
        operands = _in_front(F, batched, size_of_batch, input, image, weight, mean, rstd)
        return F.normalised_backward(*operands, tuple([d + 1 for d in dims]), centred)


def _in_front(F, batched: set, size_of_batch: int, input, image, weight, mean, rstd) -> list:
    """The operands of a backward with the batch in front of all but weights that are the same for all."""
    whole = {"input": input, "image": image, "mean": mean, "rstd": rstd}
    input, image, mean, rstd = [for_each(F, t, name in batched, size_of_batch) for name, t in whole.items()]
    (weight,) = _vectors_in_front(F, batched, input.ndim - 1, weight=weight)
    return [input, image, weight, mean, rstd]


def _second(F, vector, input, image, weight, mean, rstd, dims, centred):
    h = input if weight is None else input * weight
    unit = F.normalised_unit(image, mean, rstd, dims, centred)
    a = F.mean_dim(vector * h, dims, True)
    if centred:
        a = a - F.mean_dim(vector, dims, True) * F.mean_dim(h, dims, True)
    b, c = F.mean_dim(vector * unit, dims, True), F.mean_dim(h * unit, dims, True)
    back = F.normalised_backward(vector, image, None, mean, rstd, dims, centred) * c
    back = back + F.normalised_backward(h, image, None, mean, rstd, dims, centred) * b
    return -(rstd * rstd) * unit * (a - b * c) - rstd * back


@operator(module=None, node="NativeLayerNormBackwardBackward0", outputs=None)
class normalised_gradients:
    """The wanted gradients of `normalised`, together: the input's, a weight's of shape `of_weight`, a bias's of shape `of_bias`.

    The first is `normalised_backward`; the second the sum of x̂ * input, the third that of input, over what was broadcast.
    Operands as there. Returns those of the three that are wanted (of_input; a shape that is not None).
    """

    def forward(xp, input: Array, image: Array, weight: Array | None = None, mean: Index | None = None, rstd: Index | None = None,
                dims: tuple = (), centred: bool = True, of_input: bool = True, of_weight: tuple | None = None,
                of_bias: tuple | None = None):  # fmt: skip
        return kernel.gradients(input, image, weight, mean, rstd, dims, centred, of_input, of_weight, of_bias)

    def vjp(F, grad, needs, input, input_shape, image, weight, weight_shape, mean, rstd, dims, centred, of_input, of_weight, of_bias):
        back, scaled, lifted = _placed(grad, (of_input, of_weight is not None, of_bias is not None))
        facts = (image, None, mean, rstd, dims, centred)
        drawn = None if back is None else F.normalised_backward(back, *facts)
        parts = [] if drawn is None else [drawn if weight is None else drawn * weight]
        parts += [] if scaled is None else [F.normalised_unit(image, mean, rstd, dims, centred) * scaled]
        parts += [] if lifted is None else [F.expand(lifted, input_shape)]
        moved = [] if back is None else [_second(F, back, input, image, weight, mean, rstd, dims, centred)]
        moved += [] if scaled is None else [F.normalised_backward(input * scaled, *facts)]
        of_scale = None if drawn is None or not needs[2] else sum_to_shape(F, input * drawn, weight_shape)
        return _total(parts), _total(moved), of_scale

    def jvp(F, tangents, input, image, weight, mean, rstd, dims, centred, of_input, of_weight, of_bias):
        pushed, moved, scaled = tangents
        facts = (image, weight, mean, rstd, dims, centred)
        unit = F.normalised_unit(image, mean, rstd, dims, centred)
        back = [] if pushed is None else [F.normalised_backward(pushed, *facts)]
        back += [] if moved is None else [_second(F, moved, input, *facts)]
        back += [] if scaled is None else [F.normalised_backward(input * scaled, image, None, *facts[2:])]
        along = [] if pushed is None else [pushed * unit]
        along += [] if moved is None else [input * F.normalised_backward(moved, image, None, *facts[2:])]
        found = [_total(back)] if of_input else []
        found += [] if of_weight is None else [_summed(F, _total(along), of_weight)]
        return found + ([] if of_bias is None else [_summed(F, pushed, of_bias)])

    def batch(F, size_of_batch, batched, input, image, weight, mean, rstd, dims, centred, of_input, of_weight, of_bias):
        operands = _in_front(F, batched, size_of_batch, input, image, weight, mean, rstd)
        rank = operands[0].ndim - 1
        apart = [s if s is None else (size_of_batch, *(1,) * (rank - len(s)), *s) for s in (of_weight, of_bias)]
        found = F.normalised_gradients(*operands, tuple([d + 1 for d in dims]), centred, of_input, *apart)
        shapes = [s for s, wanted in ((None, of_input), (of_weight, of_weight), (of_bias, of_bias)) if wanted or wanted == ()]
        return [t if s is None else F.reshape(t, (size_of_batch, *s)) for t, s in zip(found, shapes, strict=True)]


def _total(parts: list):
    """The sum of what there is; None of nothing."""
    return sum(parts[1:], parts[0]) if parts else None


def _summed(F, value, shape: tuple):
    """A tangent summed as the result is; none if there is none."""
    return None if value is None else sum_to_shape(F, value, shape)


@operator(module=None, name="normalised_fixed", node="NativeBatchNormBackward0", fused=True, elementwise=True)
class normalised_fixed:
    """(input - mean) / sqrt(var + eps) * weight + bias with given statistics, which do not depend on the input."""

    def forward(xp, input: Array, weight: Array | None = None, bias: Array | None = None, mean: Index | None = None,
                var: Index | None = None, eps: float = 0.0):  # fmt: skip
        return kernel.fixed(input, weight, bias, mean, var, eps)

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


def _check_channel_vectors(input: Tensor, channels: int, **vectors) -> None:
    for name, vector in vectors.items():
        if vector is not None and vector._array.size != channels:
            raise RuntimeError(f"{name} should contain {channels} elements not {vector._array.size}: input has shape "
                               f"{list(input.shape)}, {name} {list(vector.shape)}; one number for each channel is expected")


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
    _check_channel_vectors(input, channels, running_mean=running_mean, running_var=running_var, weight=weight, bias=bias)
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
    _check_channel_vectors(input, shape[1], running_mean=running_mean, running_var=running_var, weight=weight, bias=bias)
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
