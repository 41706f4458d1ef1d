"""Derivatives as functions of functions, and their nesting: `func.grad`, `vjp`, `jvp`, Jacobians, Hessians, `linearize`.

Expected values are closed forms, or one route's value beside another's.
"""

import pytest
from library import close, const, leaf, torch

func = torch.func


def cubes(x):
    return (x**3).sum()


W = [[1.0, -0.5, 0.25], [0.5, 2.0, -1.0], [0.0, 1.5, 0.75]]


def field(x):
    """A function from R^3 to R^3 whose Jacobian is diag(cos(W x)) W."""
    return (const(W) @ x).sin()


def jacobian_of_field(x):
    return torch.diag((const(W) @ x).cos()) @ const(W)


def product(x):
    """A function from R^3 to R with a full Hessian."""
    return x[0] * x[1].exp() * x[2] ** 2


def hessian_of_product(x):
    a, b, c = x.tolist()
    e = const(b).exp().item()
    return [[0.0, e * c * c, 2 * e * c], [e * c * c, a * e * c * c, 2 * a * e * c], [2 * e * c, 2 * a * e * c, 2 * a * e]]


POINT = [0.3, -0.2, 0.7]


# --- grad ------------------------------------------------------------------------------------------------------------


def test_grad_is_the_gradient():
    assert close(func.grad(cubes)(const(POINT)), 3 * const(POINT) ** 2)


def test_grad_of_grad():
    assert close(func.grad(func.grad(lambda x: x**4))(const(2.0)), 48.0)
    assert close(func.grad(func.grad(func.grad(lambda x: x**4)))(const(2.0)), 48.0)


def test_grad_and_value():
    grads, value = func.grad_and_value(cubes)(const(POINT))
    assert close(grads, 3 * const(POINT) ** 2)
    assert close(value, cubes(const(POINT)))


def test_argnums_choose_the_arguments():
    def f(x, y):
        return (x * y**2).sum()

    x, y = const([1.0, 2.0]), const([3.0, 4.0])
    assert close(func.grad(f, argnums=1)(x, y), 2 * x * y)
    both = func.grad(f, argnums=(1, 0))(x, y)
    assert isinstance(both, tuple)
    assert close(both[0], 2 * x * y)
    assert close(both[1], y**2)
    assert close(func.grad(f, argnums=-1)(x, y), 2 * x * y)


def test_arguments_may_be_nested():
    def f(parameters, x):
        return (parameters["weight"] * x + parameters["rest"][0]).sum()

    parameters = {"weight": const([1.0, 2.0]), "rest": [const([0.0, 0.0])]}
    grads = func.grad(f)(parameters, const([3.0, 5.0]))
    assert list(grads) == ["weight", "rest"]
    assert close(grads["weight"], [3.0, 5.0])
    assert close(grads["rest"][0], [1.0, 1.0])


def test_aux_is_passed_through():
    def f(x):
        return cubes(x), {"twice": 2 * x}

    grads, aux = func.grad(f, has_aux=True)(const(POINT))
    assert close(grads, 3 * const(POINT) ** 2)
    assert close(aux["twice"], 2 * const(POINT))
    assert not aux["twice"].requires_grad
    grads, (value, aux) = func.grad_and_value(f, has_aux=True)(const(POINT))
    assert close(value, cubes(const(POINT)))


def test_the_result_has_a_history_only_if_something_outside_needs_it():
    assert not func.grad(cubes)(const(POINT)).requires_grad
    x = leaf(POINT)
    outer = func.grad(cubes)(x)
    assert outer.requires_grad
    assert close(torch.autograd.grad(outer.sum(), x)[0], 6 * const(POINT))


def test_a_captured_leaf_gets_its_gradient():
    w = leaf(POINT)
    inner = func.grad(lambda x: (w * x**2).sum())(const([1.0, 2.0, 3.0]))
    assert close(torch.autograd.grad(inner.sum(), w)[0], [2.0, 4.0, 6.0])


def test_inner_and_outer_variables_are_not_confused():
    """d/dx (x * d/dy (x + y)) = 1: the inner derivative must not see that x is being differentiated too."""

    def outer(x):
        return x * func.grad(lambda y: x + y)(const(1.0))

    assert close(func.grad(outer)(const(2.0)), 1.0)

    def forward(x):
        return x * func.jvp(lambda y: x + y, (const(1.0),), (const(1.0),))[1]

    assert close(func.jvp(forward, (const(2.0),), (const(1.0),))[1], 1.0)


def test_grad_differentiates_inside_no_grad_but_leaves_no_history():
    x = leaf(POINT)
    with torch.no_grad():
        found = func.grad(cubes)(x)
    assert close(found, 3 * const(POINT) ** 2)
    assert not found.requires_grad


def test_no_grad_inside_is_respected():
    def f(x):
        with torch.no_grad():
            constant = x**2
        return (x * constant).sum()

    assert close(func.grad(f)(const(POINT)), const(POINT) ** 2)


def test_detach_cuts_every_level():
    assert close(func.grad(func.grad(lambda x: x * x.detach() ** 2))(const(3.0)), 0.0)


def test_the_argument_itself_is_left_alone():
    x = leaf(POINT)
    func.grad(cubes)(x)
    assert x.grad is None


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: func.grad(lambda x: x)(const([1.0, 2.0])), "scalar"),
        (lambda: func.grad(lambda x: (x.sum(), x))(const([1.0])), "to return a Tensor"),
        (lambda: func.grad(lambda x: x.sum(), has_aux=True)(const([1.0])), "should be a tuple"),
        (lambda: func.grad(lambda x: x.sum(), argnums=1)(const([1.0])), "argnum"),
        (lambda: func.grad(lambda x: x.sum(), argnums=())(const([1.0])), "argnums"),
    ],
)
def test_grad_refuses(make, text):
    with pytest.raises(RuntimeError, match=text):
        make()


# --- vjp, jvp, linearize ---------------------------------------------------------------------------------------------


def test_vjp_gives_the_value_and_pulls_covectors_back():
    x, v = const(POINT), const([1.0, -2.0, 0.5])
    output, pull = func.vjp(field, x)
    assert close(output, field(x))
    assert not output.requires_grad
    for _ in range(2):  # as often as one likes
        (found,) = pull(v)
        assert close(found, v @ jacobian_of_field(x))
        assert not found.requires_grad


def test_vjp_keeps_the_structure_of_outputs():
    def f(x, y):
        return {"sum": x + y, "product": x * y}

    x, y = const([2.0]), const([5.0])
    output, pull = func.vjp(f, x, y)
    gx, gy = pull({"sum": const([1.0]), "product": const([10.0])})
    assert close(gx, [51.0])
    assert close(gy, [21.0])
    assert close(output["product"], [10.0])


def test_vjp_of_an_input_that_does_not_matter_is_zero():
    _, pull = func.vjp(lambda x, y: x * 2, const([1.0]), const([1.0, 2.0]))
    assert close(pull(const([1.0]))[1], [0.0, 0.0])


def test_vjp_refuses_covectors_of_another_structure():
    _, pull = func.vjp(lambda x: (x, x), const([1.0]))
    with pytest.raises(RuntimeError, match="pytree structure"):
        pull(const([1.0]))


def test_jvp_pushes_tangents_forward():
    x, t = const(POINT), const([1.0, -2.0, 0.5])
    output, tangent = func.jvp(field, (x,), (t,))
    assert close(output, field(x))
    assert close(tangent, jacobian_of_field(x) @ t)


def test_jvp_of_several_arguments_and_aux():
    def f(x, y):
        return x * y, x + 1

    output, tangent, aux = func.jvp(f, (const([2.0]), const([3.0])), (const([1.0]), const([10.0])), has_aux=True)
    assert close(output, [6.0])
    assert close(tangent, [23.0])
    assert close(aux, [3.0])


def test_jvp_of_a_constant_is_zero_or_refused():
    x = const(POINT)
    assert close(func.jvp(lambda x: torch.ones(2), (x,), (x,))[1], [0.0, 0.0])
    with pytest.raises(RuntimeError, match="independent"):
        func.jvp(lambda x: torch.ones(2), (x,), (x,), strict=True)


def test_jvp_refuses_tangents_of_another_structure():
    with pytest.raises(RuntimeError, match="python structure"):
        func.jvp(field, (const(POINT),), (const(POINT), const(POINT)))


def test_linearize_is_jvp_at_a_fixed_point():
    x, t = const(POINT), const([1.0, -2.0, 0.5])
    output, push = func.linearize(field, x)
    assert close(output, field(x))
    for scale in (1.0, 2.0):
        assert close(push(t * scale), jacobian_of_field(x) @ t * scale)


# --- Jacobians and Hessians ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("transform", [func.jacrev, func.jacfwd])
def test_a_jacobian(transform):
    x = const(POINT)
    found = transform(field)(x)
    assert close(found, jacobian_of_field(x))
    assert not found.requires_grad


@pytest.mark.parametrize("transform", [func.jacrev, func.jacfwd])
def test_a_jacobian_has_the_shape_of_output_and_input(transform):
    assert transform(lambda x: x.sum(0))(torch.randn(2, 3)).shape == (3, 2, 3)
    assert transform(lambda x: x[:, :2] * 2)(torch.randn(2, 3)).shape == (2, 2, 2, 3)


@pytest.mark.parametrize("transform", [func.jacrev, func.jacfwd])
def test_jacobians_of_several_arguments_and_outputs(transform):
    def f(x, y):
        return {"a": x * y, "b": x.sum()}

    x, y = const([1.0, 2.0]), const([3.0, 4.0])
    found = transform(f, argnums=(0, 1))(x, y)
    assert close(found["a"][0], torch.diag(y))
    assert close(found["a"][1], torch.diag(x))
    assert close(found["b"][0], [1.0, 1.0])
    assert close(found["b"][1], [0.0, 0.0])


def test_jacrev_in_chunks():
    x = const(POINT)
    assert close(func.jacrev(field, chunk_size=2)(x), jacobian_of_field(x))


@pytest.mark.parametrize("transform", [func.jacrev, func.jacfwd])
def test_jacobian_with_aux(transform):
    x = const(POINT)
    found, aux = transform(lambda x: (field(x), x * 2), has_aux=True)(x)
    assert close(found, jacobian_of_field(x))
    assert close(aux, 2 * x)


HESSIANS = {
    "hessian": func.hessian,
    "rev over rev": lambda f: func.jacrev(func.jacrev(f)),
    "fwd over fwd": lambda f: func.jacfwd(func.jacfwd(f)),
    "rev over fwd": lambda f: func.jacrev(func.jacfwd(f)),
    "fwd over rev": lambda f: func.jacfwd(func.jacrev(f)),
    "rev over grad": lambda f: func.jacrev(func.grad(f)),
    "fwd over grad": lambda f: func.jacfwd(func.grad(f)),
}


@pytest.mark.parametrize("route", HESSIANS)
def test_every_route_to_the_hessian(route):
    x = const(POINT)
    assert close(HESSIANS[route](product)(x), hessian_of_product(x))


@pytest.mark.parametrize("route", HESSIANS)
def test_every_route_to_the_hessian_inside_vmap(route):
    points = const([POINT, [1.0, 0.5, -0.3], [-0.4, 0.0, 2.0]])
    found = func.vmap(HESSIANS[route](product))(points)
    for each, point in zip(found, points, strict=True):
        assert close(each, hessian_of_product(point))


@pytest.mark.parametrize("route", ["hessian", "rev over fwd", "fwd over fwd"])
def test_third_derivatives(route):
    x = const(POINT)
    found = func.jacrev(HESSIANS[route](lambda x: (x**4).sum()))(x)
    for i in range(3):
        assert close(found[i, i, i], 24 * x[i])


# --- vmap with derivatives -------------------------------------------------------------------------------------------


def test_gradients_of_each_example():
    weight, batch = const(W), const([[1.0, 0.0, 2.0], [0.5, -1.0, 0.0]])

    def loss(weight, x):
        return ((weight @ x) ** 2).sum()

    found = func.vmap(func.grad(loss), in_dims=(None, 0))(weight, batch)
    for each, x in zip(found, batch, strict=True):
        assert close(each, 2 * torch.outer(weight @ x, x))
    assert not found.requires_grad


def test_gradient_of_a_batched_gradient():
    points = const([POINT, [1.0, 0.5, -0.3]])

    def norm(points):
        return (func.vmap(func.grad(lambda x: (x**3).sum()))(points) ** 2).sum()

    assert close(func.grad(norm)(points), 36 * points**3)


def test_forward_over_vmap():
    points = const([POINT, [1.0, 0.5, -0.3]])
    _, tangent = func.jvp(lambda p: func.vmap(cubes)(p), (points,), (torch.ones_like(points),))
    assert close(tangent, (3 * points**2).sum(1))


def test_a_history_reaches_through_vmap():
    w = leaf([1.0, 2.0])
    out = func.vmap(lambda x: (x * w).sum())(const([[1.0, 2.0], [3.0, 4.0]]))
    assert out.requires_grad
    out.sum().backward()
    assert close(w.grad, [4.0, 6.0])


def test_one_graph_serves_many_covectors_at_once():
    x = leaf(POINT)
    y = field(x)
    (found,) = torch.autograd.grad(y, x, torch.eye(3, dtype=torch.float64), is_grads_batched=True)
    assert close(found, jacobian_of_field(x.detach()))
