"""Packed factors: values as PyTorch 2.13 gives them, what the factors multiply to, error texts."""

from __future__ import annotations

import numpy as np
import pytest
from tables import assert_gives, assert_refused, rows

import pellucid as t

la = t.linalg


def a():
    return t.tensor([[0.0, 1.0, 2.0], [1.0, 0.0, 3.0], [2.0, 3.0, 0.0]], dtype=t.float64)


def h():
    return t.tensor([[2.0, 1j], [-1j, 3.0]])


def b():
    return t.ones(3, 2, dtype=t.float64)


def g():
    return t.tensor([[3.0, 1.0], [4.0, 2.0]])


VALUES = [
    (lambda: la.ldl_factor(a()).LD, "float64", [[0, 0, 0], [2, 0, 0], [1.5, 0.5, -3]]),
    (lambda: la.ldl_factor(a()).pivots, "int32", [-3, -3, 3]),
    (lambda: la.ldl_factor(h(), hermitian=True).LD, "complex64", [[2, 0], [-0.5j, 2.5]]),
    (lambda: la.ldl_factor_ex(a()).info, "int32", 0),
    (lambda: la.ldl_factor_ex(t.zeros(2, 2)).info, "int32", 1),
    (lambda: la.ldl_factor(t.zeros(0, 3, 3)).pivots, "int32", np.zeros((0, 3))),
    (lambda: la.ldl_solve(*la.ldl_factor(a()), b()), "float64", [[0, 0], [1 / 3, 1 / 3], [1 / 3, 1 / 3]]),
    (lambda: t.geqrf(g()).a, "float32", [[-5, -2.2], [0.5, 0.4]]),
    (lambda: t.geqrf(g()).tau, "float32", [1.6, 0]),
    (lambda: g().geqrf()[1], "float32", [1.6, 0]),
    (lambda: t.geqrf(t.zeros(0, 3)).tau, "float32", np.zeros(0)),
    (lambda: t.ormqr(*t.geqrf(g()), t.eye(2)), "float32", [[-0.6, -0.8], [-0.8, 0.6]]),
    (lambda: t.ormqr(t.zeros(2, 0), t.zeros(0), t.eye(2)), "float32", [[1, 0], [0, 1]]),
]


@pytest.mark.parametrize(("compute", "dtype", "expected"), rows(VALUES))
def test_value(compute, dtype, expected):
    assert_gives(compute(), dtype, expected)


def solved(**changed):
    factors = la.ldl_factor(a())
    return la.ldl_solve(**{"LD": factors.LD, "pivots": factors.pivots, "B": b(), **changed})


def turned(**changed):
    packed = t.geqrf(t.arange(6.0).reshape(3, 2))
    return t.ormqr(**{"input": packed.a, "tau": packed.tau, "other": t.eye(3), **changed})


LDL = [
    (lambda: la.ldl_factor(b()), RuntimeError, "A must be batches of square matrices, but they are 3 by 2 matrices"),
    (lambda: la.ldl_factor(b()[0]), RuntimeError, "The input tensor A must have at least 2 dimensions."),
    (lambda: la.ldl_factor(a().long()), RuntimeError, "Expected a floating point or complex tensor as input. Got Long"),
    (lambda: la.ldl_factor(a().half()), NotImplementedError, "\"ldl_factor_kernel_cpu\" not implemented for 'Half'"),
    (lambda: la.ldl_factor(t.zeros(2, 2)), la.LinAlgError, "torch.linalg.ldl_factor: The factorization has a zero at position 1"),
    (
        lambda: la.ldl_factor_ex(t.zeros(2, 2), check_errors=True),
        la.LinAlgError,
        "torch.linalg.ldl_factor_ex: The factorization has a zero at position 1",
    ),
    (lambda: solved(LD=b()), RuntimeError, "A must be batches of square matrices"),
    (lambda: solved(B=b()[0]), IndexError, "Dimension out of range"),
    (lambda: solved(B=b()[:2]), RuntimeError, "each A matrix is 3 by 3 but each b matrix is 2 by 2"),
    (lambda: solved(pivots=t.ones(2)), RuntimeError, "Expected LD.shape[:-1] and pivots.shape to be the same"),
    (lambda: solved(pivots=t.ones(3)), RuntimeError, "Expected pivots to be integers. Got Float"),
    (lambda: solved(B=b().float()), RuntimeError, "but found b of type Float and A of type Double instead"),
    (
        lambda: la.ldl_factor(a().requires_grad_()).LD.sum().backward(),
        RuntimeError,
        "the derivative for 'linalg_ldl_factor_ex' is not implemented",
    ),
    (
        lambda: solved(B=b().requires_grad_()).sum().backward(),
        RuntimeError,
        "the derivative for 'linalg_ldl_solve' is not implemented",
    ),
]
REFLECTORS = [
    (lambda: t.geqrf(g()[0]), RuntimeError, "torch.geqrf: input must have at least 2 dimensions."),
    (lambda: t.geqrf(g().long()), NotImplementedError, "\"geqrf_cpu\" not implemented for 'Long'"),
    (lambda: t.geqrf(g().requires_grad_()).a.sum().backward(), RuntimeError, "the derivative for 'geqrf' is not implemented"),
    (lambda: turned(input=t.ones(3)), RuntimeError, "torch.ormqr: input must have at least 2 dimensions."),
    (lambda: turned(other=t.ones(3)), RuntimeError, "torch.ormqr: other must have at least 2 dimensions."),
    (lambda: turned(tau=t.ones(1)), RuntimeError, "tau.shape[-1] must be equal to min(other.shape[-2], input.shape[-1])"),
    (lambda: turned(tau=t.ones(3), left=False), RuntimeError, "must be equal to min(other.shape[-1], input.shape[-1])"),
    (lambda: turned(other=t.ones(2, 2)), RuntimeError, "torch.ormqr: other.shape[-2] must be equal to input.shape[-2]"),
    (lambda: turned(tau=t.ones(1, 2)), RuntimeError, "Expected tau to have one dimension less than input"),
    (lambda: turned(other=t.ones(2, 3, 3)), RuntimeError, "Expected other to have the same number of dimensions as input"),
    (lambda: turned(tau=t.ones(2).double()), RuntimeError, "Expected input and tau to have the same dtype"),
    (lambda: turned(other=t.eye(3).double()), RuntimeError, "Expected input and other to have the same dtype"),
    (lambda: t.ormqr(*(v.long() for v in (*t.geqrf(g()), g()))), NotImplementedError, "\"ormqr_cpu\" not implemented for"),
]


@pytest.mark.parametrize(("call", "kind", "phrase"), rows(LDL + REFLECTORS))
def test_error(call, kind, phrase):
    assert_refused(call, kind, phrase)


def matrices(seed: int, *shape: int, dtype="float64"):
    rng = np.random.default_rng(seed)
    values = rng.standard_normal(shape) + (1j * rng.standard_normal(shape) if dtype.startswith("c") else 0)
    return t.from_numpy(values.astype(dtype))


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128"])
@pytest.mark.parametrize("hermitian", [False, True])
def test_ldl_solve_solves(dtype, hermitian):
    A = matrices(0, 2, 5, 5, dtype=dtype)
    A = A + (A.mH if hermitian else A.mT)
    B = matrices(1, 3, 1, 5, 4, dtype=dtype)
    X = la.ldl_solve(*la.ldl_factor(A, hermitian=hermitian), B, hermitian=hermitian)
    assert list(X.shape) == [3, 2, 5, 4]
    np.testing.assert_allclose((A @ X).numpy(), B.expand(3, 2, 5, 4).numpy(), atol=1e-4 if dtype == "float32" else 1e-10)


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("shape", [(5, 3), (3, 5), (2, 4, 4)])
def test_reflectors_times_the_upper_triangle_is_the_matrix(dtype, shape):
    A = matrices(0, *shape, dtype=dtype)
    packed, tau = t.geqrf(A)
    np.testing.assert_allclose(t.ormqr(packed, tau, packed.triu()).numpy(), A.numpy(), atol=1e-12)
    np.testing.assert_allclose(t.ormqr(packed, tau, A, transpose=True).numpy(), packed.triu().numpy(), atol=1e-12)
    from_right = t.ormqr(packed, tau, A.mH.contiguous(), left=False)
    np.testing.assert_allclose(from_right.mH.numpy(), packed.triu().numpy(), atol=1e-12)


def test_reflectors_times_the_identity_is_the_householder_product():
    packed, tau = t.geqrf(matrices(0, 5, 3))
    product = la.householder_product(packed, tau)
    np.testing.assert_allclose(t.ormqr(packed, tau, t.eye(5, dtype=t.float64))[:, :3].numpy(), product.numpy(), atol=1e-12)


@pytest.mark.parametrize("left", [False, True])
@pytest.mark.parametrize("transpose", [False, True])
def test_complex_derivatives_of_ormqr(left, transpose):
    operands = [matrices(0, 3, 2, dtype="complex128"), matrices(1, 2, dtype="complex128")]
    operands.append(matrices(2, *((3, 2) if left else (2, 3)), dtype="complex128"))
    operands = [v.requires_grad_() for v in operands]
    assert t.autograd.gradcheck(lambda *v: t.ormqr(*v, left, transpose), operands)


def test_the_older_lu_warns_and_gives_what_lu_factor_gives():
    with pytest.warns(UserWarning, match="torch.lu is deprecated"):
        packed, pivots = t.lu(t.tensor([[1.0, 2.0], [4.0, 6.0]]))
    assert_gives(packed, "float32", [[4, 6], [0.25, 0.5]])
    assert_gives(pivots, "int32", [2, 2])
    with pytest.warns(UserWarning, match="torch.lu is deprecated"):
        info = t.zeros(2, 2).lu(get_infos=True)[2]
    assert_gives(info, "int32", 1)
    with pytest.warns(UserWarning, match="torch.lu is deprecated"):
        assert_refused(lambda: t.lu(t.ones(2, 2).long()), NotImplementedError, "\"lu_cpu\" not implemented for 'Long'")
