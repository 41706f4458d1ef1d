"""Parametrized parameters: the machinery, weight norm, spectral norm, and the older forms of both."""

import copy
import pickle
import re
import warnings

import pytest

import pellucid
from pellucid import nn
from pellucid.nn import utils
from pellucid.nn.utils import parametrizations, parametrize


class Cube(nn.Module):
    """x^3, with the inverse for 0 and 1."""

    def forward(self, x):
        return x * x * x

    def right_inverse(self, x):
        return x * x


class OneWay(nn.Module):
    """2 x, without an inverse."""

    def forward(self, x):
        return 2 * x


def layer(rows=2, columns=3):
    pellucid.manual_seed(0)
    return nn.Linear(columns, rows)


# --- the machinery ---------------------------------------------------------------------------------------------------


def test_a_parametrized_weight_is_computed_when_it_is_read():
    net = layer()
    before = net.weight.tolist()
    assert parametrize.register_parametrization(net, "weight", OneWay()) is net
    assert type(net).__name__ == "ParametrizedLinear"
    assert isinstance(net, nn.Linear)
    assert list(net.state_dict()) == ["bias", "parametrizations.weight.original"]
    assert net.weight.tolist() == [[2 * value for value in row] for row in before]
    net(pellucid.ones(1, 3)).sum().backward()
    assert net.parametrizations.weight.original.grad.tolist() == [[2, 2, 2]] * 2
    assert repr(net) == (
        "ParametrizedLinear(\n  in_features=3, out_features=2, bias=True\n  (parametrizations): ModuleDict(\n"
        "    (weight): ParametrizationList(\n      (0): OneWay()\n    )\n  )\n)"
    )


def test_assigning_goes_through_the_inverse():
    net = parametrize.register_parametrization(layer(1, 1), "weight", Cube())
    net.weight = pellucid.ones(1, 1)
    assert net.parametrizations.weight.original.item() == 1
    one_way = parametrize.register_parametrization(layer(1, 1), "weight", OneWay())
    with pytest.raises(RuntimeError, match="parametrization OneWay does not implement right_inverse"):
        one_way.weight = pellucid.ones(1, 1)


def test_several_parametrizations_follow_one_another():
    net = layer(1, 1)
    value = net.weight.item()
    parametrize.register_parametrization(net, "weight", OneWay())
    parametrize.register_parametrization(net, "weight", OneWay())
    assert net.weight.item() == pytest.approx(4 * value)
    assert parametrize.is_parametrized(net)
    assert not parametrize.is_parametrized(net, "bias")
    assert parametrize.type_before_parametrizations(net) is nn.Linear
    assert parametrize.type_before_parametrizations(layer()) is nn.Linear


def test_removing():
    net = layer(1, 1)
    value = net.weight.item()
    parametrize.register_parametrization(net, "weight", OneWay())
    parametrize.register_parametrization(net, "bias", OneWay())
    parametrize.remove_parametrizations(net, "weight")
    assert net.weight.item() == pytest.approx(2 * value)
    assert isinstance(net.weight, nn.Parameter)
    parametrize.remove_parametrizations(net, "bias", leave_parametrized=False)
    assert type(net) is nn.Linear
    assert sorted(net.state_dict()) == ["bias", "weight"]
    with pytest.raises(ValueError, match="Module Linear does not have a parametrization on weight"):
        parametrize.remove_parametrizations(net, "weight")
    parametrizations.weight_norm(net)
    with pytest.raises(ValueError, match="Cannot leave unparametrized"):
        parametrize.remove_parametrizations(net, "weight", leave_parametrized=False)
    parametrize.remove_parametrizations(net, "weight")
    assert net.weight.requires_grad


def test_cached_values():
    net = parametrize.register_parametrization(layer(), "weight", OneWay())
    with parametrize.cached():
        with parametrize.cached():
            weight = net.weight
        assert net.weight is weight
    assert net.weight is not weight


def test_copies_and_pickles():
    net = parametrize.register_parametrization(layer(), "weight", OneWay())
    other = copy.deepcopy(net)
    assert other.weight.tolist() == net.weight.tolist()
    other.parametrizations.weight.original.data.zero_()
    assert net.weight.abs().sum().item() > 0
    assert type(other) is not type(net)
    with pytest.raises(RuntimeError, match=r"is only supported through state_dict\(\)"):
        pickle.dumps(net)


def test_buffers_can_be_parametrized():
    net = nn.BatchNorm1d(1)
    parametrize.register_parametrization(net, "running_var", OneWay())
    assert net.running_var.item() == 2
    parametrize.remove_parametrizations(net, "running_var")
    assert list(net._buffers) == ["running_mean", "num_batches_tracked", "running_var"]


class Returns(nn.Module):
    """Gives and takes back what it is told to."""

    def __init__(self, forward=lambda x: x, inverse=lambda x: x):
        super().__init__()
        self.results = forward, inverse

    def forward(self, *values):
        return self.results[0](*values)

    def right_inverse(self, x):
        return self.results[1](x)


@pytest.mark.parametrize(
    ("parametrization", "text"),
    [
        (Returns(lambda x: x.double()), "may not change the dtype of the tensor, unless `unsafe` flag is enabled"),
        (Returns(lambda x: x.sum()), "may not change the shape of the tensor, unless `unsafe` flag is enabled"),
        (Returns(lambda x: 3), "A parametrization must return a tensor. Got int."),
        (Returns(inverse=lambda x: 3), "'right_inverse' must return a Tensor or a Sequence of tensors"),
        (Returns(inverse=lambda x: x.double()), "When `right_inverse` outputs one tensor, it may not change the dtype"),
    ],
)
def test_registration_errors(parametrization, text):
    with pytest.raises(ValueError, match=re.escape(text)):
        parametrize.register_parametrization(layer(), "weight", parametrization)


def test_more_errors():
    with pytest.raises(ValueError, match="or a parametrized element with name 'nope'"):
        parametrize.register_parametrization(layer(), "nope", OneWay())
    with pytest.raises(ValueError, match="ParametrizationList requires one or more modules"):
        parametrize.ParametrizationList([], pellucid.zeros(1))
    results = [lambda x: (x, x)]
    net = parametrize.register_parametrization(layer(), "weight", Returns(lambda a, b: a, lambda x: results[0](x)))
    results[0] = lambda x: (x,)
    with pytest.raises(ValueError, match=r"must return a sequence of tensors of length 2\. Got a sequence of length 1"):
        net.weight = pellucid.zeros(2, 3)
    results[0] = lambda x: (x, x.double())
    with pytest.raises(ValueError, match="Tensor 1 returned by `right_inverse` has dtype"):
        net.weight = pellucid.zeros(2, 3)


def test_unsafe_parametrizations_may_change_the_shape():
    net = parametrize.register_parametrization(layer(), "weight", Returns(lambda x: x[:1]), unsafe=True)
    assert net.weight.shape == (1, 3)


# --- weight norm and spectral norm -----------------------------------------------------------------------------------


def old_weight_norm(module, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        return utils.weight_norm(module, **options)


@pytest.mark.parametrize("apply", [parametrizations.weight_norm, old_weight_norm])
@pytest.mark.parametrize("dim", [0, 1, None])
def test_weight_norm_keeps_the_weight_and_splits_it(apply, dim):
    weight = layer().weight.tolist()
    net = apply(layer(), dim=dim)
    assert net.weight.reshape(-1).tolist() == pytest.approx([value for row in weight for value in row])
    g, v = (p for name, p in net.named_parameters() if name != "bias")
    assert g.shape == {0: (2, 1), 1: (1, 3), None: ()}[dim]
    assert v.tolist() == weight
    net(pellucid.ones(1, 3)).sum().backward()
    assert g.grad is not None
    assert v.grad is not None


def test_older_states_of_weight_norm_can_be_loaded():
    old, new = old_weight_norm(layer()), parametrizations.weight_norm(nn.Linear(3, 2))
    assert list(old.state_dict()) == ["bias", "weight_g", "weight_v"]
    new.load_state_dict(old.state_dict())
    assert new.weight.reshape(-1).tolist() == pytest.approx(old.weight.reshape(-1).tolist())


def largest_singular_value(weight):
    return (weight @ weight.T)[0, 0].item() ** 0.5 if weight.shape[0] == 1 else None


def test_spectral_norm_brings_the_norm_to_one():
    net = parametrizations.spectral_norm(layer(1, 3))
    assert list(net.state_dict()) == [
        "bias", "parametrizations.weight.original", "parametrizations.weight.0._u", "parametrizations.weight.0._v",
    ]
    assert largest_singular_value(net.weight.detach()) == pytest.approx(1, abs=1e-5)
    old = utils.spectral_norm(layer(1, 3))
    assert list(old.state_dict()) == ["bias", "weight_orig", "weight_u", "weight_v"]
    for _ in range(3):
        old(pellucid.ones(1, 3))
    assert largest_singular_value(old.weight.detach()) == pytest.approx(1, abs=1e-5)


def test_two_forward_passes_and_one_backward():
    net = utils.spectral_norm(layer())
    x = pellucid.ones(1, 3)
    (net(x) - net(2 * x)).sum().backward()
    assert net.weight_orig.grad is not None


def test_estimates_stay_in_evaluation():
    for net in (utils.spectral_norm(layer()).eval(), parametrizations.spectral_norm(layer()).eval()):
        before = [buffer.tolist() for buffer in net.buffers()]
        net(pellucid.ones(1, 3))
        assert [buffer.tolist() for buffer in net.buffers()] == before


def test_spectral_norm_of_vectors_and_transposed_convolutions():
    net = parametrizations.spectral_norm(layer(), "bias")
    assert (net.bias**2).sum().item() == pytest.approx(1, abs=1e-5)
    assert parametrizations.spectral_norm(nn.ConvTranspose1d(2, 3, 1)).parametrizations.weight[0]._u.shape == (3,)
    assert utils.spectral_norm(nn.ConvTranspose1d(2, 3, 1)).weight_u.shape == (3,)


@pytest.mark.parametrize(
    ("apply", "remove"),
    [(old_weight_norm, utils.remove_weight_norm), (utils.spectral_norm, utils.remove_spectral_norm)],
)
def test_older_forms_can_be_removed(apply, remove):
    net = apply(layer())
    net.eval()(pellucid.ones(1, 3))
    weight = net.weight.tolist()
    with pytest.raises(RuntimeError, match=r"Cannot register two .*_norm hooks on the same parameter weight"):
        apply(net)
    remove(net)
    assert sorted(net.state_dict()) == ["bias", "weight"]
    assert net.weight.reshape(-1).tolist() == pytest.approx([value for row in weight for value in row])
    with pytest.raises(ValueError, match="_norm of 'weight' not found in Linear"):
        remove(net)
    with pytest.raises(ValueError, match="can't have uninitialized parameters"):
        apply(nn.LazyLinear(1))


def test_errors():
    with pytest.warns(FutureWarning, match="`nn.utils.weight_norm` is deprecated"):
        utils.weight_norm(layer())
    for spectral_norm in (utils.spectral_norm, parametrizations.spectral_norm):
        with pytest.raises(ValueError, match="Expected n_power_iterations to be positive, but got"):
            spectral_norm(layer(), n_power_iterations=0)
    with pytest.raises(ValueError, match="`SpectralNorm` cannot be applied as parameter `bias` is None"):
        utils.spectral_norm(nn.Linear(1, 1, bias=False), "bias")
    with pytest.raises(ValueError, match="Module 'Linear' has no parameter or buffer with name 'nope'"):
        parametrizations.spectral_norm(layer(), "nope")
    with pytest.raises(IndexError, match=r"Dimension out of range \(expected to be in range of \[-2, 1\] but got 2\)"):
        parametrizations.spectral_norm(layer(), dim=2)
