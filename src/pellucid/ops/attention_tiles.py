"""The operator behind attention without dropout: its kernels never hold the matrix of scores. `attention.py` has the public functions.

Its first derivative is an operator with a kernel of its own. Derivatives of that one, and tangents, are composed of matrix
products and do hold matrices of scores.
"""

from __future__ import annotations

import math

import numpy as np

from pellucid.autograd.operator import Array, Index, operator
from pellucid.kernels import attention

__all__ = []


@operator(module=None, batching="leading")
class hide_later:
    """Scores [*, L, S] with -inf where a key comes later than the query: key j > query i."""

    def forward(xp, input: Array):
        return xp.where(np.tri(*input.shape[-2:], dtype=bool), input, np.array(-math.inf, input.dtype))

    def vjp_input(F, grad): return F.tril(grad, 0)
    def jvp_input(F, tangent): return F.tril(tangent, 0)

    def samples(make): yield (make(2, 3, 1),), {}


def _weights(F, query, key, mask, mask_dtype, query_dtype, causal, scale):
    """The matrix of weights [*, L, S], in operators."""
    scores = F.matmul(query * scale, F.transpose(key, -1, -2))
    if causal:
        scores = F.hide_later(scores)
    if mask is not None:
        scores = scores + (F.barrier(mask, query_dtype) if mask_dtype == np.bool_ else mask)
    return F.safe_softmax(scores)


@operator(module=None, outputs=("output", "logsumexp"), constant=("logsumexp",), batching="leading", fused=True,
          node="ScaledDotProductFlashAttentionForCpuBackward0")  # fmt: skip
class dot_product_attention:
    """softmax(query @ key^T * scale + mask) @ value, and the logarithm of each softmax's divisor.

    query: [*, L, E], key: [*, S, E], value: [*, S, EV], float32 or float64, leading dimensions alike. mask: of the same rank,
    broadcastable to [*, L, S], booleans or numbers of the dtype of `query`, or None. causal: whether query i sees keys 0 to i.
    Returns [*, L, EV] and [*, L].
    """

    def forward(xp, query: Array, key: Array, value: Array, mask: Index | None = None, causal=False, scale=1.0):
        return attention.forward(query, key, value, mask, causal, scale)

    def vjp(F, grad, needs, query, key, value, output, logsumexp, mask, causal, scale):
        return F.dot_product_attention_backward(grad, query, key, value, output, logsumexp, mask, causal, scale)

    def jvp(F, tangents, query, key, value, mask, mask_dtype, query_dtype, causal, scale):
        weights = _weights(F, query, key, mask, mask_dtype, query_dtype, causal, scale)
        moved_query, moved_key, moved_value = tangents
        parts = []
        if moved_query is not None:
            parts.append(F.matmul(moved_query, F.transpose(key, -1, -2)))
        if moved_key is not None:
            parts.append(F.matmul(query, F.transpose(moved_key, -1, -2)))
        made = None
        if parts:
            scores = (parts[0] if len(parts) == 1 else parts[0] + parts[1]) * scale
            made = F.matmul(F.softmax_backward(scores, weights, -1), value)
        if moved_value is None:
            return made
        part = F.matmul(weights, moved_value)
        return part if made is None else made + part

    def samples(make):
        yield (make(2, 3, 4), make(2, 5, 4), make(2, 5, 3), None, False, 0.5), {}
        yield (make(3, 4), make(3, 4), make(3, 4), None, True, 0.5), {}
        yield (make(2, 3), make(2, 3), make(2, 3), np.array([[True, False], [True, True]]), False, 1.0), {}
        yield (make(2, 2, 3), make(2, 3, 3), make(2, 3, 3), np.array([[[0.5, -1.0, -math.inf]]]), False, 1.0), {}


@operator(module=None, outputs=("query_grad", "key_grad", "value_grad"), batching="leading")
class dot_product_attention_backward:
    """Gradients of query, key and value of `dot_product_attention`, given that of its output.

    With weights P, dP = grad @ value^T and D the sums of P * dP along rows, the gradient of the scores is P * (dP - D). The
    derivative takes the output and the logarithms for the functions of query, key and value that they are.
    """

    def forward(xp, grad_output: Array, query: Array, key: Array, value: Array, output: Index, logsumexp: Index,
                mask: Index | None = None, causal=False, scale=1.0):  # fmt: skip
        return attention.backward(grad_output, query, key, value, output, logsumexp, mask, causal, scale)

    def vjp(F, grad, needs, grad_output, query, key, value, mask, mask_dtype, query_dtype, causal, scale):
        weights = _weights(F, query, key, mask, mask_dtype, query_dtype, causal, scale)
        of_query, of_key, of_value = grad
        direct = F.matmul(grad_output, F.transpose(value, -1, -2))
        centred = direct - F.sum_dim(weights * direct, (weights.ndim - 1,), True)
        slopes = weights * centred
        parts = []
        if of_query is not None:
            parts.append(F.matmul(of_query, F.transpose(key, -1, -2)))
        if of_key is not None:
            parts.append(F.matmul(query, F.transpose(of_key, -1, -2)))
        along = (parts[0] if len(parts) == 1 else parts[0] + parts[1]) * scale if parts else weights * 0
        mean = F.sum_dim(weights * along, (weights.ndim - 1,), True)
        to_direct = weights * (along - mean)
        to_weights = along * centred - mean * direct
        if of_value is not None:
            to_weights = to_weights + F.matmul(grad_output, F.transpose(of_value, -1, -2))
        to_scores = F.softmax_backward(to_weights, weights, -1)
        turned = F.transpose(to_scores, -1, -2)
        to_query, to_key = F.matmul(to_scores, key) * scale, F.matmul(turned, query) * scale
        if of_key is not None:
            to_query = to_query + F.matmul(slopes, of_key) * scale
        if of_query is not None:
            to_key = to_key + F.matmul(F.transpose(slopes, -1, -2), of_query) * scale
        to_grad = F.matmul(to_direct, value)
        if of_value is not None:
            to_grad = to_grad + F.matmul(weights, of_value)
        return to_grad, to_query, to_key, F.matmul(F.transpose(to_direct, -1, -2), grad_output)
