"""What all distributions use: parameters of one shape, values computed when first asked, probabilities and logits.

The names are those of `torch.distributions.utils`. Nothing here knows a distribution.
"""

from __future__ import annotations

import functools
import itertools
from numbers import Number

from pellucid.autograd.grad_mode import enable_grad
from pellucid.core.dtype import get_default_dtype
from pellucid.core.limits import finfo
from pellucid.core.tensor import Tensor
from pellucid.functions.broadcasting import broadcast_tensors
from pellucid.functions.construction import tensor
from pellucid.functions.factories import arange

__all__ = [
    "broadcast_all",
    "clamp_probs",
    "euler_constant",
    "lazy_property",
    "logits_to_probs",
    "must",
    "pieces",
    "probs_to_logits",
    "shown",
    "sum_rightmost",
    "tril_matrix_to_vec",
    "vec_to_tril_matrix",
]

euler_constant = 0.57721566490153286060


def broadcast_all(*values) -> tuple[Tensor, ...]:
    """Numbers and tensors as tensors of one shape; numbers take the dtype of the first tensor (or the default one).

    Raises:
        ValueError: a value is neither.
    """
    if not all(isinstance(v, (Tensor, Number)) for v in values):
        kinds = ", ".join(type(v).__name__ for v in values)
        raise ValueError(
            f"Input arguments must all be instances of Number, torch.Tensor or objects implementing __torch_function__: "
            f"got {kinds}"
        )
    dtype = next((v.dtype for v in values if isinstance(v, Tensor)), get_default_dtype())
    return broadcast_tensors(*[v if isinstance(v, Tensor) else tensor(v, dtype=dtype) for v in values])


class lazy_property(property):
    """A property computed once, with gradients, and then kept on the instance, where it can also be set."""

    def __init__(self, compute):
        super().__init__(compute)
        functools.update_wrapper(self, compute)

    def __get__(self, instance, owner=None):
        if instance is None:
            return self
        name = self.fget.__name__
        if name not in instance.__dict__:
            with enable_grad():
                instance.__dict__[name] = self.fget(instance)
        return instance.__dict__[name]

    def __set__(self, instance, value):
        instance.__dict__[self.fget.__name__] = value


def shown(value) -> str:
    """A parameter as texts show it: a tensor without dimensions by its number."""
    return str(value.item() if isinstance(value, Tensor) and value.dim() == 0 else value)


def sum_rightmost(value: Tensor, count: int) -> Tensor:
    """The sum over the last `count` dimensions."""
    return value.reshape((*value.shape[:-count], -1)).sum(-1) if count else value


def pieces(value: Tensor, lengths, dim: int) -> list[Tensor]:
    """Successive pieces along a dimension, as views."""
    starts = itertools.accumulate(lengths, initial=0)
    return [value.narrow(dim, start, length) for start, length in zip(starts, lengths, strict=False)]


def must(condition: bool, message: str) -> None:
    """AssertionError, as PyTorch raises for constraints and transforms put together wrongly, unless the condition holds."""
    if not condition:
        raise AssertionError(message)


def clamp_probs(probs: Tensor) -> Tensor:
    """Probabilities kept off 0 and 1 by the dtype's precision, so that their logarithms are finite."""
    eps = finfo(probs.dtype).eps
    return probs.clamp(min=eps, max=1 - eps)


def probs_to_logits(probs: Tensor, is_binary: bool = False) -> Tensor:
    """Log-probabilities along the last dimension, or log-odds if binary; finite at 0 and 1."""
    probs = clamp_probs(probs)
    return probs.log() - (-probs).log1p() if is_binary else probs.log()


def logits_to_probs(logits: Tensor, is_binary: bool = False) -> Tensor:
    """Probabilities of unnormalised log-probabilities along the last dimension, or of log-odds if binary."""
    return logits.sigmoid() if is_binary else logits.softmax(-1)


def _lower(size: int, diag: int) -> Tensor:
    """Which elements of a square matrix are on or below a diagonal."""
    along = arange(size)
    return along <= along.unsqueeze(-1) + diag


def tril_matrix_to_vec(mat: Tensor, diag: int = 0) -> Tensor:
    """The elements on or below diagonal `diag`, row by row: [*S, D, D] to [*S, N].

    Raises:
        ValueError: there is no such diagonal.
    """
    size = mat.shape[-1]
    if not -size <= diag < size:
        raise ValueError(f"diag ({diag}) provided is outside [{-size}, {size - 1}].")
    return mat[..., _lower(size, diag)]


def vec_to_tril_matrix(vec: Tensor, diag: int = 0) -> Tensor:
    """The inverse of `tril_matrix_to_vec`, with zeros above the diagonal: [*S, N] to [*S, D, D].

    Raises:
        ValueError: no matrix has that many elements there.
    """
    count = vec.shape[-1]
    # count = (D + diag) (D + diag + 1) / 2, less the corner that sticks out below for diag > 0
    width = 1 + 2 * diag
    size = (-width + (width**2 + 8 * count + 4 * abs(diag) * (diag + 1)) ** 0.5) / 2
    if abs(round(size) - size) > finfo(vec.dtype).eps:
        raise ValueError(
            f"The size of last dimension is {count} which cannot be expressed as the lower triangular part of a square "
            "D x D matrix."
        )
    size = round(size)
    matrix = vec.new_zeros((*vec.shape[:-1], size, size))
    matrix[..., _lower(size, diag)] = vec
    return matrix
