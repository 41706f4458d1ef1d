"""Compiled update rules beside the plain ones: every rule and option, odd sizes and layouts, NaN and infinities."""

import numpy as np
import pytest

import pellucid
from pellucid.kernels import choice
from pellucid.kernels.updates import is_packed

RULES = {
    "sgd": ("SGD", {"lr": 0.1}),
    "sgd-decay": ("SGD", {"lr": 0.1, "weight_decay": 0.1, "maximize": True}),
    "sgd-momentum": ("SGD", {"lr": 0.1, "momentum": 0.9, "dampening": 0.3, "weight_decay": 0.1}),
    "sgd-nesterov": ("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True}),
    "adam": ("Adam", {"lr": 0.1}),
    "adam-decay": ("Adam", {"lr": 0.1, "weight_decay": 0.1, "maximize": True, "betas": (0.3, 0.99)}),
    "adam-amsgrad": ("Adam", {"lr": 0.1, "amsgrad": True, "weight_decay": 0.1}),
    "adamw": ("AdamW", {"lr": 0.1, "weight_decay": 0.1}),
    "nadam": ("NAdam", {"lr": 0.1, "weight_decay": 0.1}),
    "nadam-decoupled": ("NAdam", {"lr": 0.1, "weight_decay": 0.1, "decoupled_weight_decay": True}),
    "radam": ("RAdam", {"lr": 0.1, "weight_decay": 0.1}),
    "adamax": ("Adamax", {"lr": 0.1, "weight_decay": 0.1}),
    "adagrad": ("Adagrad", {"lr": 0.1, "lr_decay": 0.1, "weight_decay": 0.1}),
    "adadelta": ("Adadelta", {"lr": 1.0, "weight_decay": 0.1}),
    "rmsprop": ("RMSprop", {"lr": 0.1, "weight_decay": 0.1}),
    "rmsprop-momentum": ("RMSprop", {"lr": 0.1, "momentum": 0.9}),
    "rmsprop-centered": ("RMSprop", {"lr": 0.1, "centered": True}),
    "rmsprop-both": ("RMSprop", {"lr": 0.1, "centered": True, "momentum": 0.9}),
    "asgd": ("ASGD", {"lr": 0.1, "weight_decay": 0.1, "t0": 2}),
    "rprop": ("Rprop", {"lr": 0.1, "maximize": True}),
}
SHAPES = [(7,), (), (3, 5), (0, 2), (2053,), (2, 3, 4, 1)]
BOUND = {np.float64: 1e-12, np.float32: 2e-5}


def parameters(dtype, shapes=SHAPES, special=False):
    """Parameters with gradients that follow from their places."""
    random = np.random.default_rng(0)
    made = []
    for shape in shapes:
        param = pellucid.from_numpy(random.standard_normal(shape).astype(dtype).reshape(shape)).requires_grad_()
        param.grad = pellucid.from_numpy(random.standard_normal(shape).astype(dtype).reshape(shape))
        made.append(param)
    if special:
        made[0].grad._array[:4] = np.nan, np.inf, -np.inf, 0
    return made


def stepped(rule, dtype, where, **options):
    """Values of parameters and state after six steps."""
    name, settings = RULES[rule]
    params = parameters(dtype, **options)
    optimizer = getattr(pellucid.optim, name)(params, **settings)
    with where():
        for number in range(6):
            optimizer.step()
            for param in params:
                param.grad._array[...] *= -0.9 if number % 2 else 1.1
    values = [param._array for param in params]
    for param in params:
        values += [tensor._array for tensor in optimizer.state[param].values() if tensor is not None]
    return values


@pytest.mark.parametrize("dtype", BOUND, ids=["float64", "float32"])
@pytest.mark.parametrize("rule", RULES)
def test_compiled_rules_give_what_plain_ones_give(rule, dtype):
    for made, expected in zip(stepped(rule, dtype, choice.always), stepped(rule, dtype, choice.never), strict=True):
        np.testing.assert_allclose(made, expected, rtol=BOUND[dtype], atol=BOUND[dtype])
        assert made.dtype == expected.dtype


@pytest.mark.parametrize("rule", RULES)
def test_nan_and_infinity_go_where_they_go_in_plain_rules(rule):
    made = stepped(rule, np.float64, choice.always, special=True)
    expected = stepped(rule, np.float64, choice.never, special=True)
    for one, other in zip(made, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)


def turned(param):
    param.grad = pellucid.from_numpy(np.asfortranarray(param.grad._array))


def turned_parameter(param):
    param._array = np.asfortranarray(param._array)


def narrow(param):
    param._array = param._array.astype(np.float16)
    param._grad = pellucid.from_numpy(param.grad._array.astype(np.float16))


def single(param):
    param._array = param._array.astype(np.float32)
    param._grad = pellucid.from_numpy(param.grad._array.astype(np.float32))


@pytest.mark.parametrize("change", [turned, turned_parameter, narrow, single])
def test_parameters_that_differ_from_their_neighbours(change):
    """One of another layout or type among many: each is moved as it would be alone."""
    results = []
    for where in (choice.always, choice.never):
        params = parameters(np.float64, [(4, 5), (6, 7), (8,)])
        change(params[1])
        optimizer = pellucid.optim.AdamW(params, lr=0.1)
        with where():
            optimizer.step()
            optimizer.step()
        results.append([param._array for param in params])
    for made, expected in zip(*results, strict=True):
        np.testing.assert_allclose(made.astype(float), expected.astype(float), rtol=1e-6)


def test_groups_have_options_of_their_own():
    results = []
    for where in (choice.always, choice.never):
        params = parameters(np.float64, [(5,), (6,), (7,)])
        groups = [{"params": params[:1], "amsgrad": True}, {"params": params[1:], "lr": 0.5, "maximize": True}]
        optimizer = pellucid.optim.Adam(groups, lr=0.1)
        with where():
            optimizer.step()
        params[1].grad = None  # its count of steps stands still
        with where():
            optimizer.step()
        params[1].grad = pellucid.ones(6, dtype=pellucid.float64)
        with where():
            optimizer.step()
        results.append([param._array for param in params])
    for made, expected in zip(*results, strict=True):
        np.testing.assert_allclose(made, expected, rtol=1e-12)


def test_a_failed_step_leaves_everything_as_it_was():
    params = parameters(np.float64)
    optimizer = pellucid.optim.Adam(params, lr=0.1)
    with choice.always():
        optimizer.step()
        before = [param._array.copy() for param in params]
        params[-1]._grad = pellucid.zeros(3)
        with pytest.raises(RuntimeError, match="The size of a gradient"):
            optimizer.step()
    assert all((param._array == old).all() for param, old in zip(params, before, strict=True))
    assert {state["step"].item() for state in optimizer.state.values()} == {1}


def test_state_that_was_replaced_is_taken_up():
    """What is remembered of arrays between steps is checked at each."""
    params = parameters(np.float64, [(5,)])
    optimizer = pellucid.optim.SGD(params, lr=0.1, momentum=0.5)
    with choice.always():
        optimizer.step()
        optimizer.state[params[0]]["momentum_buffer"] = pellucid.zeros(5, dtype=pellucid.float64)
        before = params[0]._array.copy()
        optimizer.step()
    np.testing.assert_allclose(params[0]._array, before - 0.1 * params[0].grad._array)


def test_is_packed():
    assert is_packed([np.zeros(3), np.ones(3)])
    assert not is_packed([np.zeros(3), np.ones(3, np.float32)])
    assert not is_packed([np.zeros((3, 2)).T])
    assert not is_packed([np.zeros(3, complex)])


