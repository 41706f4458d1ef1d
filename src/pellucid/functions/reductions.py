"""Sums and means of the elements that are not NaN. Those of all elements are in `ops/reductions.py`."""

from __future__ import annotations

from pellucid.autograd.operator import composite
from pellucid.ops.reductions import nan_as_zero, sum, typed

__all__ = ["nanmean", "nansum"]


@composite(method=True)
def nansum(input, dim=None, keepdim=False, *, dtype=None, out=None):
    """The sum over elements that are not NaN; see `sum`.

    Raises: RuntimeError (complex input).
    """
    if input.is_complex():
        raise RuntimeError("nansum on CPU does not support complex inputs")
    return sum(nan_as_zero(input), dim, keepdim, dtype=dtype, out=out)


@composite(method=True)
def nanmean(input, dim=None, keepdim=False, *, dtype=None, out=None):
    """The mean of the elements that are not NaN; see `mean`.

    Raises: RuntimeError (integers or bools).
    """
    if not input.is_floating_point():
        raise RuntimeError(f"nanmean(): expected input to have floating point dtype but got {input.dtype}")
    total = sum(nan_as_zero(typed(input, dtype)), dim, keepdim)
    count = sum(input.isnan().logical_not(), dim, keepdim)
    return total.div(count, out=out)
