"""Recurrent layers, compiled, beside the plain walk; and the operator beside the layer composed of other operators."""

import numpy as np
import pytest

import pellucid
from pellucid import nn
from pellucid.core.quiet import quiet
from pellucid.functions import recurrent as operators
from pellucid.kernels import choice, recurrent
from pellucid.ops.recurrent_steps import Weights, composed_layer

CASES = {  # input, hidden, rows of each step, reverse
    "small": (3, 5, (4, 4, 4), False),
    "packed": (7, 40, (6, 6, 3, 1), False),
    "packed, from the end": (7, 40, (6, 6, 3, 1), True),
    "whole blocks": (9, 64, (11, 11), True),
    "one row": (2, 33, (1,), False),
}
BOUND = {np.float64: 1e-12, np.float32: 1e-5}


def case(mode, dtype, name, bias=True):
    size, hidden, sizes, reverse = CASES[name]
    random = np.random.default_rng(0)

    def made(*shape):
        return (random.standard_normal(shape) * 0.5).astype(dtype)

    gates, rows, batch = recurrent.GATES[mode] * hidden, sum(sizes), max(sizes)
    states = [made(batch, hidden) for _ in range(2 if mode == "LSTM" else 1)]
    weights = [made(gates, size), made(gates, hidden), *((made(gates), made(gates)) if bias else (None, None))]
    grads = [made(rows, hidden), *[made(batch, hidden) for _ in states]]
    return made(rows, size), states, weights, grads, sizes, reverse


def results(mode, where, data, states, weights, grads, sizes, reverse):
    """Outputs, last states and gradients."""
    needs = (True, True, mode == "LSTM", True, True, weights[2] is not None, weights[2] is not None)
    with where(), quiet():
        last, saved = recurrent.forward(mode, data, states, weights, sizes, reverse)
        found = recurrent.backward(mode, grads, data, states, weights[:2], sizes, reverse, saved, needs)
    return [saved.output, *last, *[f for f in found if f is not None]]


@pytest.mark.parametrize("dtype", BOUND, ids=["float64", "float32"])
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("mode", recurrent.GATES)
def test_compiled_walks_give_what_plain_ones_give(mode, name, dtype):
    given = case(mode, dtype, name)
    before = [a.copy() for a in (given[0], *given[1], *given[2], *given[3])]
    for made, expected in zip(results(mode, choice.always, *given), results(mode, choice.never, *given), strict=True):
        np.testing.assert_allclose(made, expected, rtol=BOUND[dtype], atol=BOUND[dtype])
        assert made.dtype == dtype
    for array, old in zip((given[0], *given[1], *given[2], *given[3]), before, strict=True):
        np.testing.assert_array_equal(array, old)


@pytest.mark.parametrize("mode", recurrent.GATES)
def test_without_biases_and_with_missing_gradients(mode):
    data, states, weights, grads, sizes, reverse = case(mode, np.float64, "packed", bias=False)
    for given in ([None, *grads[1:]], [grads[0], *[None for _ in states]]):
        pair = [results(mode, where, data, states, weights, given, sizes, reverse) for where in (choice.always, choice.never)]
        for made, expected in zip(*pair, strict=True):
            np.testing.assert_allclose(made, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("sizes", [(4,), (4, 4, 4), (5, 3, 3, 1)])
@pytest.mark.parametrize("reverse", [False, True])
def test_states_that_steps_find_and_leave(sizes, reverse):
    """Step by step: each row finds what the step before it left, and in the end what its own last step left."""
    steps = recurrent.steps_of(sizes, reverse)
    first, after = np.arange(2.0 * max(sizes)).reshape(-1, 2) + 100, np.arange(2.0 * sum(sizes)).reshape(-1, 2)
    states, found = list(first), np.empty_like(after)
    for start, size in steps.tolist():
        for b in range(size):
            found[start + b], states[b] = states[b], after[start + b]
    np.testing.assert_array_equal(recurrent.before_steps(first, after, steps), found)
    np.testing.assert_array_equal(recurrent.last_states(first, after, steps), states)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("mode", recurrent.GATES)
def test_nan_and_infinity_stay_in_their_sequence(mode, value):
    data, states, weights, grads, sizes, reverse = case(mode, np.float64, "whole blocks")
    data[3] = value
    outputs = [results(mode, where, data, states, weights, grads, sizes, reverse)[0] for where in (choice.always, choice.never)]
    np.testing.assert_array_equal(np.isnan(outputs[0]), np.isnan(outputs[1]))
    assert np.isfinite(np.delete(outputs[0], [3, 14], 0)).all()


def test_views_and_arrays_that_may_not_be_written_to():
    data, states, weights, grads, sizes, reverse = case("LSTM", np.float64, "packed")
    expected = results("LSTM", choice.never, data, states, weights, grads, sizes, reverse)
    weights = [np.asfortranarray(w) if w.ndim == 2 else w for w in weights]
    data, states = np.asfortranarray(data), [np.asfortranarray(s) for s in states]
    for array in (data, *states, *weights):
        array.flags.writeable = False
    for made, wanted in zip(results("LSTM", choice.always, data, states, weights, grads, sizes, reverse), expected, strict=True):
        np.testing.assert_allclose(made, wanted, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("mode", recurrent.GATES)
def test_the_operator_is_the_composed_layer_with_its_derivatives(mode):
    """First and second derivatives of both, on packed sequences, with a last state that is used too."""
    data, states, weights, _, sizes, reverse = case(mode, np.float64, "packed, from the end")
    found = []
    for layer in (operators.layer, composed_layer):
        leaves = [pellucid.from_numpy(a).requires_grad_() for a in (data, *states, *weights)]
        state, weight = tuple(leaves[1 : 1 + len(states)]), Weights(*leaves[1 + len(states) :])
        output, last = layer(mode, leaves[0], list(sizes), state, weight, reverse)
        loss = (output * output).sum() + sum((s * s * s).sum() for s in last)
        first = pellucid.autograd.grad(loss, leaves, create_graph=True)
        second = pellucid.autograd.grad(sum((g * g).sum() for g in first), leaves)
        found.append([*first, *second])
    for made, expected in zip(*found, strict=True):
        np.testing.assert_allclose(made.detach().numpy(), expected.detach().numpy(), rtol=1e-9, atol=1e-9)


def test_a_layer_is_one_node():
    layer = nn.LSTM(3, 4)
    output, _ = layer(pellucid.randn(5, 2, 3))
    names, stack = set(), [output.grad_fn]
    while stack:
        node = stack.pop()
        names.add(node.name())
        stack += [following for following, _ in node.next_functions if following is not None]
    assert "RecurrentLayerBackward0" in names
    assert not names & {"SigmoidBackward0", "TanhBackward0"}


def test_transforms_see_single_operators():
    layer, x = nn.GRU(2, 3), pellucid.randn(4, 5, 1, 2)
    batched = pellucid.func.vmap(lambda steps: layer(steps)[0])(x)
    single = pellucid.stack([layer(steps)[0] for steps in x])
    np.testing.assert_allclose(batched.detach().numpy(), single.detach().numpy(), rtol=1e-5, atol=1e-6)


def test_complex_numbers_are_refused():
    h = pellucid.zeros(1, 2, dtype=pellucid.complex64)
    weights = Weights(*[pellucid.zeros(2, 2, dtype=pellucid.complex64) for _ in range(2)])
    with pytest.raises(NotImplementedError, match='"recurrent_layer" not implemented for'):
        pellucid.autograd.operator.tensors.recurrent_layer(
            h, h, None, weights.weight_ih, weights.weight_hh, None, None, (1,), False, "RNN_TANH"
        )
