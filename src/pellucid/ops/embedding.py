"""Rows chosen from a table, with the gradient that adds rows back into the table; rows added up in bags; rows of ones and zeros.

`embedding_bag`, `one_hot` and the form in `nn.functional` are in `functions/embedding.py`, index_select and gather in scatter.py.
"""

from __future__ import annotations

import numpy as np

from pellucid.autograd.operator import Array, Index, arrays, composite, operator
from pellucid.autograd.operator import tensors as T
from pellucid.core.index_checks import check_indices, check_range
from pellucid.kernels import embedding as kernel
from pellucid.kernels.accumulation import add_rows
from pellucid.ops.batch_places import into, out_of
from pellucid.ops.batches import for_each

__all__ = ["embedding"]


# --- the table and its gradient ----------------------------------------------------------------------------------------


def _both(F, size: int, batched: set, **operands) -> list:
    return [for_each(F, t, name in batched, size) for name, t in operands.items()]


def _without_padding(F, rows, indices, padding_idx: int, instead):
    """Rows, with something else in the place of those of the padding."""
    return rows if padding_idx < 0 else F.where(F.unsqueeze(indices == padding_idx, -1), instead, rows)


@operator(module=None, name="embedding", exact=True, linear=True)
class _embedding:
    """Rows of a table at given indices. The row `padding_idx` gets no gradient; negative for none.

    weight: [V, D]; indices: [*S], int64 or int32. Returns [*S, D].
    """

    def canonical(weight, indices, padding_idx: int, scale_grad_by_freq: bool):
        if weight.ndim != 2:
            raise RuntimeError(f"'weight' must be 2-D: got shape {list(weight.shape)}")
        check_indices(indices, "embedding")
        check_range(indices, weight.shape[0])
        return padding_idx, bool(scale_grad_by_freq)

    def forward(xp, weight: Array, indices: Index, padding_idx: int, scale_grad_by_freq: bool):
        return weight.take(indices, axis=0)

    def vjp_weight(F, grad, indices, weight_shape, padding_idx, scale_grad_by_freq):
        if F is arrays:  # the table may be a leaf, to which few rows are enough
            return kernel.gradient_of_few(grad, indices, weight_shape[0], padding_idx, scale_grad_by_freq)
        return F.embedding_dense_backward(grad, indices, weight_shape[0], padding_idx, scale_grad_by_freq)

    def batch(F, size_of_batch, batched, weight, indices, padding_idx, scale_grad_by_freq):
        if "weight" not in batched and not scale_grad_by_freq:
            return F.embedding(weight, indices, padding_idx, False)
        if "indices" not in batched and not scale_grad_by_freq:
            rows = F.index_at(weight, indices, 1, 1)
        else:  # a table for each example, one below the other
            weight, indices = _both(F, size_of_batch, batched, weight=weight, indices=indices)
            rows = F.embedding(into(F, weight, 0), F.numbered(indices, weight.shape[1], 0), -1, scale_grad_by_freq)
        return _without_padding(F, rows, indices, padding_idx, rows.detach())

    def samples(make):
        yield (make(5, 3), make.integers(2, 4, high=5), -1, False), {}
        yield (make(5, 3), make.integers(high=5), -1, False), {}
        yield (make(5, 3), make.integers(0, 2, high=5), -1, False), {}
        yield (make(3, 5).T, make.integers(4, high=5), -1, False), {}


@operator(module=None, linear=True)
class embedding_dense_backward:
    """The gradient of `embedding`'s table: the rows of a gradient added up where their indices say.

    input: [*S, D]; indices: [*S]. Returns [num_weights, D].
    """

    def forward(xp, input: Array, indices: Index, num_weights: int, padding_idx: int, scale_grad_by_freq: bool):
        return kernel.gradient(input, indices, num_weights, padding_idx, scale_grad_by_freq)

    def vjp_input(F, grad, indices, num_weights, padding_idx, scale_grad_by_freq):
        return F.embedding_shares(grad, indices, padding_idx, scale_grad_by_freq)

    def batch(F, size_of_batch, batched, input, indices, num_weights, padding_idx, scale_grad_by_freq):
        input, indices = _both(F, size_of_batch, batched, input=input, indices=indices)
        rows, numbers = _without_padding(F, input, indices, padding_idx, 0), F.numbered(indices, num_weights, 0)
        made = F.embedding_dense_backward(rows, numbers, size_of_batch * num_weights, -1, scale_grad_by_freq)
        return out_of(F, made, 0, size_of_batch, num_weights)

    def samples(make):
        for padding, scale in ((-1, False), (1, False), (-1, True), (1, True)):
            yield (make(2, 4, 3), make.integers(2, 4, high=5), 5, padding, scale), {}
        yield (make(3), make.integers(high=5), 5, -1, False), {}


@operator(module=None, linear=True)
class embedding_shares:
    """The transpose of `embedding_dense_backward`: rows of a table, those of the padding zero, divided by their frequency."""

    def forward(xp, weight: Array, indices: Index, padding_idx: int, scale_grad_by_freq: bool):
        return kernel.taken(weight, indices, padding_idx, scale_grad_by_freq)

    def vjp_weight(F, grad, indices, weight_shape, padding_idx, scale_grad_by_freq):
        return F.embedding_dense_backward(grad, indices, weight_shape[0], padding_idx, scale_grad_by_freq)

    def batch(F, size_of_batch, batched, weight, indices, padding_idx, scale_grad_by_freq):
        weight, indices = _both(F, size_of_batch, batched, weight=weight, indices=indices)
        rows = F.embedding_shares(into(F, weight, 0), F.numbered(indices, weight.shape[1], 0), -1, scale_grad_by_freq)
        return _without_padding(F, rows, indices, padding_idx, 0)

    def samples(make):
        for padding, scale in ((-1, False), (1, False), (-1, True), (1, True)):
            yield (make(5, 3), make.integers(2, 4, high=5), padding, scale), {}


# --- embedding -------------------------------------------------------------------------------------------------------


@composite()
def embedding(weight, indices, padding_idx=-1, scale_grad_by_freq=False, sparse=False):
    """Rows of a table at given indices, with the table first: weight [V, D], indices [*S] -> [*S, D].

    The row `padding_idx` gets no gradient (negative: none). `sparse` is accepted; gradients are dense.
    Raises: IndexError for an index outside [0, V), RuntimeError for other dtypes of indices or ranks of the table.
    """
    return T.embedding(weight, indices, padding_idx, scale_grad_by_freq)


# --- embedding_bag ---------------------------------------------------------------------------------------------------


@operator(module=None, linear=True)
class sum_bags:
    """Rows added up bag by bag. rows: [n, D]; bags: [n], the bag of each row. Returns [count, D]."""

    def forward(xp, rows: Array, bags: Index, count: int):
        return add_rows(count, bags, rows, rows.dtype, rows.shape[1:])

    def vjp_rows(F, grad, bags): return F.embedding(grad, bags, -1, False)

    def batch(F, size_of_batch, batched, rows, bags, count):
        rows, bags = _both(F, size_of_batch, batched, rows=rows, bags=bags)
        made = F.sum_bags(into(F, rows, 0), F.reshape(F.numbered(bags, count, 0), (-1,)), size_of_batch * count)
        return out_of(F, made, 0, size_of_batch, count)

    def samples(make): yield (make(5, 3), np.array([0, 0, 2, 2, 2]), 4), {}


@operator(module=None, exact=True, linear=True)
class bag_sums:
    """Rows of a table added up bag by bag: `sum_bags` of `embedding`, without the rows between.

    weight: [V, D]; indices: [n]; starts: [bags], ascending, where each bag begins. Returns [bags, D].
    """

    def forward(xp, weight: Array, indices: Index, starts: Index): return kernel.bag_sums(weight, indices, starts)

    def vjp_weight(F, grad, indices, starts, weight_shape):
        if F is arrays:
            return kernel.gradient_of_bags(grad, indices, starts, weight_shape[0])
        rows = F.embedding(grad, F.bag_numbers(starts, indices.shape[0]), -1, False)
        return F.embedding_dense_backward(rows, indices, weight_shape[0], -1, False)

    def batch(F, size_of_batch, batched, weight, indices, starts):
        weight, indices, starts = _both(F, size_of_batch, batched, weight=weight, indices=indices, starts=starts)
        rows = F.embedding(into(F, weight, 0), F.numbered(indices, weight.shape[1], 0), -1, False)
        bags = F.reshape(F.numbered(F.bag_numbers(starts, indices.shape[1]), starts.shape[1], 0), (-1,))
        made = F.sum_bags(into(F, rows, 0), bags, size_of_batch * starts.shape[1])
        return out_of(F, made, 0, size_of_batch, starts.shape[1])

    def samples(make):
        yield (make(5, 3), make.integers(6, high=5), np.array([0, 2, 2, 3])), {}
        yield (make(5, 3), make.integers(2, high=5), np.array([0])), {}
        yield (make(3, 5).T, make.integers(4, high=5), np.array([0, 4])), {}


@operator(module=None, batching="leading")
class bag_numbers:
    """The bag of each of `count` rows, given where bags start. starts: [*S, bags]. Returns [*S, count]."""

    def forward(xp, starts: Index, count: int):
        return kernel.bag_numbers(starts, count)


@operator(module=None, batching="leading")
class bag_sizes:
    """How many of `count` rows each bag has, given where bags start; 1 for an empty one. starts: [*S, bags]. Returns its shape."""

    def forward(xp, starts: Index, count: int):
        return kernel.bag_sizes(starts, count)


@operator(module=None, batching="leading")
class largest_in_bags:
    """The row that is largest in each column of a bag, the first of equal ones; -1 in a bag without rows that count.

    rows: [*S, n, D]; bags: [*S, n], ascending; counts: [*S, n], whether a row counts. Returns [*S, count, D].
    """

    def forward(xp, rows: Index, bags: Index, counts: Index, count: int):
        return kernel.largest_in_bags(rows, bags, counts, count)


# --- one-hot ----------------------------------------------------------------------------------------------------------


@operator(module=None, batching="leading")
class one_hot_rows:
    """A last dimension with a 1 at each class number. [*S] -> [*S, num_classes], int64."""

    def forward(xp, classes: Index, num_classes: int):
        return kernel.one_hot(classes, num_classes)
