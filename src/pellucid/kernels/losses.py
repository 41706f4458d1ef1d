"""Losses of arrays: the scores of given classes, their weights and gradients."""

from __future__ import annotations

import numpy as np

__all__ = ["counted", "divisor", "in_range", "label_pairs", "nll", "nll_gradient"]

def _picked(target, weight, shape: tuple, dtype, ignore_index: int):
    """Of each target the class to pick, as an index with the shape of the input but one class, and its weight (or None)."""
    axis = min(1, len(shape) - 1)
    index = np.expand_dims(target if target.dtype == np.int64 else target.astype(np.int64), axis)
    if len(shape) == 1:
        index = index.reshape(1)
    weights = None if weight is None else weight
    ignored = index == ignore_index
    if ignored.any():
        index = np.where(ignored, 0, index)
        weights = np.ones(shape[axis], dtype) if weights is None else weights
    in_range(target, index, shape[axis])
    if weights is None:
        return axis, index, None
    return axis, index, np.where(ignored, 0, weights[index]).astype(dtype, copy=False)


def in_range(target, index, classes: int) -> None:
    """Raise IndexError for a class number that is not there; `index` holds those that count."""
    if index.size and (index.min() < 0 or index.max() >= classes):
        bad = index[(index < 0) | (index >= classes)].flat[0]
        raise IndexError(f"Target {bad} is out of bounds. Classes are numbered 0 to {classes - 1}; target has shape {list(target.shape)}")


def nll(scores: np.ndarray, target: np.ndarray, weight: np.ndarray | None, reduction: str, ignore_index: int):
    """Minus the score at each target's class, weighted, reduced; "mean" divides by the sum of the weights."""
    axis, index, weights = _picked(target, weight, scores.shape, scores.dtype, ignore_index)
    if scores.ndim == 2:
        loss = scores[np.arange(scores.shape[0]), index[:, 0]].reshape(-1, 1)
    else:
        loss = np.take_along_axis(scores, index, axis)
    loss = -loss if weights is None else -loss * weights
    if reduction == "none":
        return loss.reshape(target.shape)
    total = np.add.reduce(loss, axis=None)
    if reduction == "mean":
        total = total / total.dtype.type(loss.size if weights is None else np.add.reduce(weights, axis=None))
    return total


def nll_gradient(grad: np.ndarray, target: np.ndarray, weight: np.ndarray | None, shape: tuple, reduction: str,
                 ignore_index: int) -> np.ndarray:  # fmt: skip
    """The gradient of the scores of that shape: minus weight times grad at each target's class, zero elsewhere."""
    axis, index, weights = _picked(target, weight, shape, grad.dtype, ignore_index)
    share = -grad if reduction != "none" else -grad.reshape(index.shape)
    if reduction == "mean":
        share = share / share.dtype.type(index.size if weights is None else np.add.reduce(weights, axis=None))
    if weights is not None:
        share = np.where(weights == 0, 0, share * weights)
    whole = np.zeros(shape, grad.dtype)
    if len(shape) == 2:
        whole[np.arange(shape[0]), index[:, 0]] = share if not share.ndim else share[:, 0]
    else:
        np.put_along_axis(whole, index, share, axis)
    return whole


def counted(target, weight, dtype, ignore_index: int):
    """Of each row of a matrix of scores its class (0 where it is ignored) and its weight, or None where all count as one."""
    ignored = target == ignore_index
    if not ignored.any():
        return target, None if weight is None else weight[target]
    classes = np.where(ignored, 0, target)
    weights = 1 if weight is None else weight[classes]
    return classes, np.where(ignored, 0, weights).astype(dtype, copy=False)


def divisor(shares, target, dtype):
    """What the mean divides by: the sum of the weights."""
    return dtype.type(target.size) if shares is None else np.add.reduce(shares)


def label_pairs(labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The targets of each row [*S, C] up to its first -1 (0 after it), and which of their pairs [*S, C, C] with a class count.

    Those count that are made of a target and of a class that is none.
    """
    present = np.cumprod(labels >= 0, axis=-1).astype(bool)
    classes = np.arange(labels.shape[-1])
    is_target = ((labels[..., :, None] == classes) & present[..., :, None]).any(axis=-2)
    return np.where(present, labels, 0), present[..., :, None] & ~is_target[..., None, :]
