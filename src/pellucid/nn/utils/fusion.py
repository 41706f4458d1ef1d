"""Batch normalisation folded into the layer before it, for evaluation: the scale into its weight, the shift into its bias."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING

from pellucid.core.tensor import Parameter
from pellucid.functions.factories import ones_like, zeros_like

if TYPE_CHECKING:
    from pellucid.core.tensor import Tensor
    from pellucid.nn.modules.module import Module

__all__ = ["fuse_conv_bn_eval", "fuse_conv_bn_weights", "fuse_linear_bn_eval", "fuse_linear_bn_weights"]


def _fused(layer: Module, bn: Module, fuse, *more) -> Module:
    if layer.training or bn.training:
        raise AssertionError("Fusion only for eval!")
    if bn.running_mean is None or bn.running_var is None:
        raise AssertionError("bn.running_mean and bn.running_var must not be None")
    made = copy.deepcopy(layer)
    statistics = bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias
    made.weight, made.bias = fuse(made.weight, made.bias, *statistics, *more)
    return made


def fuse_conv_bn_eval(conv: Module, bn: Module, transpose: bool = False) -> Module:
    """A convolution that does what `conv` and then `bn` do.

    Args:
        conv: the convolution, in evaluation mode.
        bn: the batch normalisation, in evaluation mode, with running statistics.
        transpose: whether the convolution is a transposed one.

    Raises:
        AssertionError: training mode, or no running statistics.
    """
    return _fused(conv, bn, fuse_conv_bn_weights, transpose)


def fuse_linear_bn_eval(linear: Module, bn: Module) -> Module:
    """A linear layer that does what `linear` and then `bn` do; both in evaluation mode.

    Raises:
        AssertionError: training mode, no running statistics, or numbers of features that differ.
    """
    if linear.out_features != bn.num_features and bn.num_features != 1:
        raise AssertionError(
            "To fuse, linear.out_features == bn.num_features or bn.num_features == 1, got "
            f"linear.out_features={linear.out_features} and bn.num_features={bn.num_features}"
        )
    return _fused(linear, bn, fuse_linear_bn_weights)


def fuse_conv_bn_weights(
    conv_w: Tensor, conv_b: Tensor | None, bn_rm: Tensor, bn_rv: Tensor, bn_eps: float, bn_w: Tensor | None,
    bn_b: Tensor | None, transpose: bool = False,
) -> tuple[Parameter, Parameter]:  # fmt: skip
    """Weight and bias of the fused convolution, in the dtypes of the given ones.

    conv_w: [out, in, *kernel], or [in, out, *kernel] for a transposed convolution. All others: [out].
    """
    shape = [1] * conv_w.dim()
    shape[1 if transpose else 0] = -1
    return _folded(conv_w, conv_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b, shape)


def fuse_linear_bn_weights(
    linear_w: Tensor, linear_b: Tensor | None, bn_rm: Tensor, bn_rv: Tensor, bn_eps: float, bn_w: Tensor | None,
    bn_b: Tensor | None,
) -> tuple[Parameter, Parameter]:  # fmt: skip
    """Weight [out, in] and bias [out] of the fused layer, in the dtypes of the given ones. All others: [out]."""
    return _folded(linear_w, linear_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b, [-1, 1])


def _folded(weight, bias, mean, variance, eps, scale, shift, shape) -> tuple[Parameter, Parameter]:
    """scale / sqrt(variance + eps) times the weight, along the outputs, and what that makes of bias and mean."""
    bias = zeros_like(mean, dtype=weight.dtype) if bias is None else bias
    factor = (variance + eps).rsqrt() * (ones_like(mean) if scale is None else scale)
    new_weight = (weight * factor.reshape(shape)).to(weight.dtype)
    new_bias = ((bias - mean) * factor + (zeros_like(mean) if shift is None else shift)).to(bias.dtype)
    return Parameter(new_weight.detach(), weight.requires_grad), Parameter(new_bias.detach(), bias.requires_grad)
