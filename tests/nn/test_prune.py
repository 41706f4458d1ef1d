"""Pruning: which elements go, what the module holds meanwhile, pruning on top of pruning, and refused amounts."""

from __future__ import annotations

import copy

import pytest

import pellucid as torch
from pellucid import nn
from pellucid.nn.utils import prune

WEIGHT = [[0.1, -2.0, 0.3, 4.0], [-0.5, 0.6, -7.0, 0.8], [9.0, -0.2, 1.1, -1.2]]


def layer() -> nn.Linear:
    made = nn.Linear(4, 3)
    made.weight.data = torch.tensor(WEIGHT)
    return made


@pytest.mark.parametrize(
    ("apply", "mask", "following"),
    [
        pytest.param(
            lambda m: prune.l1_unstructured(m, "weight", 5),
            [[0, 1, 0, 1], [0, 0, 1, 1], [1, 0, 1, 1]],
            0.8302518725395203,
            id="least magnitudes",
        ),
        pytest.param(
            lambda m: prune.l1_unstructured(m, "weight", 0.3),
            [[0, 1, 0, 1], [0, 1, 1, 1], [1, 0, 1, 1]],
            0.8302518725395203,
            id="a part",
        ),
        pytest.param(
            lambda m: prune.random_unstructured(m, "weight", 4),
            [[0, 1, 0, 1], [0, 1, 1, 1], [1, 0, 1, 1]],
            0.07241219282150269,
            id="at random",
        ),
        pytest.param(
            lambda m: prune.random_structured(m, "weight", 2, 1),
            [[1, 0, 1, 0]] * 3,
            0.9201034307479858,
            id="columns at random",
        ),
        pytest.param(
            lambda m: prune.ln_structured(m, "weight", 1, 2, 0),
            [[0, 0, 0, 0], [1, 1, 1, 1], [1, 1, 1, 1]],
            0.8302518725395203,
            id="rows by norm",
        ),
        pytest.param(
            lambda m: prune.ln_structured(m, "weight", 0.5, float("inf"), -1),
            [[1, 0, 1, 0]] * 3,
            0.8302518725395203,
            id="columns by maximum",
        ),
        pytest.param(
            lambda m: prune.custom_from_mask(m, "weight", torch.tensor([[True, False, True, True]] * 3)),
            [[1, 0, 1, 1]] * 3,
            0.8302518725395203,
            id="by a mask",
        ),
        pytest.param(lambda m: prune.identity(m, "weight"), [[1] * 4] * 3, 0.8302518725395203, id="nothing"),
        pytest.param(
            lambda m: prune.l1_unstructured(m, "weight", 2, torch.arange(12.0).reshape(3, 4)),
            [[0, 0, 1, 1], [1] * 4, [1] * 4],
            0.8302518725395203,
            id="by scores",
        ),
        pytest.param(lambda m: prune.random_unstructured(m, "weight", 0), [[1] * 4] * 3, 0.8302518725395203, id="none"),
        pytest.param(
            lambda m: prune.ln_structured(m, "weight", 0.1, 1, 0), [[1] * 4] * 3, 0.8302518725395203, id="no row"
        ),
    ],
)
def test_what_is_pruned(apply, mask, following):
    """The masks, and the random number drawn next, are those of PyTorch for this seed."""
    module = layer()
    torch.manual_seed(5)
    assert apply(module) is module
    assert module.weight_mask.tolist() == mask
    assert module.weight.tolist() == (torch.tensor(WEIGHT) * torch.tensor(mask)).tolist()
    assert torch.rand(1).item() == following


def test_what_the_module_holds():
    module = prune.l1_unstructured(layer(), "weight", 5)
    assert [name for name, _ in module.named_parameters()] == ["bias", "weight_orig"]
    assert [name for name, _ in module.named_buffers()] == ["weight_mask"]
    assert list(module.state_dict()) == ["bias", "weight_orig", "weight_mask"]
    assert module.weight_orig.tolist() == torch.tensor(WEIGHT).tolist()
    assert prune.is_pruned(module)
    assert prune.is_pruned(nn.Sequential(nn.ReLU(), module))
    assert not prune.is_pruned(layer())


def test_training_leaves_pruned_elements_at_zero():
    module = prune.l1_unstructured(layer(), "weight", 5)
    before = module.weight_orig.detach().clone()
    optimizer = torch.optim.SGD(module.parameters(), 0.1)
    module(torch.ones(2, 4)).sum().backward()
    assert (module.weight_orig.grad == 2 * module.weight_mask).all()
    optimizer.step()
    module(torch.ones(2, 4))
    assert ((module.weight == 0) == (module.weight_mask == 0)).all()
    assert ((module.weight_orig != before) == (module.weight_mask == 1)).all()


def test_removing():
    module = prune.l1_unstructured(layer(), "weight", 5)
    weight = module.weight.detach().clone()
    assert prune.remove(module, "weight") is module
    assert isinstance(module.weight, nn.Parameter)
    assert (module.weight == weight).all()
    assert sorted(module.state_dict()) == ["bias", "weight"]
    assert not prune.is_pruned(module)
    with pytest.raises(
        ValueError, match=r"Parameter 'weight' of module Linear.* has to be pruned before pruning can be"
    ):
        prune.remove(module, "weight")


def test_pruning_what_is_left():
    torch.manual_seed(5)
    module = prune.l1_unstructured(layer(), "weight", 3)
    assert module.weight_mask.tolist() == [[0, 1, 0, 1], [1, 1, 1, 1], [1, 0, 1, 1]]
    prune.ln_structured(module, "weight", 0.5, 1, 1)
    assert module.weight_mask.tolist() == [[0, 0, 0, 0], [1, 0, 1, 0], [1, 0, 1, 0]]
    torch.manual_seed(5)
    layer()  # draws what a new layer draws
    prune.random_unstructured(module, "weight", 0.5)
    assert module.weight_mask.tolist() == [[0, 0, 0, 0], [1, 0, 0, 0], [0, 0, 1, 0]]
    (container,) = module._forward_pre_hooks.values()
    assert [type(method).__name__ for method in container] == ["L1Unstructured", "LnStructured", "RandomUnstructured"]
    assert len(container) == 3
    assert container[0].amount == 3
    prune.custom_from_mask(module, "weight", torch.zeros(3, 4))
    assert module.weight.abs().sum() == 0
    assert prune.remove(module, "weight").weight.abs().sum() == 0


def test_several_parameters_judged_together():
    first, second = layer(), layer()
    second.weight.data *= 3
    pairs = [(first, "weight"), (second, "weight")]
    prune.global_unstructured(iter(pairs), prune.L1Unstructured, amount=10)
    assert first.weight_mask.tolist() == [[0, 1, 0, 1], [0, 0, 1, 0], [1, 0, 0, 1]]
    assert second.weight_mask.tolist() == [[0, 1, 0, 1], [1, 1, 1, 1], [1, 0, 1, 1]]
    scores = {(first, "weight"): torch.full((3, 4), 100.0)}
    prune.global_unstructured(pairs, prune.L1Unstructured, importance_scores=scores, amount=9)
    assert first.weight_mask.sum() == 5
    assert second.weight_mask.sum() == 0


def test_a_pruned_module_can_be_copied():
    module = prune.l1_unstructured(layer(), "weight", 5)
    with torch.no_grad():
        module(torch.ones(1, 4))  # its weight then has no history, which could not be copied
    module = copy.deepcopy(module)
    module.weight_orig.data.zero_()
    assert module(torch.ones(1, 4)).tolist() == [module.bias.tolist()]


def test_pruning_a_tensor():
    method = prune.L1Unstructured(1)
    assert method.prune(torch.tensor([1.0, -5.0, 2.0])).tolist() == [0, -5, 2]
    assert method.prune(torch.tensor([1.0, -5.0]), importance_scores=torch.tensor([3.0, 1.0])).tolist() == [1, 0]
    assert method.prune(torch.tensor([1.0, -5.0, 2.0]), default_mask=torch.tensor([1.0, 0.0, 1.0])).tolist() == [
        0,
        0,
        2,
    ]


def test_a_method_of_ones_own():
    class Negative(prune.BasePruningMethod):
        PRUNING_TYPE = "unstructured"

        def compute_mask(self, t, default_mask):
            return default_mask * (t > 0)

    module = layer()
    Negative.apply(module, "weight")
    assert (module.weight >= 0).all()

    class Unknown(Negative):
        PRUNING_TYPE = "other"

    with pytest.raises(ValueError, match="Unrecognized PRUNING_TYPE other"):
        Unknown.apply(module, "weight")
    assert (module.weight >= 0).all()

    class WithoutDim(Negative):
        PRUNING_TYPE = "structured"

    with pytest.raises(AttributeError, match="need to have the attribute `dim` defined"):
        WithoutDim.apply(module, "weight")


def test_a_refused_pruning_changes_nothing():
    module = layer()
    with pytest.raises(ValueError, match="amount=13 should be smaller than the number of parameters to prune=12"):
        prune.l1_unstructured(module, "weight", 13)
    assert sorted(module.state_dict()) == ["bias", "weight"]
    assert not module._forward_pre_hooks
    prune.l1_unstructured(module, "weight", 5)
    with pytest.raises(ValueError, match="amount=8 should be smaller than the number of parameters to prune=7"):
        prune.l1_unstructured(module, "weight", 8)
    assert module.weight_mask.sum() == 7
    assert prune.is_pruned(module)


@pytest.mark.parametrize(
    ("call", "kind", "phrase"),
    [
        pytest.param(
            lambda m: prune.l1_unstructured(m, "weight", "a"), TypeError, "Invalid type for amount: a", id="text"
        ),
        pytest.param(
            lambda m: prune.l1_unstructured(m, "weight", -1), ValueError, "in the range .0, 1.", id="negative"
        ),
        pytest.param(lambda m: prune.l1_unstructured(m, "weight", 1.5), ValueError, "amount=1.5 should", id="above 1"),
        pytest.param(
            lambda m: prune.ln_structured(m, "bias", 1, 2, 0), ValueError, "multidimensional tensors", id="bias"
        ),
        pytest.param(lambda m: prune.ln_structured(m, "weight", 1, 2, 2), IndexError, "Invalid index 2", id="dim"),
        pytest.param(lambda m: prune.random_structured(m, "weight", 4, 0), ValueError, "to prune=3", id="rows"),
        pytest.param(lambda m: prune.l1_unstructured(m, "other", 1), AttributeError, "other", id="name"),
        pytest.param(
            lambda m: prune.l1_unstructured(m, "weight", 1, torch.ones(2)),
            AssertionError,
            "the same shape",
            id="scores",
        ),
        pytest.param(
            lambda m: prune.L1Unstructured(1).prune(torch.ones(3), importance_scores=torch.ones(2)),
            AssertionError,
            "same shape as tensor t",
            id="scores of a tensor",
        ),
        pytest.param(
            lambda m: prune.custom_from_mask(m, "weight", torch.ones(2)),
            AssertionError,
            "must match self.mask",
            id="mask",
        ),
        pytest.param(
            lambda m: prune.global_unstructured(3, prune.L1Unstructured, amount=1),
            TypeError,
            "not an Iterable",
            id="pairs",
        ),
        pytest.param(
            lambda m: prune.global_unstructured([(m, "weight")], prune.L1Unstructured, [1], amount=1),
            TypeError,
            "importance_scores must be of type dict",
            id="scores of several",
        ),
        pytest.param(
            lambda m: prune.global_unstructured([(m, "weight")], prune.LnStructured, amount=1, n=2),
            TypeError,
            'Only "unstructured" PRUNING_TYPE supported',
            id="structured together",
        ),
        pytest.param(
            lambda m: prune.PruningContainer().add_pruning_method(3), TypeError, "is not a BasePruning", id="container"
        ),
    ],
)
def test_refused(call, kind, phrase):
    with pytest.raises(kind, match=phrase):
        call(layer())


def test_a_container_is_for_one_parameter():
    methods = [prune.Identity(), prune.Identity()]
    methods[0]._tensor_name, methods[1]._tensor_name = "weight", "bias"
    with pytest.raises(ValueError, match=r"acting on the parameter named 'weight' .* Found 'bias'"):
        prune.PruningContainer(*methods)


def test_a_dimension_counted_from_the_back_that_is_not_there():
    module = prune.l1_unstructured(layer(), "weight", 1)
    with pytest.raises(IndexError, match="out of bounds for tensor with dimensions 2: got dim -3"):
        prune.ln_structured(module, "weight", 1, 2, -3)
