"""Attention in tiles against the form that holds all scores."""

import itertools
import tracemalloc

import numpy as np
import pytest

from pellucid.kernels import attention, choice, indexing

pytest.importorskip("numba")

BOUNDS = {np.float32: 2e-5, np.float64: 2e-13}


@pytest.fixture(params=[np.float32, np.float64], ids=["float32", "float64"])
def dtype(request):
    return request.param


def numbers(dtype, *shape):
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(dtype)


def compare(query, key, value, mask=None, causal=False, scale=0.3):
    """Forward and backward in tiles give what the plain forms give; returns results of the tiles."""
    grad = numbers(query.dtype, *query.shape[:-1], value.shape[-1])
    plain = attention.plain_forward(query, key, value, mask, causal, scale)
    plain_grads = attention.plain_backward(grad, query, key, value, *plain, mask, causal, scale)
    with choice.always():
        made = attention.forward(query, key, value, mask, causal, scale)
        grads = attention.backward(grad, query, key, value, *made, mask, causal, scale)
    for ours, theirs in zip((*made, *grads), (*plain, *plain_grads), strict=True):
        assert ours.shape == theirs.shape
        assert ours.dtype == theirs.dtype
        finite = np.abs(theirs[np.isfinite(theirs)])
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=BOUNDS[ours.dtype.type] * finite.max(initial=1))
    return made, grads


@pytest.mark.parametrize("causal", [False, True], ids=["full", "causal"])
@pytest.mark.parametrize(("lead", "length", "keys"), [((2, 3), 65, 65), ((), 1, 130), ((3,), 150, 20), ((1, 1), 200, 300), ((2,), 64, 128)])
def test_lengths(dtype, causal, lead, length, keys):
    compare(numbers(dtype, *lead, length, 16), numbers(dtype, *lead, keys, 16), numbers(dtype, *lead, keys, 12), causal=causal)


def masks(dtype):
    seen = numbers(np.float64, 2, 3, 70, 90) > -0.5
    seen[1, 2, 5] = False
    added = np.where(seen, numbers(np.float64, 2, 3, 70, 90), -np.inf).astype(dtype)
    none_seen = np.zeros((2, 1, 1, 90), bool)
    none_seen[0, ..., :40] = True
    return {
        "each score": seen, "each number": added, "padding": none_seen, "padding in numbers": np.where(none_seen, 0, -np.inf).astype(dtype),
        "one for all heads": seen[:1, :1], "by query": numbers(dtype, 1, 3, 70, 1), "transposed": numbers(dtype, 1, 1, 90, 70).swapaxes(-1, -2),
        "read-only": np.broadcast_to(added[0, 0], (2, 3, 70, 90)),
    }  # fmt: skip


@pytest.mark.parametrize("name", list(masks(np.float32)))
def test_masks(dtype, name):
    made, _ = compare(*[numbers(dtype, 2, 3, n, 8) for n in (70, 90, 90)], mask=masks(dtype)[name])
    if name == "padding":
        assert not made[0][1].any()
        assert np.isneginf(made[1][1]).all()


def test_slices_of_one_projection_are_read_and_gradients_join_without_a_copy(dtype):
    query, key, value = numbers(dtype, 2, 70, 3, 4, 16).transpose(2, 0, 3, 1, 4)
    (made, _), grads = compare(query, key, value, causal=True)
    assert made.transpose(0, 2, 1, 3).flags.c_contiguous
    pieces = [grad.transpose(0, 2, 1, 3) for grad in grads]
    whole = indexing.assembled(pieces, (2, 70, 3, 4, 16), tuple([(slice(None), slice(None), number) for number in range(3)]))
    assert all(np.shares_memory(whole, piece) for piece in pieces)
    np.testing.assert_array_equal(whole, np.stack(pieces, 2))


@pytest.mark.parametrize("arrange", [
    lambda q, k, v: (q, k.copy(), v),
    lambda q, k, v: (q, q, v),
    lambda q, k, v: (q, v, k),
    lambda q, k, v: (v, k, q),
    lambda q, k, v: (q, k, k),
    lambda q, k, v: (q[:, :, ::2], k[:, :, ::2], v[:, :, ::2]),
], ids=["one is elsewhere", "twice the same", "another order", "backwards", "keys are values", "gaps"])  # fmt: skip
def test_what_is_no_whole_projection_has_gradients_of_its_own(dtype, arrange):
    query, key, value = arrange(*numbers(dtype, 2, 70, 3, 4, 16).transpose(2, 0, 3, 1, 4))
    _, grads = compare(query, key, value, causal=True)
    assert not any(np.shares_memory(a, b) for a, b in itertools.combinations(grads, 2))


def test_transposed_and_reversed_operands(dtype):
    query = numbers(dtype, 2, 16, 70).swapaxes(-1, -2)
    compare(query, query[:, ::-1], query[..., ::-1])


def test_many_threads_share_out_the_keys_of_one_head(dtype, monkeypatch):
    kernels = pytest.importorskip("pellucid.kernels.compiled.attention")
    monkeypatch.setattr(kernels, "get_threads", lambda: 3)
    compare(*[numbers(dtype, 1, n, 16) for n in (150, 200, 200)], causal=True)


def test_large_scores_do_not_overflow(dtype):
    query, key, value = (numbers(dtype, 2, n, 8) * 40 for n in (70, 200, 200))
    with choice.always():
        made, _ = attention.forward(query, key, value, None, False, 1.0)
    np.testing.assert_allclose(made, attention.plain_forward(query, key, value, None, False, 1.0)[0], rtol=1e-3, atol=1e-3)


def test_nan_spoils_the_rows_that_see_it(dtype):
    query, key, value = (numbers(dtype, 2, 70, 8) for _ in range(3))
    query[0, 3], key[1, 5, 2] = np.nan, np.nan
    with choice.always():
        made, logs = attention.forward(query, key, value, None, False, 0.5)
    spoilt = np.zeros((2, 70), bool)
    spoilt[0, 3] = spoilt[1] = True
    np.testing.assert_array_equal(np.isnan(made).all(-1), spoilt)
    np.testing.assert_array_equal(np.isnan(made).any(-1), spoilt)
    np.testing.assert_array_equal(np.isnan(logs), spoilt)


def test_an_infinite_score_gives_nan_as_the_plain_form(dtype):
    query, key, value = (np.abs(numbers(dtype, 70, 8)) for _ in range(3))
    key[4, 0] = np.inf
    with choice.always(), np.errstate(invalid="ignore"):
        made, _ = attention.forward(query, key, value, None, False, 0.5)
        expected, _ = attention.plain_forward(query, key, value, None, False, 0.5)
    assert np.isnan(made).all()
    assert np.isnan(expected).all()


@pytest.mark.parametrize(("length", "keys"), [(0, 3), (3, 0), (0, 0)])
def test_empty(dtype, length, keys):
    operands = [np.ones((2, n, 4), dtype) for n in (length, keys, keys)]
    made, logs = attention.forward(*operands, None, False, 1.0)
    assert made.shape == (2, length, 4)
    assert not made.any()
    grads = attention.backward(np.ones_like(made), *operands, made, logs, None, False, 1.0)
    assert [g.shape for g in grads] == [x.shape for x in operands]


def test_memory_grows_with_the_length_not_its_square():
    def peak(length):
        operands = [numbers(np.float32, 1, length, 16) for _ in range(3)]
        with choice.always():
            attention.backward(operands[0], *operands, *attention.forward(*operands, None, True, 0.25), None, True, 0.25)
            tracemalloc.start()
            made = attention.forward(*operands, None, True, 0.25)
            attention.backward(operands[0], *operands, *made, None, True, 0.25)
            found = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
        return found

    assert peak(4096) < 3 * peak(2048)
    assert peak(4096) < 4096 * 4096  # bytes: a quarter of one matrix of scores
