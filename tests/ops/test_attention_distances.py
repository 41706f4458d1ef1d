"""Attention, distances and similarities: fixed values, and what these functions refuse."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest

import pellucid as torch
from pellucid.nn import functional as F

QUERY = torch.tensor([[1.0, 0.0], [0.0, 2.0]])
KEY = torch.tensor([[1.0, 1.0], [0.0, 1.0], [-1.0, 0.0]])
VALUE = torch.tensor([[1.0], [2.0], [4.0]])
POINTS = [[0.0, 1.0], [1.0, 2.0], [0.0, 1.0], [0.0, 4.0]]

ATTENDED = [
    ({}, [1.704083, 1.770959]),
    ({"is_causal": True}, [1.0, 1.5]),
    ({"attn_mask": torch.tensor([[True, False, True], [False, False, False]])}, [1.586711, 0.0]),
]


@pytest.mark.parametrize(("options", "expected"), ATTENDED)
def test_scaled_dot_product_attention(options, expected):
    made = F.scaled_dot_product_attention(QUERY, KEY, VALUE, **options)
    np.testing.assert_allclose(made.reshape(-1).tolist(), expected, rtol=1e-5)


def test_a_query_without_keys_has_no_gradient():
    query = QUERY.clone().requires_grad_()
    nothing = torch.zeros(2, 3, dtype=torch.bool)
    F.scaled_dot_product_attention(query, KEY, VALUE, nothing).sum().backward()
    assert query.grad.tolist() == [[0, 0], [0, 0]]


def test_groups_of_queries_share_heads():
    query, key, value = torch.randn(1, 4, 2, 3), torch.randn(1, 2, 5, 3), torch.randn(1, 2, 5, 3)
    made = F.scaled_dot_product_attention(query, key, value, enable_gqa=True)
    each = [F.scaled_dot_product_attention(query[:, h], key[:, h // 2], value[:, h // 2]) for h in range(4)]
    np.testing.assert_allclose(made.numpy(), torch.stack(each, 1).numpy(), rtol=1e-5, atol=1e-6)


GRADIENTS = [  # of the sum of all distances between four points, two of them equal
    (0, [[0, 0], [0, 0], [0, 0], [0, 0]]),
    (1, [[-1, -2], [3, 1], [-1, -2], [-1, 3]]),
    (1.5, [[-0.793701, -1.7937], [2.226635, 0.683387], [-0.793701, -1.7937], [-0.639234, 2.904013]]),
    (2, [[-0.707107, -1.707107], [1.861427, 0.519786], [-0.707107, -1.707107], [-0.447214, 2.894427]]),
    (3, [[-0.629961, -1.629961], [1.491041, 0.335439], [-0.629961, -1.629961], [-0.23112, 2.924482]]),
    (math.inf, [[-1, -2], [2, 1], [-1, -2], [0, 3]]),
]


@pytest.mark.parametrize(("p", "expected"), GRADIENTS)
def test_gradients_of_distances_are_zero_at_equal_points(p, expected):
    points = torch.tensor(POINTS, requires_grad=True)
    F.pdist(points, p).sum().backward()
    np.testing.assert_allclose(points.grad.tolist(), expected, rtol=1e-5)
    points.grad = None
    torch.cdist(points, torch.tensor(POINTS), p).sum().backward()
    np.testing.assert_allclose(points.grad.tolist(), expected, rtol=1e-5)


def test_similarities_of_small_vectors():
    unit = F.normalize(torch.tensor([[3.0, 4.0], [0.0, 0.0]]))
    np.testing.assert_allclose(unit.tolist(), [[0.6, 0.8], [0, 0]], rtol=1e-6)
    made = F.cosine_similarity(torch.tensor([[3.0, 4.0], [0.0, 0.0]]), torch.tensor([4.0, 3.0]))
    np.testing.assert_allclose(made.tolist(), [0.96, 0], rtol=1e-6)
    far = F.pairwise_distance(torch.tensor([3.0, 0.0]), torch.tensor([0.0, 4.0]))
    assert far.item() == pytest.approx(5, abs=1e-5)


def ones(*shape):
    return torch.ones(*shape)


def heads(query, key=None, value=None, size=4, count=2, weight=True, **options):
    """multi_head_attention_forward with weights of ones."""
    key = query if key is None else key
    value = key if value is None else value
    weight = ones(3 * size, size) if weight is True else weight
    return F.multi_head_attention_forward(
        query, key, value, size, count, weight, None, options.pop("bias_k", None), options.pop("bias_v", None), False, 0.0,
        ones(size, size), None, **options,
    )  # fmt: skip


S = F.scaled_dot_product_attention
ROWS, STEPS = ones(2, 3), ones(3, 2, 4)
REFUSED = [
    (lambda: S(ROWS[0], ROWS, ROWS), RuntimeError, "to all be  at least 2 dimensional, but got query.dim: 1"),
    (lambda: S(ROWS, ROWS.double(), ROWS), RuntimeError, "to have the same dtype, but got query.dtype: float key.dtype: d"),
    (lambda: S(ROWS, ROWS, ROWS, ones(2, 2).long()), RuntimeError, "Expected attn_mask dtype to be bool or float"),
    (lambda: S(ROWS, ROWS, ROWS, ones(2, 2), is_causal=True), RuntimeError, "should not be set when is_causal=True"),
    (lambda: S(ROWS, ROWS, ROWS, dropout_p=1.5), RuntimeError, "dropout probability has to be between 0 and 1"),
    (lambda: S(ones(4, 2, 3), ones(3, 2, 3), ones(3, 2, 3), enable_gqa=True), RuntimeError, "must divide the number of"),
    (lambda: heads(ones(4)), AssertionError, "query should be unbatched 2D or batched 3D tensor but received 1-D"),
    (lambda: heads(STEPS, STEPS[0]), AssertionError, "expected `key` and `value` to be 3-D but found 2-D and 2-D"),
    (lambda: heads(STEPS, key_padding_mask=ones(3)), AssertionError, "expected `key_padding_mask` to be `None` or 2-D"),
    (lambda: heads(STEPS, attn_mask=ones(3)), AssertionError, "expected `attn_mask` to be `None`, 2-D or 3-D"),
    (lambda: heads(STEPS[0], attn_mask=ones(1, 2, 2)), AssertionError, "Expected `attn_mask` shape to be (2, 2, 2)"),
    (lambda: heads(STEPS, attn_mask=ones(3, 3).long()), AssertionError, "only bool and floating types of attn_mask"),
    (lambda: heads(STEPS, is_causal=True), RuntimeError, "Need attn_mask if specifying the is_causal hint"),
    (lambda: heads(STEPS, size=3), AssertionError, "was expecting embedding dimension of 3, but got 4"),
    (lambda: heads(STEPS, count=3), AssertionError, "embed_dim 4 not divisible by num_heads 3"),
    (lambda: heads(STEPS, STEPS, STEPS[:2]), AssertionError, "key shape (3, 2, 4) does not match value shape (2, 2, 4)"),
    (lambda: heads(STEPS, weight=None), AssertionError, "use_separate_proj_weight is False but in_proj_weight is None"),
    (lambda: heads(STEPS, use_separate_proj_weight=True), AssertionError, "is True but q_proj_weight is None"),
    (lambda: heads(STEPS, STEPS, STEPS[:2], use_separate_proj_weight=True), AssertionError, "sequence and batch dims"),
    (lambda: heads(STEPS, attn_mask=ones(2, 3)), RuntimeError, "The shape of the 2D attn_mask is (2, 3), but should be"),
    (lambda: heads(STEPS, attn_mask=ones(1, 3, 3)), RuntimeError, "3D attn_mask is (1, 3, 3), but should be (4, 3, 3)"),
    (lambda: heads(STEPS, bias_k=ones(1, 1, 4)), AssertionError, "one is set but the other is None"),
    (lambda: heads(STEPS, bias_k=ones(1, 1, 4), bias_v=ones(1, 1, 4), static_k=ones(4, 3, 2)), AssertionError,
     "bias cannot be added to static key"),
    (lambda: heads(STEPS, bias_k=ones(1, 1, 4), bias_v=ones(1, 1, 4), static_v=ones(4, 3, 2)), AssertionError,
     "bias cannot be added to static value"),
    (lambda: heads(STEPS, static_k=ones(3, 3, 2)), AssertionError, "expecting static_k.size(0) of 4, but got 3"),
    (lambda: heads(STEPS, static_v=ones(4, 3, 3)), AssertionError, "expecting static_v.size(2) of 2, but got 3"),
    (lambda: heads(STEPS, key_padding_mask=ones(1, 3)), AssertionError, "key_padded_mask.shape[0] to be 2, but got 1"),
    (lambda: heads(STEPS, key_padding_mask=ones(2, 4)), AssertionError, "key_padded_mask.shape[1] to be 3, but got 4"),
    (lambda: torch.cdist(ROWS[0], ROWS), RuntimeError, "cdist only supports at least 2D tensors, X1 got: 1D"),
    (lambda: torch.cdist(ROWS, ones(2, 4)), RuntimeError, "must have the same number of columns. X1: 3 X2: 4"),
    (lambda: torch.cdist(ROWS, ROWS, -1), RuntimeError, "cdist only supports non-negative p values"),
    (lambda: torch.cdist(ROWS, ROWS.double()), RuntimeError, "expected scalar type Float but found Double"),
    (lambda: torch.cdist(ROWS, ROWS.long()), RuntimeError, "cdist only supports floating-point dtypes, X2 got: Long"),
    (lambda: torch.cdist(ROWS, ROWS, compute_mode="x"), ValueError, "x is not a valid value for compute_mode"),
    (lambda: F.pdist(STEPS), RuntimeError, "pdist only supports 2D tensors, got: 3D"),
    (lambda: F.pdist(ROWS, -1), RuntimeError, "pdist only supports non-negative p values"),
    (lambda: F.pdist(ROWS.long()), RuntimeError, "pdist only supports floating-point dtypes"),
    (lambda: F.cosine_similarity(ROWS.long(), ROWS.long()), RuntimeError, "expected common dtype to be floating point"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "kind", "phrase"), REFUSED, ids=[r[2][:40] for r in REFUSED])
def test_refused(call, kind, phrase):
    with pytest.raises(kind, match=re.escape(phrase)):
        call()
