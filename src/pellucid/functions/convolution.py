"""Convolutions and transposed convolutions as they are public: arguments read and checked, images without a batch, padding by name.

The operators are in `ops/convolution.py`, the checks in `core/convolution_checks.py`.
"""

from __future__ import annotations

from pellucid.autograd.operator import composite
from pellucid.autograd.operator import tensors as T
from pellucid.core.convolution_checks import check_operands, check_steps, spread

__all__ = ["conv1d", "conv2d", "conv3d", "conv_tbc", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d",
           "convolution"]  # fmt: skip


# --- arguments ------------------------------------------------------------------------------------------------------


def _convolve(function: str, count: int, input, weight, bias, stride, padding, dilation, groups):
    unbatched = check_operands(function, input, weight, bias, count, groups, False)
    stride, dilation = spread(stride, count, "stride", function), spread(dilation, count, "dilation", function)
    if unbatched:
        input = input.unsqueeze(0)
    if isinstance(padding, str):
        input, padding = _padded_by_name(padding, input, weight, stride, dilation, count)
    padding = spread(padding, count, "padding", function)
    check_steps(stride, padding, dilation)
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
    unbatched = check_operands(function, input, weight, bias, count, groups, True)
    stride, padding = spread(stride, count, "stride", function), spread(padding, count, "padding", function)
    dilation, extra = spread(dilation, count, "dilation", function), spread(output_padding, count, "output_padding", function)
    check_steps(stride, padding, dilation)
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
