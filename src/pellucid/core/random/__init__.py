"""Draws from a random generator: arrays of uniform, normal, integer, ... numbers, the same as PyTorch's CPU numbers.

Shapes and NumPy dtypes in, arrays out; only the state of a generator is given as a tensor. Every function takes
`generator=None`, the default generator. Given a seed, each consumes the same words of the stream in the same order as
PyTorch 2.13, so calls can follow one another in any mixture. Uniform, integer and Bernoulli numbers and permutations
agree bit for bit; numbers that pass through a logarithm or a sine agree to the last digit or two.
"""

from .generator import Generator, default_generator, get_rng_state, initial_seed, manual_seed, seed, set_rng_state
from .integers import integers, permutation, whole_range
from .normals import log_normal, normal
from .order import fill
from .sampling import multinomial, poisson, truncated_normal
from .uniforms import bernoulli, cauchy, dropout_mask, exponential, geometric, uniform

__all__ = [
    "Generator",
    "bernoulli",
    "cauchy",
    "default_generator",
    "dropout_mask",
    "exponential",
    "fill",
    "geometric",
    "get_rng_state",
    "initial_seed",
    "integers",
    "log_normal",
    "manual_seed",
    "multinomial",
    "normal",
    "permutation",
    "poisson",
    "seed",
    "set_rng_state",
    "truncated_normal",
    "uniform",
    "whole_range",
]
