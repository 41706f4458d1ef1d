"""Pieces put where basic indices took them from: copied, or found to lie there already."""

import numpy as np
import pytest

import pellucid
from pellucid import nn
from pellucid.kernels import choice
from pellucid.kernels.indexing import assembled
from pellucid.nn import functional as F

ALL = slice(None)
THIRDS = tuple([(ALL, slice(4 * i, 4 * i + 4)) for i in range(3)])


def close(made, expected):
    np.testing.assert_allclose(made.detach().numpy(), expected.detach().numpy(), rtol=2e-5, atol=1e-6)


def numbers(*shape):
    return np.arange(np.prod(shape), dtype=np.float32).reshape(shape)


def thirds(whole):
    return [whole[key] for key in THIRDS]


def test_pieces_that_lie_in_place_are_not_copied():
    whole = numbers(5, 12)
    made = assembled(thirds(whole), (5, 12), THIRDS)
    assert np.shares_memory(made, whole)
    np.testing.assert_array_equal(made, whole)


def test_an_array_that_lies_transposed_stays_so():
    whole = numbers(12, 5).T
    made = assembled(thirds(whole), (5, 12), THIRDS)
    assert np.shares_memory(made, whole)
    assert made.strides == whole.strides
    np.testing.assert_array_equal(made, whole)


def test_pieces_of_lower_rank_that_lie_in_place():
    whole = numbers(3, 4)
    made = assembled(list(whole), (3, 4), tuple([(i, ...) for i in range(3)]))
    assert np.shares_memory(made, whole)
    np.testing.assert_array_equal(made, whole)


@pytest.mark.parametrize("pieces", [
    lambda whole: thirds(whole)[::-1],
    lambda whole: thirds(whole.copy())[:2] + thirds(whole)[2:],
    lambda whole: [part.copy() for part in thirds(whole)],
    lambda whole: thirds(whole[:, ::-1]),
    lambda whole: thirds(whole[::-1]),
    lambda whole: [thirds(whole)[0]] * 3,
], ids=["another order", "two arrays", "copies", "backwards", "rows backwards", "thrice the same"])  # fmt: skip
def test_others_are_copied(pieces):
    whole = numbers(5, 12)
    given = pieces(whole)
    made = assembled(given, (5, 12), THIRDS)
    assert not np.shares_memory(made, whole)
    np.testing.assert_array_equal(made, np.concatenate(given, 1))


def test_what_no_piece_covers_is_zero():
    whole = numbers(5, 12)
    made = assembled(thirds(whole)[1:], (5, 12), THIRDS[1:])
    np.testing.assert_array_equal(made, np.where(np.arange(12) < 4, 0, whole))


def test_a_larger_array_is_not_taken_for_the_whole():
    whole = numbers(6, 12)[:5]
    made = assembled(thirds(whole), (5, 12), THIRDS)
    assert not np.shares_memory(made, whole)
    np.testing.assert_array_equal(made, whole)


def heads(projection, count=2):
    """Queries, keys and values [batch, heads, length, size] of a packed projection [batch, length, 3 * width]."""
    return [part.unflatten(-1, (count, -1)).transpose(1, 2) for part in projection.chunk(3, -1)]


def test_gradients_of_a_projection_and_its_parts_are_apart():
    """What the engine did not copy must not show: whoever writes to one gradient leaves the others alone."""
    with choice.always():
        x = pellucid.randn(2, 5, 24, requires_grad=True)
        projection = x * 2
        parts = projection.chunk(3, -1)
        q, k, v = [part.unflatten(-1, (2, -1)).transpose(1, 2) for part in parts]
        F.scaled_dot_product_attention(q, k, v).square().sum().backward(inputs=[x, projection, *parts])
    expected = projection.grad.clone()
    close(x.grad, expected * 2)
    for part in parts:
        part.grad.fill_(7)
    close(projection.grad, expected)
    projection.grad.zero_()
    assert all(bool((part.grad == 7).all()) for part in parts)


def test_two_uses_of_a_projection_add_up():
    with choice.always():
        x = pellucid.randn(2, 5, 24, requires_grad=True, dtype=pellucid.float64)
        (a,) = pellucid.autograd.grad(F.scaled_dot_product_attention(*heads(x * 1)).sum(), x)
        (b,) = pellucid.autograd.grad(F.scaled_dot_product_attention(*heads(x * 1), is_causal=True).sum(), x)
        y = x * 1
        both = F.scaled_dot_product_attention(*heads(y)).sum() + F.scaled_dot_product_attention(*heads(y), is_causal=True).sum()
        both.backward()
    close(x.grad, a + b)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("shared", ["all", "keys and values", "none"])
def test_attention_of_a_batch_that_lies_with_n_first(bias, shared):
    """It gives what it gives for a batch with L first, and copies neither input nor result."""
    layer = nn.MultiheadAttention(8, 2, bias=bias, batch_first=True).double()
    other = nn.MultiheadAttention(8, 2, bias=bias).double()
    other.load_state_dict(layer.state_dict())
    tensors = [pellucid.randn(3, 5, 8, dtype=pellucid.float64, requires_grad=True) for _ in range(3)]
    a, b, c = tensors
    given = {"all": (a, a, a), "keys and values": (a, b, b), "none": (a, b, c)}[shared]
    with choice.always():
        made, _ = layer(*given, need_weights=False)
    turned = {id(tensor): tensor.transpose(0, 1).contiguous() for tensor in tensors}
    expected, _ = other(*[turned[id(tensor)] for tensor in given], need_weights=False)
    assert made.is_contiguous()
    close(made, expected.transpose(0, 1))
    used = list({id(tensor): tensor for tensor in given}.values())
    grads = [pellucid.autograd.grad(result.square().sum(), [*used, layer_.in_proj_weight, layer_.out_proj.weight])
             for result, layer_ in ((made, layer), (expected, other))]  # fmt: skip
    for ours, theirs in zip(*grads, strict=True):
        close(ours, theirs)
