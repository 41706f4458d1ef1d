"""What all optimizers share: parameter groups, closures, hooks, what they print, what they refuse, failed steps."""

import copy
import inspect
import pickle
import warnings

import numpy as np
import pytest

import pellucid
from pellucid.core.tensor import Parameter, wrap
from pellucid.optim import SGD, Adam, AdamW, Optimizer
from pellucid.optim import optimizer as optimizer_module


def parameter(*values, grad=None):
    param = Parameter(wrap(np.array(values, np.float64)))
    if grad is not None:
        param.grad = wrap(np.array(grad, np.float64))
    return param


def fails(action, kind, *phrases):
    with pytest.raises(kind) as caught:
        action()
    for phrase in phrases:
        assert phrase in str(caught.value)


# --- groups ----------------------------------------------------------------------------------------------------------


def test_groups_fill_up_from_the_defaults():
    a, b = parameter(1.0), parameter(2.0)
    optimizer = SGD([{"params": [a]}, {"params": b, "lr": 0.5}], lr=0.1, momentum=0.9)
    assert [group["lr"] for group in optimizer.param_groups] == [0.1, 0.5]
    assert [group["momentum"] for group in optimizer.param_groups] == [0.9, 0.9]
    assert optimizer.param_groups[1]["params"] == [b]


def test_parameters_may_come_from_an_iterator():
    a, b = parameter(1.0), parameter(2.0)
    assert SGD((p for p in (a, b)), lr=0.1).param_groups[0]["params"] == [a, b]


def test_options_of_a_group_act_on_it_alone():
    a, b = parameter(1.0, grad=[1.0]), parameter(1.0, grad=[1.0])
    SGD([{"params": [a]}, {"params": [b], "lr": 0.5}], lr=0.1).step()
    assert (a.item(), b.item()) == (0.9, 0.5)


def test_a_changed_option_acts_from_the_next_step_on():
    param = parameter(1.0, grad=[1.0])
    optimizer = SGD([param], lr=0.5)
    optimizer.step()
    optimizer.param_groups[0]["lr"] = 0.25
    optimizer.step()
    assert param.item() == 0.25


def test_names_are_kept():
    a, b = parameter(1.0), parameter(2.0)
    optimizer = SGD([("weight", a), ("bias", b)], lr=0.1)
    assert optimizer.param_groups[0]["param_names"] == ["weight", "bias"]
    assert optimizer.param_groups[0]["params"] == [a, b]
    assert optimizer.state_dict()["param_groups"][0]["param_names"] == ["weight", "bias"]


def test_a_parameter_twice_in_a_group_warns_and_is_moved_twice():
    param = parameter(1.0, grad=[1.0])
    with pytest.warns(UserWarning, match="duplicate parameters"):
        optimizer = Adam([param, param], lr=0.1)
    once = parameter(1.0, grad=[1.0])
    twice = Adam([once], lr=0.1)
    optimizer.step()
    twice.step()
    twice.step()
    assert param.item() == once.item()
    assert optimizer.state[param]["step"].item() == 2


def test_a_refused_group_leaves_the_optimizer_as_it_was():
    param = parameter(1.0)
    optimizer = SGD([param], lr=0.1)
    fails(lambda: optimizer.add_param_group({"params": [param]}), ValueError, "more than one parameter group")
    assert len(optimizer.param_groups) == 1


class OneStep(Optimizer):
    def __init__(self, params):
        super().__init__(params, {"lr": optimizer_module.required})

    def step(self, closure=None):
        for group in self.param_groups:
            for param in group["params"]:
                param.data -= group["lr"] * param.grad.data


def test_an_optimizer_of_ones_own():
    param = parameter(1.0, grad=[0.5])
    optimizer = OneStep([{"params": [param], "lr": 0.5}])
    calls = []
    optimizer.register_step_post_hook(lambda *args: calls.append(args))
    optimizer.step()
    assert param.item() == 0.75
    assert len(calls) == 1


REFUSED = {
    "no parameters": (lambda: SGD([], lr=0.1), ValueError, "empty parameter list"),
    "a tensor": (lambda: SGD(parameter(1.0), lr=0.1), TypeError, "iterable of Tensors or dicts"),
    "a set": (lambda: SGD([{"params": {parameter(1.0)}}], lr=0.1), TypeError, "ordered collections"),
    "a number": (lambda: SGD([3], lr=0.1), TypeError, "one of the params is int"),
    "a result": (lambda: SGD([parameter(1.0) * 2], lr=0.1), ValueError, "can't optimize a non-leaf Tensor"),
    "a required option": (lambda: OneStep([parameter(1.0)]), ValueError, "required optimization parameter lr"),
    "a list as group": (lambda: SGD([parameter(1.0)]).add_param_group([1]), TypeError, "must be a dict"),
    "a name too few": (lambda: SGD([("a", parameter(1.0)), parameter(1.0)]), ValueError, "names are missing"),
    "a group without names": (
        lambda: SGD([("a", parameter(1.0))]).add_param_group({"params": [parameter(1.0)]}),
        ValueError,
        "cannot add param group without names",
    ),
    "negative lr": (lambda: SGD([parameter(1.0)], lr=-0.1), ValueError, "Invalid learning rate: -0.1"),
    "lr that is text": (lambda: Adam([parameter(1.0)], lr="0.1"), TypeError, "must be a number, but got '0.1'"),
    "negative momentum": (lambda: SGD([parameter(1.0)], momentum=-1), ValueError, "Invalid momentum value: -1"),
    "negative decay": (lambda: SGD([parameter(1.0)], weight_decay=-1), ValueError, "Invalid weight_decay value: -1"),
    "nesterov alone": (lambda: SGD([parameter(1.0)], nesterov=True), ValueError, "Nesterov momentum requires"),
    "beta of one": (lambda: Adam([parameter(1.0)], betas=(0.9, 1.0)), ValueError, "beta parameter at index 1: 1.0"),
    "beta that is an int": (lambda: Adam([parameter(1.0)], betas=(0, 0.9)), ValueError, "both floats or both Tensors"),
    "betas of many elements": (
        lambda: Adam([parameter(1.0)], betas=(wrap(np.ones(2) / 2), wrap(np.ones(2) / 2))),
        ValueError,
        "Tensor betas[0] must be 1-element",
    ),
    "negative eps": (lambda: Adam([parameter(1.0)], eps=-1.0), ValueError, "Invalid epsilon value: -1.0"),
    "lr of two elements": (lambda: Adam([parameter(1.0)], lr=wrap(np.ones(2))), ValueError, "must be 1-element"),
    "lr as tensor and foreach": (
        lambda: Adam([parameter(1.0)], lr=wrap(np.array(0.1)), foreach=True),
        ValueError,
        "lr as a Tensor is not supported",
    ),
    "fused and foreach": (
        lambda: Adam([parameter(1.0)], fused=True, foreach=True),
        RuntimeError,
        "`fused` and `foreach` cannot be `True` together",
    ),
    "fused and differentiable": (
        lambda: Adam([parameter(1.0)], fused=True, differentiable=True),
        RuntimeError,
        "`fused` does not support `differentiable`",
    ),
    "differentiable": (
        lambda: Adam([parameter(1.0)], differentiable=True),
        NotImplementedError,
        "differentiable=True is not supported",
    ),
    "rho": (lambda: pellucid.optim.Adadelta([parameter(1.0)], rho=1.5), ValueError, "Invalid rho value: 1.5"),
    "etas": (lambda: pellucid.optim.Rprop([parameter(1.0)], etas=(2, 3)), ValueError, "Invalid eta values: 2, 3"),
    "adafactor lr": (lambda: pellucid.optim.Adafactor([parameter(1.0)], lr=-1.0), ValueError, "should be >= 0"),
    "adafactor decay": (
        lambda: pellucid.optim.Adafactor([parameter(1.0)], beta2_decay=1.0),
        ValueError,
        "beta2_decay should be <= 0",
    ),
    "adafactor eps1": (lambda: pellucid.optim.Adafactor([parameter(1.0)], eps=(-1, 1)), ValueError, "epsilon1"),
    "adafactor eps2": (lambda: pellucid.optim.Adafactor([parameter(1.0)], eps=(1, -1)), ValueError, "epsilon2"),
    "adafactor d": (lambda: pellucid.optim.Adafactor([parameter(1.0)], d=0.5), ValueError, "Clipping threshold d"),
    "adafactor weight decay": (
        lambda: pellucid.optim.Adafactor([parameter(1.0)], weight_decay=-1),
        ValueError,
        "weight_decay should be >= 0",
    ),
    "muon vector": (lambda: pellucid.optim.Muon([parameter(1.0)]), ValueError, "only supports 2D parameters"),
    "muon lr": (lambda: pellucid.optim.Muon([parameter([1.0])], lr=-1.0), ValueError, "Learning rate should be >= 0"),
    "muon momentum": (lambda: pellucid.optim.Muon([parameter([1.0])], momentum=-1.0), ValueError, "momentum should"),
    "muon decay": (lambda: pellucid.optim.Muon([parameter([1.0])], weight_decay=-1.0), ValueError, "weight decay"),
    "muon scale": (lambda: pellucid.optim.Muon([parameter([1.0])], adjust_lr_fn="x"), ValueError, "is not supported"),
    "muon steps": (lambda: pellucid.optim.Muon([parameter([1.0])], ns_steps=100), ValueError, "less than 100"),
    "muon coefficients": (
        lambda: pellucid.optim.Muon([parameter([1.0])], ns_coefficients=(1, 2)),
        ValueError,
        "exactly 3 values",
    ),
    "step of the base": (lambda: Optimizer([parameter(1.0)], {}).step(), NotImplementedError, "has to define step()"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused(case):
    fails(*REFUSED[case])


# --- steps -----------------------------------------------------------------------------------------------------------


def test_a_closure_runs_with_grad_mode_on_and_its_loss_is_returned():
    param = parameter(2.0)
    optimizer = SGD([param], lr=0.25)

    def closure():
        optimizer.zero_grad()
        loss = (param * param).sum()
        loss.backward()
        return loss

    with pellucid.no_grad():
        loss = optimizer.step(closure)
    assert loss.item() == 4.0
    assert param.item() == 1.0


def test_a_parameter_without_gradient_stays():
    moved, left = parameter(1.0, grad=[1.0]), parameter(1.0)
    optimizer = Adam([moved, left], lr=0.1)
    optimizer.step()
    assert left.item() == 1.0
    assert list(optimizer.state) == [moved]


def test_no_gradient_is_not_a_gradient_of_zero():
    def after(optimizer, param, grads):
        for grad in grads:
            param.grad = None if grad is None else wrap(np.array([grad]))
            optimizer.step()
        return param.item()

    a, b = parameter(1.0), parameter(1.0)
    assert after(SGD([a], lr=0.1, momentum=0.9), a, [1.0, None]) == pytest.approx(0.9, abs=1e-15)
    assert after(SGD([b], lr=0.1, momentum=0.9), b, [1.0, 0.0]) == pytest.approx(0.81, abs=1e-15)
    c, d = parameter(1.0), parameter(1.0)
    assert after(AdamW([c], lr=0.1, weight_decay=0.5), c, [None]) == 1.0
    assert after(AdamW([d], lr=0.1, weight_decay=0.5), d, [0.0]) == pytest.approx(0.95, abs=1e-15)


def test_zero_grad_drops_gradients_or_fills_them():
    param = parameter(1.0, grad=[2.0])
    optimizer = SGD([param], lr=0.1)
    kept = param.grad
    optimizer.zero_grad(set_to_none=False)
    assert param.grad is kept
    assert kept.item() == 0.0
    optimizer.zero_grad()
    assert param.grad is None


def test_zero_grad_takes_a_gradient_out_of_its_graph():
    param = parameter(1.0)
    param.grad = parameter(3.0) * 2
    assert param.grad.requires_grad
    SGD([param], lr=0.1).zero_grad(set_to_none=False)
    assert not param.grad.requires_grad


def test_the_rate_may_be_a_tensor():
    param = parameter(1.0, grad=[1.0])
    rate = wrap(np.array(0.5))
    optimizer = SGD([param], lr=rate)
    optimizer.step()
    rate.fill_(0.25)
    optimizer.step()
    assert param.item() == 0.25


def test_options_in_a_list_may_change_in_place():
    values = []
    for betas in ([0.5, 0.9], [0.9, 0.9]):
        param = parameter(1.0, grad=[1.0])
        optimizer = Adam([param], betas=(0.9, 0.9))
        optimizer.param_groups[0]["betas"] = kept = [0.9, 0.9]
        optimizer.step()
        kept[:] = betas
        param.grad = wrap(np.array([3.0]))
        optimizer.step()
        values.append(param.item())
    assert values[0] != values[1]


def test_numpy_numbers_as_options_do_not_widen_the_computation():
    param = Parameter(wrap(np.array([1.0], np.float32)))
    param.grad = wrap(np.array([1.0], np.float32))
    SGD([param], lr=np.float64(0.1)).step()
    assert param._array.dtype == np.float32
    assert param._array[0] == np.float32(1) - np.float32(0.1)


def test_a_saved_value_that_a_step_overwrote_is_noticed():
    weight = parameter(2.0)
    loss = (weight * weight).sum()
    weight.grad = wrap(np.array([1.0]))
    SGD([weight], lr=0.1).step()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


# --- failed steps change nothing -------------------------------------------------------------------------------------


def bad_shape(param):
    param._grad = wrap(np.ones(3))


def read_only(param):
    array = np.ones(1)
    array.flags.writeable = False
    param._array = array


def overlapping(param):
    param._array = np.lib.stride_tricks.as_strided(np.ones(1), (2, 2), (0, 8))
    param._grad = wrap(np.ones((2, 2)))


def complex_gradient(param):
    param._grad = wrap(np.ones(1, complex))


@pytest.mark.parametrize(
    ("spoil", "phrase"),
    [
        (bad_shape, "size of a gradient (3,) must match"),
        (read_only, "cannot be updated"),
        (overlapping, "several of its elements share one place"),
        (complex_gradient, "cannot take a gradient of dtype"),
    ],
)
@pytest.mark.parametrize("name", ["SGD", "Adam", "Adafactor"])
def test_a_bad_parameter_stops_the_step_before_it_begins(name, spoil, phrase):
    good, bad = parameter(1.0, grad=[1.0]), parameter(1.0, grad=[1.0])
    optimizer = getattr(pellucid.optim, name)([good, bad])
    optimizer.step()
    before = good.item(), copy.deepcopy(optimizer.state_dict())
    spoil(bad)
    fails(optimizer.step, RuntimeError, phrase)
    assert good.item() == before[0]
    assert repr(optimizer.state_dict()) == repr(before[1])


def test_a_bad_option_stops_the_step_before_it_begins():
    param = parameter(1.0, grad=[1.0])
    optimizer = Adam([param], lr=0.1)
    optimizer.param_groups[0]["lr"] = "fast"
    fails(optimizer.step, TypeError, "lr must be a number, but got 'fast'")
    assert param.item() == 1.0
    assert not optimizer.state.get(param)


def test_an_option_switched_on_late_names_the_missing_state():
    param = parameter(1.0, grad=[1.0])
    optimizer = Adam([param], lr=0.1)
    optimizer.step()
    optimizer.param_groups[0]["amsgrad"] = True
    before = param.item()
    fails(optimizer.step, KeyError, "max_exp_avg_sq")
    assert param.item() == before


def test_momentum_may_be_switched_on_late():
    param = parameter(1.0, grad=[1.0])
    optimizer = SGD([param], lr=0.125)
    optimizer.step()
    optimizer.param_groups[0]["momentum"] = 0.5
    optimizer.step()
    optimizer.step()
    assert param.item() == 1 - 0.125 * (1 + 1 + 1.5)


def test_complex_parameters_that_a_rule_does_not_know():
    for name, array in (("Adafactor", np.ones(2, complex)), ("Muon", np.ones((2, 2), complex))):
        param = Parameter(wrap(array))
        param.grad = wrap(array.copy())
        fails(getattr(pellucid.optim, name)([param]).step, RuntimeError, f"{name} does not support complex parameters")


# --- hooks -----------------------------------------------------------------------------------------------------------


def test_step_hooks_run_in_order_and_can_be_removed():
    seen = []
    optimizer = SGD([parameter(1.0, grad=[1.0])], lr=0.1)
    handles = [
        optimizer.register_step_pre_hook(lambda *args: seen.append("before")),
        optimizer.register_step_post_hook(lambda *args: seen.append("after")),
        optimizer_module.register_optimizer_step_pre_hook(lambda *args: seen.append("before all")),
        optimizer_module.register_optimizer_step_post_hook(lambda *args: seen.append("after all")),
    ]
    optimizer.step()
    for handle in handles:
        handle.remove()
    optimizer.step()
    assert seen == ["before all", "before", "after", "after all"]


def test_a_pre_hook_may_replace_the_arguments():
    optimizer = SGD([parameter(1.0, grad=[1.0])], lr=0.1)
    optimizer.register_step_pre_hook(lambda optimizer, args, kwargs: ((lambda: "loss",), {}))
    assert optimizer.step() == "loss"
    optimizer.register_step_pre_hook(lambda optimizer, args, kwargs: 3)
    fails(optimizer.step, RuntimeError, "must return None or a tuple of (new_args, new_kwargs)")


class Twice(SGD):
    def step(self, closure=None):
        super().step(closure)
        super().step(closure)


def test_a_step_that_calls_its_parents_step_runs_hooks_once():
    seen = []
    optimizer = Twice([parameter(1.0, grad=[1.0])], lr=0.1)
    optimizer.register_step_post_hook(lambda *args: seen.append(1))
    optimizer.step()
    assert seen == [1]


# --- text, copies, signatures ----------------------------------------------------------------------------------------


def test_text_lists_the_options_of_each_group():
    optimizer = SGD([{"params": [parameter(1.0)]}, {"params": [parameter(1.0)], "lr": 1}], lr=0.1)
    assert repr(optimizer).startswith("SGD (\nParameter Group 0\n    dampening: 0\n    differentiable: False\n")
    assert "Parameter Group 1\n" in repr(optimizer)
    assert repr(optimizer).endswith("    weight_decay: 0\n)")


def test_copies_and_pickles_hold_their_own_parameters():
    param = parameter(1.0, grad=[1.0])
    optimizer = Adam([param], lr=0.1)
    optimizer.step()
    for other in (copy.deepcopy(optimizer), pickle.loads(pickle.dumps(optimizer))):
        (own,) = other.param_groups[0]["params"]
        own.grad = wrap(np.array([1.0]))
        other.step()
        assert other.state[own]["step"].item() == 2
    assert optimizer.state[param]["step"].item() == 1
    optimizer.step()
    assert own.item() == param.item()


def test_programs_read_signatures():
    assert "fused" in inspect.signature(AdamW).parameters
    assert list(inspect.signature(Adam([parameter(1.0)]).step).parameters) == ["closure"]


def test_options_for_other_machines_change_nothing():
    values = []
    for extra in ({}, {"foreach": True}, {"fused": True}, {"capturable": True}):
        param = parameter(1.0, grad=[0.3])
        Adam([param], **extra).step()
        values.append(param.item())
    assert len(set(values)) == 1


def test_nothing_is_warned_of():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        SGD([parameter(1.0, grad=[1.0])], lr=0.1).step()
