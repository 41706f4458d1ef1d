"""Differences along a dimension, areas under values by trapezoids, slopes on a grid. Running sums are in `ops/scans.py`."""

from __future__ import annotations

from pellucid.autograd.operator import composite
from pellucid.autograd.operator import tensors as F
from pellucid.core.dims import one_dim
from pellucid.core.tensor import Tensor

__all__ = ["cumulative_trapezoid", "diff", "gradient", "trapezoid", "trapz"]


# --- differences and areas -------------------------------------------------------------------------------------------


def _joined(input, prepend, append, dim: int):
    parts = [t for t in (prepend, input, append) if t is not None]
    return input if len(parts) == 1 else F.cat(parts, dim)


@composite(method=True)
def diff(input, n: int = 1, dim: int = -1, prepend=None, append=None, *, out=None):
    """The n-th difference along `dim`: element i + 1 minus element i, n times.

    input: [*S] with at least one dimension; prepend, append: tensors joined to it first. Bools are compared.
    Raises: RuntimeError (a 0-d tensor, or a negative n).
    """
    if not input._array.ndim:
        raise RuntimeError("diff expects input to be at least one-dimensional")
    if n < 0:
        raise RuntimeError(f"order must be non-negative but got {n}")
    for name, other in (("prepend", prepend), ("append", append)):
        if other is not None and other.ndim != input.ndim:
            raise RuntimeError(
                f"diff expects prepend or append to be the same dimension as input: {name} has {other.ndim}, input {input.ndim}"
            )
    dim = one_dim(dim, input.ndim)
    result = input.clone() if n == 0 else _joined(input, prepend, append, dim)
    for _ in range(min(n, result.size(dim))):
        size = max(result.size(dim) - 1, 0)
        later, earlier = result.narrow(dim, result.size(dim) - size, size), result.narrow(dim, 0, size)
        result = later.logical_xor(earlier) if result._array.dtype.kind == "b" else later - earlier
    return result if out is None else out.copy_(result)


def _steps(y, x, dx, dim: int):
    """The widths of the trapezoids, ready to be multiplied."""
    if x is None:
        return dx
    if x.ndim == 1 and y.ndim != 1:
        if x.size(0) != y.size(dim):
            raise RuntimeError(f"There must be one `x` value for each sample point: x has {x.size(0)}, y {y.size(dim)} along dim {dim}")
        return diff(x).reshape([-1 if d == dim else 1 for d in range(y.ndim)])
    return diff(x, dim=dim if x.ndim == y.ndim else dim - y.ndim)


def _heights(y, dim: int):
    size = max(y.size(dim) - 1, 0)
    return y.narrow(dim, y.size(dim) - size, size) + y.narrow(dim, 0, size)


def _check_spacing(y, x, dx) -> None:
    if x is not None and dx is not None:
        raise TypeError("trapezoid(): give the sample points as x or their distance as dx, not both")
    if isinstance(dx, complex) or (y._array.dtype.kind == "b"):
        raise RuntimeError("trapezoid: received a bool input for `x` or `y`, but bool is not supported")


@composite(alias=["trapz"])
def trapezoid(y, x=None, *, dx=None, dim: int = -1):
    """The area under the values y along `dim`, by trapezoids.

    y: [*S]; x: the sample points, [S[dim]] or broadcasting with y; dx: their distance (1 by default).
    """
    _check_spacing(y, x, dx)
    dim = one_dim(dim, y.ndim)
    if not y.size(dim):
        return y.sum(dim) * 1.0 if y._array.dtype.kind in "iu" else y.sum(dim)
    return (_heights(y, dim) * _steps(y, x, 1 if dx is None else dx, dim)).sum(dim) / 2.0


@composite()
def cumulative_trapezoid(y, x=None, *, dx=None, dim: int = -1):
    """The area under the values y up to each along `dim`, by trapezoids; see `trapezoid`. One element less than y."""
    _check_spacing(y, x, dx)
    dim = one_dim(dim, y.ndim)
    return (_heights(y, dim) * _steps(y, x, 1 if dx is None else dx, dim)).cumsum(dim) / 2.0


# --- slopes on a grid ------------------------------------------------------------------------------------------------


def _grid(input, spacing, dim):
    """The dimensions to differentiate along, and for each the distance of its points, or their coordinates."""
    several = isinstance(dim, (tuple, list))
    dims = list(range(input.ndim)) if dim is None else [one_dim(d, input.ndim) for d in (dim if several else [dim])]
    if len(set(dims)) < len(dims):
        raise RuntimeError(f"dim {dims} appears multiple times in the list of dims")
    if isinstance(spacing, (tuple, list)):
        if len(spacing) != len(dims):
            raise RuntimeError(
                f"torch.gradient expected spacing to be unspecified, a scalar, or a list of length equal to {len(dims)}, "
                f"but got a list of length {len(spacing)}"
            )
        return list(zip(dims, spacing, strict=True))
    return [(d, spacing) for d in dims]


def _slope(input, dim: int, step, edge_order: int):
    """The slope along one dimension: central differences inside, one-sided ones of the given order at the ends."""
    size = input.size(dim)
    part = lambda start, count: input.narrow(dim, start, count)  # noqa: E731 (used nine times below)
    if isinstance(step, Tensor):
        shape = [-1 if d == dim else 1 for d in range(input.ndim)]
        steps = diff(step.to(input.dtype) if step._array.dtype.kind in "iu" and input.is_floating_point() else step)
        before, after = steps[:-1].reshape(shape), steps[1:].reshape(shape)
        inside = (
            part(0, size - 2) * (-after / (before * (before + after)))
            + part(1, size - 2) * ((after - before) / (before * after))
            + part(2, size - 2) * (before / (after * (before + after)))
        )
        first, last = (steps[0], steps[1 % len(steps)]), (steps[-1], steps[-min(2, len(steps))])
    else:
        inside = (part(2, size - 2) - part(0, size - 2)) / (2 * step)
        first = last = (step, step)
    if edge_order == 1:
        start, end = (part(1, 1) - part(0, 1)) / first[0], (part(size - 1, 1) - part(size - 2, 1)) / last[0]
    else:
        start = _edge_slope(part(0, 1), part(1, 1), part(2, 1), *first)
        end = -_edge_slope(part(size - 1, 1), part(size - 2, 1), part(size - 3, 1), *last)
    return F.cat([start, inside, end], dim)


def _edge_slope(at, beside, beyond, near, far):
    """The slope at an end of the parabola through three points, `near` and `near + far` away."""
    return (
        at * (-(2 * near + far) / (near * (near + far)))
        + beside * ((near + far) / (near * far))
        + beyond * (-near / (far * (near + far)))
    )


@composite()
def gradient(input, *, spacing=None, dim=None, edge_order: int = 1):
    """The slopes of values on a grid along each dimension, by central differences: a tuple of tensors.

    input: [*S].
    spacing: the distance of the points (1 by default), or for each dimension its distance or a tensor of coordinates.
    dim: the dimensions (all by default).
    edge_order: 1 or 2, the order of the one-sided differences at the ends.
    Raises: RuntimeError (too few points, another order, dimensions named twice, spacing that does not fit).
    """
    if edge_order not in (1, 2):
        raise RuntimeError(f"torch.gradient only supports edge_order=1 and edge_order=2: got {edge_order}")
    grid = _grid(input, 1 if spacing is None else spacing, dim)
    for d, step in grid:
        if input.size(d) < edge_order + 1:
            raise RuntimeError(
                f"torch.gradient expected each dimension size to be at least edge_order+1: dimension {d} has {input.size(d)}"
            )
        if isinstance(step, Tensor) and (step.ndim != 1 or step.numel() != input.size(d)):
            raise RuntimeError(
                "torch.gradient expected each element of the spacing list to be a 1-d tensor with as many elements as the "
                f"dimension: got {list(step.shape)} for dimension {d} of size {input.size(d)}"
            )
    return tuple(_slope(input, d, step, edge_order) for d, step in grid)


trapz = trapezoid
