"""L-BFGS and its line search."""

import itertools

import numpy as np
import pytest

from pellucid.core.tensor import Parameter, wrap
from pellucid.optim import LBFGS
from pellucid.optim.line_search import Point, cubic_minimum, strong_wolfe


def rosenbrock(options, steps):
    """Where the steps lead from (-1.2, 1), and the optimizer's state."""
    param = Parameter(wrap(np.array([-1.2, 1.0])))
    optimizer = LBFGS([param], **options)

    def closure():
        optimizer.zero_grad()
        x, y = param._array
        param.grad = wrap(np.array([-2 * (1 - x) - 400 * x * (y - x * x), 200 * (y - x * x)]))
        return float((1 - x) ** 2 + 100 * (y - x * x) ** 2)

    for _ in range(steps):
        optimizer.step(closure)
    return param._array, optimizer.state[param]


# values of PyTorch, with the number of iterations and evaluations
ROSENBROCK = [
    ({"line_search_fn": "strong_wolfe"}, 1, ([0.380622643346, 0.124910131873], 19, 25)),
    (
        {"line_search_fn": "strong_wolfe", "max_iter": 5, "history_size": 2},
        3,
        ([-0.33756475832, 0.0666291269808], 12, 18),
    ),
    ({"lr": 0.001, "max_iter": 4}, 2, ([-1.19833983972, 1.00083460066], 8, 8)),
    ({"line_search_fn": "strong_wolfe", "max_iter": 1}, 2, ([-1.2, 1.0], 2, 4)),
]


@pytest.mark.parametrize(("options", "steps", "expected"), ROSENBROCK)
def test_values(options, steps, expected):
    got, state = rosenbrock(options, steps)
    np.testing.assert_allclose(got, expected[0], rtol=1e-8)
    assert (state["n_iter"], state["func_evals"]) == expected[1:]


# Rosenbrock's function of eleven numbers, two steps with a history of five: PyTorch's result, to the last digit.
ELEVEN = """0x1.f8dc7e74d5dffp-1 0x1.f7724eeac50c7p-1 0x1.f35b98bad472fp-1 0x1.ee7a7d466d9dbp-1 0x1.da8d57615dd29p-1
    0x1.b3788ecdc9c9fp-1 0x1.70db44e6e1420p-1 0x1.f30d028bc2f04p-2 0x1.9a480a6cc8766p-3 0x1.f776e601c99d6p-6 -0x1.18e65259b38b4p-6"""


def test_the_path_of_a_small_problem_is_that_of_pytorch():
    """What is lost in one last digit is a millionth fifty evaluations later."""
    param = Parameter(wrap(np.linspace(-1.2, 1.0, 11)))
    optimizer, evaluations = LBFGS([param], line_search_fn="strong_wolfe", history_size=5), []

    def closure():
        x, grad, loss = param._array.tolist(), np.zeros(11), 0.0
        for i, (a, b) in enumerate(itertools.pairwise(x)):
            c = b - a * a
            loss += 100 * (c * c) + (1 - a) * (1 - a)
            grad[i] += -400 * a * c - 2 * (1 - a)
            grad[i + 1] += 200 * c
        param.grad = wrap(grad)
        evaluations.append(loss)
        return loss

    for _ in range(2):
        optimizer.step(closure)
    assert param._array.tolist() == [float.fromhex(each) for each in ELEVEN.split()]
    assert len(evaluations) == 50


def test_it_finds_the_minimum_of_a_hard_function():
    got, _ = rosenbrock({"line_search_fn": "strong_wolfe", "max_iter": 100}, 1)
    np.testing.assert_allclose(got, [1.0, 1.0], atol=1e-4)


def test_parameters_without_gradient_and_complex_ones():
    still, turning = Parameter(wrap(np.ones(2))), Parameter(wrap(np.array([1 + 1j])))
    optimizer = LBFGS([still, turning], lr=0.5)

    def closure():
        turning.grad = wrap(2 * turning._array)
        return float(np.abs(turning._array[0]) ** 2)

    optimizer.step(closure)
    np.testing.assert_array_equal(still._array, [1.0, 1.0])
    assert abs(turning._array[0]) < 1e-4


def test_a_flat_start_is_left_alone():
    param = Parameter(wrap(np.ones(2)))
    optimizer = LBFGS([param])

    def closure():
        param.grad = wrap(np.zeros(2))
        return 3.0

    assert optimizer.step(closure) == 3.0
    np.testing.assert_array_equal(param._array, [1.0, 1.0])


@pytest.mark.parametrize("line_search_fn", [None, "strong_wolfe"])
def test_a_closure_that_fails_leaves_everything_as_it_was(line_search_fn):
    param = Parameter(wrap(np.array([3.0])))
    optimizer = LBFGS([param], line_search_fn=line_search_fn)
    calls = []

    def closure():
        calls.append(1)
        if len(calls) == 3:
            raise ZeroDivisionError
        param.grad = wrap(4 * param._array**3)
        return float(param._array[0] ** 4)

    with pytest.raises(ZeroDivisionError):
        optimizer.step(closure)
    assert param.item() == 3.0
    assert not optimizer.state[param]


def test_what_is_refused():
    params = [Parameter(wrap(np.ones(1))), Parameter(wrap(np.ones(1)))]
    with pytest.raises(ValueError, match="doesn't support per-parameter options"):
        LBFGS([{"params": params[:1]}, {"params": params[1:]}])
    with pytest.raises(RuntimeError, match="only 'strong_wolfe' is supported as line_search_fn, but got 'armijo'"):
        LBFGS(params, line_search_fn="armijo").step(lambda: 1.0)
    with pytest.raises(TypeError, match="needs a closure"):
        LBFGS(params).step(None)


def test_the_cubic_through_two_points():
    # x^3 - 3 x has its minimum at 1
    at = lambda x: Point(x, x**3 - 3 * x, None, 3 * x * x - 3)  # noqa: E731
    assert cubic_minimum(at(0.0), at(2.0)) == pytest.approx(1.0)
    assert cubic_minimum(at(2.0), at(0.0)) == pytest.approx(1.0)
    assert cubic_minimum(at(0.0), at(2.0), (1.5, 2.0)) == 1.5
    straight = [Point(x, -x, None, -1.0) for x in (0.0, 1.0)]
    assert cubic_minimum(straight[0], straight[0]) == 0.0
    assert cubic_minimum(*straight) == 1.0


def test_the_line_search_meets_both_conditions():
    at = lambda x: Point(x, (x - 3) ** 4, np.array([4 * (x - 3) ** 3]), 4 * (x - 3) ** 3)  # noqa: E731
    found, evaluations = strong_wolfe(at, at(0.0), 0.01, np.ones(1))
    assert found.loss <= 81 + 1e-4 * found.length * -108
    assert abs(found.slope) <= 0.9 * 108
    assert evaluations < 10
