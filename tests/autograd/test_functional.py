"""`autograd.functional`: Jacobians, Hessians and products with them; what is refused, and what results are tied to."""

import warnings

import pytest
from library import close, const, leaf, torch

functional = torch.autograd.functional
jacobian, hessian = functional.jacobian, functional.hessian
gradcheck, gradgradcheck = torch.autograd.gradcheck, torch.autograd.gradgradcheck
PRODUCTS = {name: getattr(functional, name) for name in ("vjp", "jvp", "vhp", "hvp")}
FIRST = pytest.mark.parametrize("name", ["vjp", "jvp"])  # products with the Jacobian
SECOND = pytest.mark.parametrize("name", ["vhp", "hvp"])  # products with the Hessian
EVERY = pytest.mark.parametrize("name", PRODUCTS)


def vector(*values):
    return const(list(values))


X, Y = vector(0.1, 0.2, 0.3), vector(0.4, 0.5, 0.6, 0.7)


def thirds(x):
    """From R^4 to R^3."""
    return 3 * x[:3]


def pair(x, y):
    """From R^3 x R^4 to R^3 x R."""
    return x * y[:3], (x * x).sum()


def scalar(x, y):
    """From R^3 x R^4 to R."""
    return (x + 3 * y[:3]).exp().sum()


def cubes(x):
    return (x**3).sum()


def same(found, expected):
    """Whether two nested tuples (or lists) of tensors hold the same numbers."""
    if isinstance(expected, (tuple, list)):
        return len(found) == len(expected) and all(same(f, e) for f, e in zip(found, expected, strict=True))
    return close(found, expected) and found.dtype is expected.dtype


def without_history(found):
    """Whether no tensor of a nested tuple has a history."""
    if isinstance(found, (tuple, list)):
        return all(without_history(f) for f in found)
    return found.grad_fn is None and not found.requires_grad


def diagonal(x):
    return torch.diag(x)


def zeros(*shape):
    return torch.zeros(shape, dtype=torch.float64)


# --- values ----------------------------------------------------------------------------------------------------------

JACOBIAN = ((diagonal(Y[:3]), torch.cat([diagonal(X), zeros(3, 1)], 1)), (2 * X, zeros(4)))
E = (X + 3 * Y[:3]).exp()
HESSIAN = (
    (diagonal(E), torch.cat([diagonal(3 * E), zeros(3, 1)], 1)),
    (torch.cat([diagonal(3 * E), zeros(1, 3)]), torch.cat([torch.cat([diagonal(9 * E), zeros(3, 1)], 1), zeros(1, 4)])),
)
WAYS = {
    "loop": {},
    "batched": {"vectorize": True},
    "forward": {"vectorize": True, "strategy": "forward-mode"},
}
WAYS_OF_HESSIANS = {
    "loop": {},
    "batched": {"vectorize": True},
    "forward": {"vectorize": True, "outer_jacobian_strategy": "forward-mode"},
}
EACH_WAY = pytest.mark.parametrize("way", WAYS)


@EACH_WAY
def test_the_jacobian_of_one_argument(way):
    found = jacobian(lambda x: x * x, X, **WAYS[way])
    assert same(found, diagonal(2 * X))
    assert without_history(found)


@EACH_WAY
def test_the_jacobian_of_several_arguments_and_results(way):
    found = jacobian(pair, (X, Y), **WAYS[way])
    assert same(found, JACOBIAN)
    assert without_history(found)


@EACH_WAY
def test_the_jacobian_keeps_the_nesting(way):
    assert same(jacobian(lambda x: (x * x,), X, **WAYS[way]), (diagonal(2 * X),))
    assert same(jacobian(lambda x: x * x, (X,), **WAYS[way]), (diagonal(2 * X),))
    assert same(jacobian(lambda x: (x * x,), (X,), **WAYS[way]), ((diagonal(2 * X),),))


@EACH_WAY
def test_shapes_of_a_jacobian(way):
    x = torch.arange(6.0, dtype=torch.float64).view(2, 3)
    found = jacobian(lambda x: x.exp().sum(1, keepdim=True) * torch.ones(2, 4, dtype=torch.float64), x, **WAYS[way])
    assert found.shape == (2, 4, 2, 3)
    expected = zeros(2, 4, 2, 3)
    for row in range(2):
        expected[row, :, row] = x[row].exp()
    assert close(found, expected)


@EACH_WAY
def test_the_jacobian_of_what_is_unrelated(way):
    def function(x, y):
        return x, y, vector(1.0, 2.0)

    found = jacobian(function, (X, Y), **WAYS[way])
    expected = ((diagonal(X * 0 + 1), zeros(3, 4)), (zeros(4, 3), diagonal(Y * 0 + 1)), (zeros(2, 3), zeros(2, 4)))
    assert same(found, expected)


@EACH_WAY
def test_the_jacobian_of_tensors_without_dimensions(way):
    x = const(0.5)
    assert same(jacobian(lambda x: x**2, x, **WAYS[way]), const(1.0))
    assert same(jacobian(lambda x: x * Y, x, **WAYS[way]), Y)
    assert same(jacobian(lambda x: x.sum(), Y, **WAYS[way]), Y * 0 + 1)
    assert same(jacobian(lambda x, y: (x * y[0], x), (x, Y), **WAYS[way]), ((Y[0], const([0.5, 0, 0, 0])), (x * 0 + 1, zeros(4))))


@EACH_WAY
def test_element_types_of_a_jacobian(way):
    found = jacobian(lambda x: (x.float(), x * 2), X, **WAYS[way])
    assert [f.dtype for f in found] == ([torch.float32, torch.float64] if way == "forward" else [torch.float64] * 2)
    assert close(found[0].double(), diagonal(X * 0 + 1))
    assert close(found[1], diagonal(X * 0 + 2))


@pytest.mark.parametrize("way", WAYS_OF_HESSIANS)
def test_the_hessian_of_one_argument(way):
    found = hessian(cubes, X, **WAYS_OF_HESSIANS[way])
    assert same(found, diagonal(6 * X))
    assert way == "forward" or without_history(found)


@pytest.mark.parametrize("way", WAYS_OF_HESSIANS)
def test_the_hessian_of_several_arguments(way):
    assert same(hessian(scalar, (X, Y), **WAYS_OF_HESSIANS[way]), HESSIAN)


@pytest.mark.parametrize("way", WAYS_OF_HESSIANS)
def test_the_hessian_of_what_is_unrelated(way):
    found = hessian(lambda x, y: cubes(x), (X, Y), **WAYS_OF_HESSIANS[way])
    assert same(found, ((diagonal(6 * X), zeros(3, 4)), (zeros(4, 3), zeros(4, 4))))


@pytest.mark.parametrize("way", WAYS_OF_HESSIANS)
def test_hessians_of_numbers(way):
    x = const(0.5)
    assert same(hessian(lambda x: x**3, x, **WAYS_OF_HESSIANS[way]), const(3.0))
    assert same(hessian(lambda x: cubes(x).view(1, 1, 1), X, **WAYS_OF_HESSIANS[way]), diagonal(6 * X))


@FIRST
def test_products_with_the_jacobian(name):
    (a, b), (c, d) = JACOBIAN
    if name == "vjp":
        v = X, const(2.0)
        expected = v[0] @ a + v[1] * c, v[0] @ b + v[1] * d
    else:
        v = X * 2, Y
        expected = a @ v[0] + b @ v[1], c @ v[0] + d @ v[1]
    outputs, product = PRODUCTS[name](pair, (X, Y), v)
    assert same(outputs, pair(X, Y))
    assert same(product, expected)
    assert without_history((outputs, product))


@FIRST
def test_products_with_the_jacobian_of_one_argument(name):
    v = X if name == "vjp" else Y
    outputs, product = PRODUCTS[name](thirds, Y, v)
    assert same(outputs, thirds(Y))
    assert same(product, torch.cat([3 * X, zeros(1)]) if name == "vjp" else 3 * Y[:3])
    assert without_history((outputs, product))


@SECOND
def test_products_with_the_hessian(name):
    v = X * 2, Y
    output, product = PRODUCTS[name](scalar, (X, Y), v)
    assert same(output, scalar(X, Y))
    assert same(product, tuple(row[0] @ v[0] + row[1] @ v[1] for row in HESSIAN))
    assert without_history((output, product))


@SECOND
def test_products_with_the_hessian_of_one_argument(name):
    output, product = PRODUCTS[name](cubes, X, X)
    assert same((output, product), (cubes(X), 6 * X * X))
    assert without_history((output, product))


@EVERY
def test_the_vector_may_be_left_out_for_one_number(name):
    x = const(0.5)
    output, product = PRODUCTS[name](lambda x: x**3, x)
    assert close(output, 0.125)
    assert close(product, 0.75 if name in ("vjp", "jvp") else 3.0)


@SECOND
def test_one_number_may_have_dimensions(name):
    product = PRODUCTS[name](lambda x: cubes(x).view(1, 1, 1), X, X)[1]
    assert same(product, 6 * X * X)


def test_jacobian_and_products_match():
    whole = jacobian(lambda x: x**3 + x.sum(), X)
    v = vector(1.0, -2.0, 0.5)
    assert close(functional.jvp(lambda x: x**3 + x.sum(), X, v)[1], torch.mm(whole, v.unsqueeze(1)).squeeze(1))
    assert close(functional.vjp(lambda x: x**3 + x.sum(), X, v)[1], torch.mm(v.unsqueeze(0), whole).squeeze(0))


def test_hessian_and_products_match():
    def function(x):
        return (x * x.sum()).exp().sum()

    whole, v = hessian(function, X), vector(1.0, -2.0, 0.5)
    assert close(functional.hvp(function, X, v)[1], torch.mm(whole, v.unsqueeze(1)).squeeze(1))
    assert close(functional.vhp(function, X, v)[1], torch.mm(v.unsqueeze(0), whole).squeeze(0))


@pytest.mark.parametrize("function", [jacobian, hessian])
def test_batches_do_not_warn(function):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        function(cubes, X, vectorize=True)
        function(lambda x: (x @ const([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])).exp().sum(), X, vectorize=True)


@pytest.mark.parametrize("counts", [(4, 1, 5), (1,), (2, 3)])
def test_the_standard_basis(counts):
    tensors = [torch.zeros(n, dtype=torch.float64 if i else torch.float32) for i, n in enumerate(counts)]
    chunks = functional._construct_standard_basis_for(tensors, counts)
    assert [chunk.dtype for chunk in chunks] == [t.dtype for t in tensors]
    assert close(torch.cat([chunk.double() for chunk in chunks], 1), torch.eye(sum(counts), dtype=torch.float64))


def test_the_standard_basis_of_nothing():
    with pytest.raises(AssertionError, match="Expected at least one tensor"):
        functional._construct_standard_basis_for((), ())
    with pytest.raises(AssertionError, match="Expected tensors and tensor_numels to have the same length"):
        functional._construct_standard_basis_for((X,), (3, 1))


# --- histories -------------------------------------------------------------------------------------------------------


@EVERY
def test_products_under_no_grad(name):
    function, x, v = (thirds, Y, X if name == "vjp" else Y) if name in ("vjp", "jvp") else (cubes, X, X)
    with torch.no_grad():
        outputs, product = PRODUCTS[name](function, x, v)
        recorded = PRODUCTS[name](function, leaf(x.tolist()), v, create_graph=True)
    assert without_history((outputs, product))
    assert not close(product, product * 0)
    assert same(tuple(r.detach() for r in recorded), (outputs, product))


@pytest.mark.parametrize("vectorize", [False, True])
def test_jacobian_and_hessian_under_no_grad(vectorize):
    with torch.no_grad():
        found = jacobian(lambda x: x**2, X, vectorize=vectorize)
        second = hessian(cubes, X, vectorize=vectorize)
        recorded = jacobian(lambda x: x**2, leaf([0.1, 0.2]), create_graph=True, vectorize=vectorize)
    assert without_history((found, second))
    assert same(found, diagonal(2 * X))
    assert same(second, diagonal(6 * X))
    assert recorded.requires_grad


@EVERY
def test_products_are_differentiable_under_create_graph(name):
    first = name in ("vjp", "jvp")
    inputs = (leaf([0.1, 0.2, 0.3]), leaf([0.4, 0.5, 0.6, 0.7]))
    v = (leaf([1.0, 2.0, 3.0]), leaf(2.0)) if name == "vjp" else (leaf([1.0, 2.0, 3.0]), leaf([1.0, -1.0, 0.5, 2.0]))
    function = pair if first else scalar

    def product(*given):
        return PRODUCTS[name](function, given[:2], given[2:], create_graph=True)[1]

    def mixed(*given):
        x, y = given[0].cos(), given[1]
        outputs, found = PRODUCTS[name](function, (x, y), given[2:], create_graph=True)
        outputs = outputs if first else (outputs,)
        return sum(t.cos().sum() for t in (*outputs, *found)) + x.cos().sum()

    outputs, found = PRODUCTS[name](function, inputs, v, create_graph=True)
    assert all(t.grad_fn is not None for t in (*(outputs if first else (outputs,)), *found))
    for checked in (product, mixed):
        assert gradcheck(checked, (*inputs, *v))
        assert gradgradcheck(checked, (*inputs, *v))


@pytest.mark.parametrize("vectorize", [False, True])
def test_jacobians_are_differentiable_under_create_graph(vectorize):
    inputs = (leaf([0.1, 0.2, 0.3]), leaf([0.4, 0.5, 0.6, 0.7]))

    def blocks(*given):
        found = jacobian(lambda x, y: (x.exp() * y[:3], x * x), given, create_graph=True, vectorize=vectorize)
        return found[0][0], found[0][1], found[1][0]

    def mixed(x, y):
        x = x.cos()
        found = jacobian(lambda x, y: x.exp() * y[:3], (x, y), create_graph=True, vectorize=vectorize)
        return found[0].cos().sum() + found[1].cos().sum() + x.cos().sum()

    assert all(t.grad_fn is not None for t in blocks(*inputs))
    for checked in (blocks, mixed):
        assert gradcheck(checked, inputs)
        assert gradgradcheck(checked, inputs)


@pytest.mark.parametrize("vectorize", [False, True])
def test_hessians_are_differentiable_under_create_graph(vectorize):
    inputs = (leaf([0.1, 0.2, 0.3]), leaf([0.4, 0.5, 0.6, 0.7]))

    def blocks(*given):
        return tuple(t for row in hessian(scalar, given, create_graph=True, vectorize=vectorize) for t in row)

    assert all(t.grad_fn is not None for t in blocks(*inputs))
    assert gradcheck(blocks, inputs)
    assert gradgradcheck(blocks, inputs)


def test_only_uses_as_an_argument_count():
    x = leaf([0.1, 0.2, 0.3])
    assert same(jacobian(lambda y: x * y, x), diagonal(x.detach()))
    found = jacobian(lambda y: x * y, x, create_graph=True)
    assert close(torch.autograd.grad(found.sum(), x)[0], [1.0, 1.0, 1.0])


def test_gradients_of_the_caller_are_left_alone():
    x = leaf([0.1, 0.2, 0.3])
    for function in (jacobian, hessian):
        function(cubes, x)
    assert x.grad is None


# --- what is refused -------------------------------------------------------------------------------------------------


@EVERY
def test_only_tensors_go_in_and_come_out(name):
    function, x, v = (thirds, Y, X if name == "vjp" else Y) if name in ("vjp", "jvp") else (cubes, X, X)
    product = PRODUCTS[name]
    with pytest.raises(TypeError, match=f"The inputs given to {name} must be either a Tensor or a tuple of Tensors"):
        product(function, (x, 2), v)
    with pytest.raises(TypeError, match=f"The inputs given to {name} must be either a Tensor .* but the given inputs has type"):
        product(function, 2.0, v)
    with pytest.raises(TypeError, match=f"The outputs of the user-provided function given to {name} must be"):
        product(lambda x: (function(x), "text"), x, v)
    with pytest.raises(TypeError, match=f"The v given to {name} must be either a Tensor or a tuple of Tensors"):
        product(function, x, (v, 2))


@pytest.mark.parametrize("function", [jacobian, hessian])
def test_only_tensors_go_into_jacobians_and_come_out(function):
    name = function.__name__
    with pytest.raises(TypeError, match=f"The inputs given to {name} must be either a Tensor or a tuple of Tensors"):
        function(cubes, (X, 2))
    with pytest.raises(TypeError, match=f"The outputs of the user-provided function given to {name} must be"):
        function(lambda x: (cubes(x), "text"), X)


@EVERY
def test_the_vector_must_fit(name):
    first = name in ("vjp", "jvp")
    product, function = PRODUCTS[name], pair if first else scalar
    one, x, v = (thirds, Y, X if name == "vjp" else Y) if first else (cubes, X, X)
    with pytest.raises(RuntimeError, match=r"^v has invalid size: should be"):
        product(one, x, vector(1.0, 2.0))
    with pytest.raises(RuntimeError, match="The given v should contain a single Tensor"):
        product(one, x, (v, v))
    with pytest.raises(RuntimeError, match="v is a tuple of invalid length: should be 2 but got 1"):
        product(function, (X, Y), X)
    with pytest.raises(RuntimeError, match="Entry 1 in v has invalid size"):
        product(function, (X, Y), (X, vector(1.0, 2.0)))
    with pytest.raises(RuntimeError, match="The vector v can only be None if"):
        product(one, x)


@pytest.mark.parametrize("name", [*PRODUCTS, "hessian"][2:])
def test_a_hessian_is_that_of_a_number(name):
    function = getattr(functional, name)
    arguments = () if name == "hessian" else (X,)
    with pytest.raises(RuntimeError, match=f"The Tensor returned by the function given to {name} should contain a single"):
        function(lambda x: x * 2, X, *arguments)
    with pytest.raises(RuntimeError, match=f"The function given to {name} should return a single Tensor"):
        function(lambda x: (x.sum(), x.sum()), X, *arguments)


def test_strategies():
    with pytest.raises(AssertionError, match='Expected strategy to be either "forward-mode" or "reverse-mode"'):
        jacobian(cubes, X, strategy="sideways")
    with pytest.raises(AssertionError, match='Expected strategy to be either "forward-mode" or "reverse-mode"'):
        hessian(cubes, X, outer_jacobian_strategy="sideways")
    with pytest.raises(NotImplementedError, match="only implemented for `vectorize=True`"):
        jacobian(cubes, X, strategy="forward-mode")
    with pytest.raises(NotImplementedError, match="only implemented for `vectorize=True`"):
        hessian(cubes, X, outer_jacobian_strategy="forward-mode")
    with pytest.raises(NotImplementedError, match='`create_graph=True` and `strategy="forward-mode"` are not supported together'):
        jacobian(cubes, X, create_graph=True, vectorize=True, strategy="forward-mode")
    with pytest.raises(RuntimeError, match='`strict=True` and `strategy="forward-mode"` are not supported together'):
        jacobian(cubes, X, strict=True, vectorize=True, strategy="forward-mode")


# --- strict mode -----------------------------------------------------------------------------------------------------


def cut_off(x):
    return x.detach().sum()


def elsewhere(x):
    """A result with a history that does not lead to the argument."""
    return x.detach().clone().requires_grad_().clone().sum()


def linear(x):
    return (3 * x).sum()


NO_GRADIENT = "Output 0 of the user-provided function does not require gradients"
SAID_OF_ELSEWHERE = {
    "vjp": "The output of the user-provided function is independent of input 0",
    "jvp": "The output of the user-provided function is independent of input 0",
    "vhp": "The output of the user-provided function is independent of input 0",
    "hvp": "The output of the user-provided function is independent of input 0",
    "jacobian": "Output 0 of the user-provided function is independent of input 0",
    "hessian": "jacobian of the user-provided function with respect to input 0 is|independent of input 0",
}
SAID_OF_LINEAR = {
    "vjp": "The jacobian of the user-provided function is independent of input 0",
    "jvp": "The jacobian of the user-provided function is independent of input 0",
    "vhp": "jacobian of the user-provided function with respect to input 0 is",
    "hvp": "jacobian of the user-provided function with respect to input 0 is",
    "jacobian": "The jacobian of the user-provided function is independent of input 0",
    "hessian": "jacobian of the user-provided function with respect to input 0 is",
}


@pytest.mark.parametrize("name", SAID_OF_LINEAR)
@pytest.mark.parametrize("function", [cut_off, elsewhere, linear])
def test_strict_mode_refuses_what_is_independent(name, function):
    called = getattr(functional, name)
    vectors = () if name in ("jacobian", "hessian") else (const(1.0),) if name == "vjp" else (X,)
    message = {cut_off: NO_GRADIENT, elsewhere: SAID_OF_ELSEWHERE[name], linear: SAID_OF_LINEAR[name]}[function]
    options = {"create_graph": function is linear and name in ("vjp", "jvp", "jacobian")}
    with pytest.raises(RuntimeError, match=message):
        called(function, X, *vectors, strict=True, **options)
    found = called(function, X, *vectors)
    found = found[1] if vectors else found
    if function is not linear or name in ("vhp", "hvp", "hessian"):
        assert close(found, found * 0)
    else:
        assert not close(found, found * 0)


@pytest.mark.parametrize("name", ["vhp", "hvp", "hessian"])
def test_strict_mode_refuses_a_hessian_that_is_constant(name):
    called = getattr(functional, name)
    vectors = () if name == "hessian" else (X,)
    assert not without_history(called(cubes, leaf([0.1, 0.2, 0.3]), *vectors, strict=True, create_graph=True))
    message = "The (hessian|jacobian) of the user-provided function is independent of input 0.*when create_graph=True"
    with pytest.raises(RuntimeError, match=message):
        called(lambda x: (x * x).sum(), X, *vectors, strict=True, create_graph=True)


def test_strict_mode_allows_what_depends():
    assert same(jacobian(lambda x: x * x, X, strict=True), diagonal(2 * X))
    assert same(hessian(cubes, X, strict=True), diagonal(6 * X))
    assert same(functional.vjp(lambda x: x * x, X, X, strict=True)[1], 2 * X * X)
    assert same(functional.jvp(lambda x: x * x, X, X, strict=True)[1], 2 * X * X)
    assert same(functional.hvp(cubes, X, X, strict=True)[1], 6 * X * X)
    assert same(functional.vhp(cubes, X, X, strict=True)[1], 6 * X * X)


@pytest.mark.parametrize("function", [jacobian, hessian])
def test_strict_mode_is_not_for_batches(function):
    with pytest.raises(RuntimeError, match="`strict=True` and `vectorized=True` are not supported together"):
        function(cubes, X, strict=True, vectorize=True)
