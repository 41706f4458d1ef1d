"""Activations: modules that apply one function of `nn.functional` to each element, or along one dimension.

`MultiheadAttention` is in `attention.py` and only passed on here. Unless a docstring says otherwise the input is
[*S] of a floating-point dtype and the result has its shape; `inplace` writes the result into the input.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

from pellucid.nn import functional as F
from pellucid.nn import init
from pellucid.nn.modules.attention import MultiheadAttention
from pellucid.nn.modules.declared import Declared, declared
from pellucid.nn.modules.module import Module
from pellucid.nn.parameter import empty_parameter

if TYPE_CHECKING:
    from pellucid.core.tensor import Tensor

__all__ = [
    "CELU", "ELU", "GELU", "GLU", "SELU", "Hardshrink", "Hardsigmoid", "Hardswish", "Hardtanh", "LeakyReLU",
    "LogSigmoid", "LogSoftmax", "Mish", "MultiheadAttention", "PReLU", "RReLU", "ReLU", "ReLU6", "SiLU", "Sigmoid",
    "Softmax",
    "Softmax2d", "Softmin", "Softplus", "Softshrink", "Softsign", "Tanh", "Tanhshrink", "Threshold",
]


# --- without settings ------------------------------------------------------------------------------------------------


class Sigmoid(Module):
    """1 / (1 + exp(-x))."""

    def forward(self, input: Tensor) -> Tensor:
        """Apply it."""
        return F.sigmoid(input)


class Tanh(Module):
    """tanh(x)."""

    def forward(self, input: Tensor) -> Tensor:
        """Apply it."""
        return F.tanh(input)


class LogSigmoid(Module):
    """log(1 / (1 + exp(-x)))."""

    def forward(self, input: Tensor) -> Tensor:
        """Apply it."""
        return F.logsigmoid(input)


class Softsign(Module):
    """x / (1 + |x|)."""

    def forward(self, input: Tensor) -> Tensor:
        """Apply it."""
        return F.softsign(input)


class Tanhshrink(Module):
    """x - tanh(x)."""

    def forward(self, input: Tensor) -> Tensor:
        """Apply it."""
        return F.tanhshrink(input)


# --- only `inplace` --------------------------------------------------------------------------------------------------


@declared
class _Inplace(Declared):
    """An activation whose only setting is whether it writes into its input."""

    inplace: bool = False
    _shown = ("inplace",)


class ReLU(_Inplace):
    """max(x, 0)."""

    def forward(self, input: Tensor) -> Tensor:
        """Apply it."""
        return F.relu(input, inplace=self.inplace)


class SELU(_Inplace):
    """scale * (max(x, 0) + min(alpha * (exp(x) - 1), 0)), with the two constants of self-normalizing networks."""

    def forward(self, input: Tensor) -> Tensor:
        """Apply it."""
        return F.selu(input, self.inplace)


class SiLU(_Inplace):
    """x * sigmoid(x)."""

    def forward(self, input: Tensor) -> Tensor:
        """Apply it."""
        return F.silu(input, inplace=self.inplace)


class Mish(_Inplace):
    """x * tanh(softplus(x))."""

    def forward(self, input: Tensor) -> Tensor:
        """Apply it."""
        return F.mish(input, inplace=self.inplace)


class Hardswish(_Inplace):
    """x * relu6(x + 3) / 6."""

    _shown = ()

    def forward(self, input: Tensor) -> Tensor:
        """Apply it."""
        return F.hardswish(input, self.inplace)


class Hardsigmoid(_Inplace):
    """relu6(x + 3) / 6."""

    _shown = ()

    def forward(self, input: Tensor) -> Tensor:
        """Apply it."""
        return F.hardsigmoid(input, self.inplace)


# --- with numbers ----------------------------------------------------------------------------------------------------


@declared
class ELU(Declared):
    """x where x > 0, else alpha * (exp(x) - 1)."""

    alpha: float = 1.0
    inplace: bool = False
    _shown = ("alpha", "inplace")

    def forward(self, input: Tensor) -> Tensor:
        """Apply it."""
        return F.elu(input, self.alpha, self.inplace)


@declared
class CELU(Declared):
    """max(x, 0) + min(alpha * (exp(x / alpha) - 1), 0)."""

    alpha: float = 1.0
    inplace: bool = False
    _shown = ("alpha", "inplace")

    def forward(self, input: Tensor) -> Tensor:
        """Apply it."""
        return F.celu(input, self.alpha, self.inplace)


@declared
class LeakyReLU(Declared):
    """x where x > 0, else negative_slope * x."""

    negative_slope: float = 0.01
    inplace: bool = False
    _shown = ("negative_slope", "inplace")

    def forward(self, input: Tensor) -> Tensor:
        """Apply it."""
        return F.leaky_relu(input, self.negative_slope, self.inplace)


@declared
class RReLU(Declared):
    """LeakyReLU with a slope drawn for each element in training, and (lower + upper) / 2 in evaluation."""

    lower: float = 1.0 / 8
    upper: float = 1.0 / 3
    inplace: bool = False
    _shown = ("lower", "upper", "inplace")

    def forward(self, input: Tensor) -> Tensor:
        """Apply it."""
        return F.rrelu(input, self.lower, self.upper, self.training, self.inplace)


@declared
class Threshold(Declared):
    """x where x > threshold, else value."""

    threshold: float
    value: float
    inplace: bool = False
    _shown = ("threshold", "value", "inplace")

    def forward(self, input: Tensor) -> Tensor:
        """Apply it."""
        return F.threshold(input, self.threshold, self.value, self.inplace)


@declared
class Hardtanh(Declared):
    """x limited to [min_val, max_val]; ValueError if that is empty. `min_value` and `max_value` are old names."""

    min_val: float = -1.0
    max_val: float = 1.0
    inplace: bool = False
    min_value: float | None = None
    max_value: float | None = None
    _shown = ("min_val", "max_val", "inplace")

    def _settle(self) -> None:
        for old, name in (("min_value", "min_val"), ("max_value", "max_val")):
            if (value := self.__dict__.pop(old)) is not None:
                warnings.warn(
                    f"keyword argument `{old}` is deprecated and rename to `{name}`", FutureWarning, stacklevel=4
                )
                setattr(self, name, value)
        if self.max_val <= self.min_val:
            raise ValueError(
                f"max_val must be greater than min_val, got min_val={self.min_val} and max_val={self.max_val}"
            )

    def forward(self, input: Tensor) -> Tensor:
        """Apply it."""
        return F.hardtanh(input, self.min_val, self.max_val, self.inplace)


class ReLU6(Hardtanh):
    """min(max(x, 0), 6)."""

    _shown = ("inplace",)

    def __init__(self, inplace: bool = False):
        super().__init__(0.0, 6.0, inplace)


@declared
class Softplus(Declared):
    """log(1 + exp(beta * x)) / beta; x itself where beta * x > threshold."""

    beta: float = 1.0
    threshold: float = 20.0
    _shown = ("beta", "threshold")

    def forward(self, input: Tensor) -> Tensor:
        """Apply it."""
        return F.softplus(input, self.beta, self.threshold)


@declared
class _Shrink(Declared):
    """An activation that is 0 within `lambd` of 0."""

    lambd: float = 0.5

    def extra_repr(self) -> str:
        """The number alone."""
        return str(self.lambd)


class Hardshrink(_Shrink):
    """x where |x| > lambd, else 0."""

    def forward(self, input: Tensor) -> Tensor:
        """Apply it."""
        return F.hardshrink(input, self.lambd)


class Softshrink(_Shrink):
    """x moved towards 0 by lambd, and 0 within it."""

    def forward(self, input: Tensor) -> Tensor:
        """Apply it."""
        return F.softshrink(input, self.lambd)


@declared
class GELU(Declared):
    """x times the normal distribution function of x; `approximate="tanh"` for its approximation by tanh."""

    approximate: str = "none"
    _shown = ("approximate",)

    def forward(self, input: Tensor) -> Tensor:
        """Apply it."""
        return F.gelu(input, approximate=self.approximate)


class PReLU(Module):
    """LeakyReLU whose slope is a parameter.

    Args:
        num_parameters: 1, or one slope for each channel (dimension 1 of the input).
        init: the slope to begin with.
    """

    def __init__(self, num_parameters: int = 1, init: float = 0.25, device=None, dtype=None):
        super().__init__()
        self.num_parameters = num_parameters
        self.init = init
        self.weight = empty_parameter(num_parameters, device=device, dtype=dtype)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set the slopes to the initial one."""
        init.constant_(self.weight, self.init)

    def forward(self, input: Tensor) -> Tensor:
        """Apply it."""
        return F.prelu(input, self.weight)

    def extra_repr(self) -> str:
        """The number of slopes."""
        return f"num_parameters={self.num_parameters}"


# --- along a dimension -----------------------------------------------------------------------------------------------


@declared
class _AlongDim(Declared):
    """An activation along dimension `dim`; without it, along the one that older programs expect, with a warning."""

    dim: int | None = None
    _shown = ("dim",)


class Softmax(_AlongDim):
    """exp(x) / sum(exp(x)) along `dim`."""

    def forward(self, input: Tensor) -> Tensor:
        """Apply it."""
        return F.softmax(input, self.dim, _stacklevel=5)


class LogSoftmax(_AlongDim):
    """x - log(sum(exp(x))) along `dim`."""

    def forward(self, input: Tensor) -> Tensor:
        """Apply it."""
        return F.log_softmax(input, self.dim, _stacklevel=5)


class Softmin(_AlongDim):
    """Softmax of -x along `dim`."""

    def forward(self, input: Tensor) -> Tensor:
        """Apply it."""
        return F.softmin(input, self.dim, _stacklevel=5)


class Softmax2d(Module):
    """Softmax over the channels of an image: [N, C, H, W] or [C, H, W]."""

    def forward(self, input: Tensor) -> Tensor:
        """Apply it; ValueError for another number of dimensions."""
        if input.dim() not in (3, 4):
            raise ValueError(f"Softmax2d: expected input to be 3D or 4D, got {input.dim()}D instead")
        return F.softmax(input, -3, _stacklevel=5)


@declared
class GLU(Declared):
    """a * sigmoid(b), where a and b are the halves of the input along `dim`; that dimension becomes half as long."""

    dim: int = -1
    _shown = ("dim",)

    def forward(self, input: Tensor) -> Tensor:
        """Apply it."""
        return F.glu(input, self.dim)
