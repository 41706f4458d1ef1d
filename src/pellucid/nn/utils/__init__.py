"""Helpers around modules: clipping gradients, parameters as vectors, sequences, parametrized, pruned and fused weights."""

import sys as _sys

from pellucid.nn.utils import parametrizations, parametrize, prune, reparametrizations, rnn, stateless
from pellucid.nn.utils.clip_grad import (
    clip_grad_norm,
    clip_grad_norm_,
    clip_grad_value_,
    clip_grads_with_norm_,
    get_total_norm,
)
from pellucid.nn.utils.convert_parameters import parameters_to_vector, vector_to_parameters
from pellucid.nn.utils.fusion import (
    fuse_conv_bn_eval,
    fuse_conv_bn_weights,
    fuse_linear_bn_eval,
    fuse_linear_bn_weights,
)
from pellucid.nn.utils.init import skip_init
from pellucid.nn.utils.memory_format import (
    convert_conv2d_weight_memory_format,
    convert_conv3d_weight_memory_format,
)
from pellucid.nn.utils.reparametrizations import remove_spectral_norm, remove_weight_norm, spectral_norm, weight_norm

__all__ = [
    "clip_grad_norm",
    "clip_grad_norm_",
    "clip_grad_value_",
    "clip_grads_with_norm_",
    "convert_conv2d_weight_memory_format",
    "convert_conv3d_weight_memory_format",
    "fuse_conv_bn_eval",
    "fuse_conv_bn_weights",
    "fuse_linear_bn_eval",
    "fuse_linear_bn_weights",
    "get_total_norm",
    "parameters_to_vector",
    "parametrizations",
    "parametrize",
    "prune",
    "remove_spectral_norm",
    "remove_weight_norm",
    "rnn",
    "skip_init",
    "spectral_norm",
    "stateless",
    "vector_to_parameters",
    "weight_norm",
]

# PyTorch's modules of these names, from which the hooks are imported; as attributes the names are functions.
_sys.modules[f"{__name__}.spectral_norm"] = _sys.modules[f"{__name__}.weight_norm"] = reparametrizations
