"""Questions about whole tensors that comparisons answer, as Python bools."""

from __future__ import annotations

from pellucid.autograd.operator import composite
from pellucid.ops.comparison import eq, isclose, ne

__all__ = ["allclose", "equal", "is_nonzero"]


@composite(method=True)
def allclose(input, other, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> bool:
    """Whether all elements are close (see `isclose`), as a Python bool."""
    return bool(isclose(input, other, rtol, atol, equal_nan).all())


@composite(method=True)
def equal(input, other) -> bool:
    """Whether both tensors have the same shape and equal elements, as a Python bool."""
    return input._array.shape == other._array.shape and bool(eq(input, other).all())


@composite(method=True)
def is_nonzero(input) -> bool:
    """Whether the only element is not zero, as a Python bool.

    Raises: RuntimeError (the tensor has more or fewer elements).
    """
    if input.numel() != 1:
        what = "no values" if not input.numel() else "more than one value"
        raise RuntimeError(f"Boolean value of Tensor with {what} is ambiguous: shape {tuple(input.shape)}")
    return bool(ne(input, 0).reshape(()))
