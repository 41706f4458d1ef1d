"""Softmax and its logarithm along one dimension, with their gradients; cross-entropy of the rows of a matrix.

Each function is the plain NumPy form; where the arrays are large and the dimension is the last, the compiled form does the
same with one visit of each row. Values agree to rounding.
"""

from __future__ import annotations

import numpy as np

from .choice import compiled

__all__ = ["class_gradient", "class_losses", "cross_entropy_gradient", "cross_entropy_losses", "factors", "log_softmax",
           "log_softmax_backward", "softmax", "softmax_backward", "softmax_or_zeros", "statistics", "weighted_softmax"]  # fmt: skip

BLOCK = 1 << 13  # elements that are worth a thread


def _blocks(size: int, threads: int) -> int:
    """In how many parts to share out the rows of a matrix of `size` elements."""
    return max(1, min(threads, size // BLOCK))


def _compiled(name: str, dim: int, *arrays: np.ndarray) -> np.ndarray | None:
    """What the compiled form makes of arrays of one shape along their last dimension; None where it does not apply."""
    last = arrays[-1]
    if not last.ndim or dim not in (-1, last.ndim - 1) or not last.size or any(a.shape != last.shape for a in arrays):
        return None
    fast = compiled("softmax", last.size, *arrays)
    if fast is None:
        return None
    rows = [np.ascontiguousarray(array).reshape(-1, last.shape[-1]) for array in arrays]
    out = np.empty(rows[0].shape, last.dtype)
    getattr(fast, name)(*rows, out, _blocks(last.size, fast.get_threads()))
    return out.reshape(last.shape)


# --- softmax ---------------------------------------------------------------------------------------------------------


def _shifted(x: np.ndarray, dim: int) -> np.ndarray:
    """x with its maximum along `dim` taken off, so that no exponential overflows."""
    return x - np.maximum.reduce(x, axis=dim, keepdims=True) if x.ndim else x - x


def softmax(x: np.ndarray, dim: int) -> np.ndarray:
    """exp(x) / sum(exp(x)) along `dim`."""
    fast = _compiled("softmax", dim, x)
    if fast is not None:
        return fast
    made = _shifted(x, dim)
    made = np.exp(made, out=made if made.ndim else None)
    if made.ndim:
        made /= np.add.reduce(made, axis=dim, keepdims=True)
    return made


def softmax_backward(grad: np.ndarray, y: np.ndarray, dim: int) -> np.ndarray:
    """y (grad - sum(grad y)), with y the softmax."""
    fast = _compiled("softmax_backward", dim, grad, y)
    if fast is not None:
        return fast
    made = grad * y
    if not made.ndim:
        return made - made * y
    made -= y * np.add.reduce(made, axis=dim, keepdims=True)
    return made


def softmax_or_zeros(x: np.ndarray) -> np.ndarray:
    """Softmax along the last dimension; zeros in a row of -inf alone."""
    if not x.size:
        return x.copy()
    largest = np.maximum.reduce(x, axis=-1, keepdims=True)
    made = x - np.where(largest == -np.inf, np.zeros_like(largest), largest)
    made = np.exp(made, out=made)
    total = np.add.reduce(made, axis=-1, keepdims=True)
    made /= np.where(total == 0, np.ones_like(total), total)
    return made


def log_softmax(x: np.ndarray, dim: int) -> np.ndarray:
    """x - log(sum(exp(x))) along `dim`, without overflow."""
    fast = _compiled("log_softmax", dim, x)
    if fast is not None:
        return fast
    made = _shifted(x, dim)
    if made.ndim:
        made -= np.log(np.add.reduce(np.exp(made), axis=dim, keepdims=True))
    return made


def log_softmax_backward(grad: np.ndarray, y: np.ndarray, dim: int) -> np.ndarray:
    """grad - exp(y) sum(grad), with y the logarithm of the softmax."""
    fast = _compiled("log_softmax_backward", dim, grad, y)
    if fast is not None:
        return fast
    made = np.exp(y)
    if not made.ndim:
        return grad - made * grad
    made *= np.add.reduce(grad, axis=dim, keepdims=True)
    return np.subtract(grad, made, out=made)


# --- cross-entropy -----------------------------------------------------------------------------------------------------


def statistics(x: np.ndarray) -> np.ndarray:
    """The largest element and the sum of exp(x - largest) of each row: [rows, columns] to [2, rows]."""
    rows = len(x)
    fast = compiled("softmax", x.size, x) if x.size else None
    if fast is not None:
        made = np.empty((2, rows), x.dtype)
        fast.statistics(np.ascontiguousarray(x), made, _blocks(x.size, fast.get_threads()))
        return made
    top = np.maximum.reduce(x, axis=1)
    away = x - top[:, None]
    return np.stack([top, np.add.reduce(np.exp(away, out=away), axis=1)])


def weighted_softmax(x: np.ndarray, statistics: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The softmax of each row of a matrix, times the weight of the row, given `statistics(x)`."""
    fast = compiled("softmax", x.size, x, statistics, weights) if x.size else None
    if fast is not None:
        made = np.empty(x.shape, x.dtype)
        fast.weighted_softmax(np.ascontiguousarray(x), statistics, weights, made, _blocks(x.size, fast.get_threads()))
        return made
    made = x - statistics[0][:, None]
    np.exp(made, out=made)
    made *= (weights / statistics[1])[:, None]
    return made


def _by_classes(x: np.ndarray, classes: np.ndarray, *others: np.ndarray):
    """The compiled forms that pick a class from each row, or None where they cannot have these arrays."""
    readable = x.flags.c_contiguous and classes.flags.c_contiguous and classes.flags.writeable
    return compiled("softmax", x.size, x, *others) if x.size and readable else None


def class_losses(x: np.ndarray, classes: np.ndarray, ignored: int) -> tuple[np.ndarray, np.ndarray] | None:
    """`cross_entropy_losses` without weights and smoothing, and `statistics(x)`, in one pass.

    x: [rows, columns]; classes: int64 [rows]. None where it does not apply: for small arrays, or if a class is ignored or not there.
    """
    fast = _by_classes(x, classes)
    if fast is None:
        return None
    known, losses = np.empty((2, len(x)), x.dtype), np.empty(len(x), x.dtype)
    left_out = fast.class_losses(x, classes, ignored, known, losses, _blocks(x.size, fast.get_threads()))
    return None if left_out else (losses, known)


def class_gradient(x: np.ndarray, known: np.ndarray, classes: np.ndarray, ignored: int, grad: np.ndarray) -> np.ndarray | None:
    """`cross_entropy_gradient` without weights and smoothing, in one pass; grad: [rows], or of one number. None as `class_losses`."""
    fast = _by_classes(x, classes, known, grad)
    if fast is None:
        return None
    made, grad = np.empty(x.shape, x.dtype), np.array(grad).reshape(-1)
    left_out = fast.class_gradient(x, known, classes, ignored, grad, made, _blocks(x.size, fast.get_threads()))
    return None if left_out else made


def cross_entropy_losses(scores: np.ndarray, known: np.ndarray, classes: np.ndarray, shares: np.ndarray | None,
                         smoothing: float, weight: np.ndarray | None) -> np.ndarray:  # fmt: skip
    """Minus the logarithm of the softmax at each row's class, weighted; with smoothing, mixed with the mean of all classes.

    scores: [N, C]; known: `statistics(scores)`; classes: [N]; shares: the weight of each row [N], or None for ones;
    weight: of each class [C], or None. Returns [N].
    """
    top, total = known
    norm = np.log(total)
    loss = norm + (top - scores[np.arange(len(scores)), classes])
    if shares is not None:
        loss = np.where(shares == 0, 0, loss * shares)
    if not smoothing:
        return loss
    away = (norm + top)[:, None] - scores
    mean = (np.add.reduce(away, axis=1) if weight is None else away @ weight) / scores.dtype.type(scores.shape[1])
    if shares is not None:
        mean = np.where(shares == 0, 0, mean)
    return loss * (1 - smoothing) + mean * smoothing


def cross_entropy_gradient(scores: np.ndarray, known: np.ndarray, classes: np.ndarray, grad: np.ndarray,
                           shares: np.ndarray | None, smoothing: float, weight: np.ndarray | None) -> np.ndarray:  # fmt: skip
    """The gradient of `cross_entropy_losses` with respect to the scores, given that of each loss, `grad` [N].

    Of one row: share (softmax - onehot); with smoothing s, (1 - s) of that, and s / C of (softmax sum(weight) - weight).
    """
    hard, smooth, whole = factors(grad, shares, smoothing, weight, scores.shape[1])
    made = weighted_softmax(scores, known, hard + whole)
    if smoothing:
        made -= smooth[:, None] if weight is None else np.outer(smooth, weight)
    made[np.arange(len(scores)), classes] -= hard
    return made


def factors(grad: np.ndarray, shares: np.ndarray | None, smoothing: float, weight: np.ndarray | None, classes: int) -> tuple:
    """Of each row the factor of (softmax - onehot), that of the weights of all classes, and the sum of the latter."""
    hard, smooth = grad, grad * (smoothing / classes)
    if shares is not None:
        hard, smooth = np.where(shares == 0, 0, grad * shares), np.where(shares == 0, 0, smooth)
    return hard * (1 - smoothing), smooth, smooth * (classes if weight is None else np.add.reduce(weight))
