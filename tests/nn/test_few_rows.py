"""A table's gradient that holds few rows until somebody looks: nobody can tell it from one with all its zeros."""

import copy
import gc
import weakref

import numpy as np
import pytest

import pellucid as torch
from pellucid import nn
from pellucid.autograd.few_rows import RowsGradient
from pellucid.kernels import choice, few_rows
from pellucid.kernels.accumulation import add_rows

SIZE, WIDTH = 400, 6
CHOSEN = [[3, 7, 3], [399, 0, 7], [11, 3, 200]]


@pytest.fixture(autouse=True)
def worth_it(monkeypatch):
    monkeypatch.setattr(few_rows, "LARGE", SIZE * WIDTH)


@pytest.fixture
def dense(monkeypatch):
    """A way to switch the rows off."""
    return lambda: monkeypatch.setattr(few_rows, "LARGE", 1 << 60)


def table(**options):
    torch.manual_seed(0)
    return nn.Embedding(SIZE, WIDTH, **options)


def loss_of(layer):
    return (layer(torch.tensor(CHOSEN)) ** 2 * torch.arange(1.0, WIDTH + 1)).sum()


def expected(layer):
    """The gradient, by hand."""
    weight, made = layer.weight.detach().numpy(), np.zeros((SIZE, WIDTH), np.float32)
    for index in np.ravel(CHOSEN):
        if index != layer.padding_idx:
            made[index] += 2 * weight[index] * np.arange(1, WIDTH + 1, dtype=np.float32)
    return made


# --- the rows ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", [choice.always, choice.never])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_rows_are_the_sums_of_add_rows(form, dtype):
    index = np.random.default_rng(0).integers(SIZE, size=40)
    rows = np.random.default_rng(1).standard_normal((40, WIDTH)).astype(dtype)
    with form():
        made = few_rows.few_rows(SIZE, index, rows)
        np.testing.assert_array_equal(made.whole(), add_rows(SIZE, index, rows, rows.dtype, (WIDTH,)))
    np.testing.assert_array_equal(made.index, np.unique(index))
    assert made.whole().dtype == dtype
    np.testing.assert_array_equal(np.asarray(made, np.float64), made.whole())


@pytest.mark.parametrize("form", [choice.always, choice.never])
def test_the_rows_of_bags_are_those_of_their_places(form):
    index, starts = np.random.default_rng(0).integers(SIZE, size=40), np.array([0, 5, 5, 30])
    rows = np.random.default_rng(1).standard_normal((4, WIDTH)).astype(np.float32)
    with form():
        made = few_rows.few_rows(SIZE, index, rows, starts).whole()
        places = rows[np.repeat(np.arange(4), [5, 0, 25, 10])]
        np.testing.assert_array_equal(made, add_rows(SIZE, index, places, rows.dtype, (WIDTH,)))


@pytest.mark.parametrize("mode", ["sum", "mean"])
def test_bags_give_the_table_few_rows(mode):
    torch.manual_seed(0)
    layer = nn.EmbeddingBag(SIZE, WIDTH, mode=mode)
    layer(torch.tensor(CHOSEN)).sum().backward()
    assert type(layer.weight._grad) is RowsGradient
    count = np.bincount(np.ravel(CHOSEN), minlength=SIZE) / (3 if mode == "mean" else 1)
    np.testing.assert_allclose(layer.weight.grad.numpy(), count[:, None] * np.ones(WIDTH), rtol=1e-6)


def test_it_is_not_for_small_tables_nor_for_many_rows():
    rows = np.ones((SIZE, WIDTH), np.float32)
    assert few_rows.few_rows(SIZE - 1, np.zeros(3, np.int64), rows[:3]) is None
    assert few_rows.few_rows(SIZE, np.arange(SIZE), rows) is None
    assert few_rows.few_rows(SIZE, np.zeros(0, np.int64), rows[:0]) is None
    assert few_rows.few_rows(SIZE, np.zeros(3, np.int64), rows[:3].astype(np.float16)) is None


# --- .grad -------------------------------------------------------------------------------------------------------------


def test_grad_is_a_plain_tensor_for_whoever_looks():
    layer = table()
    loss_of(layer).backward()
    assert type(layer.weight._grad) is RowsGradient
    grad = layer.weight.grad
    assert type(grad) is torch.Tensor
    assert layer.weight.grad is grad
    assert grad.is_leaf
    assert not grad.requires_grad
    np.testing.assert_allclose(grad.numpy(), expected(layer), rtol=1e-6)
    grad.mul_(2)
    np.testing.assert_allclose(layer.weight.grad.numpy(), 2 * expected(layer), rtol=1e-6)


def test_gradients_add_up():
    layer = table()
    for _ in range(3):
        loss_of(layer).backward()
    np.testing.assert_allclose(layer.weight.grad.numpy(), 3 * expected(layer), rtol=1e-6)
    loss_of(layer).backward()
    np.testing.assert_allclose(layer.weight.grad.numpy(), 4 * expected(layer), rtol=1e-6)


def test_a_table_used_twice_and_a_table_that_is_no_leaf():
    layer = table()
    (loss_of(layer) + loss_of(layer) + layer.weight.sum()).backward()
    np.testing.assert_allclose(layer.weight.grad.numpy(), 2 * expected(layer) + 1, rtol=1e-6)
    layer.weight.grad = None
    rows = nn.functional.embedding(torch.tensor(CHOSEN), layer.weight * 3)
    rows.sum().backward()
    count = np.bincount(np.ravel(CHOSEN), minlength=SIZE)
    np.testing.assert_array_equal(layer.weight.grad.numpy(), 3.0 * count[:, None] * np.ones(WIDTH))


def test_padding_keeps_its_row_without_gradient():
    layer = table(padding_idx=3)
    loss_of(layer).backward()
    np.testing.assert_allclose(layer.weight.grad.numpy(), expected(layer), rtol=1e-6)
    assert not layer.weight.grad[3].any()


def test_hooks_and_grad_see_all_of_it():
    layer, seen = table(), []
    layer.weight.register_hook(lambda grad: seen.append(grad.clone()))
    layer.weight.register_post_accumulate_grad_hook(lambda weight: seen.append(weight.grad.clone()))
    loss_of(layer).backward()
    (asked,) = torch.autograd.grad(loss_of(layer), [layer.weight])
    (recorded,) = torch.autograd.grad(loss_of(layer), [layer.weight], create_graph=True)
    assert len(seen) == 4
    for grad in (*seen, asked, recorded):
        np.testing.assert_allclose(grad.detach().numpy(), expected(layer), rtol=1e-6)
    other = table()
    with pytest.warns(UserWarning, match="Anomaly"), torch.autograd.detect_anomaly():
        loss_of(other).backward()
    np.testing.assert_allclose(other.weight.grad.numpy(), expected(layer), rtol=1e-6)


def test_a_node_called_by_hand_gives_all_of_it():
    layer = table()
    rows = layer(torch.tensor(CHOSEN))
    made = rows.grad_fn(torch.ones(3, 3, WIDTH))
    assert made.shape == (SIZE, WIDTH)
    assert made.sum() == 9 * WIDTH


def test_a_gradient_given_from_outside_may_change_afterwards():
    layer, given = table(), torch.ones(3, 3, WIDTH)
    layer(torch.tensor(CHOSEN)).backward(given)
    given.zero_()
    assert layer.weight.grad.sum() == 9 * WIDTH


def test_copies_zeroing_and_clipping():
    layer = table()
    loss_of(layer).backward()
    other = copy.deepcopy(layer)
    np.testing.assert_allclose(other.weight.grad.numpy(), expected(layer), rtol=1e-6)
    loss_of(layer.requires_grad_()).backward()
    layer.zero_grad(set_to_none=False)
    assert not layer.weight.grad.any()
    layer.zero_grad()
    loss_of(layer).backward()
    norm = nn.utils.clip_grad_norm_(layer.parameters(), 0.5)
    np.testing.assert_allclose(norm.item(), np.linalg.norm(expected(layer)), rtol=1e-5)
    np.testing.assert_allclose(np.linalg.norm(layer.weight.grad.numpy()), 0.5, rtol=1e-5)


def test_a_table_laid_out_by_columns():
    weight = torch.randn(WIDTH, SIZE).t().detach().requires_grad_()
    nn.functional.embedding(torch.tensor(CHOSEN), weight).sum().backward()
    assert weight.grad.sum() == 9 * WIDTH
    assert weight.grad.stride() == weight.stride()


def test_the_gradient_goes_when_the_leaf_goes():
    gc.disable()
    try:
        layer = table()
        loss_of(layer).backward()
        rows = weakref.ref(layer.weight._grad)
        del layer
        assert rows() is None
    finally:
        gc.enable()


# --- steps -------------------------------------------------------------------------------------------------------------


STEPS = [
    ("SGD", {}), ("SGD", {"momentum": 0.9}), ("SGD", {"momentum": 0.9, "nesterov": True}), ("SGD", {"weight_decay": 0.1}),
    ("SGD", {"maximize": True}), ("Adam", {}), ("Adam", {"amsgrad": True}), ("AdamW", {}), ("NAdam", {}), ("RAdam", {}),
    ("Adamax", {}), ("Adagrad", {}), ("Adagrad", {"weight_decay": 0.1}), ("Adadelta", {}), ("RMSprop", {}),
    ("RMSprop", {"centered": True, "momentum": 0.5}), ("ASGD", {}), ("Rprop", {}), ("LBFGS", {}),
    ("Adafactor", {}), ("Muon", {}),
]  # fmt: skip


@pytest.mark.parametrize("form", [choice.always, choice.never])
@pytest.mark.parametrize(("name", "options"), STEPS, ids=[f"{name}-{'-'.join(options) or 'plain'}" for name, options in STEPS])
def test_steps_are_those_of_the_whole_gradient(name, options, form, dense):
    def train():
        layer = nn.Sequential(table(), nn.Linear(WIDTH, 2))
        matrices = [parameter for parameter in layer.parameters() if parameter.dim() == 2]
        optimizer = getattr(torch.optim, name)(matrices, lr=0.1, **options)

        def closure():
            optimizer.zero_grad()
            loss = loss_of(layer)
            loss.backward()
            return loss

        for _ in range(3):
            optimizer.step(closure)
        return layer[0].weight.detach().numpy().copy()

    def loss_of(layer):
        return layer(torch.tensor(CHOSEN)).square().sum()

    with form():
        made = train()
        dense()
        np.testing.assert_allclose(made, train(), rtol=2e-6, atol=2e-6)


@pytest.mark.parametrize("form", [choice.always, choice.never])
def test_long_gaps_between_rows_are_moved_too(form, monkeypatch):
    """A weight decays wherever it is; with momentum it moves on where no row was chosen."""
    monkeypatch.setattr(few_rows, "LARGE", 1)
    weight = torch.ones(5000, 3).requires_grad_()
    optimizer = torch.optim.AdamW([weight], lr=0.1, weight_decay=0.5)
    with form():
        nn.functional.embedding(torch.tensor([4000]), weight).sum().backward()
        optimizer.step()
    np.testing.assert_allclose(np.delete(weight.detach().numpy(), 4000, 0), 0.95, rtol=1e-6)
    np.testing.assert_allclose(weight.detach().numpy()[4000], 0.85, rtol=1e-6)


def test_a_step_that_fails_changes_nothing():
    layer = table()
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
    loss_of(layer).backward()
    before = layer.weight.detach().clone()
    layer.weight.data = torch.zeros(SIZE, WIDTH + 1)
    with pytest.raises(RuntimeError):
        optimizer.step()
    layer.weight.data = before.clone()
    optimizer.step()
    np.testing.assert_allclose(layer.weight.detach().numpy(), before.numpy() - 0.1 * layer.weight.grad.numpy(), rtol=1e-6)


@pytest.mark.parametrize(
    ("name", "options"),
    [("SGD", {}), ("SGD", {"maximize": True}), ("SGD", {"weight_decay": 0.1}), ("SGD", {"momentum": 0.9}), ("Adagrad", {"eps": 1e-3}),
     ("Adagrad", {"weight_decay": 0.1}), *((name, {}) for name in ("Adam", "AdamW", "NAdam", "RAdam", "Adamax", "Adadelta", "RMSprop",
                                                                   "ASGD", "Rprop"))],
)  # fmt: skip
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_table_alone_is_stepped_by_all_threads(name, options, dtype, dense):
    index = torch.from_numpy(np.random.default_rng(0).integers(60000, size=6000))

    def train():
        torch.manual_seed(0)
        weight = torch.randn(60000, 17, dtype=dtype, requires_grad=True)
        optimizer = getattr(torch.optim, name)([weight], lr=0.1, **options)
        for _ in range(3):
            optimizer.zero_grad()
            torch.nn.functional.embedding(index, weight).square().sum().backward()
            assert (weight._grad.__class__ is RowsGradient) == rows
            optimizer.step()
        return weight.detach().numpy()

    with choice.always():
        rows = True
        made = train()
        dense()
        rows = False
        np.testing.assert_allclose(made, train(), rtol=8 * torch.finfo(dtype).eps)  # the end of a row is no whole register
