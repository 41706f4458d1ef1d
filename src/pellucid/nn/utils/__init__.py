"""Helpers around modules: clipping gradients, parameters as vectors, sequences, parametrized weights."""

from pellucid.nn.utils import parametrizations, parametrize, rnn
from pellucid.nn.utils.clip_grad import (
    clip_grad_norm,
    clip_grad_norm_,
    clip_grad_value_,
    clip_grads_with_norm_,
    get_total_norm,
)
from pellucid.nn.utils.convert_parameters import parameters_to_vector, vector_to_parameters
from pellucid.nn.utils.reparametrizations import remove_spectral_norm, remove_weight_norm, spectral_norm, weight_norm

__all__ = [
    "clip_grad_norm",
    "clip_grad_norm_",
    "clip_grad_value_",
    "clip_grads_with_norm_",
    "get_total_norm",
    "parameters_to_vector",
    "parametrizations",
    "parametrize",
    "remove_spectral_norm",
    "remove_weight_norm",
    "rnn",
    "spectral_norm",
    "vector_to_parameters",
    "weight_norm",
]
