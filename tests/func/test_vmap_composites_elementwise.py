"""Composed functions under vmap: elementwise functions, reductions, scans, sorting, conversion, factories, against a loop."""

from __future__ import annotations

import numpy as np
import pytest

import pellucid as torch
from pellucid.func import grad, jvp, vmap
from pellucid.func.trees import flatten

F = torch.nn.functional


def draw(*shape: int, seed: int = 0) -> torch.Tensor:
    """Distinct numbers in (-1, 1), none of them near a kink at 0, 0.5 or 1."""
    rng = np.random.default_rng(seed)
    count = int(np.prod(shape))
    values = (rng.permutation(count) + 0.37) / count * 1.9 - 0.93
    return torch.tensor(values.reshape(shape), dtype=torch.float64)


def masks(*shape: int) -> torch.Tensor:
    return draw(*shape, seed=5) > 0


def whole(*shape: int) -> torch.Tensor:
    return (draw(*shape, seed=3) * 5).long()


def with_in_place(function):
    """An in-place function as one that leaves its argument alone."""
    return lambda x, *rest: function(x.clone(), *rest)


def filled(x, value):
    """A tensor made inside of vmap, and written to."""
    made = torch.zeros_like(x)
    made[0] = value
    made[1:].fill_(value.sum())
    return made


def accumulated(x):
    total = x.new_zeros(())
    for part in x:
        total += (part * part).sum()
    return total


# one floating-point argument, [B, 4, 3]; each function is smooth at `draw`
SMOOTH = {
    "selu": F.selu,
    "celu": lambda x: F.celu(x, 1.3),
    "elu": F.elu,
    "glu": lambda x: F.glu(x, 0),
    "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"),
    "softsign": F.softsign,
    "tanhshrink": F.tanhshrink,
    "softmin": lambda x: F.softmin(x, 1),
    "logsigmoid": F.logsigmoid,
    "hardtanh": lambda x: F.hardtanh(x, -0.5, 0.4),
    "relu6": F.relu6,
    "prelu": lambda x: F.prelu(x, torch.tensor([0.2, 0.3, 0.4], dtype=torch.float64)),
    "rrelu": F.rrelu,
    "threshold": lambda x: F.threshold(x, 0.1, 2.0),
    "clamp": lambda x: x.clamp(-0.5, 0.5),
    "clamp by tensors": lambda x: x.clamp(x.mean() - 0.3, x.mean(0) + 0.5),
    "clip_": with_in_place(lambda x: x.clip_(-0.2)),
    "div rounded": lambda x: torch.div(x, 0.3, rounding_mode="floor") * x,
    "rdiv": lambda x: 2 / (x + 3),
    "rsub": lambda x: torch.rsub(x, 2, alpha=3),
    "pow": lambda x: (x + 2) ** 1.5,
    "rpow": lambda x: 1.7**x,
    "square": torch.square,
    "float_power": lambda x: torch.float_power(x + 2, 2),
    "ldexp": lambda x: torch.ldexp(x, torch.tensor([1, 2, 3])),
    "mvlgamma": lambda x: torch.mvlgamma(x + 4, 2),
    "polygamma": lambda x: torch.polygamma(1, x + 2),
    "polar": lambda x: torch.view_as_real(torch.polar(x + 2, x)),
    "real": lambda x: torch.real(torch.complex(x, x * x)),
    "imag": lambda x: (torch.complex(x, x) ** 2).imag,
    "angle": lambda x: torch.angle(torch.complex(x, x * x + 0.1)),
    "where": lambda x: torch.where(x > 0.1, x * x, 3.0),
    "where method": lambda x: x.where(x > 0.1, x.sum()),
    "masked_fill": lambda x: x.masked_fill(masks(4, 3), 2.5),
    "masked_fill by a tensor": lambda x: x.masked_fill(masks(3), x.sum()),
    "masked_fill_": with_in_place(lambda x: x.masked_fill_(masks(4, 3), 2.5)),
    "masked_select": lambda x: x.masked_select(masks(4, 3)),
    "masked_scatter": lambda x: x.masked_scatter(masks(4, 3), x * 2),
    "masked_scatter broadcast": lambda x: x[:1].masked_scatter(masks(4, 3), x * 2),
    "masked_scatter_": with_in_place(lambda x: x.masked_scatter_(x > 0.1, x * 2)),
    "sum": lambda x: torch.sum(x, axis=0, keepdims=True),
    "sum in another type": lambda x: x.sum(1, dtype=torch.complex128).abs(),
    "nansum": torch.nansum,
    "mean": lambda x: x.mean((0, 1)),
    "nanmean": lambda x: torch.nanmean(x.masked_fill(x > 0.5, float("nan")), 0),
    "prod": lambda x: x.prod(1),
    "prod of all": torch.prod,
    "logsumexp": lambda x: torch.logsumexp(x, (0, 1)),
    "amax": lambda x: torch.amax(x, 1),
    "amin of all": torch.amin,
    "max": lambda x: torch.max(x, 0)[0],
    "max of all": torch.max,
    "max of two": lambda x: torch.max(x, x.mean(0)),
    "min": lambda x: torch.min(x, -1, keepdim=True)[0],
    "aminmax": lambda x: torch.aminmax(x, dim=0),
    "var": lambda x: torch.var(x, 0, unbiased=False),
    "std": lambda x: torch.std(x, correction=0),
    "var_mean": lambda x: torch.var_mean(x, 1),
    "std_mean": torch.std_mean,
    "cov": torch.cov,
    "cov weighted": lambda x: torch.cov(x, fweights=torch.tensor([1, 2, 1]), aweights=x[0].abs()),
    "corrcoef": torch.corrcoef,
    "quantile": lambda x: torch.quantile(x, 0.3, 0),
    "quantile of all, at several": lambda x: torch.quantile(x, torch.tensor([0.1, 0.72], dtype=torch.float64)),
    "quantile lower": lambda x: torch.quantile(x, 0.4, 1, keepdim=True, interpolation="lower"),
    "quantile at points of each": lambda x: torch.quantile(x, x[0].abs(), 0),
    "nanquantile": lambda x: torch.nanquantile(x.masked_fill(masks(4, 3), float("nan")), 0.3),
    "norm": lambda x: torch.norm(x, dim=1),
    "norm of order 3": lambda x: torch.linalg.vector_norm(x, 3),
    "norm of order inf": lambda x: torch.linalg.vector_norm(x, float("inf"), 0),
    "dist": lambda x: torch.dist(x, x * x, 1.5),
    "renorm": lambda x: torch.renorm(x, 2, 0, 0.5),
    "cross": lambda x: torch.cross(x[:, :], x * x + 1, dim=1),
    "cumsum": lambda x: x.cumsum(0),
    "cumsum_": with_in_place(lambda x: x.cumsum_(1)),
    "cumprod": lambda x: x.cumprod(1),
    "logcumsumexp": lambda x: x.logcumsumexp(0),
    "cummax": lambda x: x.cummax(0)[0],
    "cummin": lambda x: x.cummin(-1)[0],
    "diff": lambda x: torch.diff(x, 2, 0, prepend=x[:1]),
    "trapezoid": lambda x: torch.trapezoid(x, x.cumsum(0), dim=0),
    "cumulative_trapezoid": lambda x: torch.cumulative_trapezoid(x, dx=0.5),
    "gradient": lambda x: torch.gradient(x, spacing=[2.0, torch.tensor([0.0, 1.0, 3.0], dtype=torch.float64)]),
    "sort": lambda x: torch.sort(x, 0, descending=True)[0],
    "msort": torch.msort,
    "topk": lambda x: torch.topk(x, 2, 0)[0],
    "kthvalue": lambda x: torch.kthvalue(x, 2)[0],
    "median": torch.median,
    "median along": lambda x: torch.median(x, 1)[0],
    "nanmedian": lambda x: torch.nanmedian(x.masked_fill(masks(4, 3), float("nan"))),
    "mode": lambda x: torch.mode(x, 0)[0],
    "contiguous": lambda x: x.T.contiguous(),
    "clone in another order": lambda x: x.expand(2, 2, 4, 3).clone(memory_format=torch.channels_last),
    "to": lambda x: x.to(torch.complex128).abs(),
    "type_as": lambda x: x.type_as(torch.ones(1, dtype=torch.complex128)).real,
    "copy_": lambda x: torch.zeros_like(x).copy_(x[0]),
    "fill_": lambda x: torch.zeros_like(x).fill_(x.sum()),
    "zero_": lambda x: x.clone().zero_() + x,
    "full": lambda x: torch.full((2, 2), x.sum()).add(x[0, 0]),
    "vander": lambda x: torch.vander(x[0], 3),
    "filled": lambda x: filled(x, x[0] * 3),
    "accumulated": accumulated,
    "new_full": lambda x: x.new_full((2, 3), 2.0).mul_(x[:2]),
    "ones_like": lambda x: torch.ones_like(x).mul_(x),
    "empty_like": lambda x: torch.empty_like(x).copy_(x * 2),
}

# functions of which nothing is differentiated, with the arguments that they take from each example
OTHERS = {
    "isclose": (lambda x: torch.isclose(x, x.round(), atol=0.2), draw(4, 3)),
    "isin": (lambda x: torch.isin(x, torch.tensor([1, 3])), whole(4, 3)),
    "isin of both": (lambda x: torch.isin(x, x[:2, 0] + 1), whole(4, 3)),
    "isin of a number": (lambda x: torch.isin(1, x), whole(4, 3)),
    "isin inverted": (lambda x: torch.isin(torch.arange(5), x, invert=True), whole(4, 3)),
    "any": (lambda x: x.any(0), masks(4, 3)),
    "all": (lambda x: torch.all(x), masks(4, 3)),
    "count_nonzero": (lambda x: torch.count_nonzero(x, dim=0), whole(4, 3)),
    "sum of integers": (lambda x: x.sum(0), whole(4, 3)),
    "bitwise": (lambda x: (x & 3) | (x << 1) ^ ~x, whole(4, 3)),
    "gcd": (lambda x: torch.gcd(x, torch.tensor(6)), whole(4, 3)),
    "argmax": (lambda x: x.argmax(), draw(4, 3)),
    "argmin kept": (lambda x: x.argmin(keepdim=True), draw(4, 3)),
    "argmax along": (lambda x: x.argmax(1), draw(4, 3)),
    "argsort": (lambda x: x.argsort(0), draw(4, 3)),
    "sort unstable": (lambda x: torch.sort(x, 0), whole(40, 3)),
    "topk unsorted": (lambda x: torch.topk(x, 3, 0, sorted=False), whole(40, 3)),
    "searchsorted": (lambda x: torch.searchsorted(x.sort(1)[0], x, right=True), draw(4, 3)),
    "searchsorted in one row": (lambda x: torch.searchsorted(torch.linspace(-1, 1, 5).double(), x), draw(4, 3)),
    "searchsorted with a sorter": (lambda x: torch.searchsorted(x, x * 0.5, sorter=x.argsort()), draw(4, 3)),
    "searchsorted of a number": (lambda x: torch.searchsorted(x[0].sort()[0], 0.1), draw(4, 3)),
    "bucketize": (lambda x: torch.bucketize(x, x.flatten().sort()[0][::4]), draw(4, 3)),
    "bincount": (lambda x: torch.bincount(x.flatten() + 5, minlength=12), whole(4, 3)),
    "bincount weighted": (lambda x: torch.bincount(torch.tensor([0, 1, 1]), x[0]), draw(4, 3)),
    "histc": (lambda x: torch.histc(x, 5), draw(4, 3)),
    "histogram": (lambda x: torch.histogram(x, 5, range=(-1.0, 1.0)), draw(4, 3)),
    "histogram weighted": (lambda x: torch.histogram(x, x.flatten().sort()[0][::4], weight=x.abs()), draw(4, 3)),
    "histogramdd": (lambda x: torch.histogramdd(x, [2, 2, 2])[0], draw(4, 3)),
    "frexp": (lambda x: torch.frexp(x), draw(4, 3)),
    "special": (lambda x: torch.special.chebyshev_polynomial_t(x, 3) + torch.special.bessel_j0(x), draw(4, 3)),
    "bool": (lambda x: x.bool().int(), whole(4, 3)),
    "logical": (lambda x: torch.logical_xor(x > 0, x.sum() > 0).logical_not(), draw(4, 3)),
    "masked_select of each": (lambda x: x.masked_select(x == x.max()), draw(4, 3)),
    "zeros_like of integers": (lambda x: torch.zeros_like(x).add_(x), whole(4, 3)),
    "new_empty_strided": (lambda x: x.new_empty_strided((4, 3), (1, 4)).copy_(x), draw(4, 3)),
    "full_like by a tensor": (lambda x: torch.full_like(x, x[0, 0]), draw(4, 3)),
}

SIZE = 3


def batch_of(example: torch.Tensor) -> torch.Tensor:
    """Three examples with the elements of one, in other places."""
    return torch.stack([example.flatten().roll(5 * k).reshape(example.shape) for k in range(SIZE)])


def compare(function, batch) -> None:
    found = flatten(vmap(function)(batch))[0]
    rows = [flatten(function(example))[0] for example in batch]
    for column, result in zip(zip(*rows, strict=True), found, strict=True):
        expected = torch.stack(list(column))
        assert result.dtype is expected.dtype
        assert result.shape == expected.shape
        np.testing.assert_allclose(result.numpy(), expected.numpy(), rtol=1e-12, atol=1e-14)


def summed(function):
    """A function with a number as its result: what it gives, weighted unevenly and summed."""

    def number(x):
        total = 0
        for result in flatten(function(x))[0]:
            weights = torch.arange(1, result.numel() + 1).to(result.dtype).reshape(result.shape)
            total = total + (result * weights).sum()
        return total

    return number


@pytest.mark.parametrize("name", SMOOTH)
def test_results(name):
    compare(SMOOTH[name], batch_of(draw(4, 3)))


@pytest.mark.parametrize("name", OTHERS)
def test_results_without_derivatives(name):
    function, example = OTHERS[name]
    compare(function, batch_of(example))


@pytest.mark.parametrize("name", SMOOTH)
def test_gradients_inside_and_outside(name):
    batch = batch_of(draw(4, 3))
    one = grad(summed(SMOOTH[name]))
    expected = torch.stack([one(example) for example in batch])
    np.testing.assert_allclose(vmap(one)(batch).numpy(), expected.numpy(), rtol=1e-10, atol=1e-12)
    outside = grad(lambda whole: vmap(summed(SMOOTH[name]))(whole).sum())(batch)
    np.testing.assert_allclose(outside.numpy(), expected.numpy(), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("name", SMOOTH)
def test_forward_mode_inside(name):
    batch, steps = batch_of(draw(4, 3)), batch_of(draw(4, 3, seed=9))
    one = summed(SMOOTH[name])
    changes = vmap(lambda x, step: jvp(one, (x,), (step,))[1])(batch, steps)
    expected = [(grad(one)(x) * step).sum() for x, step in zip(batch, steps, strict=True)]
    np.testing.assert_allclose(changes.numpy(), torch.stack(expected).numpy(), rtol=1e-9, atol=1e-12)


DATA_DEPENDENT = {
    "equal": lambda x: torch.equal(x, x),
    "allclose": lambda x: torch.allclose(x, x),
    "is_nonzero": lambda x: torch.is_nonzero(x[0, 0]),
}


@pytest.mark.parametrize("name", DATA_DEPENDENT)
def test_questions_that_examples_answer_differently_are_refused(name):
    def ask(x):
        DATA_DEPENDENT[name](x)
        return x

    with pytest.raises(RuntimeError, match="data-dependent control flow"):
        vmap(ask)(batch_of(draw(4, 3)))


DYNAMIC = {
    "unique": torch.unique,
    "unique along": lambda x: torch.unique(x, dim=0),
    "unique_consecutive": torch.unique_consecutive,
    "nonzero": torch.nonzero,
    "where": lambda x: torch.where(x > 0)[0],
}


@pytest.mark.parametrize("name", DYNAMIC)
def test_results_of_different_sizes_are_refused(name):
    with pytest.raises(RuntimeError, match="that can output dynamic shape"):
        vmap(DYNAMIC[name])(batch_of(draw(4, 3)))


def test_what_is_the_same_for_all_examples_may_decide():
    same = torch.tensor([3.0, 1.0, 3.0])
    found = vmap(lambda x: x + torch.unique(same).sum() + len(torch.nonzero(same)))(torch.zeros(2))
    assert found.tolist() == [7.0, 7.0]


def test_masks_that_select_differently_are_refused():
    with pytest.raises(RuntimeError, match="Attempted to vmap over `mask`"):
        vmap(lambda x: x.masked_select(x > 0))(torch.tensor([[1.0, 2.0], [1.0, -2.0]]))


def test_counts_of_different_sizes_are_refused():
    with pytest.raises(RuntimeError, match="another size"):
        vmap(torch.bincount)(torch.tensor([[0, 1], [0, 2]]))
    assert vmap(lambda x: torch.bincount(x, minlength=3))(torch.tensor([[0, 1], [0, 2]])).tolist() == [[1, 1, 0], [1, 0, 1]]


def test_factories_with_out_are_refused():
    with pytest.raises(RuntimeError, match="with out= are not supported"):
        vmap(lambda x: torch.zeros(2, out=torch.empty_like(x)))(torch.ones(3, 2))


def test_factories_beside_a_tensor_stand_for_each_example_at_every_level():
    def inner(x, y):
        made = torch.zeros_like(y)
        made += x
        return made + y.new_ones(())

    found = vmap(lambda x: vmap(inner, (None, 0))(x, torch.stack([x, x * 2])))(torch.tensor([1.0, 2.0]))
    assert found.tolist() == [[2.0, 2.0], [3.0, 3.0]]


def test_copies_of_a_tensor_stand_for_each_example():
    batch = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    assert torch.equal(vmap(lambda x: x.new_tensor(x) + 0)(batch), batch)
    with pytest.warns(UserWarning, match="To copy construct from a tensor"):
        found = vmap(lambda x: torch.tensor(x, dtype=torch.float64))(batch)
    assert torch.equal(found, batch.double())


WITHOUT_A_VALUE = {
    "resize_": lambda x: x.resize_(1),
    "apply_": lambda x: x.apply_(abs),
    "map_": lambda x: x.map_(x, max),
    "numpy": lambda x: x.numpy(force=True),
}


@pytest.mark.parametrize("name", WITHOUT_A_VALUE)
def test_what_needs_one_value_is_refused(name):
    def use(x):
        WITHOUT_A_VALUE[name](x)
        return x

    with pytest.raises(RuntimeError, match=f"{name}\\(\\) is not possible on a Tensor that stands for each example"):
        vmap(use)(torch.ones(2, 3))


def test_numbers_out_of_tensors_that_differ_are_refused():
    with pytest.raises(RuntimeError, match=r"calling \.item"):
        vmap(lambda x: torch.scalar_tensor(x))(torch.ones(2))
