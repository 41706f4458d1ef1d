"""Rows chosen from a table as networks do: with a longest norm, in bags, and as rows of ones and zeros.

The operators are in `ops/embedding.py`.
"""

from __future__ import annotations

import warnings

import numpy as np

from pellucid.autograd.operator import composite
from pellucid.autograd.operator import tensors as T
from pellucid.core.checks import every_value, refuse_dynamic, scalar_name
from pellucid.core.index_checks import check_indices, check_range
from pellucid.core.tensor import Tensor, wrap
from pellucid.core.values import differs
from pellucid.ops.embedding import bag_numbers, bag_sizes, largest_in_bags, one_hot_rows

__all__ = ["embedding_bag", "embedding_renorm_", "one_hot"]


# --- rows shrunk to a norm ----------------------------------------------------------------------------------------------


@composite(name="embedding_renorm_")
def embedding_renorm_(input, indices, max_norm, norm_type):
    """Shrink, in place, the rows of a table that are chosen and longer than `max_norm`, to that length.

    input: [V, D], float; indices: [*S], int64 or int32. Returns the table. Nothing is recorded for gradients.
    """
    if differs(input) or differs(indices):
        raise RuntimeError("vmap: embedding_renorm_() writes into the table, which is the same for all examples. Shrink its rows "
                           "outside of vmap, and leave max_norm out.")
    table, chosen = input._array, indices._array
    check_indices(chosen, "embedding_renorm_")
    if table.ndim != 2:
        raise RuntimeError(f"Expected 2-dimensional tensor, but got shape {list(table.shape)} for argument 'input' of embedding_renorm_")
    check_range(chosen, table.shape[0])
    chosen = np.unique(chosen)
    rows = table[chosen]
    lengths = np.linalg.norm(rows.astype(np.float32) if rows.itemsize < 4 else rows, float(norm_type), axis=1)
    long = lengths > max_norm
    if long.any():
        factors = max_norm / (lengths[long] + 1e-7)
        table[chosen[long]] = (rows[long] * factors[:, None]).astype(table.dtype)
    input._bump_version()
    return input


# --- embedding -------------------------------------------------------------------------------------------------------


def _table_index(index: int, size: int) -> int:
    return index + size if index < 0 else index


@composite(module="nn.functional", name="embedding")
def functional_embedding(
    input, weight, padding_idx=None, max_norm=None, norm_type=2.0, scale_grad_by_freq=False, sparse=False
):
    """Rows of a table at given indices.

    input: [*S], int64 or int32, in [0, V); weight: [V, D]. Returns [*S, D]. The row `padding_idx` gets no gradient; rows longer
    than `max_norm` (in the norm `norm_type`) are first shrunk in place; `scale_grad_by_freq` divides each row's gradient by
    how often it is chosen. `sparse` is accepted; gradients are dense.
    Raises: IndexError for an index that is not there, AssertionError for a padding_idx that is not there, RuntimeError for
    other dtypes or ranks.
    """
    if padding_idx is not None:
        size = weight.size(0)
        if not -size <= padding_idx < size:
            raise AssertionError(f"Padding_idx must be within num_embeddings: got {padding_idx} for {size} rows")
        padding_idx = _table_index(padding_idx, size)
    if max_norm is not None:
        embedding_renorm_(weight, input, max_norm, norm_type)
    return T.embedding(weight, input, -1 if padding_idx is None else padding_idx, scale_grad_by_freq)


# --- embedding_bag ---------------------------------------------------------------------------------------------------


def _bag_indices(input: Tensor, weight: Tensor, offsets, per_sample_weights):
    """Indices [n], starts of the bags and weights [n] of either form of input; ValueError for shapes that do not fit."""
    if per_sample_weights is not None and input.size() != per_sample_weights.size():
        raise ValueError(f"embedding_bag: If per_sample_weights ({per_sample_weights.shape}) is not None, then it must have the "
                         f"same shape as the input ({input.shape})")
    if weight.dim() != 2:
        raise ValueError(f"weight has to be a 2D Tensor, but got Tensor of dimension {weight.dim()}")
    if input.dim() == 2:
        if offsets is not None:
            raise ValueError("if input is 2D, then offsets has to be None, as input is treated is a mini-batch of fixed length "
                             f"sequences. However, found offsets of type {type(offsets)}")
        starts = wrap(np.arange(input.size(0), dtype=np.int64) * input.size(1))
        return input.reshape(-1), starts, None if per_sample_weights is None else per_sample_weights.reshape(-1)
    if input.dim() != 1:
        raise ValueError(f"input has to be 1D or 2D Tensor, but got Tensor of dimension {input.dim()}")
    if offsets is None:
        raise ValueError("offsets has to be a 1D Tensor but got None: with a 1D input it says where each bag starts")
    if offsets.dim() != 1:
        raise ValueError(f"offsets has to be a 1D Tensor, but got Tensor of dimension {offsets.dim()}")
    return input, offsets, per_sample_weights


def _check_bags(input: Tensor, offsets: Tensor, size: int, padding_idx: int | None, include_last_offset: bool) -> None:
    indices, starts, count = every_value(input), every_value(offsets), input._array.size
    for each in (indices, starts):
        check_indices(each, "embedding_bag")
    if include_last_offset and not starts.size:
        raise RuntimeError("include_last_offset: number of offset should be at least 1")
    if starts.size and (first := starts[..., 0]).any():
        raise RuntimeError("offsets[0] has to be 0, i.e., the first sequence in the mini-batch has to start from position 0. "
                           f"However, got {first.max()}")
    if starts.size and (last := starts[..., -1].max()) > count:
        raise RuntimeError(f"offsets[-1] can not be greater than input's length {count} but got offsets[-1] of {last}")
    if padding_idx is not None and not -size <= padding_idx < size:
        raise RuntimeError(f"padding_idx must be within the number of embeddings, {-size} through {size - 1}, but got {padding_idx}")
    if indices.size and (indices.min() < 0 or indices.max() >= size):
        place = int(np.flatnonzero((indices < 0) | (indices >= size))[0])
        raise RuntimeError(f"Index {place % count} of input takes value {indices.flat[place]} which is not in the valid range [0, {size})")


def _check_mode(mode: str, scale_grad_by_freq: bool, sparse: bool, per_sample_weights) -> None:
    if mode not in ("sum", "mean", "max"):
        raise ValueError(f"mode has to be one of sum, mean or max: got {mode!r}")
    if mode == "max" and scale_grad_by_freq:
        raise ValueError("max mode does not support scaling the gradient by the frequency")
    if mode == "max" and sparse:
        raise ValueError("max mode does not support sparse weights")
    if per_sample_weights is not None and mode != "sum":
        raise NotImplementedError("embedding_bag: per_sample_weights was not None. per_sample_weights is only supported for "
                                  f"mode='sum' (got mode='{mode}').")


def _largest(rows: Tensor, bags: Tensor, counts: Tensor, count: int) -> Tensor:
    """The largest of each column of a bag's rows; 0 for an empty bag."""
    if not rows.size(0):
        return T.sum_bags(rows, bags, count)
    places = largest_in_bags(rows, bags, counts, count)
    return T.where(places < 0, 0, rows.gather(0, places.clamp_min(0)))


@composite(module="nn.functional")
def embedding_bag(input, weight, offsets=None, max_norm=None, norm_type=2, scale_grad_by_freq=False, mode="mean", sparse=False,
                  per_sample_weights=None, include_last_offset=False, padding_idx=None):  # fmt: skip
    """The sum, mean or largest of the table's rows in each bag of indices.

    input: [B, n] (bags of one size) or [N] with offsets [B], where each bag starts (and, with include_last_offset, where the
    last ends); int64 or int32. weight: [V, D]. per_sample_weights: the input's shape, for mode "sum". Returns [B, D], zeros
    for an empty bag. Indices equal to padding_idx do not count. max_norm, norm_type, scale_grad_by_freq: as for `embedding`.
    Raises: ValueError, RuntimeError or NotImplementedError for shapes, dtypes, indices or options that do not fit.
    """
    if not weight.is_floating_point() and input.is_floating_point():
        warnings.warn(
            "Argument order of nn.functional.embedding_bag was changed. Usage `embedding_bag(weight, input, ...)` is deprecated, "
            "and should now be `embedding_bag(input, weight, ...)`.", stacklevel=2)  # fmt: skip
        input, weight = weight, input
    indices, starts, shares = _bag_indices(input, weight, offsets, per_sample_weights)
    _check_mode(mode, scale_grad_by_freq, sparse, per_sample_weights)
    _check_bags(indices, starts, weight.size(0), padding_idx, include_last_offset and offsets is not None)
    if shares is not None and shares._array.dtype != weight._array.dtype:
        raise RuntimeError("Expected tensor for argument #1 'weight' to have the same type as tensor for argument #1 "
                           f"'per_sample_weights'; but type {scalar_name(weight._array)} does not equal "
                           f"{scalar_name(shares._array)} (while checking arguments for embedding_bag)")
    if max_norm is not None:
        embedding_renorm_(weight, input, max_norm, norm_type)
    if include_last_offset and offsets is not None:
        refuse_dynamic("embedding_bag with include_last_offset", starts)
        count = int(starts._array[-1])
        indices, starts, shares = indices[:count], starts[:-1], None if shares is None else shares[:count]
    plain = shares is None and padding_idx is None and mode != "max" and not scale_grad_by_freq
    if plain and (np.diff(every_value(starts)) >= 0).all():
        return _plain_bags(weight, indices, starts, mode)
    bags = bag_numbers(starts, indices._array.size)
    return _bagged(weight, indices, bags, starts._array.size, shares, mode, scale_grad_by_freq, padding_idx)


def _plain_bags(weight, indices: Tensor, starts: Tensor, mode: str) -> Tensor:
    """Sums or means of all rows of each bag."""
    total = T.bag_sums(weight, indices, starts)
    if mode == "sum":
        return total
    return total / bag_sizes(starts, indices._array.size).to(weight.dtype).unsqueeze(1)


def _bagged(
    weight, indices: Tensor, bags: Tensor, count: int, shares, mode: str, scale_grad_by_freq: bool, padding_idx: int | None
) -> Tensor:
    rows = T.embedding(weight, indices, -1, scale_grad_by_freq)
    counts = indices != (-1 if padding_idx is None else _table_index(padding_idx, weight.size(0)))
    if mode == "max":
        return _largest(rows, bags, counts, count)
    if shares is not None:
        rows = rows * shares.unsqueeze(1)
    if padding_idx is not None:
        rows = T.where(counts.unsqueeze(1), rows, 0)
    total = T.sum_bags(rows, bags, count)
    if mode == "sum":
        return total
    return total / T.sum_bags(counts.unsqueeze(1).to(weight.dtype), bags, count).clamp_min(1)


# --- one-hot ----------------------------------------------------------------------------------------------------------


@composite(module="nn.functional")
def one_hot(tensor, num_classes=-1):
    """A last dimension with a 1 at each class number and 0 elsewhere.

    tensor: [*S], int64, non-negative. Returns [*S, num_classes], int64; -1 takes one class more than the largest number.
    Raises: RuntimeError for other dtypes, class numbers outside [0, num_classes), no classes to infer.
    """
    classes = every_value(tensor)
    if classes.dtype != np.int64:
        raise RuntimeError(f"one_hot is only applicable to index tensor of type LongTensor: got {scalar_name(classes)}; convert "
                           "with .long()")
    if not classes.size and num_classes <= 0:
        raise RuntimeError("Can not infer total number of classes from empty tensor. Pass num_classes.")
    if classes.size and classes.min() < 0:
        raise RuntimeError(f"Class values must be non-negative. Got {classes.min()}")
    if num_classes == -1:
        if differs(tensor):
            raise RuntimeError("When vmap-ing nn.functional.one_hot, please provide an explicit positive num_classes argument.")
        num_classes = int(classes.max()) + 1
    elif classes.size and classes.max() >= num_classes:
        raise RuntimeError(f"Class values must be smaller than num_classes. Got {classes.max()} with num_classes={num_classes}")
    return one_hot_rows(tensor, num_classes)
