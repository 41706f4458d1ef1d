"""Norms, distances, and cross products as users call them, and slices scaled down to a norm.

The operators are in `ops/norms.py`; matrix norms are in `linear_functions.py`.
"""

from __future__ import annotations

from pellucid.autograd.operator import composite
from pellucid.core.dims import one_dim
from pellucid.ops.norms import cross_kernel, norm_kernel

__all__ = ["cross", "dist", "norm", "renorm"]


@composite(module="linalg")
def vector_norm(x, ord=2, dim=None, keepdim: bool = False, *, dtype=None, out=None):
    """The norm of vectors: the elements along `dim` (all of them by default).

    x: [*S], floating-point or complex; the result is real.
    ord: any number, inf and -inf for the largest and smallest absolute value, 0 for how many are not zero.
    dim: a dimension or a tuple.
    keepdim: keep the reduced dimensions, with size one.
    dtype: convert to this type first.
    Raises: RuntimeError (integers, or an empty tensor where the norm has no value).
    """
    if not isinstance(ord, (int, float)):
        raise TypeError(f"linalg_vector_norm(): argument 'ord' must be Number, not {type(ord).__name__}")
    if dtype is not None:
        if not (dtype.is_floating_point or dtype.is_complex):
            raise RuntimeError(f"linalg.vector_norm: dtype should be floating point or complex. Got {dtype}")
        if x.is_complex() and not dtype.is_complex:
            raise RuntimeError(f"linalg.vector_norm: dtype should be complex for complex inputs. Got {dtype}")
        x = x.to(dtype)
    return norm_kernel(x, ord, dim, keepdim, out=out)


@composite(method=True)
def norm(input, p="fro", dim=None, keepdim: bool = False, out=None, dtype=None):
    """The norm of a tensor: a vector norm of order p over `dim`; "nuc" for the nuclear norm of matrices.

    input: [*S], floating-point or complex.
    p: a number, "fro" (the same as 2) or "nuc".
    dim: a dimension or a tuple; None for the norm of all elements.
    Raises: RuntimeError (integers, or another name).
    """
    if isinstance(p, str) and p != "fro":
        if p != "nuc":
            raise RuntimeError(f"unsupported norm: {p}. Give a number, 'fro' or 'nuc'")
        from pellucid.autograd.operator import PUBLIC

        dim = (-2, -1) if dim is None else dim
        return PUBLIC["linalg"]["matrix_norm"](input, "nuc", dim, keepdim, dtype=dtype, out=out)
    return vector_norm(input, 2 if p in ("fro", None) else p, dim, keepdim, dtype=dtype, out=out)


@composite(method=True)
def dist(input, other, p=2):
    """The p-norm of the difference of two tensors that broadcast. Returns a number as a 0-d tensor."""
    return norm_kernel(input - other, p, None, False)


def renorm_(input, p: float, dim: int, maxnorm: float):
    """In-place form of `renorm`."""
    return input.mul_(_shrinkage(input, p, dim, maxnorm))


def _shrinkage(input, p: float, dim: int, maxnorm: float):
    """The factor for each slice: one where its norm is small enough."""
    if p <= 0:
        raise RuntimeError(f"renorm: non-positive-norm not supported: p is {p}")
    if maxnorm < 0:
        raise RuntimeError(f"renorm: expected maxnorm to be >= 0 but got {maxnorm}")
    if input.ndim < 2:
        raise RuntimeError(f"renorm: input needs at least 2 dimensions, got {input.ndim} dimensions")
    dim = one_dim(dim, input.ndim)
    size = norm_kernel(input, p, tuple(d for d in range(input.ndim) if d != dim), True)
    return (maxnorm / (size + 1e-7)).where(size > maxnorm, 1.0)


@composite(method=True, inplace=renorm_)
def renorm(input, p: float, dim: int, maxnorm: float, *, out=None):
    """The tensor with each slice along `dim` scaled down to a p-norm of at most `maxnorm`.

    Raises: RuntimeError (p is not positive, maxnorm is negative, or fewer than two dimensions).
    """
    return input.mul(_shrinkage(input, p, dim, maxnorm), out=out)


def _check_cross(input, other, dim: int) -> int:
    if input.ndim != other.ndim:
        raise RuntimeError(f"linalg.cross: inputs must have the same number of dimensions: got {input.ndim} and {other.ndim}")
    dim = one_dim(dim, input.ndim) - input.ndim
    for tensor in (input, other):
        if not tensor.ndim or tensor.shape[dim] != 3:
            raise RuntimeError(
                f"linalg.cross: inputs dimension {dim} must have length 3. Got {[t.shape[dim] if t.ndim else None for t in (input, other)]}"
            )
    return dim


@composite(name="cross", module="linalg")
def linalg_cross(input, other, *, dim: int = -1, out=None):
    """The vector product of two tensors along a dimension of size 3.

    input, other: broadcastable, with as many dimensions. Returns the common shape and dtype.
    Raises: RuntimeError (the numbers of dimensions differ, or the dimension is not of size 3).
    """
    return cross_kernel(input, other, _check_cross(input, other, dim), out=out)


@composite(method=True)
def cross(input, other, dim: int | None = None, *, out=None):
    """The vector product along `dim`, by default the first dimension of size 3; see `linalg.cross`."""
    if dim is None:
        dim = next((d for d, size in enumerate(input.shape) if size == 3), None)
        if dim is None:
            raise RuntimeError("no dimension of size 3 in input")
    return linalg_cross(input, other, dim=dim, out=out)
