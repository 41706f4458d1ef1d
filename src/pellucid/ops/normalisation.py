"""The operators behind batch, layer, group, instance and RMS normalisation, which `functions/normalisation.py` calls.

All of the first four subtract a mean over some dimensions and divide by the deviation over the same dimensions; one fused
operator does that, and its gradient is an operator with a derivative of its own.
"""

from __future__ import annotations

from pellucid.autograd.operator import Array, Index, operator
from pellucid.autograd.operator import tensors as T
from pellucid.kernels import normalisation as kernel
from pellucid.ops.batch_places import in_front
from pellucid.ops.batches import for_each
from pellucid.ops.products import sum_to_shape

__all__: list[str] = []


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
