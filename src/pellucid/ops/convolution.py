"""Convolutions and transposed convolutions of one to three dimensions. The arithmetic is in kernels/convolution.py.

A convolution is bilinear in its input and its weight; its two gradients are operators too, and the derivatives of the three
are one another, so derivatives of any order exist.
"""

from __future__ import annotations

from pellucid.autograd.operator import Array, composite, operator
from pellucid.autograd.operator import tensors as T
from pellucid.core.checks import require_kind, scalar_name
from pellucid.kernels import convolution as kernel
from pellucid.ops.batch_places import into, out_of
from pellucid.ops.batches import for_each

__all__ = ["conv1d", "conv2d", "conv3d", "conv_tbc", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "convolution"]


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


# --- arguments ------------------------------------------------------------------------------------------------------


def spread(value, count: int, name: str, function: str) -> tuple:
    """An int or a sequence as a tuple with one number for each dimension; TypeError or RuntimeError otherwise."""
    if isinstance(value, int):
        return (value,) * count
    if isinstance(value, (tuple, list)) and all(isinstance(v, int) for v in value):
        if len(value) == 1:
            return tuple(value) * count
        if len(value) == count:
            return tuple(value)
        raise RuntimeError(f"expected {name} to be a single integer value or a list of {count} values to match the convolution "
                           f"dimensions, but got {name}={list(value)} for {function}()")  # fmt: skip
    if hasattr(value, "__index__"):
        return (value.__index__(),) * count
    raise TypeError(f"{function}(): argument '{name}' must be tuple of ints, not {type(value).__name__}")


def _check(function: str, input, weight, bias, count: int, groups: int, transposed: bool) -> bool:
    """Refuse what does not fit; returns whether the input has no batch dimension."""
    x, w = input._array, weight._array
    if x.ndim not in (count + 1, count + 2):
        raise RuntimeError(f"Expected {count + 1}D (unbatched) or {count + 2}D (batched) input to {function}, but got input of "
                           f"size: {list(x.shape)}")
    if w.ndim != count + 2:
        raise RuntimeError(f"weight should have {'at least three' if w.ndim < 3 else f'{count + 2}'} dimensions: expected "
                           f"{count + 2}-dimensional weight for {function}, but got weight of size {list(w.shape)}")
    if groups <= 0:
        raise RuntimeError(f"non-positive groups is not supported: got groups={groups}")
    if w.dtype != x.dtype:
        raise RuntimeError(f"expected scalar type {scalar_name(x)} but found {scalar_name(w)}: input and weight of {function}() must "
                           "have one dtype. Convert one of them with .to(dtype).")  # fmt: skip
    require_kind("convolution", x, "fci")
    if bias is not None and bias._array.dtype != x.dtype:
        raise RuntimeError(f"Input type ({scalar_name(x)}) and bias type ({scalar_name(bias._array)}) should be the same")
    _check_channels(x, w, bias, count, groups, transposed)
    return x.ndim == count + 1


def _check_channels(x, w, bias, count: int, groups: int, transposed: bool) -> None:
    channels = x.shape[-count - 1]
    described = f"weight of size {list(w.shape)}"
    if w.shape[0] < groups:
        raise RuntimeError(f"Given groups={groups}, expected weight to be at least {groups} at dimension 0, but got {described} instead")
    if w.shape[0] % groups:
        raise RuntimeError(f"Given groups={groups}, expected weight to be divisible by {groups} at dimension 0, but got {described} instead")
    expected = w.shape[0] if transposed else w.shape[1] * groups
    if channels != expected:
        raise RuntimeError(f"Given {'transposed=1' if transposed else f'groups={groups}'}, {described}, expected "
                           f"input{list(x.shape)} to have {expected} channels, but got {channels} channels instead")
    outputs = w.shape[1] * groups if transposed else w.shape[0]
    if bias is not None and bias._array.shape != (outputs,):
        raise RuntimeError(f"Given {'transposed=1' if transposed else f'groups={groups}'}, {described}, expected bias to be "
                           f"1-dimensional with {outputs} elements, but got bias of size {list(bias.shape)} instead")


def _check_steps(stride: tuple, padding: tuple, dilation: tuple) -> None:
    if any(s <= 0 for s in stride):
        raise RuntimeError(f"non-positive stride is not supported: got stride={stride}")
    if any(p < 0 for p in padding):
        raise RuntimeError(f"negative padding is not supported: got padding={padding}")
    if any(d <= 0 for d in dilation):
        raise RuntimeError(f"dilation should be greater than zero: got dilation={dilation}")


def _convolve(function: str, count: int, input, weight, bias, stride, padding, dilation, groups):
    unbatched = _check(function, input, weight, bias, count, groups, False)
    stride, dilation = spread(stride, count, "stride", function), spread(dilation, count, "dilation", function)
    if unbatched:
        input = input.unsqueeze(0)
    if isinstance(padding, str):
        input, padding = _padded_by_name(padding, input, weight, stride, dilation, count)
    padding = spread(padding, count, "padding", function)
    _check_steps(stride, padding, dilation)
    size, taps = input._array.shape[2:], weight._array.shape[2:]
    if any(s + 2 * p < d * (k - 1) + 1 for s, p, d, k in zip(size, padding, dilation, taps, strict=True)):
        whole = " x ".join(str(s + 2 * p) for s, p in zip(size, padding, strict=True))
        taken = " x ".join(str(d * (k - 1) + 1) for d, k in zip(dilation, taps, strict=True))
        raise RuntimeError(f"Calculated padded input size per channel: ({whole}). Kernel size: ({taken}). Kernel size can't be "
                           "greater than actual input size")
    made = T._convolution(input, weight, bias, stride, padding, dilation, groups)
    return made.squeeze(0) if unbatched else made


def _padded_by_name(padding: str, input, weight, stride: tuple, dilation: tuple, count: int):
    """"valid" is no padding, "same" what keeps the size, with the odd element at the end."""
    if padding == "valid":
        return input, (0,) * count
    if padding != "same":
        raise RuntimeError(f"Invalid padding string: {padding!r}. Expected 'valid' or 'same'")
    if any(s != 1 for s in stride):
        raise RuntimeError(f"padding='same' is not supported for strided convolutions: got stride={stride}")
    total = [d * (k - 1) for d, k in zip(dilation, weight._array.shape[2:], strict=True)]
    if any(t % 2 for t in total):
        extra = [n for t in reversed(total) for n in (0, t % 2)]
        input = T.constant_pad_nd(input, extra, 0.0)
    return input, tuple(t // 2 for t in total)


def _convolve_transposed(function: str, count: int, input, weight, bias, stride, padding, output_padding, groups, dilation):
    unbatched = _check(function, input, weight, bias, count, groups, True)
    stride, padding = spread(stride, count, "stride", function), spread(padding, count, "padding", function)
    dilation, extra = spread(dilation, count, "dilation", function), spread(output_padding, count, "output_padding", function)
    _check_steps(stride, padding, dilation)
    if any(e < 0 for e in extra):
        raise RuntimeError(f"negative output_padding is not supported: got output_padding={extra}")
    if any(e >= max(s, d) for e, s, d in zip(extra, stride, dilation, strict=True)):
        raise RuntimeError(f"output padding must be smaller than either stride or dilation, but got output_padding={extra}, "
                           f"stride={stride}, dilation={dilation}")  # fmt: skip
    size, taps = input._array.shape[-count:], weight._array.shape[2:]
    size = tuple((n - 1) * s - 2 * p + d * (k - 1) + e + 1
                 for n, s, p, d, k, e in zip(size, stride, padding, dilation, taps, extra, strict=True))  # fmt: skip
    if any(n <= 0 for n in size):
        raise RuntimeError(f"Given input size per channel: {list(input._array.shape[-count:])}. Calculated output size per "
                           f"channel: {list(size)}. Output size is too small")
    if unbatched:
        input = input.unsqueeze(0)
    made = T._convolution_transposed(input, weight, bias, size, stride, padding, dilation, groups)
    return made.squeeze(0) if unbatched else made


# --- public functions -----------------------------------------------------------------------------------------------

WHERE = ("nn.functional", "torch")


def _conv_family(count: int, shape: str, what: str):
    """`convNd` and `conv_transposeNd`."""
    name, kernel_shape = f"conv{count}d", ", ".join(f"K{letter}" for letter in shape.split(", "))

    def conv(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
        return _convolve(name, count, input, weight, bias, stride, padding, dilation, groups)

    def transposed(input, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1):
        return _convolve_transposed(
            f"conv_transpose{count}d", count, input, weight, bias, stride, padding, output_padding, groups, dilation
        )

    conv.__name__, transposed.__name__ = name, f"conv_transpose{count}d"
    conv.__doc__ = f"""Convolution (cross-correlation) of {what}.

    input: [N, C, {shape}] or [C, {shape}]; weight: [O, C / groups, {kernel_shape}]; bias: [O] or None; all of one dtype.
    `stride`, `padding` and `dilation` are numbers, or one for each size; `padding` may be "valid" or "same".
    Returns [N, O, *P], each P being (S + 2 padding - dilation (K - 1) - 1) // stride + 1.
    Raises: RuntimeError for shapes, dtypes or steps that do not fit.
    """
    transposed.__doc__ = f"""Transposed convolution of {what}: the gradient of `{name}` in its input, as a map of its own.

    input: [N, C, {shape}] or [C, {shape}]; weight: [C, O / groups, {kernel_shape}]; bias: [O] or None; all of one dtype.
    Returns [N, O, *P], each P being (S - 1) stride - 2 padding + dilation (K - 1) + output_padding + 1.
    Raises: RuntimeError for shapes, dtypes or steps that do not fit.
    """
    return composite(module=WHERE)(conv), composite(module=WHERE)(transposed)


conv1d, conv_transpose1d = _conv_family(1, "L", "sequences")
conv2d, conv_transpose2d = _conv_family(2, "H, W", "images")
conv3d, conv_transpose3d = _conv_family(3, "D, H, W", "volumes")


@composite(module=WHERE)
def conv_tbc(input, weight, bias, pad=0):
    """`conv1d` on sequences laid out [L, N, C], with weight [K, C, O] and bias [O]. Returns [L', N, O]."""
    made = conv1d(input.permute(1, 2, 0), weight.permute(2, 1, 0), bias, padding=pad)
    return made.permute(2, 0, 1)


@composite()
def convolution(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups):
    """Convolution of as many dimensions as the lists have numbers, transposed or not."""
    count = weight.dim() - 2
    if transposed:
        return _convolve_transposed("convolution", count, input, weight, bias, stride, padding, output_padding, groups, dilation)
    return _convolve("convolution", count, input, weight, bias, stride, padding, dilation, groups)
