"""Errors of views, indexing, joining, scattering, conversions and factories: PyTorch's type and key phrase."""

from __future__ import annotations

import re

import numpy as np
import pytest

import pellucid as t


def x():
    return t.arange(12.0).reshape(3, 4)


def z():
    return t.tensor(1.0)


def i(*values):
    return t.tensor(values or (0,))


VIEWS = [
    (lambda: x().view(5, -1), RuntimeError, "shape '[5, -1]' is invalid for input of size 12"),
    (lambda: x().view(-1, -1), RuntimeError, "only one dimension can be inferred"),
    (lambda: x().view(-2, 6), RuntimeError, "invalid shape dimension -2"),
    (lambda: t.zeros(0).view(-1, 0), RuntimeError, "cannot reshape tensor of"),
    (lambda: x().reshape(5), RuntimeError, "shape '[5]' is invalid for input of size 12"),
    (lambda: x().t().view(12), RuntimeError, "view size is not compatible with input tensor's size and stride"),
    (lambda: t.zeros(2, 3).view(t.float64), RuntimeError, "self.size(-1) must be divisible by 2"),
    (lambda: t.zeros(4, 3).t().view(t.float64), RuntimeError, "self.stride(-1) must be 1"),
    (lambda: x().flatten(1, 0), RuntimeError, "flatten() has invalid args: start_dim cannot come after end_dim"),
    (lambda: x().unflatten(0, (2, 2)), RuntimeError, "don't multiply up to the size of dim 0 (3)"),
    (lambda: x().unflatten(0, ()), RuntimeError, "unflatten: sizes must be non-empty"),
    (lambda: x().squeeze(4), IndexError, "Dimension out of range (expected to be in range of [-2, 1], but got 4)"),
    (lambda: x()[:1, :1].squeeze((0, 0)), RuntimeError, "dim 0 appears multiple times in the list of dims"),
    (lambda: x().unsqueeze(4), IndexError, "Dimension out of range (expected to be in range of [-3, 2], but got 4)"),
    (lambda: x().transpose(0, 2), IndexError, "Dimension out of range"),
    (lambda: z().transpose(0, 1), IndexError, "Dimension out of range (expected to be in range of [-1, 0], but got 1)"),
    (lambda: t.zeros(1, 1, 1).t(), RuntimeError, "t() expects a tensor with <= 2 dimensions, but self is 3D"),
    (lambda: x().permute(0), RuntimeError, "number of dimensions in the tensor input does not match the length"),
    (lambda: x().permute(0, 0), RuntimeError, "permute(): duplicate dims are not allowed."),
    (lambda: x().permute(0, 2), IndexError, "Dimension out of range"),
    (lambda: x().movedim((0, 1), (0,)), RuntimeError, "movedim: Invalid source or destination dims"),
    (lambda: x().movedim((0, 0), (0, 1)), RuntimeError, "movedim: repeated dim in `source`"),
    (
        lambda: t.zeros(2).mT,
        RuntimeError,
        "tensor.mT is only supported on matrices or batches of matrices. Got 1-D tensor",
    ),
    (lambda: t.zeros(2).H, RuntimeError, "tensor.H is only supported on matrices (2-D tensors). Got 1-D tensor"),
    (
        lambda: t.zeros(2).adjoint(),
        RuntimeError,
        "tensor.adjoint() is only supported on matrices or batches of matrices",
    ),
    (lambda: x().expand(2), RuntimeError, "the number of sizes provided (1) must be greater or equal to the number of"),
    (lambda: x().expand(2, 4), RuntimeError, "The expanded size of the tensor (2) must match the existing size (3)"),
    (lambda: x().expand(-1, 3, 4), RuntimeError, "isn't allowed in a leading, non-existing dimension 0"),
    (lambda: x().sum_to_size(5), RuntimeError, "is not expandable to size"),
    (lambda: t.broadcast_shapes((2, 3), (4,)), RuntimeError, "Attempting to broadcast a dimension of length 4 at -1!"),
    (lambda: +t.tensor(True), RuntimeError, "on a bool tensor is not supported"),
    (lambda: t.view_as_real(x()), RuntimeError, "view_as_real is only supported for complex tensors"),
    (lambda: t.view_as_complex(x()), RuntimeError, "Tensor must have a last dimension of size 2"),
    (lambda: t.view_as_complex(t.arange(4)), RuntimeError, "view_as_complex is only supported for"),
    (lambda: t.view_as_complex(t.zeros(2, 3).t()), RuntimeError, "Tensor must have a last dimension with stride 1"),
    (lambda: t.view_as_complex(t.zeros(3, 3)[:, :2]), RuntimeError, "Tensor must have a stride divisible by 2"),
    (lambda: z().select(0, 0), IndexError, "select() cannot be applied to a 0-dim tensor."),
    (lambda: x().select(0, 4), IndexError, "select(): index 4 out of range for tensor of size [3, 4] at dimension 0"),
    (lambda: z().narrow(0, 0, 0), RuntimeError, "narrow() cannot be applied to a 0-dim tensor."),
    (lambda: x().narrow(0, 2, 2), RuntimeError, "start (2) + length (2) exceeds dimension size (3)."),
    (lambda: x().narrow(0, 9, 0), IndexError, "start out of range (expected to be in range of [-3, 3], but got 9)"),
    (lambda: x().narrow(0, 0, -1), RuntimeError, "narrow(): length must be non-negative"),
    (lambda: x().narrow(0, z(), 1), RuntimeError, "start must be an 0-dim integral Tensor"),
    (lambda: x().diagonal(0, 0, 0), RuntimeError, "diagonal dimensions cannot be identical 0, 0"),
    (lambda: x().unfold(0, 9, 1), RuntimeError, "maximum size for tensor at dimension 0 is 3 but size is 9"),
    (lambda: x().unfold(0, 1, 0), RuntimeError, "step is 0 but must be > 0"),
    (lambda: x().unfold(0, -1, 1), RuntimeError, "size is -1 but must be >= 0"),
    (lambda: x().as_strided((2,), (1, 1)), RuntimeError, "mismatch in length of strides and shape"),
    (lambda: x().as_strided((2,), (-1,)), RuntimeError, "Negative strides are not supported at the moment"),
    (lambda: x().as_strided((20,), (1,)), RuntimeError, "are out of bounds for storage of size 48"),
    (lambda: x().select_scatter(z(), 0, 0), RuntimeError, "expected src to have a size equal to the slice of self"),
]

PIECES = [
    (lambda: x().split(0), RuntimeError, "split_size can only be 0 if dimension size is 0"),
    (lambda: x().split(-1), RuntimeError, "split expects split_size be non-negative, but got split_size=-1"),
    (lambda: x().split([1, 1]), RuntimeError, "split_with_sizes expects split_sizes to sum exactly to 3"),
    (lambda: x().split([4, -1]), RuntimeError, "split_with_sizes expects split_sizes have only non-negative entries"),
    (lambda: z().split(1), RuntimeError, "split expects at least a 1-dimensional tensor"),
    (lambda: x().chunk(0), RuntimeError, "chunk expects `chunks` to be greater than 0, got: 0"),
    (lambda: x().unbind(3), IndexError, "Dimension out of range"),
    (lambda: z().unbind(), IndexError, "Dimension specified as 0 but tensor has no dimensions"),
    (lambda: x().tensor_split(0), RuntimeError, "number of sections must be larger than 0, got 0"),
    (lambda: x().tensor_split(t.tensor([1.0])), RuntimeError, "tensor_indices_or_sections to have dtype of long"),
    (
        lambda: z().hsplit(1),
        RuntimeError,
        "torch.hsplit requires a tensor with at least 1 dimension, but got a tensor with 0",
    ),
    (lambda: x().vsplit(2), RuntimeError, "torch.vsplit attempted to split along dimension 0"),
    (lambda: x().dsplit(2), RuntimeError, "torch.dsplit requires a tensor with at least 3 dimension"),
    (lambda: t.cat([]), ValueError, "expected a non-empty list of Tensors"),
    (lambda: t.cat([x(), z()]), RuntimeError, "zero-dimensional tensor (at position 1) cannot be concatenated"),
    (lambda: t.cat([x(), t.zeros(3)]), RuntimeError, "Tensors must have same number of dimensions: got 2 and 1"),
    (lambda: t.cat([x(), x()[:, :2]]), RuntimeError, "Expected size 4 but got size 2 for tensor number 1 in the list."),
    (lambda: t.cat(x()), TypeError, "must be tuple of Tensors, not Tensor"),
    (lambda: t.cat([x(), 1]), TypeError, "expected Tensor as element 1 in argument 0, but got int"),
    (lambda: t.stack([]), RuntimeError, "stack expects a non-empty TensorList"),
    (
        lambda: t.stack([x(), z()]),
        RuntimeError,
        "stack expects each tensor to be equal size, but got [3, 4] at entry 0",
    ),
    (lambda: t.hstack([]), RuntimeError, "expects a non-empty TensorList"),
    (lambda: t.block_diag(t.zeros(1, 1, 1)), RuntimeError, "Input tensors must have 2 or fewer dimensions"),
    (lambda: t.meshgrid(x(), indexing="ij"), RuntimeError, "Expected 0D or 1D tensor in the tensor list"),
    (lambda: t.meshgrid(i(), indexing="no"), RuntimeError, 'indexing must be one of "xy" or "ij"'),
    (lambda: t.meshgrid(i(), t.zeros(1), indexing="ij"), RuntimeError, "expects all tensors to have the same dtype"),
    (lambda: t.cartesian_prod(x()), RuntimeError, "Expect a 1D vector"),
    (lambda: t.combinations(x()), RuntimeError, "Expect a 1D vector"),
    (lambda: t.combinations(i(), -1), RuntimeError, "Expect a non-negative number, but got -1"),
    (lambda: t.vander(x()), RuntimeError, "x must be a one-dimensional tensor"),
    (lambda: t.vander(i(), -1), RuntimeError, "N must be non-negative"),
]

INDEXING = [
    (lambda: x()[5], IndexError, "index 5 is out of bounds for dimension 0 with size 3"),
    (lambda: x()[0, -9], IndexError, "index -9 is out of bounds for dimension "),
    (lambda: x()[0, 0, 0], IndexError, "too many indices for tensor of dimension 2"),
    (lambda: x()[::-1], ValueError, "step must be greater than zero"),
    (lambda: x()[::0], ValueError, "step cannot be zero"),
    (lambda: x()[1.5:], TypeError, "slice indices must be integers or None or have an __index__ method"),
    (lambda: z()[0], IndexError, "invalid index of a 0-dim tensor. Use `tensor.item()`"),
    (lambda: z()[:], IndexError, "slice() cannot be applied to a 0-dim tensor."),
    (lambda: x()[t.tensor([True, False])], IndexError, "The shape of the mask [2] at index 0 does not match"),
    (lambda: x()[t.ones(3, 5).bool()], IndexError, "The shape of the mask [3, 5] at index 1 does not match"),
    (lambda: x()[t.tensor([1.0])], IndexError, "tensors used as indices must be long, int, byte or bool tensors"),
    (lambda: x()[i(5)], IndexError, "index 5 is out of bounds for dimension 0 with size 3"),
    (lambda: x()[:, i(-5)], IndexError, "index -5 is out of bounds for dimension "),
    (
        lambda: x()[i(0, 1), i(0, 1, 2)],
        IndexError,
        "indexing tensors could not be broadcast together with shapes [2], [3]",
    ),
    (lambda: x()["a"], TypeError, "invalid data type 'str'"),
    (
        lambda: x()[1.0],
        IndexError,
        "only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are",
    ),
    (lambda: x().__setitem__(0, "a"), TypeError, "can't assign a str to a torch.FloatTensor"),
    (lambda: x().__setitem__(0, t.zeros(3)), RuntimeError, "The expanded size of the tensor (4) must match"),
    (
        lambda: x().__setitem__(i(0), t.zeros(3)),
        RuntimeError,
        "shape mismatch: value tensor of shape [3] cannot be broadcast",
    ),
    (lambda: x().index_put((i(0),), i(0)), RuntimeError, "Index put requires the source and destination dtypes match"),
    (lambda: x().index_add(0, i(0), x()), RuntimeError, "should be equal to source.size(dim): (3), for dim: 0"),
    (
        lambda: x().index_add(0, i(0), x()[:1].double()),
        RuntimeError,
        "self (Float) and source (Double) must have the same",
    ),
    (lambda: x().index_copy(0, i(0), x()), IndexError, "Number of indices (1) should be equal to source.size(dim) (3)"),
    (
        lambda: x().index_copy(0, i(0), x()[:1].double()),
        RuntimeError,
        "self and source expected to have the same dtype",
    ),
    (lambda: x().index_put(i(0), z()), TypeError, "argument 'indices' (position 1) must be tuple of Tensors"),
    (lambda: x().index_put((i(0),) * 3, z()), IndexError, "too many indices for tensor of dimension 2"),
    (lambda: list(z()), TypeError, "iteration over a 0-d tensor"),
    (
        lambda: "a" in x(),
        RuntimeError,
        "Tensor.__contains__ only supports Tensor or scalar, but you passed in a <class 'str'>",
    ),
    (lambda: x().masked_fill(x(), 1), RuntimeError, "only supports boolean masks"),
    (lambda: x().masked_fill(x() > 0, t.ones(2)), RuntimeError, "only supports a 0-dimensional value tensor"),
    (lambda: x().masked_fill(x() > 0, 1j), RuntimeError, "without overflow"),
    (lambda: x().masked_select(x()), RuntimeError, "masked_select: expected BoolTensor for mask"),
    (lambda: x().masked_scatter(x() > 0, i(0)), RuntimeError, "expected self and source to have same dtypes"),
    (
        lambda: x().masked_scatter(x() > 0, t.zeros(1)),
        RuntimeError,
        "Number of elements of source < number of ones in mask",
    ),
    (lambda: x().gather(0, t.tensor([[5]])), RuntimeError, "index 5 is out of bounds for dimension 0 with size 3"),
    (lambda: x().gather(0, i(0)), RuntimeError, "Index tensor must have the same number of dimensions as input tensor"),
    (
        lambda: x().scatter_reduce(0, i(0)[None], x(), "no"),
        RuntimeError,
        "reduce argument must be either sum, prod, mean, amax or amin",
    ),
    (
        lambda: x().scatter_reduce(0, i(0)[None], x().double(), "sum"),
        RuntimeError,
        "Expected self.dtype to be equal to src.dtype",
    ),
    (
        lambda: x().index_reduce(0, i(0), x()[:1], "sum"),
        RuntimeError,
        "Expected reduce to be one of prod, mean, amax or amin",
    ),
    (
        lambda: x().index_reduce(0, i(0), x(), "prod"),
        RuntimeError,
        "Number of indices (1) should be equal to source.size(dim)",
    ),
    (lambda: x().index_reduce(0, i(0)[None], x()[:1], "prod"), IndexError, "Index is supposed to be a vector"),
    (lambda: x().index_reduce(0, i(0), x()[:1, :2], "prod"), RuntimeError, "source [1, 2] does not fit self"),
    (
        lambda: x().index_reduce(0, t.zeros(1), x()[:1], "prod"),
        RuntimeError,
        "Expected dtype int32/int64 for index but got",
    ),
    (lambda: x().index_reduce(0, i(0), x()[:1].double(), "prod"), RuntimeError, "must have the same scalar type"),
    (lambda: x().take(i(100)), IndexError, "out of range: tried to access index 100 on a tensor of 12 elements."),
    (lambda: x().take(t.zeros(1)), RuntimeError, "take(): Expected a long tensor for index"),
    (lambda: t.zeros(0).put(i(0), t.zeros(1)), IndexError, "Tried to put elements into an empty tensor"),
    (lambda: x().take_along_dim(t.zeros(1, 1), 0), RuntimeError, "dtype of indices should be Long"),
    (lambda: t.unravel_index(z(), (2, 2)), TypeError, "expected 'indices' to be integer dtype"),
    (lambda: t.unravel_index(i(0), (-1,)), ValueError, "'shape' cannot have negative values"),
    (lambda: t.nonzero_static(x(), size=-1), RuntimeError, "'size' must be an non-negative integer"),
]

MAKING = [
    (lambda: t.tensor([[1, 2], [3]]), ValueError, "expected sequence of length 2 at dim 1 (got 1)"),
    (lambda: t.tensor([[1, 2], 3]), TypeError, "not a sequence"),
    (lambda: t.tensor([1, [2]]), TypeError, "cannot be interpreted as an integer"),
    (lambda: t.tensor("a"), TypeError, "invalid data type 'str'"),
    (lambda: t.tensor(["a"]), ValueError, "too many dimensions 'str'"),
    (lambda: t.tensor(None), RuntimeError, "Could not infer dtype of NoneType"),
    (lambda: t.tensor(2**63), (ValueError, RuntimeError), "Overflow when unpacking long"),
    (lambda: t.tensor(300, dtype=t.uint8), RuntimeError, "value cannot be converted to type uint8 without overflow"),
    (lambda: t.tensor([x(), x()]), (TypeError, ValueError), "can be converted to"),
    (
        lambda: t.tensor(1, requires_grad=True),
        RuntimeError,
        "Only Tensors of floating point and complex dtype can require gradients",
    ),
    (lambda: t.zeros(-1), RuntimeError, "negative"),
    (lambda: t.zeros(2.0), TypeError, "must be tuple of ints, not float"),
    (lambda: t.zeros(2, "a"), TypeError, "failed to unpack the object at pos 2"),
    (lambda: t.zeros(2, dtype="float32"), TypeError, "argument 'dtype' must be torch.dtype, not str"),
    (lambda: t.zeros_like([1]), TypeError, "argument 'input' (position 1) must be Tensor, not list"),
    (lambda: t.full(2, 1.0), TypeError, "argument 'size' (position 1) must be tuple of ints, not int"),
    (lambda: t.arange(0, 1, 0), RuntimeError, "step must be nonzero"),
    (lambda: t.arange(1, 0, 1), RuntimeError, "upper bound and lower bound inconsistent with step sign"),
    (lambda: t.arange(0, float("inf")), RuntimeError, "unsupported range"),
    (lambda: t.linspace(0, 1, -1), RuntimeError, "number of steps must be non-negative"),
    (lambda: t.linspace(x(), 1, 3), RuntimeError, "linspace only supports 0-dimensional start and end tensors"),
    (lambda: t.eye(-1), RuntimeError, "n must be greater or equal to 0, got -1"),
    (lambda: t.tril_indices(-1, 2), RuntimeError, "row must be non-negative, got"),
    (lambda: t.empty_strided((2,), (1, 1)), RuntimeError, "must match dimensionality of strides (2)"),
    (lambda: t.empty_permuted((2, 3), (0, 0)), RuntimeError, "Duplicate dim not allowed"),
    (lambda: t.empty_permuted((2, 3), (0,)), RuntimeError, "Number of dimensions in size does not match the length"),
    (lambda: t.complex(x(), x().double()), RuntimeError, "Expected object of scalar type"),
    (lambda: t.complex(i(0), i(0)), RuntimeError, "Expected both inputs to be Half, Float or Double tensors"),
    (lambda: t.polar(i(0), i(0)), RuntimeError, "Expected both inputs to be Half, Float or Double tensors"),
    (lambda: t.from_numpy([1]), TypeError, "expected np.ndarray (got list)"),
    (lambda: t.from_numpy(np.ones(3)[::-1]), ValueError, "At least one stride in the given numpy array is negative"),
    (lambda: t.from_numpy(np.array(["a"])), TypeError, "can't convert np.ndarray of type"),
    (lambda: t.from_numpy(np.ones(3, ">f4")), ValueError, "byte order different from the native byte order"),
    (lambda: t.asarray([1.0], copy=False), ValueError, "can't alias arbitrary sequence"),
    (lambda: t.frombuffer(b"abc", dtype=t.int32), ValueError, "must be a multiple of element size (4)"),
    (
        lambda: t.frombuffer(b"abcd", dtype=t.int32, offset=9),
        ValueError,
        "must be non-negative and no greater than buffer length",
    ),
    (
        lambda: t.frombuffer(b"abcd", dtype=t.int32, count=2),
        ValueError,
        "must not be greater than actual buffer length",
    ),
    (
        lambda: t.ones(2, requires_grad=True).numpy(),
        RuntimeError,
        "Can't call numpy() on Tensor that requires grad. Use",
    ),
    (
        lambda: np.asarray(t.ones(2, requires_grad=True)),
        RuntimeError,
        "Can't call numpy() on Tensor that requires grad.",
    ),
    (lambda: t.ones(2, dtype=t.bfloat16).numpy(), TypeError, "Got unsupported ScalarType BFloat16"),
    (lambda: t.ones(2, requires_grad=True).__dlpack__(), BufferError, "Can't export tensors that require gradient"),
    (lambda: t.randint(5, 2), TypeError, "argument 'size' (position 2) must be tuple of ints, not int"),
    (lambda: t.randint(3, 3, (2,)), RuntimeError, "random_ expects 'from' to be less than 'to'"),
    (lambda: t.normal(0.0, 1.0), TypeError, "invalid combination of arguments"),
    (lambda: t.normal(x(), 1.0, (2,)), TypeError, "invalid combination of arguments"),
    (lambda: i(0).exponential_(), RuntimeError, "Exponential distribution is a continuous probability distribution"),
    (lambda: i(0).cauchy_(), RuntimeError, "Cauchy distribution is a continuous probability distribution"),
    (
        lambda: t.ones(2, requires_grad=True).uniform_(),
        RuntimeError,
        "a leaf Variable that requires grad is being used",
    ),
]

CONVERTING = [
    (lambda: x().to(3), RuntimeError, "Cannot access accelerator device when none is available"),
    (lambda: x().to("no"), RuntimeError, "device type at start of device string: no"),
    (lambda: x().to([1]), TypeError, "to() received an invalid combination of arguments"),
    (lambda: x().copy_("a"), TypeError, "argument 'other' (position 1) must be Tensor, not str"),
    (lambda: x().copy_(t.zeros(3)), RuntimeError, "must match the size of tensor b (3) at non-singleton dimension 1"),
    (lambda: x().copy_(t.zeros(1, 3, 4).expand(2, 3, 4)), RuntimeError, "doesn't match the broadcast shape"),
    (
        lambda: x().fill_(x()),
        RuntimeError,
        "fill_ only supports 0-dimension value tensor but got tensor with 2 dimensions.",
    ),
    (
        lambda: x().clone(memory_format=t.channels_last),
        RuntimeError,
        "required rank 4 tensor to use channels_last format",
    ),
]


def _named(rows):
    return [pytest.param(*row, id=str(number)) for number, row in enumerate(rows)]


@pytest.mark.parametrize(("call", "kind", "phrase"), _named(VIEWS + PIECES + INDEXING + MAKING + CONVERTING))
def test_error(call, kind, phrase):
    with pytest.raises(kind, match=re.escape(phrase)):
        call()
