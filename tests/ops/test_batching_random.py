"""Random operations under vmap: `randomness` says whether they are refused, draw once for all examples, or for each of them.

The numbers were printed by PyTorch 2.13 for the same seed and the same function.
"""

from __future__ import annotations

import numpy as np
import pytest

import pellucid as torch
from pellucid.func import grad, jvp, vmap

F = torch.nn.functional
BATCH = (torch.arange(12.0).reshape(3, 4) + 1) / 20

# name: a function of an example [4], the first numbers that differ between examples, the first of those that all share
DRAWS = {
    "rand": (lambda x: torch.rand(2), [0.4963, 0.7682, 0.0885, 0.132], [0.4963, 0.7682]),
    "randn": (lambda x: torch.randn(2), [1.541, -0.2934, -2.1788, 0.5684], [1.541, -0.2934]),
    "randint": (lambda x: torch.randint(5, (2,)), [4, 4, 3, 0, 3, 4], [4, 4]),
    "randperm": (lambda x: torch.randperm(5), [4, 0, 1, 3, 2, 3], [4, 0, 1]),
    "rand_like": (lambda x: torch.rand_like(x), [0.4963, 0.7682, 0.0885, 0.132], [0.4963, 0.7682, 0.0885]),
    "randn_like": (lambda x: torch.randn_like(x), [1.541, -0.2934, -2.1788, 0.5684], [1.541, -0.2934, -2.1788]),
    "randint_like": (lambda x: torch.randint_like(x, 5), [4, 4, 3, 0, 3, 4], [4, 4, 3]),
    "normal of numbers": (lambda x: torch.normal(0.0, 1.0, (4,)), [1.541, -0.2934, -2.1788, 0.5684], [1.541, -0.2934, -2.1788]),
    "uniform_": (lambda x: x.clone().uniform_(), [0.4963, 0.7682, 0.0885, 0.132], [0.4963, 0.7682, 0.0885]),
    "normal_": (lambda x: x.clone().normal_(), [1.541, -0.2934, -2.1788, 0.5684], [1.541, -0.2934, -2.1788]),
    "random_": (lambda x: x.clone().random_(100), [44, 39, 33, 60, 63, 79], [44, 39, 33]),
    "bernoulli_": (lambda x: x.clone().bernoulli_(0.5), [0, 0, 1, 0, 0, 0], [0, 0, 1]),
    "exponential_": (lambda x: x.clone().exponential_(), [3.5083, 1.2304, 0.615, 2.5351], [3.5083, 1.2304, 0.615]),
    "cauchy_": (lambda x: x.clone().cauchy_(), [10.5977, 0.7648, -0.1283, 3.9331], [10.5977, 0.7648, -0.1283]),
    "geometric_": (lambda x: x.clone().geometric_(0.5), [1, 1, 2, 1, 1, 1], [1, 1, 2]),
    "log_normal_": (lambda x: x.clone().log_normal_(), [59.2634, 1.5116, 0.0348, 8.4728], [59.2634, 1.5116, 0.0348]),
    "zeros_like": (lambda x: torch.zeros_like(x).normal_(), [1.541, -0.2934, -2.1788, 0.5684], [1.541, -0.2934, -2.1788]),
    "dropout": (lambda x: F.dropout(x), [0, 0, 0.3, 0, 0, 0], [0, 0, 0.3]),
    "alpha_dropout": (lambda x: F.alpha_dropout(x, training=True), [-0.7792, -0.7792, 0.9122], [-0.7792, -0.7792]),
    "feature_alpha_dropout": (lambda x: F.feature_alpha_dropout(x.reshape(2, 2), training=True), [-0.7792, -0.7792, 0.9122], [-0.7792, -0.7792]),
    "dropout1d": (lambda x: F.dropout1d(x.reshape(2, 2)), [0, 0, 0, 0, 0.5, 0.6], [0, 0, 0]),
    "dropout2d": (lambda x: F.dropout2d(x.reshape(1, 2, 2, 1)), [0, 0, 0, 0, 0.5, 0.6], [0, 0, 0]),
    "native_dropout": (lambda x: torch.native_dropout(x, 0.5, True)[0], [0, 0, 0.3, 0], [0, 0, 0.3]),
    "gumbel_softmax": (lambda x: F.gumbel_softmax(x), [0.084, 0.2517, 0.5293, 0.135], [0.084, 0.2517, 0.5293]),
    "gumbel_softmax hard": (lambda x: F.gumbel_softmax(x, hard=True), [0, 0, 1, 0], [0, 0, 1]),
}  # fmt: skip

# what is drawn depends on the example, so that the examples cannot share it
DEPENDENT = {
    "normal": (lambda x: torch.normal(x, 1.0), [1.591, -0.1934, -2.0288, 0.7684, -0.8345, -1.0986]),
    "normal of two": (lambda x: torch.normal(x, x), [0.127, 0.0707, -0.1768, 0.3137]),
    "bernoulli": (lambda x: torch.bernoulli(x), [0, 0, 1, 1, 0, 0]),
    "bernoulli with p": (lambda x: torch.bernoulli(x, 0.3), [0, 0, 0, 0, 0, 0]),
    "bernoulli_ by a tensor": (lambda x: x.clone().bernoulli_(x), [0, 0, 1, 1, 0, 0]),
    "poisson": (lambda x: torch.poisson(x * 9), [2, 3, 1, 1, 1, 3]),
    "multinomial": (lambda x: torch.multinomial(x, 2), [2, 1, 2, 3, 3, 1]),
    "multinomial of rows": (lambda x: torch.multinomial(x.reshape(2, 2), 2), [1, 0, 0, 1, 0, 1]),
    "multinomial replaced": (lambda x: torch.multinomial(x, 2, replacement=True), [3, 3, 2, 3]),
}  # fmt: skip
EVERY = {**DRAWS, **DEPENDENT}


def first(tensor, count: int):
    return tensor.flatten()[:count].numpy()


@pytest.mark.parametrize("name", EVERY)
def test_refused_unless_said_otherwise(name):
    with pytest.raises(RuntimeError, match="vmap: called random operation while in randomness error mode"):
        vmap(EVERY[name][0])(BATCH)


@pytest.mark.parametrize("name", EVERY)
def test_each_example_draws(name):
    function, expected, *_ = EVERY[name]
    torch.manual_seed(0)
    found = vmap(function, randomness="different")(BATCH)
    np.testing.assert_allclose(first(found, len(expected)), expected, atol=6e-5)
    assert found.shape[0] == len(BATCH)


@pytest.mark.parametrize("name", DRAWS)
def test_all_examples_share(name):
    function, _, expected = DRAWS[name]
    torch.manual_seed(0)
    found = vmap(function, randomness="same")(BATCH)
    np.testing.assert_allclose(first(found[0], len(expected)), expected, atol=6e-5)
    torch.manual_seed(0)
    with_same = [function(BATCH[0])]
    for example in BATCH[1:]:
        torch.manual_seed(0)
        with_same.append(function(example))
    np.testing.assert_allclose(found.numpy(), torch.stack(with_same).numpy(), rtol=1e-6)


@pytest.mark.parametrize("name", DEPENDENT)
def test_what_depends_on_the_example_cannot_be_shared(name):
    with pytest.raises(RuntimeError, match="does not currently support same randomness with a batched tensor"):
        vmap(DEPENDENT[name][0], randomness="same")(BATCH)


@pytest.mark.parametrize("name", DEPENDENT)
def test_what_does_not_depend_on_the_example_can_be_shared(name):
    if name.startswith("bernoulli_"):
        pytest.skip("in place: it writes to the example")
    torch.manual_seed(0)
    expected = DEPENDENT[name][0](BATCH[1])
    torch.manual_seed(0)
    found = vmap(lambda x: DEPENDENT[name][0](BATCH[1]), randomness="same")(BATCH)
    assert torch.equal(found, torch.stack([expected] * 3))


def test_operands_without_a_batch_are_drawn_from_for_each_example():
    torch.manual_seed(0)
    found = vmap(lambda x: torch.poisson(torch.tensor([3.0, 4.0])), randomness="different")(BATCH)
    torch.manual_seed(0)
    assert torch.equal(found, torch.poisson(torch.tensor([[3.0, 4.0]] * 3)))


FILLING = {
    "uniform_": lambda t: t.uniform_(),
    "normal_": lambda t: t.normal_(),
    "bernoulli_": lambda t: t.bernoulli_(0.5),
    "bernoulli_ by a tensor": lambda t: t.bernoulli_(torch.full((4,), 0.5)),
}


@pytest.mark.parametrize("name", FILLING)
def test_a_shared_tensor_cannot_be_filled_differently(name):
    with pytest.raises(RuntimeError, match="Cannot ask for different inplace randomness on an unbatched tensor"):
        vmap(lambda x: FILLING[name](torch.zeros(4)), randomness="different")(BATCH)


@pytest.mark.parametrize("name", FILLING)
def test_a_shared_tensor_is_filled_once(name):
    torch.manual_seed(0)
    expected = FILLING[name](torch.zeros(4))
    torch.manual_seed(0)
    found = vmap(lambda x: FILLING[name](torch.zeros(4)), randomness="same")(BATCH)
    assert torch.equal(found, torch.stack([expected] * 3))


def test_mask_of_native_dropout_is_that_of_its_result():
    torch.manual_seed(0)
    made, kept = vmap(lambda x: torch.native_dropout(x, 0.5, True), randomness="different")(BATCH)
    assert torch.equal(made != 0, kept)


def test_permutations_follow_one_another():
    torch.manual_seed(0)
    found = vmap(lambda x: torch.randperm(5), randomness="different")(BATCH)
    torch.manual_seed(0)
    assert torch.equal(found, torch.stack([torch.randperm(5) for _ in range(3)]))


def test_levels_decide_one_after_another():
    def twice(outer: str, inner: str):
        torch.manual_seed(0)
        return vmap(lambda x: vmap(lambda y: torch.rand(2), randomness=inner)(x), randomness=outer)(torch.zeros(2, 3))

    found = twice("different", "different")
    torch.manual_seed(0)
    assert torch.equal(found, torch.rand(2, 3, 2))
    shared = twice("different", "same")
    assert torch.equal(shared[:, 0], shared[:, 1])
    assert not torch.equal(shared[0], shared[1])
    shared = twice("same", "different")
    assert torch.equal(shared[0], shared[1])
    assert not torch.equal(shared[:, 0], shared[:, 1])
    with pytest.raises(RuntimeError, match="randomness error mode"):
        twice("error", "same")
    with pytest.raises(RuntimeError, match="randomness error mode"):
        twice("same", "error")


def test_gradients_pass_through_dropout_in_each_example():
    torch.manual_seed(0)
    found = vmap(grad(lambda x: F.dropout(x, 0.5).sum()), randomness="different")(BATCH)
    torch.manual_seed(0)
    mask = F.dropout(torch.ones(3, 4), 0.5)
    assert torch.equal(found, mask)


def test_gradients_of_what_is_drawn_are_zero():
    found = vmap(grad(lambda x: torch.normal(x, 1.0).sum() + torch.bernoulli(x).sum()), randomness="different")(BATCH)
    assert torch.equal(found, torch.zeros(3, 4))


def test_what_is_drawn_does_not_move():
    def both(x):
        y = x * 2
        y.normal_()
        return y + torch.rand(4) * x

    torch.manual_seed(0)
    _, change = jvp(both, (BATCH[0],), (torch.ones(4),))
    torch.manual_seed(0)
    torch.zeros(4).normal_()
    assert torch.equal(change, torch.rand(4))


def test_factories_with_out_are_refused():
    with pytest.raises(RuntimeError, match="with out= are not supported"):
        vmap(lambda x: torch.rand(4, out=torch.empty_like(x)), randomness="different")(BATCH)


def test_requires_grad_of_what_is_drawn():
    def slope(x):
        weights = torch.randn(4, requires_grad=True)
        (made,) = torch.autograd.grad((weights * x).sum(), [weights])
        return made

    assert torch.equal(vmap(slope, randomness="different")(BATCH), BATCH)
