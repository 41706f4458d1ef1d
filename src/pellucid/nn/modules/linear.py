"""Linear maps: Linear, Bilinear, and Identity.

`LazyLinear` learns `in_features` from its first input.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from pellucid.nn import functional as F
from pellucid.nn import init
from pellucid.nn.modules.lazy import LazyModuleMixin
from pellucid.nn.modules.module import Module
from pellucid.nn.parameter import UninitializedParameter, empty_parameter

if TYPE_CHECKING:
    from pellucid.core.tensor import Tensor

__all__ = ["Bilinear", "Identity", "LazyLinear", "Linear", "NonDynamicallyQuantizableLinear"]


class Identity(Module):
    """Gives out its input; any arguments to the constructor are ignored."""

    def __init__(self, *args, **kwargs):
        super().__init__()

    def forward(self, input: Tensor) -> Tensor:
        """Return the input."""
        return input


class Linear(Module):
    """input @ weight.T + bias: [*, in_features] to [*, out_features].

    Args:
        in_features: size of the last dimension of the input.
        out_features: size of the last dimension of the output.
        bias: whether there is one.
        device: the CPU.
        dtype: of weight [out_features, in_features] and bias [out_features].
    """

    in_features: int
    out_features: int

    def __init__(self, in_features: int, out_features: int, bias: bool = True, device=None, dtype=None):
        super().__init__()
        self.in_features = in_features
        self.out_features = out_features
        self.weight = empty_parameter(out_features, in_features, device=device, dtype=dtype)
        self.register_parameter("bias", empty_parameter(out_features, device=device, dtype=dtype) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw weight and bias uniformly, within 1 / sqrt(in_features) of 0."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            reset_bias(self.bias, self.weight)

    def forward(self, input: Tensor) -> Tensor:
        """Apply it."""
        return F.linear(input, *weight_and_bias(self))

    def extra_repr(self) -> str:
        """Sizes, and whether there is a bias."""
        return f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}"


def reset_bias(bias: Tensor, weight: Tensor) -> None:
    """Draw a bias uniformly, within 1 / sqrt(inputs of an output) of 0."""
    fan_in, _ = init._calculate_fan_in_and_fan_out(weight)
    bound = 1 / math.sqrt(fan_in) if fan_in > 0 else 0
    init.uniform_(bias, -bound, bound)


def weight_and_bias(module: Module) -> tuple[Tensor, Tensor | None]:
    """`module.weight, module.bias`, from the table of parameters if they are there: on every call of a layer the long
    way through `__getattr__` costs as much as a small product. Weight norm and parametrizations keep them elsewhere."""
    parameters = module._parameters
    if "weight" in parameters and "bias" in parameters:
        return parameters["weight"], parameters["bias"]
    return module.weight, module.bias


class NonDynamicallyQuantizableLinear(Linear):
    """A `Linear` under the name that PyTorch gives the output projection of attention."""


class Bilinear(Module):
    """input1 @ weight[k] @ input2 + bias[k] for each output k: [*, in1_features], [*, in2_features] to [*,
    out_features].

    Raises:
        ValueError: `in1_features` is not positive.
    """

    def __init__(
        self, in1_features: int, in2_features: int, out_features: int, bias: bool = True, device=None, dtype=None
    ):
        super().__init__()
        if in1_features <= 0:
            raise ValueError(f"in1_features must be > 0, but got {in1_features}")
        self.in1_features = in1_features
        self.in2_features = in2_features
        self.out_features = out_features
        self.weight = empty_parameter(out_features, in1_features, in2_features, device=device, dtype=dtype)
        self.register_parameter("bias", empty_parameter(out_features, device=device, dtype=dtype) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw weight and bias uniformly, within 1 / sqrt(in1_features) of 0."""
        bound = 1 / math.sqrt(self.weight.size(1))
        init.uniform_(self.weight, -bound, bound)
        if self.bias is not None:
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input1: Tensor, input2: Tensor) -> Tensor:
        """Apply it."""
        return F.bilinear(input1, input2, self.weight, self.bias)

    def extra_repr(self) -> str:
        """Sizes, and whether there is a bias."""
        return (
            f"in1_features={self.in1_features}, in2_features={self.in2_features}, out_features={self.out_features}, "
            f"bias={self.bias is not None}"
        )


class LazyLinear(LazyModuleMixin, Linear):
    """A `Linear` that learns `in_features` from its first input."""

    cls_to_become = Linear

    def __init__(self, out_features: int, bias: bool = True, device=None, dtype=None):
        super().__init__(0, 0, False, device=device, dtype=dtype)
        self.out_features = out_features
        self.weight = UninitializedParameter(device=device, dtype=dtype)
        if bias:
            self.bias = UninitializedParameter(device=device, dtype=dtype)

    def reset_parameters(self) -> None:
        """Draw the values, once there are any."""
        if not self.has_uninitialized_params() and self.in_features != 0:
            super().reset_parameters()

    def initialize_parameters(self, input: Tensor) -> None:
        """Take the last dimension of the input as `in_features`."""
        self.in_features = input.shape[-1]
        if self.has_uninitialized_params():  # they may have got a shape from a state that was loaded
            self.weight.materialize((self.out_features, self.in_features))
            if self.bias is not None:
                self.bias.materialize((self.out_features,))
            self.reset_parameters()
