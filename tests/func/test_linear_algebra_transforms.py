"""Linear algebra in forward mode and under vmap: tangents beside differences and beside gradients, batches beside a loop."""

from __future__ import annotations

import numpy as np
import pytest
from loops import assert_is_a_loop, draw, pushed, slopes, tensors

import pellucid as torch
from pellucid.autograd import batching
from pellucid.func import jvp, vjp, vmap

L = torch.linalg


def matrix(rows: int, columns: int, kind: str = "float64", seed: int = 0) -> torch.Tensor:
    rng = np.random.default_rng((seed, rows, columns))
    made = rng.standard_normal((rows, columns)) + 2 * np.eye(rows, columns)
    return torch.tensor(made if kind == "float64" else made + 1j * rng.standard_normal((rows, columns)))


def positive(n: int, kind: str) -> torch.Tensor:
    a = matrix(n, n, kind)
    return a @ a.mH + torch.eye(n, dtype=a.dtype)


def spaces(u, s, vh):
    """What does not depend on the phases of singular vectors."""
    return u @ vh, s, u[..., :1] @ vh[..., :1, :]


FUNCTIONS = {
    "inv": (L.inv, (3, 3)),
    "det": (L.det, (3, 3)),
    "slogdet": (L.slogdet, (3, 3)),
    "solve": (lambda a: L.solve(a, a.mT @ a), (3, 3)),
    "svd": (lambda a: spaces(*L.svd(a, full_matrices=False)), (3, 3)),
    "svd of a tall matrix": (lambda a: spaces(*L.svd(a, full_matrices=False)), (4, 2)),
    "svd of a wide matrix": (lambda a: spaces(*L.svd(a, full_matrices=False)), (2, 4)),
    "svdvals": (L.svdvals, (4, 3)),
    "eig": (lambda a: (lambda values, vectors: (values, (vectors * values**2) @ L.inv(vectors)))(*L.eig(a)), (3, 3)),
    "qr": (L.qr, (3, 3)),
    "qr of a tall matrix": (L.qr, (4, 2)),
    "qr of a wide matrix": (L.qr, (2, 4)),
    "complete qr": (lambda a: L.qr(a, "complete"), (2, 4)),
    "lu": (L.lu, (3, 3)),
    "lu of a tall matrix": (L.lu, (4, 2)),
    "lu of a wide matrix": (L.lu, (2, 4)),
    "pinv": (L.pinv, (4, 2)),
    "pinv of a wide matrix": (L.pinv, (2, 4)),
    "matrix_exp": (lambda a: L.matrix_exp(a * 0.3), (3, 3)),
    "matrix_power": (lambda a: L.matrix_power(a, -2), (3, 3)),
    "cond": (lambda a: L.cond(a, 1), (3, 3)),
    "nuclear norm": (lambda a: L.matrix_norm(a, "nuc"), (4, 3)),
    "lstsq": (lambda a: L.lstsq(a, a[:, :1])[0], (4, 2)),
    "householder_product": (lambda a: L.householder_product(a, a[0] * 0.3), (4, 2)),
}


def moving(f):
    """f with the results that can move."""
    return lambda a: tuple(t for t in tensors(f(a)) if t.is_floating_point() or t.is_complex())


def inner(a, b) -> float:
    """The real inner product, in which complex numbers are pairs of reals."""
    return float((a.conj() * b).real.sum() if a.is_complex() else (a * b).sum())


def assert_tangents(f, a, step) -> None:
    """Tangents are a difference quotient of the function, and the transpose of its gradients."""
    f, h = moving(f), 1e-6
    results, tangents = jvp(f, (a,), (step,))
    for up, down, tangent in zip(f(a + h * step), f(a - h * step), tangents, strict=True):
        np.testing.assert_allclose(tangent.numpy(), ((up - down) / (2 * h)).numpy(), rtol=2e-5, atol=1e-7)
    rng = np.random.default_rng(3)
    covectors = []
    for r in results:
        drawn = rng.standard_normal(r.shape)
        covectors.append(torch.tensor(drawn + 1j * rng.standard_normal(r.shape) if r.is_complex() else drawn))
    (pulled,) = vjp(f, a)[1](tuple(covectors))
    forward = sum(inner(c, t) for c, t in zip(covectors, tangents, strict=True))
    assert forward == pytest.approx(inner(pulled, step), rel=1e-8)


@pytest.mark.parametrize("kind", ["float64", "complex128"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_tangents(name, kind):
    f, shape = FUNCTIONS[name]
    assert_tangents(f, matrix(*shape, kind), matrix(*shape, kind, seed=1))


def rebuilt(values, vectors):
    return values, (vectors * values**3) @ vectors.mH


@pytest.mark.parametrize("kind", ["float64", "complex128"])
@pytest.mark.parametrize("f", [L.cholesky, lambda a: L.cholesky(a, upper=True), lambda a: rebuilt(*L.eigh(a)), torch.logdet])
def test_tangents_of_hermitian_matrices(f, kind):
    step = matrix(3, 3, kind, seed=1)
    if f is torch.logdet and kind == "complex128":
        pytest.skip("its logarithm of the sign has a cut at real numbers")
    assert_tangents(f, positive(3, kind), step + step.mH)


def test_columns_that_complete_singular_vectors_count_as_constant():
    _, (u, _, vh) = jvp(lambda a: tuple(L.svd(a)), (matrix(4, 2),), (matrix(4, 2, seed=1),))
    assert u[:, 2:].abs().max() == 0
    assert vh.shape == (2, 2)


def test_the_gradient_of_a_logarithm_without_value_is_zero():
    a = torch.tensor([[-1.0, 0.0], [0.0, 2.0]], requires_grad=True)
    value = torch.logdet(a)
    value.backward()
    assert value.isnan()
    assert a.grad.abs().max() == 0


def test_a_singular_matrix_of_several_has_an_infinite_condition_number_alone():
    assert L.cond(torch.stack([torch.zeros(2, 2), torch.eye(2)]), 1).tolist() == [float("inf"), 1.0]


square, tall, right = draw(3, 3) + 3 * torch.eye(3, dtype=torch.float64), draw(4, 2), draw(3, 2)
symmetric = square + square.mT
stacked = torch.stack([square, square + 1], 1)
definite = square @ square.mT
BATCHED = {
    **{name: ((f, square) if shape == (3, 3) else (f, draw(*shape))) for name, (f, shape) in FUNCTIONS.items()},
    "inverse of several": (L.inv, stacked),
    "cholesky": (L.cholesky, definite),
    "cholesky_inverse": (torch.cholesky_inverse, L.cholesky(definite)),
    "eigh": (lambda a: rebuilt(*L.eigh(a)), symmetric),
    "logdet": (torch.logdet, definite),
    "pinv of a symmetric matrix": (lambda a: L.pinv(a, hermitian=True), symmetric),
    "matrix_power of nothing": (lambda a: L.matrix_power(a, 0), square),
    "tensorinv": (lambda a: L.tensorinv(a.reshape(3, 3, 1), ind=1), square),
    "vander": (L.vander, draw(3)),
    **{f"matrix_norm {order}": (lambda a, order=order: L.matrix_norm(a, order), tall) for order in ("fro", 2, -2, 1, -1, np.inf)},
}
PAIRS = {
    "several equations": (L.solve, stacked, right),
    "equations from the right": (lambda a, b: L.solve(a, b, left=False), square, draw(2, 3)),
    "solve_triangular": (lambda a, b: L.solve_triangular(a, b, upper=True), square, right),
    "cholesky_solve": (torch.cholesky_solve, right, L.cholesky(definite)),
    "lu_solve": (lambda a, b: L.lu_solve(*L.lu_factor(a), b), square, right),
    "tensorsolve": (lambda a, b: L.tensorsolve(a, b), square, draw(3)),
    "householder_product": (L.householder_product, tall, draw(2)),
    "ormqr": (lambda a, t: torch.ormqr(a, t, tall[0]), tall, draw(2)),
    "cross": (L.cross, draw(2, 3), draw(2, 3, seed=1)),
}
WITHOUT_DERIVATIVES = {
    "rank": (L.matrix_rank, tall),
    "rank with a tolerance": (lambda a, t: L.matrix_rank(a, atol=t), tall, draw(low=0.0)),
    "pinv with a tolerance": (lambda a, t: L.pinv(a, atol=t), tall, draw(low=0.0)),
    "qr without Q": (lambda a: L.qr(a, "r"), tall),
    "inv_ex": (L.inv_ex, square),
    "solve_ex": (L.solve_ex, square, right),
    "lu_factor_ex": (L.lu_factor_ex, square * torch.tensor([1.0, 0.0, 1.0]).reshape(3, 1, 1)),
    "ldl_solve": (lambda a, b: L.ldl_solve(*L.ldl_factor(a), b), symmetric, right),
    "geqrf": (torch.geqrf, tall),
    "cond with a singular matrix": (lambda a: L.cond(a, 1), square * torch.tensor([1.0, 0.0, 1.0]).reshape(3, 1, 1)),
}


@pytest.fixture(autouse=True)
def _every_fallback_warns():
    batching._warned.clear()


CASES = [(name, 1) for name in BATCHED] + [(name, 2) for name in PAIRS]


@pytest.mark.parametrize(("name", "count"), CASES)
def test_a_batch_is_a_loop(name, count):
    f, *operands = (BATCHED if count == 1 else PAIRS)[name]
    assert_is_a_loop(f, *operands)
    every = [(True,) * count]
    assert_is_a_loop(slopes(f, count), *operands, choices=every)
    assert_is_a_loop(pushed(f, count), *operands, choices=every)


@pytest.mark.parametrize("name", WITHOUT_DERIVATIVES)
def test_a_batch_without_derivatives_is_a_loop(name):
    f, *operands = WITHOUT_DERIVATIVES[name]
    assert_is_a_loop(f, *operands)


def test_a_failure_of_one_example_is_seen():
    with pytest.raises(L.LinAlgError, match="singular"):
        vmap(lambda a: L.ldl_factor(a)[0])(torch.stack([torch.eye(2), torch.zeros(2, 2)]))
