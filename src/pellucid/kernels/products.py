"""Products of matrices: NumPy's for small ones and odd dtypes, blocks of the result for all threads for large ones.

`matmul` stands for `numpy.matmul` and gives what it gives, to rounding.
"""

from __future__ import annotations

import math

import numpy as np

from .choice import CROSSOVERS, compiled
from .sums import sum_to

__all__ = ["linear_gradients", "matmul", "matmul_add", "matmul_gradients", "matrix_unit", "rows_of"]

_numpy_matmul = np.matmul
SMALL = 1 << 18  # multiplications: the smallest crossover, looked at before anything else, for most products are small


class matrix_unit:
    """A switch: whether the processor's matrix unit (Intel's AMX) may make products of float32, with all their digits."""

    enabled = True


def matmul(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The product of matrices in the last two dimensions, leading ones broadcast; vectors as in `numpy.matmul`."""
    if a.size * b.size < SMALL or (b.ndim < 3 and b.ndim and a.size * b.shape[-1] < SMALL):
        return _by_numpy(a, b)
    made = _on_all_threads(a, b, None, 1)
    return _numpy_matmul(a, b) if made is None else made


def _by_numpy(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """NumPy's product; but not of a column and a row, where it goes number by number through what is no more than their product by elements."""
    if a.ndim > 1 < b.ndim and a.shape[-1] == 1 == b.shape[-2] and a.dtype.kind == "f" == b.dtype.kind:
        return _outer(a, b)
    return _numpy_matmul(a, b)


def _outer(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Columns times rows."""
    fast = compiled("products.outer", a.size * b.size, a, b) if a.ndim == 2 == b.ndim and a.size and b.size else None
    made = fast and fast.product(a, b)
    return np.multiply(a, b) if made is None else made


def matmul_add(a: np.ndarray, b: np.ndarray, addend: np.ndarray, alpha: float = 1) -> np.ndarray:
    """addend + alpha * matmul(a, b) in one pass over the result; the addend is broadcast to the product, not the other way."""
    if a.size * b.size >= SMALL and a.size * b.shape[-1] >= SMALL and a.dtype == addend.dtype:
        made = _on_all_threads(a, b, addend, alpha)
        if made is not None:
            return made
    made = _by_numpy(a, b)
    if alpha != 1:
        made = made * made.dtype.type(alpha)
    if not made.ndim or made.dtype != addend.dtype:
        return made + addend
    made += addend
    return made


def matmul_gradients(grad, a, b, needs: tuple[bool, ...]) -> tuple:
    """Gradients of two matrices a [m, k] and b [k, n] from that of their product, those that are needed; None for the others."""
    return matmul(grad, b.T) if needs[0] else None, matmul(a.T, grad) if needs[1] else None


def linear_gradients(grad, input, weight, weight_shape, bias_shape, needs: tuple[bool, ...]) -> tuple:
    """Gradients of input, weight and bias of input @ weight^T + bias, those that are needed; None for the others.

    input: [..., in], weight: [out, in], grad: [..., out]; or weight [in] and grad [...]. What no needed gradient is made of may be
    None: the first needs the weight, the second input and weight_shape, the third bias_shape.
    """
    of_input, of_weight, of_bias = needs
    made_input = made_weight = None
    if of_input:
        made_input = matmul(grad, weight) if weight.ndim > 1 else grad[..., None] * weight
    if of_weight:
        if input.ndim == 1:
            made_weight = grad[..., None] * input
        elif len(weight_shape) > 1:
            made_weight = matmul(rows_of(grad).T, rows_of(input))
        else:
            made_weight = matmul(grad.reshape(1, -1), rows_of(input))[0]
    return made_input, made_weight, sum_to(grad, bias_shape) if of_bias else None


def rows_of(array: np.ndarray) -> np.ndarray:
    """The array as a matrix, its leading dimensions as one."""
    if array.ndim == 2:
        return array
    return array.reshape(-1, array.shape[-1]) if array.size else array.reshape(math.prod(array.shape[:-1]), array.shape[-1])


def _on_all_threads(a, b, addend, alpha) -> np.ndarray | None:
    """The compiled form's product, or None where it is not for these operands."""
    if a.ndim < 2 or b.ndim < 2:
        return _of_vectors(a, b, addend, alpha)
    m, n = a.shape[-2], b.shape[-1]
    if b.ndim == 2 < a.ndim and (addend is None or addend.ndim < 2) and a.flags.c_contiguous:
        made = _on_all_threads(a.reshape(-1, a.shape[-1]), b, addend, alpha)  # one large product, not many
        return None if made is None else made.reshape(*a.shape[:-1], n)
    size = m * n * a.shape[-1]
    name = "products"
    if size < CROSSOVERS[name] and (a.ndim > 2 or b.ndim > 2):
        name, size = "products.batch", max(a.size * n, b.size * m)
    fast = compiled(name, size, a, b)
    if fast is None or not a.size or not b.size or a.shape[-1] != b.shape[-2]:
        return None
    return fast.product(a, b, addend, alpha)


def _of_vectors(a, b, addend, alpha) -> np.ndarray | None:
    """A vector as a matrix of one row, or one column; two vectors are left to NumPy."""
    if addend is not None or (a.ndim < 2 and b.ndim < 2) or not a.ndim or not b.ndim:
        return None
    made = _on_all_threads(a if a.ndim > 1 else a[None], b if b.ndim > 1 else b[:, None], None, alpha)
    return None if made is None else made[..., 0, :] if a.ndim == 1 else made[..., 0]
