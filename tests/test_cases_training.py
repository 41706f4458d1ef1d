"""What people have stumbled over in training loops: missing gradients, resumed schedules, clipping, copies, hooks."""

import copy
import math

import pytest

import pellucid as torch
from pellucid import nn
from pellucid.optim import SGD, AdamW, lr_scheduler

s = lr_scheduler


# --- a gradient that is missing, and one that is zero ----------------------------------------------------------------


@pytest.mark.parametrize(("second", "expected"), [(None, 0.9), (0.0, 0.81)])
def test_momentum_moves_a_parameter_on_a_zero_gradient_but_not_without_one(second, expected):
    p = nn.Parameter(torch.ones(1))
    optimizer = SGD([p], lr=0.1, momentum=0.9)
    p.grad = torch.ones(1)
    optimizer.step()
    p.grad = None if second is None else torch.tensor([second])
    optimizer.step()
    assert p.item() == pytest.approx(expected, rel=1e-7)


@pytest.mark.parametrize(("grad", "expected"), [(None, 1.0), (0.0, 0.95)])
def test_weight_decay_acts_on_a_zero_gradient_but_not_without_one(grad, expected):
    p = nn.Parameter(torch.ones(1))
    p.grad = None if grad is None else torch.tensor([grad])
    AdamW([p], lr=0.1, weight_decay=0.5).step()
    assert p.item() == pytest.approx(expected, rel=1e-7)


def test_zero_grad_drops_gradients_unless_told_otherwise():
    p = nn.Parameter(torch.ones(1))
    p.grad = torch.ones(1)
    SGD([p]).zero_grad(set_to_none=False)
    assert p.grad.item() == 0
    SGD([p]).zero_grad()
    assert p.grad is None


# --- resuming a schedule half way ------------------------------------------------------------------------------------


def fresh():
    return SGD([nn.Parameter(torch.ones(1))], lr=1.0)


def step(optimizer, schedule, times):
    """The rates before each of some steps."""
    seen = []
    for _ in range(times):
        seen.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        schedule.step()
    return seen


RESUMED = {
    "cosine": (lambda o: s.CosineAnnealingLR(o, 8), [0.5, 0.308658283817, 0.146446609407, 0.0380602337444]),
    "step": (lambda o: s.StepLR(o, 3, 0.5), [0.5, 0.5, 0.25, 0.25]),
    "milestones": (lambda o: s.MultiStepLR(o, [2, 5], 0.5), [0.5, 0.25, 0.25, 0.25]),
    "linear warm-up": (lambda o: s.LinearLR(o, 0.1, total_iters=6), [0.7, 0.85, 1.0, 1.0]),
    "own function": (lambda o: s.LambdaLR(o, lambda step: min(1.0, (step + 1) / 6)), [5 / 6, 1.0, 1.0, 1.0]),
    "one cycle": (
        lambda o: s.OneCycleLR(o, 1.0, total_steps=10, cycle_momentum=False),
        [0.81174565395, 0.61126202194, 0.38874197806, 0.18825834605],
    ),
    "linear, then cosine": (
        lambda o: s.SequentialLR(o, [s.LinearLR(o, 0.1, total_iters=3), s.CosineAnnealingLR(o, 6)], [3]),
        [0.9330127018922193, 0.75, 0.5, 0.25],
    ),
    "chained": (
        lambda o: s.ChainedScheduler([s.ConstantLR(o, 0.1, 4), s.ExponentialLR(o, 0.9)]),
        [0.6561, 0.59049, 0.531441, 0.4782969],
    ),
}


@pytest.mark.parametrize("order", ["load make load", "make load load", "make schedule load", "make schedule"])
@pytest.mark.parametrize("name", RESUMED)
def test_half_a_run_resumes_with_the_right_rates(name, order):
    make, expected = RESUMED[name]
    optimizer = fresh()
    schedule = make(optimizer)
    step(optimizer, schedule, 4)
    saved = copy.deepcopy((optimizer.state_dict(), schedule.state_dict()))
    again = fresh()
    if order == "load make load":
        again.load_state_dict(saved[0])
    resumed = make(again)
    if order == "make load load":
        again.load_state_dict(saved[0])
    resumed.load_state_dict(saved[1])
    if order == "make schedule load":
        again.load_state_dict(saved[0])
    assert step(again, resumed, 4) == pytest.approx(expected, rel=1e-9)


# --- one schedule after another --------------------------------------------------------------------------------------


def constant_then_exponential(last_epoch=-1):
    optimizer = fresh()
    optimizer.param_groups[0]["initial_lr"] = 1.0
    parts = [s.ConstantLR(optimizer, 0.2, total_iters=2), s.ExponentialLR(optimizer, 0.5)]
    return optimizer, s.SequentialLR(optimizer, parts, [2], last_epoch=last_epoch)


def test_a_sequence_of_schedules():
    optimizer, schedule = constant_then_exponential()
    assert schedule.get_last_lr() == [0.2]
    assert step(optimizer, schedule, 5) == [0.2, 0.2, 1.0, 0.5, 0.25]


@pytest.mark.parametrize(("last_epoch", "rate"), [(0, 0.2), (1, 0.2), (2, 1.0), (3, 0.5), (4, 0.25)])
def test_a_sequence_that_begins_at_a_later_step(last_epoch, rate):
    optimizer, schedule = constant_then_exponential(last_epoch)
    assert schedule.last_epoch == last_epoch
    assert schedule.get_last_lr() == [rate]
    assert optimizer.param_groups[0]["lr"] == rate


def test_a_plateau_may_come_second():
    optimizer = fresh()
    plateau = s.ReduceLROnPlateau(optimizer, factor=0.5, patience=0)
    schedule = s.SequentialLR(optimizer, [s.ConstantLR(optimizer, 0.2, total_iters=2), plateau], [2])
    seen = schedule.get_last_lr()
    for metric in (4.0, 3.0, 3.0, 2.0):
        optimizer.step()
        schedule.step(metric)
        seen = seen + schedule.get_last_lr()
    assert seen == [0.2, 0.2, 1.0, 0.5, 0.5]


# --- clipping --------------------------------------------------------------------------------------------------------


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
        self.head = nn.Linear(2, 1)


def with_gradients(net):
    for parameter in net.parameters():
        parameter.grad = torch.ones_like(parameter)
    return net


def refused(parameters):
    with pytest.raises(RuntimeError, match=r"^The total norm of order 2.0 for gradients from `parameters` is non-fin") as e:
        nn.utils.clip_grad_norm_(parameters, 1.0, error_if_nonfinite=True)
    return str(e.value)


def test_clipping_names_the_parameter_that_is_not_finite():
    net = with_gradients(Net())
    net.head.weight.grad[0, 1] = math.inf
    net.body[0].bias.grad[:] = math.nan
    message = refused(net.parameters())
    assert "gradient of `net.body.0.bias`, number 1 of shape (2,) (2 nan of 2), `net.head.weight`, number 2 " in message
    assert "of shape (1, 2) (1 inf of 2). detect_anomaly() names the operation" in message
    assert "net.body.0.weight" not in message
    assert net.head.bias.grad.item() == 1, "nothing is scaled"


class Trainer:
    def __init__(self, model):
        self.model = model

    def clip(self):
        return refused(list(self.model.parameters()))


def test_clipping_finds_the_name_in_an_attribute():
    trainer = Trainer(with_gradients(Net()))
    trainer.model.head.bias.grad[0] = -math.inf
    assert "gradient of `self.model.head.bias`, number 3 of shape (1,) (1 inf of 1)" in trainer.clip()


def test_clipping_names_a_variable_or_at_least_a_number():
    weight = nn.Parameter(torch.ones(2))
    weight.grad = torch.tensor([1.0, math.nan])
    assert "gradient of `weight`, number 0 of shape (2,) (1 nan of 2)" in refused([weight])
    held = [[nn.Parameter(torch.ones(1))]]
    held[0][0].grad = torch.tensor([math.inf])
    assert "gradient of number 0 of shape (1,) (1 inf of 1)" in refused(held[0])


def test_an_infinite_gradient_becomes_nan_where_no_error_is_asked_for():
    net = with_gradients(nn.Linear(2, 1))
    net.weight.grad[0, 0] = math.inf
    assert nn.utils.clip_grad_norm_(net.parameters(), 1.0).item() == math.inf
    assert math.isnan(net.weight.grad[0, 0].item())
    assert net.weight.grad[0, 1].item() == 0


# --- copies of modules that hold a result ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("hold", "place"),
    [
        (lambda net, value: setattr(net, "last", value), "`last` of the Net"),
        (lambda net, value: setattr(net.body[0], "last", value), "`body.0.last` of the Net"),
        (lambda net, value: setattr(net.head, "kept", [1, {"x": (value,)}]), "`head.kept[1]['x'][0]` of the Net"),
        (lambda net, value: net.head.register_buffer("seen", value), "`head.seen` of the Net"),
    ],
)
def test_a_copy_names_the_attribute_that_holds_a_result(hold, place):
    net = Net()
    value = net.head(torch.ones(1, 2))  # made here
    hold(net, value)
    with pytest.raises(RuntimeError, match=r"^Only Tensors created explicitly by the user \(graph leaves\)") as caught:
        copy.deepcopy(net)
    message = str(caught.value)
    assert f"The one at {place} was made by AddmmBackward0 at {__file__}" in message
    assert "# made here`. Keep .detach() of it there, or copy before it is computed." in message


def test_a_copy_of_containers_and_plain_objects_names_the_place_too():
    value = torch.ones(1, requires_grad=True) * 2
    for held, place in (([0, value], "`[1]` of the list"), ({"a": [value]}, "`['a'][0]` of the dict")):
        with pytest.raises(RuntimeError, match="The one at ") as caught:
            copy.deepcopy(held)
        assert place in str(caught.value)
    net = nn.Identity()
    net.last = value
    with pytest.raises(RuntimeError, match=r"The one at `model\.last` of the Trainer"):
        copy.deepcopy(Trainer(net))


def test_a_copy_of_a_leaf_whose_gradient_has_a_history():
    x = torch.ones(1, requires_grad=True)
    x.grad = torch.ones(1, requires_grad=True) * 2
    with pytest.raises(RuntimeError, match="The one at `grad` of the Tensor was made by MulBackward0"):
        copy.deepcopy(x)


def test_a_copy_of_a_result_alone_has_no_place_to_name():
    with pytest.raises(RuntimeError, match=r"at the moment\nThis one was made by MulBackward0 .*\. Copy \.detach"):
        copy.deepcopy(torch.ones(1, requires_grad=True) * 2)


# --- hooks, and operations in place ----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["register_full_backward_hook", "register_full_backward_pre_hook"])
def test_an_activation_in_place_may_follow_a_module_with_a_hook(kind):
    x = torch.tensor([[1.0, -2.0]], requires_grad=True)
    net = nn.Sequential(nn.Linear(2, 2), nn.ReLU(inplace=True))
    with torch.no_grad():
        net[0].weight.copy_(torch.tensor([[1.0, 0.5], [1.0, 1.0]]))
        net[0].bias.copy_(torch.tensor([1.0, 0.0]))
    heard = []
    for module in net:
        getattr(module, kind)(lambda module, *grads: heard.append(type(module).__name__))
    net(x).sum().backward()
    assert heard == ["ReLU", "Linear"]
    assert x.grad.tolist() == [[1.0, 0.5]]
    assert net[0].weight.grad.tolist() == [[1.0, -2.0], [0.0, 0.0]]


# --- writing where an index repeats ----------------------------------------------------------------------------------


@pytest.mark.parametrize("in_place", [False, True])
def test_of_values_copied_to_one_place_the_one_that_stays_gets_the_gradient(in_place):
    y = torch.tensor([5.0, 6.0, 7.0], requires_grad=True)
    index, zeros = torch.tensor([1, 1, 1]), torch.zeros(2)
    written = zeros.index_copy_(0, index, y) if in_place else zeros.index_copy(0, index, y)
    assert written.tolist() == [0, 7]
    written.sum().backward()
    assert y.grad.tolist() == [0, 0, 1]


def test_values_added_to_one_place_all_get_the_gradient():
    y = torch.tensor([5.0, 6.0, 7.0], requires_grad=True)
    added = torch.zeros(2).index_add(0, torch.tensor([1, 1, 1]), y)
    assert added.tolist() == [0, 18]
    added.sum().backward()
    assert y.grad.tolist() == [1, 1, 1]
