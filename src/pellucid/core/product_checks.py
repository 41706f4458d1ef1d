"""Checks of the operands of products of matrices and vectors: ranks, sizes that fit, one dtype."""

from __future__ import annotations

import numpy as np

from pellucid.core.checks import c_name, check_integral_scale, check_rank, same_dtype, scalar_name, times

__all__ = ["check_addbmm", "check_added", "check_addmm", "check_addmv", "check_addr", "check_batches", "check_dot",
           "check_linear", "check_matmul", "check_mm", "check_mv", "inner_sizes", "no_bools",
           "product_dtypes"]  # fmt: skip


def product_dtypes(a, b) -> None:
    """Refuse factors of two dtypes, and bools."""
    if a.dtype != b.dtype:
        raise RuntimeError(f"expected m1 and m2 to have the same dtype, but got: {c_name(a)} != {c_name(b)}. Convert one of them "
                           "with .to(dtype).")
    no_bools(a)


def no_bools(array, name: str = "addmm_impl_cpu_") -> None:
    """NotImplementedError for bools, of which there is no product."""
    if array.dtype.char == "?":
        raise NotImplementedError(f"\"{name}\" not implemented for 'Bool': convert to an integer or float dtype")


def inner_sizes(a, b) -> None:
    """Check that two matrices can be multiplied; leading dimensions of `a` are rows."""
    if a.shape[-1] != b.shape[0]:
        rows = a.size // a.shape[-1] if a.shape[-1] else int(np.prod(a.shape[:-1]))
        raise RuntimeError(f"mat1 and mat2 shapes cannot be multiplied ({rows}x{a.shape[-1]} and {times(b.shape)}): the columns of "
                           f"the first ({a.shape[-1]}) must be as many as the rows of the second ({b.shape[0]}); operands are "
                           f"{list(a.shape)} and {list(b.shape)}")


def check_batches(a, b) -> None:
    """Check two batches of matrices that are to be multiplied: [b, m, k] and [b, k, n]."""
    check_rank(a, 3, "batch1 must be a 3D tensor")
    check_rank(b, 3, "batch2 must be a 3D tensor")
    if a.shape[0] != b.shape[0] or a.shape[2] != b.shape[1]:
        raise RuntimeError(f"Expected size for first two dimensions of batch2 tensor to be: [{a.shape[0]}, {a.shape[2]}] but got: "
                           f"[{b.shape[0]}, {b.shape[1]}].")
    same_dtype(a, b, "expected scalar type {a} but found {b}")
    no_bools(a, "bmm")


def check_mv(mat, vec) -> None:
    """Check a matrix and a vector that are to be multiplied."""
    if mat.ndim != 2 or vec.ndim != 1:
        raise RuntimeError(f"vector + matrix @ vector expected, got 1, {mat.ndim}, {vec.ndim}: input has shape {list(mat.shape)}, "
                           f"vec {list(vec.shape)}")
    if mat.shape[1] != vec.shape[0]:
        raise RuntimeError(f"size mismatch, got input ({mat.shape[0]}), mat ({times(mat.shape)}), vec ({vec.shape[0]}): the matrix "
                           f"has {mat.shape[1]} columns, the vector {vec.shape[0]} elements")
    no_bools(mat, "addmv_impl_cpu")


def check_matmul(a, b) -> None:
    """Check two operands of `matmul`: matrices, vectors, or batches of them that broadcast."""
    if a.ndim == b.ndim == 2 and a.shape[1] == b.shape[0] and a.dtype is b.dtype and a.dtype.kind == "f":
        return  # nearly always; what follows says what is wrong
    if not a.ndim or not b.ndim:
        raise RuntimeError(f"both arguments to matmul need to be at least 1D, but they are {a.ndim}D and {b.ndim}D")
    if b.ndim == 1 and a.shape[-1] != b.shape[0]:
        rows = int(np.prod(a.shape[:-1]))
        raise RuntimeError(f"size mismatch, got input ({rows}), mat ({rows}x{a.shape[-1]}), vec ({b.shape[0]}): operands of "
                           f"matmul are {list(a.shape)} and {list(b.shape)}")  # fmt: skip
    if b.ndim == 2:
        inner_sizes(a, b)
    elif b.ndim > 2:
        _check_batched(a, b)
    if a.ndim > 2 and b.ndim > 2:
        same_dtype(a, b, "expected scalar type {a} but found {b}")
    product_dtypes(a, b)


def _check_batched(a, b) -> None:
    """Batches that broadcast, and matrices that fit."""
    lead_a, lead_b = a.shape[:-2], b.shape[:-2]
    for back in range(1, min(len(lead_a), len(lead_b)) + 1):
        x, y = lead_a[-back], lead_b[-back]
        if x != y and 1 not in (x, y):
            raise RuntimeError(f"The size of tensor a ({x}) must match the size of tensor b ({y}) at non-singleton dimension "
                               f"{max(len(lead_a), len(lead_b)) - back}: operands of matmul are {list(a.shape)} and {list(b.shape)}")
    if a.shape[-1] != b.shape[-2]:
        batch = int(np.prod(np.broadcast_shapes(lead_a, lead_b)))
        raise RuntimeError(f"Expected size for first two dimensions of batch2 tensor to be: [{batch}, {a.shape[-1]}] but got: "
                           f"[{batch}, {b.shape[-2]}]. Operands of matmul are {list(a.shape)} and {list(b.shape)}")


def check_linear(input, weight, bias) -> None:
    """Check the operands of `linear`."""
    if weight.ndim not in (1, 2):
        raise RuntimeError(f"linear(): weight must be a matrix [out, in], got shape {list(weight.shape)}")
    if not input.ndim:
        raise RuntimeError("both arguments to linear need to be at least 1D, but they are 0D and " + f"{weight.ndim}D")
    if input.shape[-1] != weight.shape[-1]:
        rows, columns = int(np.prod(input.shape[:-1])), times(weight.shape[::-1])
        raise RuntimeError(f"mat1 and mat2 shapes cannot be multiplied ({rows}x{input.shape[-1]} and {columns}): linear() got "
                           f"input {list(input.shape)} and weight {list(weight.shape)}; the last dimension of the input must be "
                           f"{weight.shape[-1]}")
    if bias is not None:
        if bias.dtype != input.dtype or weight.dtype != input.dtype:
            other = weight if weight.dtype != input.dtype else input
            first = bias if other is input else input
            raise RuntimeError(f"self and mat2 must have the same dtype, but got {scalar_name(first)} and {scalar_name(other)}: "
                               f"linear() got input {scalar_name(input)}, weight {scalar_name(weight)}, bias {scalar_name(bias)}")
        if bias.ndim and bias.shape != (weight.shape[0],) and bias.shape != (1,):
            raise RuntimeError(f"The expanded size of the tensor ({weight.shape[0]}) must match the existing size "
                               f"({bias.shape[-1]}) at non-singleton dimension 1: linear() got weight {list(weight.shape)} and "
                               f"bias {list(bias.shape)}")
    product_dtypes(input, weight)


def check_added(input, shape: tuple, product_dtype, names: str) -> None:
    """Check what a product of a shape is to be added to; `names` is how the error calls it and the factor `product_dtype`."""
    if input.dtype != product_dtype.dtype:
        raise RuntimeError(f"{names} must have the same dtype, but got {scalar_name(input)} and {scalar_name(product_dtype)}")
    if input.ndim > len(shape):
        raise RuntimeError(f"expand: the number of sizes provided ({len(shape)}) must be greater or equal to the number of "
                           f"dimensions in the tensor ({input.ndim}): input has shape {list(input.shape)}, the product "
                           f"{list(shape)}")
    for back in range(1, input.ndim + 1):
        if input.shape[-back] not in (1, shape[-back]):
            raise RuntimeError(f"The expanded size of the tensor ({shape[-back]}) must match the existing size "
                               f"({input.shape[-back]}) at non-singleton dimension {len(shape) - back}.  Target sizes: "
                               f"{list(shape)}.  Tensor sizes: {list(input.shape)}")


def check_mm(input, mat2) -> None:
    """Check two matrices that are to be multiplied."""
    if input.ndim != 2:
        raise RuntimeError(f"self must be a matrix: input has shape {list(input.shape)}, expected [m, k]")
    if mat2.ndim != 2:
        raise RuntimeError(f"mat2 must be a matrix: mat2 has shape {list(mat2.shape)}, expected [k, n]")
    if input.shape[1] != mat2.shape[0]:
        inner_sizes(input, mat2)
    product_dtypes(input, mat2)


def check_dot(input, tensor) -> None:
    """Check two vectors that are to be multiplied."""
    if input.ndim != 1 or tensor.ndim != 1:
        raise RuntimeError(f"1D tensors expected, but got {input.ndim}D and {tensor.ndim}D tensors")
    same_dtype(input, tensor, "dot : expected both vectors to have same dtype, but found {a} and {b}")
    no_bools(input, "dot")
    if input.size != tensor.size:
        raise RuntimeError(f"inconsistent tensor size, expected tensor [{input.size}] and src [{tensor.size}] to have the same "
                           f"number of elements, but got {input.size} and {tensor.size} elements respectively")


# --- products added to a tensor --------------------------------------------------------------------------------------


def check_addmm(input, mat1, mat2) -> None:
    """Check the operands of `addmm`."""
    check_rank(mat1, 2, "mat1 must be a matrix")
    check_rank(mat2, 2, "mat2 must be a matrix")
    inner_sizes(mat1, mat2)
    same_dtype(mat1, mat2, "mat1 and mat2 must have the same dtype, but got {a} and {b}")
    check_added(input, (mat1.shape[0], mat2.shape[1]), mat2, "self and mat2")
    no_bools(mat1)


def check_addmv(input, mat, vec) -> None:
    """Check the operands of `addmv`."""
    check_mv(mat, vec)
    if input.shape not in ((), (1,), (mat.shape[0],)):
        raise RuntimeError(f"size mismatch, got input ({times(input.shape)}), mat ({times(mat.shape)}), vec ({vec.shape[0]})")
    same_dtype(mat, vec, "addmv input tensors must have the same dtype, but got {a} and {b}")
    same_dtype(input, vec, "addmv input tensors must have the same dtype, but got {a} and {b}")


def check_addr(input, vec1, vec2, beta, alpha) -> None:
    """Check the operands and factors of `addr`."""
    for name, vector in (("vec1", vec1), ("vec2", vec2)):
        if vector.ndim != 1:
            raise RuntimeError(f"addr: Expected 1-D argument {name}, but got {vector.ndim}-D")
    check_integral_scale(input, beta=beta, alpha=alpha)
    check_added(input, (vec1.size, vec2.size), vec1, "self and vec1")


def check_addbmm(input, batch1, batch2) -> None:
    """Check the operands of `addbmm`."""
    check_rank(batch1, 3, "batch1 must be a 3D tensor")
    check_rank(batch2, 3, "batch2 must be a 3D tensor")
    if batch1.shape[0] != batch2.shape[0]:
        raise RuntimeError(f"batch1 and batch2 must have same number of batches, got {batch1.shape[0]} and {batch2.shape[0]}")
    if batch1.shape[2] != batch2.shape[1]:
        raise RuntimeError(f"Incompatible matrix sizes for bmm ({times(batch1.shape[1:])} and {times(batch2.shape[1:])})")
    check_added(input, (batch1.shape[1], batch2.shape[2]), batch2, "self and batch2")
