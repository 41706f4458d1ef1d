"""Activations composed of others: gated linear units, soft steps, relu with learnt or random slopes.

Those with a formula of their own are operators, in `ops/activations.py` and `ops/rectifiers.py`.
"""

from __future__ import annotations

from pellucid.autograd.operator import composite
from pellucid.core.tensor import Tensor
from pellucid.ops.activations import sigmoid
from pellucid.ops.rectifiers import in_place_form, leaky_kernel, prelu_kernel, rrelu_kernel, run

__all__ = ["prelu", "rrelu"]


@composite(module="nn.functional")
def glu(input, dim: int = -1):
    """The first half along `dim`, times the sigmoid of the second half.

    input: [*S] with S[dim] even, floating-point. Returns [*S] with half of that dimension.
    Raises: RuntimeError (a 0-d tensor, or an odd dimension).
    """
    if not input._array.ndim:
        raise RuntimeError("glu does not support scalars because halving size must be even")
    size = input.size(dim)
    if size % 2:
        raise RuntimeError(f"Halving dimension must be even, but dimension {dim} is size {size}")
    first, second = input.split(size // 2, dim) if size else (input, input)
    return first * sigmoid(second)


@composite(module="nn.functional")
def softsign(input):
    """x / (1 + |x|) of each element. input: [*S]. Returns [*S], integers as the default float."""
    return input / (input.abs() + 1)


@composite(module="nn.functional")
def tanhshrink(input):
    """x - tanh(x) of each element. input: [*S]. Returns [*S], integers as the default float."""
    return input - input.tanh()


@composite(method=True, module=("torch", "nn.functional"))
def prelu(input, weight):
    """x for positive x, a learnt weight times x for the others.

    input: [N, C, *] or any shape; weight: [C], or one element. Returns the input's shape.
    Raises: RuntimeError (dtypes differ, or the weight is neither one element nor one for each channel).
    """
    x, w = input._array, weight._array
    if x.dtype != w.dtype:
        raise RuntimeError(f"prelu: Type promoting not supported. Got {input.dtype} and {weight.dtype}")
    if w.ndim > 1:
        raise RuntimeError(f"prelu: Expected `weight` to be a scalar or 1D tensor, but got: ndim = {w.ndim}")
    if w.size != 1:
        if not x.ndim:
            raise RuntimeError("Not allow zero-dim input tensor.")
        channels = x.shape[1] if x.ndim > 1 else 1
        if channels != w.size:
            raise RuntimeError(
                f"Mismatch of parameter numbers and input channel size. Found parameter numbers = {w.size} and channel size = {channels}."
            )
    channel = min(x.ndim - 1, 1)
    return prelu_kernel(input, weight.reshape([w.size if d == channel else 1 for d in range(x.ndim)]))


@composite(name="rrelu", module="nn.functional")
def functional_rrelu(input, lower: float = 1 / 8, upper: float = 1 / 3, training: bool = False, inplace: bool = False):
    """x for positive x; the others times a slope drawn from [lower, upper) for each when training, else times its mean.

    input: [*S], floating-point.
    """
    if lower > upper:
        raise RuntimeError(f"Lower bound should be less than or equal to the upper bound: got {lower} and {upper}")
    if not training:
        return run(leaky_kernel, input, ((lower + upper) / 2,), inplace)
    noise = Tensor.uniform_(Tensor.new_empty(input, input.shape), lower, upper)
    return run(rrelu_kernel, input, (noise,), inplace)


@composite()
def rrelu(input, lower: float = 1.0 / 8, upper: float = 1.0 / 3, training: bool = False, generator=None):
    """See `pellucid.nn.functional.rrelu`."""
    return functional_rrelu(input, lower, upper, training)


@composite(name="rrelu_")
def rrelu_(input, lower: float = 1.0 / 8, upper: float = 1.0 / 3, training: bool = False, generator=None):
    """In-place form of `rrelu`."""
    return functional_rrelu(input, lower, upper, training, True)


in_place_form(functional_rrelu)
