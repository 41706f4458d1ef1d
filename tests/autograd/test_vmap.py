"""`func.vmap`: a function of one example on a batch. Expected values come from a loop over the examples."""

import pytest
from library import close, const, leaf, pellucid_only, torch

func = torch.func

BATCH = [[1.0, 2.0, 3.0], [0.5, -1.0, 4.0], [2.0, 0.0, -2.0], [1.5, 1.5, 0.5]]


def loop(f, batch, dim=0):
    return torch.stack([f(x) for x in batch.unbind(dim)])


FUNCTIONS = {
    "arithmetic": lambda x: x * 2 + x.sum(),
    "matrix product": lambda x: torch.outer(x, x) @ x,
    "softmax": lambda x: torch.softmax(x, 0),
    "shape": lambda x: x.reshape(3, 1).expand(3, 2).t(),
    "slices": lambda x: x[1:] - x[:-1],
    "one element": lambda x: x[0] * x[-1],
    "new dimension": lambda x: x[:, None] * x[None, :],
    "index": lambda x: x[torch.tensor([2, 0, 0])],
    "where": lambda x: torch.where(x > 0, x, 0 * x),
    "sort": lambda x: x.sort().values,
    "max": lambda x: x.max(0).values,
    "cat": lambda x: torch.cat([x, x * 2]),
    "stack": lambda x: torch.stack([x, x], -1),
    "cumsum": lambda x: x.cumsum(0),
    "norm": lambda x: torch.linalg.norm(x),
    "solve": lambda x: torch.linalg.solve(torch.diag(x.exp()), x),
    "variance": lambda x: x.var(),
    "clone": lambda x: x.clone(),
    "number": lambda x: x.sum() * 2.0,
    "integer": lambda x: x.argmax(),
    "dtype": lambda x: x.to(torch.float32),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_batch_is_a_loop(name):
    f, batch = FUNCTIONS[name], const(BATCH)
    found, expected = func.vmap(f)(batch), loop(f, batch)
    assert found.dtype is expected.dtype
    assert close(found, expected)


@pytest.mark.parametrize("in_dim", [0, 1, -1])
def test_the_batch_may_be_any_dimension(in_dim):
    batch = const(BATCH)
    assert close(func.vmap(lambda x: x.cumsum(0), in_dims=in_dim)(batch), loop(lambda x: x.cumsum(0), batch, in_dim))


@pytest.mark.parametrize(("out_dim", "shape"), [(0, (4, 3, 3)), (1, (3, 4, 3)), (-1, (3, 3, 4))])
def test_the_result_has_the_batch_where_it_is_asked_for(out_dim, shape):
    assert func.vmap(lambda x: torch.outer(x, x), out_dims=out_dim)(const(BATCH)).shape == shape


def test_an_argument_may_be_the_same_for_all():
    w = const([10.0, 20.0, 30.0])
    assert close(func.vmap(torch.dot, in_dims=(0, None))(const(BATCH), w), const(BATCH) @ w)
    assert close(func.vmap(torch.dot, (None, 0))(w, const(BATCH)), const(BATCH) @ w)


def test_arguments_and_results_may_be_nested():
    def f(point):
        return {"sum": point["x"] + point["y"][0], "parts": (point["x"], [point["y"][0]])}

    found = func.vmap(f, in_dims=({"x": 0, "y": [None]},))({"x": const(BATCH), "y": [const([1.0, 1.0, 1.0])]})
    assert close(found["sum"], const(BATCH) + 1)
    assert close(found["parts"][0], const(BATCH))
    assert found["parts"][1][0].shape == (4, 3)


def test_other_arguments_by_name_are_passed_on():
    assert close(func.vmap(lambda x, *, scale: x * scale)(const(BATCH), scale=2.0), const(BATCH) * 2)


def test_a_result_that_is_the_same_for_all_is_repeated():
    assert close(func.vmap(lambda x: torch.ones(2, dtype=torch.float64))(const(BATCH)), torch.ones(4, 2))


def test_vmap_nests():
    a, b = const(BATCH), const(BATCH) * 0.5
    found = func.vmap(lambda x: func.vmap(lambda y: (x * y).sum())(b))(a)
    assert close(found, a @ b.T)


def test_in_chunks():
    batch = const(BATCH)
    for size in (1, 2, 3, 4, 100):
        assert close(func.vmap(lambda x: x * x.sum(), chunk_size=size)(batch), loop(lambda x: x * x.sum(), batch))


def test_shapes_inside_are_those_of_an_example():
    seen = []

    def f(x):
        seen.append((tuple(x.shape), x.dim(), x.numel(), x.dtype, len(x)))
        return x

    func.vmap(f)(const(BATCH))
    assert seen == [((3,), 1, 3, torch.float64, 3)]


def test_a_number_for_each_example_promotes_as_a_number():
    """A 0-d float64 example does not widen a float32 vector, though a batch of them is no 0-d tensor."""
    scales, x = const([1.0, 2.0]), torch.ones(3)
    assert func.vmap(lambda s: x * s)(scales).dtype is torch.float32


def test_writing_in_place():
    def f(x):
        y = x.clone()
        y[0] = 10.0
        y[1:].mul_(2)
        y += x
        return y

    batch = const(BATCH)
    assert close(func.vmap(f)(batch), loop(f, batch))
    assert close(batch, BATCH)


def test_writing_into_what_is_the_same_for_all_is_refused():
    total = torch.zeros(3, dtype=torch.float64)
    with pytest.raises(RuntimeError, match="output with shape"):
        func.vmap(lambda x: total.add_(x))(const(BATCH))


@pytest.mark.parametrize(
    ("f", "text"),
    [
        (lambda x: torch.ones(int(x.sum().item())), r"vmap: It looks like you're calling .item\(\) on a Tensor"),
        (lambda x: x if x.sum() > 0 else -x, "data-dependent control flow"),
        (lambda x: torch.rand(3) + x, "randomness"),
    ],
)
def test_what_differs_between_examples_cannot_be_asked(f, text):
    with pytest.raises(RuntimeError, match=text):
        func.vmap(f)(const(BATCH))


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: func.vmap(torch.sin)(), "got no inputs"),
        (lambda: func.vmap(torch.sin, in_dims=None)(const(BATCH)), "in_dims"),
        (lambda: func.vmap(torch.add, in_dims=(0,))(const(BATCH), const(BATCH)), "in_dims is not compatible"),
        (lambda: func.vmap(torch.sin, in_dims=2)(const(BATCH)), "in_dim"),
        (lambda: func.vmap(torch.mul)(const(BATCH), 2.0), "non-Tensor"),
        (lambda: func.vmap(torch.add)(const(BATCH), const(BATCH)[:2]), "same size in the mapped dimension"),
        (lambda: func.vmap(lambda x: 3)(const(BATCH)), "must only return Tensors"),
        (lambda: func.vmap(lambda x: (x, x), out_dims=(0, 0, 0))(const(BATCH)), "out_dims is not compatible"),
        (lambda: func.vmap(lambda x: x, out_dims=None)(const(BATCH)), "can not return a BatchedTensor when out_dim is None"),
        (lambda: func.vmap(torch.sin, chunk_size=0)(const(BATCH)), "chunk_size"),
    ],
)
def test_wrong_calls_are_refused(call, text):
    with pytest.raises(ValueError, match=text):
        call()


def test_an_unknown_randomness_is_refused():
    with pytest.raises(RuntimeError, match="randomness"):
        func.vmap(torch.sin, randomness="none")(const(BATCH))


def test_the_callers_tensors_are_what_they_were():
    x = leaf(BATCH)
    out = func.vmap(lambda x: x * 2)(x)
    assert out.requires_grad
    out.sum().backward()
    assert close(x.grad, 2 * torch.ones(4, 3))


def test_histories_made_inside_stay_inside():
    def f(x):
        x = x.detach().clone()
        return func.grad(lambda x: (x**2).sum())(x)

    out = func.vmap(f)(const(BATCH))
    assert not out.requires_grad
    assert close(out, 2 * const(BATCH))


@pellucid_only("PyTorch fails with an IndexError")
def test_an_empty_batch():
    assert func.vmap(lambda x: x * 2 + x.sum())(torch.zeros(0, 3)).shape == (0, 3)


@pellucid_only("PyTorch fails with an internal error")
def test_an_example_kept_beyond_vmap_is_refused_by_name():
    kept = []

    def f(x):
        kept.append(x)
        return x

    func.vmap(f)(const(BATCH))
    with pytest.raises(RuntimeError, match="used outside of the vmap it was made in"):
        kept[0] + 1


@pellucid_only("about the text of the warning")
def test_an_operator_without_a_rule_says_so_once():
    from pellucid.autograd import batching
    from pellucid.autograd.operator import OPERATORS

    op = OPERATORS["sin"]
    before = op.elementwise
    op.elementwise = False
    batching._warned.discard("sin")
    try:
        with pytest.warns(UserWarning, match="not yet implemented the batching rule for sin"):
            first = func.vmap(torch.sin)(const(BATCH))
        assert close(first, const(BATCH).sin())
        func.vmap(torch.sin)(const(BATCH))  # a second warning would be an error
    finally:
        op.elementwise = before
        batching._warned.discard("sin")


def test_functional_call_uses_other_parameters():
    net = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.Tanh()).double()
    own = net[0].weight.detach().clone()
    parameters = {"0.weight": torch.zeros(2, 3, dtype=torch.float64), "0.bias": const([0.5, -0.5])}
    found = func.functional_call(net, parameters, (const(BATCH),))
    assert close(found, const([0.5, -0.5]).tanh().expand(4, 2))
    assert close(net[0].weight, own)


def test_functional_call_ties_weights_and_checks_names():
    class Tied(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.one = torch.nn.Parameter(const([1.0]))
            self.two = self.one

        def forward(self, x):
            return x * self.one * self.two

    assert close(func.functional_call(Tied(), {"one": const([3.0])}, (const([1.0]),)), [9.0])
    with pytest.raises(RuntimeError, match=r"Unexpected key\(s\)"):
        func.functional_call(Tied(), {"one": const([3.0]), "three": const([3.0])}, (const([1.0]),), strict=True)
    with pytest.raises(ValueError, match="appeared in multiple dictionaries"):
        func.functional_call(Tied(), ({"one": const([3.0])}, {"one": const([3.0])}), (const([1.0]),))


def test_an_ensemble_of_models():
    models = [torch.nn.Linear(3, 2).double() for _ in range(5)]
    parameters, buffers = func.stack_module_state(models)
    assert parameters["weight"].shape == (5, 2, 3)
    assert parameters["weight"].requires_grad
    assert buffers == {}
    x = const(BATCH)
    base = models[0]
    found = func.vmap(lambda p, b: func.functional_call(base, (p, b), (x,)))(parameters, buffers)
    for each, model in zip(found, models, strict=True):
        assert close(each, model(x))


def test_an_ensemble_must_be_of_one_kind():
    with pytest.raises(RuntimeError, match="at least one"):
        func.stack_module_state([])
    with pytest.raises(RuntimeError, match="same class"):
        func.stack_module_state([torch.nn.Linear(1, 1), torch.nn.Identity()])
    one, other = torch.nn.Linear(1, 1), torch.nn.Linear(1, 1).eval()
    with pytest.raises(RuntimeError, match="training/eval mode"):
        func.stack_module_state([one, other])


def test_gradients_of_each_example_of_a_network():
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU(), torch.nn.Linear(4, 1)).double()
    parameters = {name: p.detach() for name, p in net.named_parameters()}
    batch, targets = const(BATCH), const([[1.0], [0.0], [-1.0], [2.0]])

    def loss(parameters, x, y):
        return ((func.functional_call(net, parameters, (x,)) - y) ** 2).sum()

    found = func.vmap(func.grad(loss), in_dims=(None, 0, 0))(parameters, batch, targets)
    for i in range(4):
        net.zero_grad()
        ((net(batch[i]) - targets[i]) ** 2).sum().backward()
        for name, p in net.named_parameters():
            assert close(found[name][i], p.grad)
