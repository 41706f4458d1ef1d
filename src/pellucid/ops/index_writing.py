"""Writing by indices, as operators. Brackets and `index_put` are in `functions/index_writing.py`, reading in `indexing.py`."""

from __future__ import annotations

import numpy as np

from pellucid.autograd.operator import Array, Indices, operator
from pellucid.core.errors import type_name
from pellucid.core.index_arrays import key_of, put
from pellucid.ops.batches import for_each
from pellucid.ops.indexing import BatchOfPlaces


@operator(module=None, name="index_put", node="IndexPutBackward0", broadcast=False, holomorphic=False, widen=False, linear=True)
class index_put_:
    """The raw form of `index_put`: indices as integer tensors or None."""

    def forward(xp, input: Array, indices: Indices, values: Array, accumulate: bool = False):
        if values.dtype != input.dtype:
            raise RuntimeError(f"Index put requires the source and destination dtypes match, got {type_name(input.dtype)} for the "
                               f"destination and {type_name(values.dtype)} for the source.")
        whole = input.copy()
        put(whole, indices, values, accumulate)
        return whole

    def vjp_input(F, grad, indices, accumulate): return grad if accumulate else F.index_zero(grad, indices)
    def vjp_values(F, grad, indices, values_shape): return F.sum_to_size(F.index(grad, indices), values_shape)

    def batch(F, size_of_batch, batched, input, indices, values, accumulate):
        input = for_each(F, input, "input" in batched, size_of_batch)
        places = BatchOfPlaces(F, size_of_batch, indices, "indices" in batched)
        values = places.values(values, "values" in batched, input.ndim - 1)
        return F.index_put(input, places.indices, values, accumulate)

    def samples(make):
        yield (make(3, 4), [np.array([2, 0])], make(2, 4), False), {}
        yield (make(3, 4), [np.array([2, 2]), np.array([1, 1])], make(2), True), {}
        yield (make(3, 2, 4), [np.array([2, 0]), None, np.array([1, 3])], make(2), True), {}
        yield (make(2, 3, 4), [None, np.array([2, 0]), np.array([1, 3])], make(2), False), {}


@operator(module=None, linear=True)
class index_zero:
    """The operand with zeros in the places that indices choose."""

    def forward(xp, input: Array, indices: Indices):
        whole = input.copy()
        whole[key_of(indices)] = 0
        return whole

    def vjp_input(F, grad, indices): return F.index_zero(grad, indices)

    def batch(F, size_of_batch, batched, input, indices):
        places = BatchOfPlaces(F, size_of_batch, indices, "indices" in batched)
        return F.index_zero(for_each(F, input, "input" in batched, size_of_batch), places.indices)

    def samples(make): yield (make(3, 4), [np.array([2, 0])]), {}
