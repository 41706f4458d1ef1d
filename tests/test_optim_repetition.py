"""Steps that repeat the one before: the same numbers as steps that find everything anew, whatever happens in between."""

import copy

import numpy as np
import pytest

import pellucid
from pellucid.kernels import choice
from pellucid.optim.repetition import Repetition

OPTIMIZERS = {
    "SGD": {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.1},
    "Adam": {"lr": 0.1, "amsgrad": True},
    "ASGD": {"lr": 0.1, "t0": 2},
    "NAdam": {"lr": 0.1},
    "RMSprop": {"lr": 0.1, "centered": True, "momentum": 0.5},
}


@pytest.fixture(autouse=True)
def _compiled_forms():
    with choice.always():
        yield


def train(name, disturb, *, repeat, dtype=np.float32):
    """Values and state after eight steps, with a disturbance before the fifth and the seventh; how many steps were repetitions."""
    random = np.random.default_rng(0)
    params = [pellucid.from_numpy(random.standard_normal(shape).astype(dtype)).requires_grad_() for shape in ((5, 3), (7,), (2, 2))]
    optimizer = getattr(pellucid.optim, name)(params, **OPTIMIZERS[name])
    repeated = 0
    for step in range(8):
        for param in params:
            param.grad = pellucid.from_numpy(random.standard_normal(param.shape).astype(dtype))
        if step in (4, 6):
            disturb(optimizer, params)
        if not repeat:
            optimizer._repetitions.clear()
        counts = [param._version for param in params]
        before = Again.done
        optimizer.step()
        repeated += Again.done - before
        moved = [param.grad is not None for param in optimizer.param_groups[0]["params"]]
        here = {id(param) for param, was in zip(optimizer.param_groups[0]["params"], moved, strict=True) if was}
        for param, count in zip(params, counts, strict=True):
            assert param._version == count + (id(param) in here)
    state = [{k: np.asarray(v) for k, v in optimizer.state[param].items()} for param in params]
    return [param.numpy(force=True).copy() for param in params], state, repeated


class Again:
    """Counts the steps that were repetitions."""

    done = 0


@pytest.fixture(autouse=True)
def _counted(monkeypatch):
    move = Repetition.move

    def counted(self, *arguments):
        Again.done += 1
        move(self, *arguments)

    monkeypatch.setattr(Repetition, "move", counted)


def set_rate(optimizer, params):
    optimizer.param_groups[0]["lr"] *= 0.5


def replace_data(optimizer, params):
    params[1].data = params[1].data.clone() + 1


def replace_slot(optimizer, params):
    state = optimizer.state[params[0]]
    for name, value in list(state.items()):
        if isinstance(value, pellucid.Tensor) and value.ndim:
            state[name] = value + 0.25


def replace_memory_of_slot(optimizer, params):
    for value in optimizer.state[params[2]].values():
        if isinstance(value, pellucid.Tensor):
            value.data = value.data + 0.5


def write_to_slot(optimizer, params):
    for value in optimizer.state[params[2]].values():
        if isinstance(value, pellucid.Tensor) and value.ndim:
            value.mul_(0.5)


def set_count(optimizer, params):
    if "step" in optimizer.state[params[1]]:
        optimizer.state[params[1]]["step"] += 3


def plain_count(optimizer, params):
    for param in params:
        if "step" in optimizer.state[param]:
            optimizer.state[param]["step"] = 4.0


def forget_state(optimizer, params):
    optimizer.state.clear()


def load(optimizer, params):
    optimizer.load_state_dict(copy.deepcopy(optimizer.state_dict()))


def drop_a_gradient(optimizer, params):
    params[1].grad = None


def turn_a_gradient(optimizer, params):
    params[0].grad = pellucid.from_numpy(np.asfortranarray(params[0].grad.numpy()))


def gradient_of_another_dtype(optimizer, params):
    params[0].grad = None
    params[0].grad_dtype = None
    params[0].grad = pellucid.from_numpy(np.ones((5, 3), np.float64))


def other_order(optimizer, params):
    optimizer.param_groups[0]["params"].reverse()


def remove_a_parameter(optimizer, params):
    del optimizer.param_groups[0]["params"][0]


def add_a_group(optimizer, params):
    optimizer.add_param_group({"params": [pellucid.ones(3, requires_grad=True)]})


NOTICED = [replace_data, replace_slot, replace_memory_of_slot, forget_state, load, drop_a_gradient, turn_a_gradient,
           gradient_of_another_dtype, other_order, remove_a_parameter]  # fmt: skip
DISTURBANCES = [set_rate, write_to_slot, set_count, plain_count, add_a_group, *NOTICED]


@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.parametrize("disturb", DISTURBANCES, ids=lambda f: f.__name__)
def test_a_repetition_gives_what_a_step_that_looks_anew_gives(name, disturb):
    params, state, repeated = train(name, disturb, repeat=True)
    expected, expected_state, none = train(name, disturb, repeat=False)
    assert none == 0
    assert repeated >= 3
    for got, wanted in zip(params, expected, strict=True):
        np.testing.assert_array_equal(got, wanted)
    for got, wanted in zip(state, expected_state, strict=True):
        assert got.keys() == wanted.keys()
        for key in got:
            np.testing.assert_array_equal(got[key], wanted[key])


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_steps_in_a_row_are_repetitions(name):
    assert train(name, lambda *_: None, repeat=True)[2] == 7
    assert train(name, set_rate, repeat=True)[2] == 7


@pytest.mark.parametrize("disturb", NOTICED, ids=lambda f: f.__name__)
def test_what_has_moved_is_noticed(disturb):
    assert train("Adam", disturb, repeat=True)[2] < 7


def test_a_parameter_without_gradient_is_no_hindrance():
    params = [pellucid.ones(4, requires_grad=True) for _ in range(3)]
    optimizer = pellucid.optim.SGD(params, lr=0.1, momentum=0.9)
    before = Again.done
    for _ in range(4):
        for param in params[1:]:
            param.grad = pellucid.ones_like(param)
        optimizer.step()
    assert Again.done == before + 3
    assert (params[0] == 1).all()
    assert (params[1] < 1).all()


def test_a_rule_that_remembers_nothing_leaves_no_state():
    param = pellucid.ones(4, requires_grad=True)
    optimizer = pellucid.optim.SGD([param], lr=0.1)
    before = Again.done
    for _ in range(3):
        param.grad = pellucid.ones_like(param)
        optimizer.step()
    assert Again.done == before + 2
    assert optimizer.state_dict()["state"] == {}


def test_small_parameters_are_left_to_numpy():
    with choice.never():
        assert train("Adam", lambda *_: None, repeat=True)[2] == 0


def test_a_refused_step_changes_nothing():
    params = [pellucid.ones(4, requires_grad=True), pellucid.ones(2, 2, requires_grad=True)]
    optimizer = pellucid.optim.Adam([{"params": params[:1]}, {"params": params[1:]}], lr=0.1)
    for _ in range(3):
        for param in params:
            param.grad = pellucid.ones_like(param)
        optimizer.step()
    before = [param.detach().clone() for param in params]
    params[1]._array.flags.writeable = False
    with pytest.raises(RuntimeError, match="cannot be updated"):
        optimizer.step()
    for param, value in zip(params, before, strict=True):
        assert (param == value).all()
    assert [float(optimizer.state[param]["step"]) for param in params] == [3, 3]
