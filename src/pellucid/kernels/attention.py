"""Attention of queries to keys and values: in tiles that are never all there at once, or by its scores where they are few.

`forward` gives results and, for each query, the logarithm of its sum of exponentials; `backward` needs both.
"""

from __future__ import annotations

import math

import numpy as np

from .choice import compiled
from .products import matmul

__all__ = ["backward", "forward", "plain_backward", "plain_forward"]


def forward(query, key, value, mask, causal: bool, scale: float) -> tuple[np.ndarray, np.ndarray]:
    """softmax(scale * query @ key^T + mask) @ value, and the logarithm of each softmax's divisor.

    Args:
        query, key, value: [*, L, E], [*, S, E], [*, S, EV], of one dtype and with one shape of leading dimensions.
        mask: None, or of the rank of `query` and broadcastable to [*, L, S]: booleans, True where a key is seen, or numbers to
            add, of the dtype of `query`.
        causal: whether query i sees the keys 0 to i alone.
        scale: what scores are multiplied with.

    Returns:
        [*, L, EV], zeros for a query that sees no key, and [*, L], -inf for such a one.
    """
    fast = compiled("attention", query.size * key.shape[-2], query, key, value)
    if fast is not None and query.size and key.size and value.size:
        made = fast.forward(query, key, value, mask, causal, scale)
        if made is not None:
            return made
    return plain_forward(query, key, value, mask, causal, scale)


def backward(grad, query, key, value, made, logs, mask, causal: bool, scale: float) -> tuple[np.ndarray, ...]:
    """Gradients of query, key and value, given that of the results."""
    fast = compiled("attention", query.size * key.shape[-2], query, key, value, grad)
    if fast is not None and query.size and key.size and value.size:
        grads = fast.backward(grad, query, key, value, made, logs, mask, causal, scale)
        if grads is not None:
            return grads
    return plain_backward(grad, query, key, value, made, logs, mask, causal, scale)


def plain_forward(query, key, value, mask, causal: bool, scale: float) -> tuple[np.ndarray, np.ndarray]:
    """`forward` by the whole matrix of scores."""
    scores = _scores(query, key, mask, causal, scale)
    if not scores.size:
        return np.zeros((*query.shape[:-1], value.shape[-1]), value.dtype), np.full(query.shape[:-1], -np.inf, query.dtype)
    largest = scores.max(-1, keepdims=True)
    scores -= np.where(largest == -np.inf, 0, largest)
    np.exp(scores, out=scores)
    total = scores.sum(-1, keepdims=True)
    made = matmul(scores, value)
    made /= np.where(total == 0, total.dtype.type(1), total)
    with np.errstate(divide="ignore"):
        return made, (largest + np.log(total))[..., 0]


def plain_backward(grad, query, key, value, made, logs, mask, causal: bool, scale: float) -> tuple[np.ndarray, ...]:
    """`backward` by the whole matrix of weights."""
    weights = _scores(query, key, mask, causal, scale)
    weights -= np.where(logs == -np.inf, 0, logs)[..., None]
    np.exp(weights, out=weights)
    slopes = matmul(grad, value.swapaxes(-1, -2))
    slopes -= np.einsum("...e,...e->...", grad, made)[..., None]
    slopes *= weights
    slopes *= slopes.dtype.type(scale)
    return matmul(slopes, key), matmul(slopes.swapaxes(-1, -2), query), matmul(weights.swapaxes(-1, -2), grad)


def _scores(query, key, mask, causal: bool, scale: float) -> np.ndarray:
    scores = matmul(query * query.dtype.type(scale), key.swapaxes(-1, -2))
    if causal:
        scores[..., ~np.tri(*scores.shape[-2:], dtype=bool)] = -math.inf
    if mask is not None:
        scores += mask if mask.dtype != np.bool_ else np.where(mask, 0, -math.inf).astype(scores.dtype)
    return scores
