"""All parameters as one vector, and back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pellucid.core.tensor import Tensor
from pellucid.ops.joining import cat

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["parameters_to_vector", "vector_to_parameters"]


def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """The elements of all parameters, one after the other: [total]."""
    return cat([parameter.reshape(-1) for parameter in parameters])


def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Let the parameters have the elements of `vec` [total] as their values, sharing its memory.

    Raises:
        TypeError: `vec` is no tensor.
    """
    if not isinstance(vec, Tensor):
        raise TypeError(f"expected Tensor, but got: {type(vec).__name__}")
    start = 0
    for parameter in parameters:
        end = start + parameter.numel()
        parameter.data = vec[start:end].view_as(parameter).data
        start = end
