"""The same for each place in the leading dimensions of arrays.

Some operators keep a number `lead` of leading dimensions apart. On a batch there is one such dimension more.
"""

from __future__ import annotations

import math

import numpy as np

__all__ = ["at_each_place"]


def at_each_place(lead: int, function, *arrays):
    """What `function` gives for the arrays (None among them), at each place in their first `lead` dimensions, one after another."""
    if not lead:
        return function(*arrays)
    shape = next(a for a in arrays if a is not None).shape[:lead]
    rows = [a if a is None else a.reshape(math.prod(shape), *a.shape[lead:]) for a in arrays]
    found = [function(*[r if r is None else r[i] for r in rows]) for i in range(math.prod(shape))]
    if isinstance(found[0], tuple):
        return tuple([np.stack(column).reshape(*shape, *column[0].shape) for column in zip(*found, strict=True)])
    return np.stack(found).reshape(*shape, *found[0].shape)
