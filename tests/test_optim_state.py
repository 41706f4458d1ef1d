"""Saving and loading optimizers."""

import copy

import numpy as np
import pytest

import pellucid
from pellucid.core.tensor import Parameter, wrap
from pellucid.optim import SGD, Adam, AdamW

NAMES = ["ASGD", "Adadelta", "Adafactor", "Adagrad", "Adam", "AdamW", "Adamax", "LBFGS", "Muon", "NAdam", "RAdam",
         "RMSprop", "Rprop", "SGD"]
OPTIONS = {"SGD": {"momentum": 0.9}, "Adam": {"amsgrad": True}, "RMSprop": {"centered": True, "momentum": 0.5},
           "LBFGS": {"max_iter": 2}}


def problem(kind=np.float64):
    rng = np.random.default_rng(0)
    return [Parameter(wrap(rng.standard_normal((3, 2)).astype(kind))), Parameter(wrap(np.ones((2, 2), kind)))]


def train(optimizer, params, steps):
    def closure():
        loss = 0.0
        for param in params:
            param.grad = wrap(param._array * 2 - 1)
            loss += float(((param._array - 0.5) ** 2).sum())
        return loss

    for _ in range(steps):
        optimizer.step(closure)


@pytest.mark.parametrize("name", NAMES)
def test_a_run_goes_on_where_it_was_saved(name):
    make = lambda params: getattr(pellucid.optim, name)(params, **OPTIONS.get(name, {}))  # noqa: E731
    through = problem()
    train(make(through), through, 7)
    params = problem()
    first = make(params)
    train(first, params, 4)
    second = make(params)
    second.load_state_dict(copy.deepcopy(first.state_dict()))
    train(second, params, 3)
    for got, expected in zip(params, through, strict=True):
        np.testing.assert_array_equal(got._array, expected._array)


def test_the_layout_is_pytorchs():
    params = problem()
    optimizer = SGD([{"params": params[:1]}, {"params": params[1:], "lr": 0.5}], lr=0.1, momentum=0.9)
    train(optimizer, params, 1)
    state = optimizer.state_dict()
    assert set(state) == {"state", "param_groups"}
    assert set(state["state"]) == {0, 1}
    assert [group["params"] for group in state["param_groups"]] == [[0], [1]]
    assert state["param_groups"][1] == {
        "lr": 0.5, "momentum": 0.9, "dampening": 0, "weight_decay": 0, "nesterov": False, "maximize": False,
        "foreach": None, "differentiable": False, "fused": None, "params": [1],
    }  # fmt: skip


def test_loaded_tensors_are_copies_in_the_parameters_type():
    params = problem()
    first = Adam(params)
    train(first, params, 1)
    saved = first.state_dict()
    single = problem(np.float32)
    second = Adam(single)
    second.load_state_dict(saved)
    loaded = second.state[single[0]]
    assert loaded["exp_avg"].dtype is pellucid.float32
    assert loaded["step"].dtype is pellucid.float32
    train(second, single, 1)
    assert saved["state"][0]["step"].item() == 1
    assert second.state_dict()["state"][0]["step"].item() == 2


def test_a_count_of_steps_that_is_a_number_is_taken():
    params = problem()
    first = Adam(params)
    train(first, params, 3)
    saved = copy.deepcopy(first.state_dict())
    for state in saved["state"].values():
        state["step"] = 3
    second = Adam(params)
    second.load_state_dict(saved)
    train(second, params, 1)
    assert second.state[params[0]]["step"].item() == 4


def test_options_that_old_states_lack_are_filled_in():
    params = problem()
    saved = copy.deepcopy(AdamW(params).state_dict())
    for name in ("amsgrad", "maximize", "foreach", "capturable", "differentiable", "fused", "decoupled_weight_decay"):
        del saved["param_groups"][0][name]
    optimizer = AdamW(params)
    optimizer.load_state_dict(saved)
    train(optimizer, params, 1)
    assert optimizer.param_groups[0]["decoupled_weight_decay"] is True


def refused(optimizer, state, *phrases):
    before = repr(optimizer.state_dict())
    with pytest.raises(ValueError, match="loaded state dict") as caught:
        optimizer.load_state_dict(state)
    for phrase in phrases:
        assert phrase in str(caught.value)
    assert repr(optimizer.state_dict()) == before


def test_states_that_do_not_fit_are_refused():
    a, b = problem()
    optimizer = SGD([a, b], lr=0.1)
    two_groups = SGD([{"params": [a]}, {"params": [b]}], lr=0.2).state_dict()
    refused(optimizer, two_groups, "different number of parameter groups", "expected 1, got 2")
    refused(optimizer, SGD([a], lr=0.2).state_dict(), "doesn't match the size of optimizer's group")
    refused(Adam([a, b]), optimizer.state_dict(), "not that of Adam", "'betas'", "'momentum'")


# whose states have the same names: weight decay apart from the gradient is an option that the state brings along
ALIKE = {("Adam", "AdamW"), ("AdamW", "Adam"), ("RAdam", "Adam"), ("RAdam", "AdamW")}


@pytest.mark.parametrize("saved", NAMES)
@pytest.mark.parametrize("loading", NAMES)
def test_the_state_of_another_kind_of_optimizer_is_refused(loading, saved):
    params = problem()
    first, second = (getattr(pellucid.optim, name)(params, **OPTIONS.get(name, {})) for name in (saved, loading))
    train(first, params, 1)
    if loading == saved or (saved, loading) in ALIKE:
        second.load_state_dict(first.state_dict())
        train(second, params, 1)
    else:
        refused(second, first.state_dict(), f"loaded state dict is not that of {loading}\n")


def test_what_differs_is_named():
    params = problem()
    optimizers = {name: getattr(pellucid.optim, name)(params) for name in ("SGD", "Adam", "Adamax", "NAdam", "LBFGS")}
    for optimizer in optimizers.values():
        train(optimizer, params, 1)
    states = {name: optimizer.state_dict() for name, optimizer in optimizers.items()}
    text = "Its parameter group 0 has no 'momentum', 'dampening'. SGD does not know the options 'betas', 'eps', 'amsgrad', "
    refused(optimizers["SGD"], states["Adam"], text, "Parameter group 0 has 'amsgrad', 'betas'")
    refused(optimizers["Adam"], states["NAdam"], "Adam does not know the options 'momentum_decay'. Parameter group 0 has")
    refused(optimizers["LBFGS"], states["SGD"], "group 0 has no 'max_iter', 'max_eval'")
    text = "Adamax does not know the options 'amsgrad', 'decoupled_weight_decay'"
    refused(optimizers["Adamax"], states["Adam"], text)
    old = copy.deepcopy(states["Adam"])
    for name in ("amsgrad", "fused", "decoupled_weight_decay"):
        del old["param_groups"][0][name]
    text = "Its state of parameter 0 has no 'exp_inf'. There is 'exp_avg', 'exp_avg_sq', 'step'."
    refused(optimizers["Adamax"], old, text)


def test_entries_of_ones_own_in_a_group_are_no_reason_to_refuse():
    params = problem()
    saved = SGD([{"params": params, "name": "all", "initial_lr": 0.1, "max_momentum": 0.9}], lr=0.1).state_dict()
    optimizer = SGD(params, lr=0.2)
    optimizer.load_state_dict(saved)
    assert optimizer.param_groups[0]["name"] == "all"


def test_a_state_of_another_shape_stops_the_step():
    params = problem()
    optimizer = SGD(params, lr=0.1, momentum=0.9)
    train(optimizer, params, 1)
    others = list(reversed(problem()))
    second = SGD(others, lr=0.1, momentum=0.9)
    second.load_state_dict(optimizer.state_dict())
    before = [param._array.copy() for param in others]
    with pytest.raises(RuntimeError, match=r"momentum_buffer .* must match the size of its parameter"):
        train(second, others, 1)
    for param, array in zip(others, before, strict=True):
        np.testing.assert_array_equal(param._array, array)


def test_state_that_belongs_to_no_parameter_is_kept():
    params = problem()
    optimizer = SGD(params, lr=0.1)
    optimizer.state["counter"] = {"seen": 3}
    second = SGD(params, lr=0.1)
    second.load_state_dict(optimizer.state_dict())
    assert second.state["counter"] == {"seen": 3}


def test_hooks_around_saving_and_loading():
    params = problem()
    optimizer = SGD(params, lr=0.1)
    seen = []
    optimizer.register_state_dict_pre_hook(lambda o: seen.append("save"))
    optimizer.register_state_dict_post_hook(lambda o, state: {**state, "note": 1})
    optimizer.register_load_state_dict_pre_hook(lambda o, state: seen.append(state.pop("note")))
    optimizer.register_load_state_dict_pre_hook(lambda o, state: seen.append("first"), prepend=True)
    optimizer.register_load_state_dict_post_hook(lambda o: seen.append("loaded"))
    state = optimizer.state_dict()
    optimizer.load_state_dict(state)
    assert seen == ["save", "first", 1, "loaded"]
    assert state["note"] == 1
