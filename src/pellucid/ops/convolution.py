"""Convolutions and transposed convolutions of one to three dimensions.

The arithmetic is in kernels/convolution.py; the public functions, which read arguments, in functions/convolution.py.

A convolution is bilinear in its input and its weight; its two gradients are operators too, and the derivatives of the three
are one another, so derivatives of any order exist.
"""

from __future__ import annotations

from pellucid.autograd.operator import Array, operator
from pellucid.kernels import convolution as kernel
from pellucid.ops.batch_places import into, out_of
from pellucid.ops.batches import for_each


def _spatial_sum(F, grad):
    """A gradient summed over everything but channels: that of the bias."""
    return F.sum_dim(grad, (0, *range(2, grad.ndim)), False)


def _with_bias(made, bias):
    if bias is not None:
        made += bias.reshape(-1, *(1,) * (made.ndim - 2))
    return made


def _moved(F, convolve, tangents, input, weight):
    """The tangent of a convolution: linear in its input and in its weight, and the bias is added."""
    image, kernels, bias = tangents
    if image is None and kernels is None:
        return F.reshape(bias, (-1, *(1,) * (weight.ndim - 2)))
    made = None if image is None else convolve(image, weight, bias)
    if kernels is not None:
        part = convolve(input, kernels, bias if made is None else None)
        made = part if made is None else made + part
    return made


def _of_each(F, convolve, size: int, batched: set, input, weight, bias, groups: int, out_dim: int):
    """`convolve(input, weight, bias, groups)` on a batch: of images as more images, of weights as groups of channels.

    out_dim: which dimension of the weight counts channels of the result.
    """
    within = bias if not batched & {"weight", "bias"} else None
    if "weight" in batched:
        if not size:
            raise RuntimeError("vmap: non-positive groups is not supported: a convolution takes no empty batch of weights")
        shared = "input" not in batched and groups == 1
        image = input if shared else into(F, for_each(F, input, "input" in batched, size), 1)
        made = convolve(image, into(F, weight, out_dim if shared else 0), None, 1 if shared else groups * size)
        made = out_of(F, made, 1, size, made.shape[1] // size)
    elif "input" in batched:
        made = out_of(F, convolve(into(F, input, 0), weight, within, groups), 0, size, input.shape[1])
    else:
        made = F.unsqueeze(convolve(input, weight, None, groups), 0)
    if bias is None or within is not None:
        return made
    lead = (size, 1) if "bias" in batched else ()
    return made + F.reshape(bias, (*lead, bias.shape[-1], *(1,) * (made.ndim - 3)))


def _cut(whole, shape):
    """A convolution's result without the places that an output_padding of its transpose made room for."""
    return whole if tuple(whole.shape) == tuple(shape) else whole[(..., *(slice(0, n) for n in shape[2:]))]


# --- the three bilinear operators -----------------------------------------------------------------------------------


@operator(module=None, name="_convolution", node="ConvolutionBackward0", fused=True, exact=True)
class _convolution:
    """Convolution of a batch: input [N, C, *S], weight [O, C / groups, *K], bias [O] or None. Returns [N, O, *P]."""

    def forward(xp, input: Array, weight: Array, bias: Array | None = None, stride=(), padding=(), dilation=(), groups=1):
        return kernel.forward(input, weight, stride, padding, dilation, groups, bias)

    def vjp_input(F, grad, weight, input_shape, stride, padding, dilation, groups):
        return F._convolution_transposed(grad, weight, None, tuple(input_shape[2:]), stride, padding, dilation, groups)

    def vjp_weight(F, grad, input, weight_shape, stride, padding, dilation, groups):
        return F._convolution_weight(grad, input, weight_shape, stride, padding, dilation, groups)

    def vjp_bias(F, grad): return _spatial_sum(F, grad)

    def jvp(F, tangents, input, weight, stride, padding, dilation, groups):
        return _moved(F, lambda x, w, b: F._convolution(x, w, b, stride, padding, dilation, groups), tangents, input, weight)

    def batch(F, size_of_batch, batched, input, weight, bias, stride, padding, dilation, groups):
        def convolve(input, weight, bias, groups):
            return F._convolution(input, weight, bias, stride, padding, dilation, groups)

        return _of_each(F, convolve, size_of_batch, batched, input, weight, bias, groups, 0)

    def samples(make):
        yield (make(2, 3, 6), make(4, 3, 3), make(4), (1,), (1,), (1,), 1), {}
        yield (make(2, 2, 5, 6), make(4, 1, 2, 3), make(4), (2, 1), (1, 0), (1, 2), 2), {}
        yield (make(1, 2, 3, 3, 3), make(2, 2, 2, 2, 2), None, (1, 1, 1), (0, 0, 0), (1, 1, 1), 1), {}


@operator(module=None, name="_convolution_transposed", node="ConvolutionBackward0", fused=True, exact=True)
class _convolution_transposed:
    """The transpose of a convolution in its input, whose spatial shape was `size`.

    input: [N, O, *P], weight: [O, C / groups, *K], bias: [C] or None. Returns [N, C, *size].
    """

    def forward(xp, input: Array, weight: Array, bias: Array | None = None, size=(), stride=(), padding=(), dilation=(), groups=1):
        made = kernel.input_gradient(input, weight, size, stride, padding, dilation, groups)
        return _with_bias(made if made.flags.c_contiguous else made.copy(), bias)

    def vjp_input(F, grad, weight, input_shape, stride, padding, dilation, groups):
        return _cut(F._convolution(grad, weight, None, stride, padding, dilation, groups), input_shape)

    def vjp_weight(F, grad, input, weight_shape, stride, padding, dilation, groups):
        return F._convolution_weight(input, grad, weight_shape, stride, padding, dilation, groups)

    def vjp_bias(F, grad): return _spatial_sum(F, grad)

    def jvp(F, tangents, input, weight, size, stride, padding, dilation, groups):
        return _moved(
            F, lambda x, w, b: F._convolution_transposed(x, w, b, size, stride, padding, dilation, groups), tangents, input, weight
        )

    def batch(F, size_of_batch, batched, input, weight, bias, size, stride, padding, dilation, groups):
        def convolve(input, weight, bias, groups):
            return F._convolution_transposed(input, weight, bias, size, stride, padding, dilation, groups)

        return _of_each(F, convolve, size_of_batch, batched, input, weight, bias, groups, 1)

    def samples(make):
        yield (make(2, 4, 6), make(4, 3, 3), make(3), (6,), (1,), (1,), (1,), 1), {}
        yield (make(2, 4, 2, 3), make(4, 1, 2, 3), make(2), (5, 7), (2, 2), (0, 0), (1, 1), 2), {}


@operator(module=None, name="_convolution_weight", node="ConvolutionBackwardBackward0", exact=True, linear="each")
class _convolution_weight:
    """The transpose of a convolution in its weight: input is the gradient [N, O, *P], other the image [N, C, *S]."""

    def forward(xp, input: Array, other: Array, shape, stride, padding, dilation, groups):
        return kernel.weight_gradient(input, other, shape, stride, padding, dilation, groups)

    def vjp_input(F, grad, other, input_shape, stride, padding, dilation, groups):
        return _cut(F._convolution(other, grad, None, stride, padding, dilation, groups), input_shape)

    def vjp_other(F, grad, input, other_shape, stride, padding, dilation, groups):
        return F._convolution_transposed(input, grad, None, tuple(other_shape[2:]), stride, padding, dilation, groups)

    def batch(F, size_of_batch, batched, input, other, shape, stride, padding, dilation, groups):
        shared = "other" not in batched and groups == 1  # the same image for all: kernels are more channels of one convolution
        grad = into(F, for_each(F, input, "input" in batched, size_of_batch), 1)
        image = other if shared else into(F, for_each(F, other, "other" in batched, size_of_batch), 1)
        whole, groups = (size_of_batch * shape[0], *shape[1:]), 1 if shared else groups * size_of_batch
        return out_of(F, F._convolution_weight(grad, image, whole, stride, padding, dilation, groups), 0, size_of_batch, shape[0])

    def samples(make):
        yield (make(2, 4, 4), make(2, 3, 6), (4, 3, 3), (1,), (0,), (1,), 1), {}
        yield (make(2, 4, 4), make(2, 2, 6), (4, 1, 3), (1,), (0,), (1,), 2), {}
