"""Products added to a tensor, both scaled: addmm, addmv, addr, addbmm, baddbmm. The products themselves are in products.py."""

from __future__ import annotations

import numpy as np

from pellucid.autograd.operator import Array, operator
from pellucid.core.product_checks import (
    check_addbmm,
    check_added,
    check_addmm,
    check_addmv,
    check_addr,
    check_batches,
    no_bools,
)
from pellucid.core.values import number_in
from pellucid.kernels import products
from pellucid.ops.batch_places import in_front
from pellucid.ops.batches import for_each
from pellucid.ops.products import product_of_each, sum_to_shape

__all__ = ["addbmm", "addmm", "addmv", "addr", "baddbmm"]


def _product_added(xp, input, a, b, beta, alpha):
    """beta * input + alpha * (a @ b)."""
    if beta == 1 and a.dtype.kind == "f":
        return products.matmul_add(a, b, input, alpha)
    return _added(xp, input, products.matmul(a, b), beta, alpha)


def _added(xp, input, product, beta, alpha):
    """beta * input + alpha * product; the input does not count if beta is 0, whatever it holds."""
    if alpha != 1:
        product = product * number_in(alpha, product.dtype)
    if beta == 0:
        return product
    return xp.add(product, input if beta == 1 else input * number_in(beta, input.dtype))


def _scaled(value, factor):
    return value if factor == 1 else value * factor


def _of_addend(F, grad, input_shape, beta):
    return _scaled(sum_to_shape(F, grad, input_shape), beta)


def _moved(F, tangents, a, b, beta, alpha, product):
    """The tangent of beta * input + alpha * product(a, b)."""
    moved, first, second = tangents
    pairs = [(x, y) for x, y in ((first, b), (a, second)) if x is not None and y is not None]
    parts = [_scaled(product(F, x, False, y, False), alpha) for x, y in pairs]
    if moved is not None and (beta or not parts):
        parts.append(_scaled(moved, beta))
    return parts[0] if len(parts) == 1 else sum(parts[1:], parts[0])


def _of_each(F, size: int, batched: set, input, factors: dict, beta, alpha, product):
    """beta * input + alpha * product of the two factors, for each example of a batch."""
    (first, a), (second, b) = factors.items()
    made = _scaled(product(F, a, first in batched, b, second in batched), alpha)
    rank = made.ndim - bool({first, second} & batched)
    if beta:
        made = made + _scaled(in_front(F, input, rank) if "input" in batched else input, beta)
    return for_each(F, made, made.ndim > rank, size)


def _outer(F, a, a_batched: bool, b, b_batched: bool):
    return F.unsqueeze(a, -1) * F.unsqueeze(b, -2)


def _summed(F, a, a_batched: bool, b, b_batched: bool):
    return F.sum_dim(product_of_each(F, a, a_batched, b, b_batched), (-3,), False)


@operator(method=True, inplace=True, exact=True)
class addmm:
    """Matrix product added to a tensor: beta * input + alpha * mat1 @ mat2.

    input: broadcastable to [m, n], mat1: [m, k], mat2: [k, n], of one dtype. Returns [m, n]. `input` is ignored if beta is 0.
    Raises: RuntimeError for other ranks, sizes that do not fit, or different dtypes.
    """

    def forward(xp, input: Array, mat1: Array, mat2: Array, *, beta=1, alpha=1):
        check_addmm(input, mat1, mat2)
        return _product_added(xp, input, mat1, mat2, beta, alpha)

    vjp_input = _of_addend

    def vjp_mat1(F, grad, mat2, alpha): return _scaled(F.mm(grad, F.transpose(mat2, 0, 1)), alpha)
    def vjp_mat2(F, grad, mat1, alpha): return _scaled(F.mm(F.transpose(mat1, 0, 1), grad), alpha)
    def jvp(F, tangents, mat1, mat2, beta, alpha): return _moved(F, tangents, mat1, mat2, beta, alpha, product_of_each)

    def batch(F, size_of_batch, batched, input, mat1, mat2, beta, alpha):
        return _of_each(F, size_of_batch, batched, input, {"mat1": mat1, "mat2": mat2}, beta, alpha, product_of_each)

    def samples(make):
        yield (make(2, 4), make(2, 3), make(3, 4)), {"beta": 0.5, "alpha": 2}
        yield (make(4), make(2, 3), make(3, 4)), {}


@operator(method=True, inplace=True, exact=True)
class addmv:
    """Matrix times vector added to a tensor: beta * input + alpha * mat @ vec.

    input: broadcastable to [m], mat: [m, k], vec: [k], of one dtype. Returns [m]. `input` is ignored if beta is 0.
    Raises: RuntimeError for other ranks, sizes that do not fit, or different dtypes.
    """

    def forward(xp, input: Array, mat: Array, vec: Array, *, beta=1, alpha=1):
        check_addmv(input, mat, vec)
        return _product_added(xp, input, mat, vec, beta, alpha)

    vjp_input = _of_addend

    def vjp_mat(F, grad, vec, alpha): return _scaled(F.unsqueeze(grad, 1) * vec, alpha)
    def vjp_vec(F, grad, mat, alpha): return _scaled(F.mv(F.transpose(mat, 0, 1), grad), alpha)
    def jvp(F, tangents, mat, vec, beta, alpha): return _moved(F, tangents, mat, vec, beta, alpha, product_of_each)

    def batch(F, size_of_batch, batched, input, mat, vec, beta, alpha):
        return _of_each(F, size_of_batch, batched, input, {"mat": mat, "vec": vec}, beta, alpha, product_of_each)

    def samples(make): yield (make(2), make(2, 3), make(3)), {"beta": 0.5, "alpha": 2}


@operator(method=True, inplace=True, exact=True)
class addr:
    """Outer product added to a tensor: beta * input + alpha * outer(vec1, vec2).

    input: broadcastable to [m, n], vec1: [m], vec2: [n]. Returns [m, n]. `input` is ignored if beta is 0.
    Raises: RuntimeError for other ranks or sizes that do not fit.
    """

    def forward(xp, input: Array, vec1: Array, vec2: Array, *, beta=1, alpha=1):
        check_addr(input, vec1, vec2, beta, alpha)
        if input.dtype == np.bool_:
            made = xp.outer(vec1, vec2)
            return made if not beta else made | input
        return _added(xp, input, xp.outer(vec1, vec2), beta, alpha)

    vjp_input = _of_addend

    def vjp_vec1(F, grad, vec2, alpha): return _scaled(F.mv(grad, vec2), alpha)
    def vjp_vec2(F, grad, vec1, alpha): return _scaled(F.mv(F.transpose(grad, 0, 1), vec1), alpha)
    def jvp(F, tangents, vec1, vec2, beta, alpha): return _moved(F, tangents, vec1, vec2, beta, alpha, _outer)

    def batch(F, size_of_batch, batched, input, vec1, vec2, beta, alpha):
        return _of_each(F, size_of_batch, batched, input, {"vec1": vec1, "vec2": vec2}, beta, alpha, _outer)

    def samples(make): yield (make(2, 3), make(2), make(3)), {"beta": 0.5, "alpha": 2}


@operator(method=True, inplace=True, exact=True)
class addbmm:
    """Sum of a batch of matrix products added to a tensor: beta * input + alpha * sum_b batch1[b] @ batch2[b].

    input: broadcastable to [m, n], batch1: [b, m, k], batch2: [b, k, n], of one dtype. Returns [m, n].
    Raises: RuntimeError for other ranks, sizes that do not fit, or different dtypes.
    """

    def forward(xp, input: Array, batch1: Array, batch2: Array, *, beta=1, alpha=1):
        check_addbmm(input, batch1, batch2)
        wide = batch1.transpose(1, 0, 2).reshape(batch1.shape[1], -1 if batch1.size else batch1.shape[0] * batch1.shape[2])
        no_bools(batch1)
        tall = batch2.reshape(-1, batch2.shape[2]) if batch2.size else xp.zeros((wide.shape[1], batch2.shape[2]), batch2.dtype)
        return _product_added(xp, input, wide, tall, beta, alpha)

    vjp_input = _of_addend

    def vjp_batch1(F, grad, batch2, alpha): return _scaled(F.matmul(grad, F.transpose(batch2, 1, 2)), alpha)
    def vjp_batch2(F, grad, batch1, alpha): return _scaled(F.matmul(F.transpose(batch1, 1, 2), grad), alpha)
    def jvp(F, tangents, batch1, batch2, beta, alpha): return _moved(F, tangents, batch1, batch2, beta, alpha, _summed)

    def batch(F, size_of_batch, batched, input, batch1, batch2, beta, alpha):
        return _of_each(F, size_of_batch, batched, input, {"batch1": batch1, "batch2": batch2}, beta, alpha, _summed)

    def samples(make): yield (make(2, 4), make(5, 2, 3), make(5, 3, 4)), {"beta": 0.5, "alpha": 2}


@operator(method=True, inplace=True, exact=True)
class baddbmm:
    """Batch of matrix products added to a tensor: beta * input + alpha * batch1 @ batch2.

    input: broadcastable to [b, m, n], batch1: [b, m, k], batch2: [b, k, n], of one dtype. Returns [b, m, n].
    Raises: RuntimeError for other ranks, sizes that do not fit, or different dtypes.
    """

    def forward(xp, input: Array, batch1: Array, batch2: Array, *, beta=1, alpha=1):
        check_batches(batch1, batch2)
        shape = (batch1.shape[0], batch1.shape[1], batch2.shape[2])
        check_added(input, shape, batch2, "self and batch2")
        no_bools(batch1)
        return _product_added(xp, input, batch1, batch2, beta, alpha)

    vjp_input = _of_addend

    def vjp_batch1(F, grad, batch2, alpha): return _scaled(F.bmm(grad, F.transpose(batch2, 1, 2)), alpha)
    def vjp_batch2(F, grad, batch1, alpha): return _scaled(F.bmm(F.transpose(batch1, 1, 2), grad), alpha)

    def jvp(F, tangents, batch1, batch2, beta, alpha):
        return _moved(F, tangents, batch1, batch2, beta, alpha, product_of_each)

    def batch(F, size_of_batch, batched, input, batch1, batch2, beta, alpha):
        return _of_each(F, size_of_batch, batched, input, {"batch1": batch1, "batch2": batch2}, beta, alpha, product_of_each)

    def samples(make): yield (make(2, 1), make(5, 2, 3), make(5, 3, 4)), {"beta": 0.5, "alpha": 2}
