"""Errors and values of products, einsum, convolutions, pooling, losses over classes and linear algebra.

Each error has PyTorch's type and key phrase; the literals were taken from PyTorch's answers.
"""

from __future__ import annotations

import re

import pytest

import pellucid as t
from pellucid.nn import functional as f

la = t.linalg


def x(*shape):
    return t.arange(1.0, 1.0 + t.Size(shape).numel()).reshape(shape) if shape else t.tensor(1.0)


def i(*values):
    return t.tensor(list(values))


SQUARE = "must be batches of square matrices"
ERRORS = [
    (lambda: t.mm(x(2, 3), x(4, 5)), RuntimeError, "mat1 and mat2 shapes cannot be multiplied (2x3 and 4x5)"),
    (lambda: t.mm(x(2), x(4, 5)), RuntimeError, "self must be a matrix"),
    (lambda: t.mm(x(2, 3), x(3)), RuntimeError, "mat2 must be a matrix"),
    (lambda: t.mm(x(2, 3), x(3, 5).double()), RuntimeError, "expected m1 and m2 to have the same dtype, but got: float != double"),
    (lambda: t.mm(x(2, 2).bool(), x(2, 2).bool()), NotImplementedError, "not implemented for 'Bool'"),
    (lambda: t.bmm(x(2, 3, 4), x(2, 5, 6)), RuntimeError, "Expected size for first two dimensions of batch2 tensor to be: [2, 4]"),
    (lambda: t.bmm(x(3, 4), x(3, 4, 6)), RuntimeError, "batch1 must be a 3D tensor"),
    (lambda: t.bmm(x(3, 4, 5), x(3, 4)), RuntimeError, "batch2 must be a 3D tensor"),
    (lambda: t.bmm(x(2, 3, 4), x(2, 4, 6).double()), RuntimeError, "expected scalar type Float but found Double"),
    (lambda: t.mv(x(2, 3), x(4)), RuntimeError, "size mismatch, got input (2), mat (2x3), vec (4)"),
    (lambda: t.mv(x(3), x(3)), RuntimeError, "vector + matrix @ vector expected"),
    (lambda: t.dot(x(2), x(3)), RuntimeError, "inconsistent tensor size, expected tensor [2] and src [3]"),
    (lambda: t.dot(x(2, 3), x(3)), RuntimeError, "1D tensors expected, but got 2D and 1D tensors"),
    (lambda: t.dot(x(2), x(2).double()), RuntimeError, "dot : expected both vectors to have same dtype"),
    (lambda: t.dot(x(2).bool(), x(2).bool()), NotImplementedError, "\"dot\" not implemented for 'Bool'"),
    (lambda: x() @ x(3), RuntimeError, "both arguments to matmul need to be at least 1D, but they are 0D and 1D"),
    (lambda: x(2, 3) @ x(4), RuntimeError, "size mismatch, got input (2), mat (2x3), vec (4)"),
    (lambda: x(2, 3, 4) @ x(3, 4, 5), RuntimeError, "The size of tensor a (2) must match the size of tensor b (3) at non-singleton dimension 0"),
    (lambda: x(2, 3, 4) @ x(2, 5, 5), RuntimeError, "Expected size for first two dimensions of batch2 tensor"),
    (lambda: x(2, 3) @ 3, TypeError, "unsupported operand"),
    (lambda: t.matmul(x(2, 3), 3), TypeError, "argument 'other' (position 2) must be Tensor, not int"),
    (lambda: f.linear(x(2, 3), x(4, 5)), RuntimeError, "mat1 and mat2 shapes cannot be multiplied (2x3 and 5x4)"),
    (lambda: f.linear(x(2, 3), x(4, 3), x(5)), RuntimeError, "The expanded size of the tensor (4) must match the existing size (5)"),
    (lambda: f.linear(x(2, 3), x(4, 3).double()), RuntimeError, "same dtype"),
    (lambda: f.linear(x(2, 3), x(4, 3), x(4).double()), RuntimeError, "self and mat2 must have the same dtype"),
    (lambda: f.linear(x(), x(4, 3)), RuntimeError, "need to be at least 1D"),
    (lambda: f.linear(x(2, 3), x(4, 3, 1)), RuntimeError, "weight must be a matrix"),
    (lambda: t.addmm(x(3, 5), x(2, 3), x(3, 5)), RuntimeError, "The expanded size of the tensor (2) must match the existing size (3)"),
    (lambda: t.addmm(x(1, 2, 5), x(2, 3), x(3, 5)), RuntimeError, "must be greater or equal to the number of dimensions"),
    (lambda: t.addmm(x(2, 5).double(), x(2, 3), x(3, 5)), RuntimeError, "self and mat2 must have the same dtype, but got Double and Float"),
    (lambda: t.addr(i(1), i(1), i(1), beta=0.5), RuntimeError, "argument beta must not be a floating point"),
    (lambda: t.addmv(x(5), x(2, 3), x(3)), RuntimeError, "size mismatch, got input (5), mat (2x3), vec (3)"),
    (lambda: t.addr(x(2, 5), x(2, 2), x(3)), RuntimeError, "addr: Expected 1-D argument vec1, but got 2-D"),
    (lambda: t.addbmm(x(2, 5), x(2, 2, 3), x(2, 4, 5)), RuntimeError, "Incompatible matrix sizes for bmm (2x3 and 4x5)"),
    (lambda: t.addbmm(x(2, 5), x(2, 2, 3), x(3, 3, 5)), RuntimeError, "batch1 and batch2 must have same number of batches, got 2 and 3"),
    (lambda: t.outer(x(2, 3), x(3)), RuntimeError, "outer: Expected 1-D argument self, but got 2-D"),
    (lambda: t.inner(x(2, 3), x(4)), RuntimeError, "the last dimension must match on both input tensors but got shapes [2, 3] and [4]"),
    (lambda: t.kron(x(2), 3), TypeError, "argument 'other' (position 2) must be Tensor, not int"),
    (lambda: t.tensordot(x(2, 3), x(4, 5), dims=1), RuntimeError, "contracted dimensions need to match, but first has size 3 in dim"),
    (lambda: t.tensordot(x(2, 3), x(3, 5), dims=([0, 1], [0])), RuntimeError, "both dimension lists should have same length"),
    (lambda: t.tensordot(x(2, 3), x(3, 5), dims=3), RuntimeError, "tensordot expects dims < ndim_a or ndim_b, but got dims=3"),
    (lambda: t.tensordot(x(2, 3), x(3, 5), dims=-1), RuntimeError, "tensordot expects dims >= 0"),
    (lambda: t.tensordot(x(2), x(2), dims=([1], [0])), IndexError, "Dimension out of range"),
    (lambda: la.multi_dot([x(2)]), RuntimeError, "expected at least 2 tensors but got 1"),
    (lambda: la.multi_dot([x(2, 3), x(2), x(3, 2)]), RuntimeError, "tensor 1 must be 2D but got 1D"),
    (lambda: la.multi_dot([x(2, 3), x(2, 3)]), RuntimeError, "cannot be multiplied"),
    (lambda: la.vecdot(i(1), i(1)), RuntimeError, "Expected a floating point or complex tensor"),
    (lambda: t.chain_matmul(x(2)), RuntimeError, "Tensor dimension is 1, expected 2 instead."),
    (lambda: t.einsum("ij,jk->ik", x(2, 3), x(4, 5)), RuntimeError, "subscript j has size 4 for operand 1 which does not broadcast"),
    (lambda: t.einsum("ij,jk->ik", x(2, 3)), RuntimeError, "fewer operands were provided than specified in the equation"),
    (lambda: t.einsum("ij", x(2, 3), x(2, 3)), RuntimeError, "more operands were provided than specified in the equation"),
    (lambda: t.einsum("ij->ik", x(2, 3)), RuntimeError, "output subscript k does not appear in the equation for any input operand"),
    (lambda: t.einsum("ij->ii", x(2, 3)), RuntimeError, "output subscript i appears more than once in the output"),
    (lambda: t.einsum("ijk", x(2, 3)), RuntimeError, "does not match the number of dimensions (2) for operand 0"),
    (lambda: t.einsum("...ijk", x(2, 3)), RuntimeError, "is more than the number of dimensions (2) for operand 0"),
    (lambda: t.einsum("i1", x(2, 3)), RuntimeError, "subscripts must be in [a-zA-Z]"),
    (lambda: t.einsum("i.j", x(2, 3)), RuntimeError, "is not part of any ellipsis"),
    (lambda: t.einsum("i......", x(2, 3)), RuntimeError, "for which an ellipsis was already found"),
    (lambda: t.einsum("ii", x(1, 3)), RuntimeError, "subscript i is repeated for operand 0 but the sizes don't match"),
    (lambda: t.einsum(x(2), [60]), ValueError, "within the valid range [0, 52)"),
    (lambda: t.einsum("ij"), ValueError, "at least one operand"),
    (lambda: f.conv2d(x(2, 3), x(1, 1, 2, 2)), RuntimeError, "Expected 3D (unbatched) or 4D (batched) input to conv2d"),
    (lambda: f.conv2d(x(1, 1, 3, 3), x(1, 1, 2)), RuntimeError, "expected 4-dimensional weight for conv2d"),
    (lambda: f.conv2d(x(1, 2, 3, 3), x(1, 1, 2, 2)), RuntimeError, "to have 1 channels, but got 2 channels instead"),
    (lambda: f.conv2d(x(1, 1, 3, 3), x(1, 1, 2, 2).double()), RuntimeError, "expected scalar type Float but found Double"),
    (lambda: f.conv2d(x(1, 1, 3, 3), x(1, 1, 2, 2), x(2)), RuntimeError, "expected bias to be 1-dimensional with 1 elements"),
    (lambda: f.conv2d(x(1, 1, 3, 3), x(1, 1, 2, 2), x(1).double()), RuntimeError, "should be the same"),
    (lambda: f.conv2d(x(1, 1, 3, 3), x(1, 1, 5, 5)), RuntimeError, "Kernel size can't be greater than actual input size"),
    (lambda: f.conv2d(x(1, 1, 3, 3), x(1, 1, 2, 2), stride=0), RuntimeError, "non-positive stride is not supported"),
    (lambda: f.conv2d(x(1, 1, 3, 3), x(1, 1, 2, 2), padding=-1), RuntimeError, "negative padding is not supported"),
    (lambda: f.conv2d(x(1, 1, 3, 3), x(1, 1, 2, 2), dilation=0), RuntimeError, "dilation should be greater than zero"),
    (lambda: f.conv2d(x(1, 1, 3, 3), x(1, 1, 2, 2), groups=0), RuntimeError, "non-positive groups is not supported"),
    (lambda: f.conv2d(x(1, 3, 3, 3), x(3, 1, 2, 2), groups=2), RuntimeError, "to be divisible by 2 at dimension 0"),
    (lambda: f.conv2d(x(1, 2, 3, 3), x(1, 1, 2, 2), groups=2), RuntimeError, "expected weight to be at least 2 at dimension 0"),
    (lambda: f.conv2d(x(1, 1, 3, 3), x(1, 1, 2, 2), stride=2, padding="same"), RuntimeError, "padding='same' is not supported for strided"),
    (lambda: f.conv2d(x(1, 1, 3, 3), x(1, 1, 2, 2), padding="full"), RuntimeError, "Invalid padding string"),
    (lambda: f.conv2d(x(1, 1, 3, 3), x(1, 1, 2, 2), stride=(1, 1, 1)), RuntimeError, "stride to be a single integer value or a list of 2"),
    (lambda: f.conv2d(x(1, 1, 3, 3), x(1, 1, 2, 2), stride=1.5), TypeError, "argument 'stride' must be tuple of ints"),
    (lambda: f.conv2d(x(1, 1, 3, 3).bool(), x(1, 1, 2, 2).bool()), NotImplementedError, "not implemented for 'Bool'"),
    (lambda: f.conv_transpose2d(x(1, 1, 3, 3), x(1, 1, 2, 2), output_padding=2), RuntimeError, "output padding must be smaller than either"),
    (lambda: f.conv_transpose2d(x(1, 1, 3, 3), x(1, 1, 2, 2), output_padding=-1), RuntimeError, "negative output_padding is not supported"),
    (lambda: f.conv_transpose2d(x(1, 1, 1, 1), x(1, 1, 1, 1), padding=1), RuntimeError, "Output size is too small"),
    (lambda: f.max_pool2d(x(2, 3), 2), RuntimeError, "non-empty 3D or 4D (batch mode) tensor expected for input"),
    (lambda: f.max_pool2d(x(1, 1, 4, 4), (2, 2, 2)), RuntimeError, "kernel_size must either be a single int, or a tuple of two ints"),
    (lambda: f.max_pool1d(x(1, 1, 4), (2, 2)), RuntimeError, "tuple of ints of size 1 but got size 2"),
    (lambda: f.max_pool1d(x(1, 1, 4), 2, padding=2), RuntimeError, "padding should be at most half of kernel size"),
    (lambda: f.max_pool1d(x(4), 2), RuntimeError, "max_pool1d: Expected 2D or 3D (batch mode) tensor"),
    (lambda: f.max_pool2d(x(1, 1, 4, 4), 2, padding=2), RuntimeError, "pad should be at most half of effective kernel size"),
    (lambda: f.max_pool2d(x(1, 1, 4, 4), 2, padding=-1), RuntimeError, "pad must be non-negative"),
    (lambda: f.max_pool2d(x(1, 1, 4, 4), 2, stride=0), RuntimeError, "stride should not be zero"),
    (lambda: f.max_pool2d(x(1, 1, 4, 4), 2, dilation=0), RuntimeError, "dilation should be greater than zero"),
    (lambda: f.max_pool2d(x(1, 3, 1, 1), 3), RuntimeError, "Calculated output size: (3x0x0). Output size is too small"),
    (lambda: f.avg_pool2d(x(1, 1, 4, 4), 2, divisor_override=0), RuntimeError, "divisor must be not zero"),
    (lambda: f.adaptive_avg_pool2d(x(3), 2), RuntimeError, "Expected 3D or 4D tensor, but got [3]"),
    (lambda: f.adaptive_avg_pool2d(x(1, 1, 4, 4), (2, 2, 2)), RuntimeError, "output_size must be 2"),
    (lambda: f.adaptive_avg_pool2d(x(2, 3), (2, 2)), ValueError, "Input dimension should be at least 3"),
    (lambda: f.adaptive_avg_pool2d(x(1, 1, 4, 4), (-1, 2)), RuntimeError, "must be greater than or equal to 0"),
    (lambda: f.adaptive_avg_pool2d(t.ones(1, 1, 4, 0), 2), RuntimeError, "with dimension 3 being empty"),
    (lambda: f.fractional_max_pool2d(x(1, 1, 4, 4), 2), ValueError, "requires specifying either an output_size or an output_ratio"),
    (lambda: f.fractional_max_pool2d(x(1, 1, 4, 4), 2, output_ratio=2), ValueError, "output_ratio must be between 0 and 1"),
    (lambda: f.fractional_max_pool2d(x(1, 1, 4, 4), 2, 4), RuntimeError, "pool height 2 too large relative to input height 4"),
    (lambda: f.max_unpool2d(x(1, 1, 1, 1), i(9).reshape(1, 1, 1, 1), 2), RuntimeError, "Found an invalid max index: 9"),
    (lambda: f.max_unpool2d(x(1, 1, 1, 1), x(1, 1, 1, 1), 2), RuntimeError, "elements in indices should be type int64"),
    (lambda: f.max_unpool2d(x(1, 1, 1, 1), i(0, 1), 2), RuntimeError, "Expected shape of indices to be same as that of the input"),
    (lambda: f.max_unpool2d(x(1, 1, 1, 1), i(0).reshape(1, 1, 1, 1), 2, output_size=(9, 9)), ValueError, "invalid output_size"),
    (lambda: f.nll_loss(x(2, 3), i(0, 5)), IndexError, "Target 5 is out of bounds."),
    (lambda: f.nll_loss(x(2, 3), i(0, 1, 1)), ValueError, "Expected input batch_size (2) to match target batch_size (3)"),
    (lambda: f.nll_loss(x(2, 3), x(2)), RuntimeError, "expected target dtype to be Long or Byte, but got Float"),
    (lambda: f.nll_loss(x(2, 3), i(0, 1).reshape(2, 1)), RuntimeError, "0D or 1D target tensor expected, multi-target not supported"),
    (lambda: f.nll_loss(x(2, 3), i(0, 1), x(4)), RuntimeError, "weight tensor should be defined either for all 3 classes or no classes"),
    (lambda: f.nll_loss(x(2, 3), i(0, 1), x(3).double()), RuntimeError, "expected scalar type Float but found Double"),
    (lambda: f.nll_loss(x(), i(0)), ValueError, "Expected 1 or more dimensions (got 0)"),
    (lambda: f.nll_loss(x(2, 3).long(), i(0, 1)), NotImplementedError, "not implemented for 'Long'"),
    (lambda: f.nll_loss(x(2, 3, 4), t.zeros(2, 5).long()), RuntimeError, "Expected target size [2, 4], got [2, 5]"),
    (lambda: f.nll_loss(x(1, 3, 2, 2), t.zeros(1, 2, 3).long()), RuntimeError, "size mismatch (got input: [1, 3, 2, 2]"),
    (lambda: f.nll_loss(x(1, 3, 2, 2), t.zeros(1, 2).long()), RuntimeError, "only batches of spatial targets supported"),
    (lambda: f.nll_loss(x(2, 3), i(0, 1), reduction="x"), ValueError, "x is not a valid value for reduction"),
    (lambda: f.cross_entropy(x(2, 3), t.zeros(2, 3).long()), RuntimeError, "Expected floating point type for target with class probabilities"),
    (lambda: f.cross_entropy(x(2, 3), x(2, 3), ignore_index=1), RuntimeError, "ignore_index is not supported for floating point target"),
    (lambda: f.cross_entropy(x(2, 3), x(2, 3), x(4)), RuntimeError, "weight tensor should be defined either for all 3 classes"),
    (lambda: f.cross_entropy(x(2, 3), i(0, 1), label_smoothing=2), RuntimeError, "label_smoothing must be between 0.0 and 1.0"),
    (lambda: f.linear_cross_entropy(x(2, 3), x(4, 2), i(0, 1)), RuntimeError, "expected equal input and linear_weight last dimensions"),
    (lambda: f.linear_cross_entropy(x(1, 2, 3), x(4, 3), i(0)), RuntimeError, "expected input with dimensionality 1 or 2, got 3"),
    (lambda: f.linear_cross_entropy(x(2, 3), x(4, 3), i(0, 1), linear_bias=x(3)), RuntimeError, "expected linear_bias shape"),
    (lambda: f.linear_cross_entropy(x(3), x(4, 2, 3), i(0, 1)), RuntimeError, "requires batched input"),
    (lambda: f.linear_cross_entropy(x(2, 3), x(4, 3), x(2, 4), ignore_index=1), RuntimeError, "ignore_index cannot be specified"),
    (lambda: t.softmax(i(1, 2), 0), NotImplementedError, "not implemented for 'Long'"),
    (lambda: t.softmax(x(2, 3), 5), IndexError, "Dimension out of range (expected to be in range of [-2, 1], but got 5)"),
    (lambda: la.inv(x(2, 3)), RuntimeError, SQUARE),
    (lambda: la.inv(x(3)), RuntimeError, "The input tensor A must have at least 2 dimensions"),
    (lambda: la.inv(x(2, 2).long()), RuntimeError, "Expected a floating point or complex tensor as input. Got Long"),
    (lambda: la.inv(t.zeros(2, 2)), la.LinAlgError, "could not be completed because the input matrix is singular"),
    (lambda: la.inv(t.zeros(2, 2, 2)), la.LinAlgError, "(Batch element 0)"),
    (lambda: la.solve(t.zeros(2, 2), x(2)), la.LinAlgError, "The solver failed because the input matrix is singular"),
    (lambda: la.solve(x(3, 3), x(2, 2)), RuntimeError, "Incompatible shapes of A and B for the equation AX = B (3x3 and 2x2)"),
    (lambda: la.solve(x(3, 3), x(3).double()), RuntimeError, "Expected A and B to have the same dtype"),
    (lambda: la.solve(x(3, 3), x()), RuntimeError, "The input tensor B must have at least 2 dimensions"),
    (lambda: la.solve_triangular(x(3, 3), x(3), upper=True), RuntimeError, "The input tensor B must have at least 2 dimensions"),
    (lambda: la.det(x(2, 3)), RuntimeError, SQUARE),
    (lambda: t.logdet(x(2, 3)), RuntimeError, "logdet: A must be batches of square matrices"),
    (lambda: la.cholesky(-t.eye(2)), la.LinAlgError, "is not positive-definite"),
    (lambda: t.cholesky_solve(x(3), x(3, 3)), RuntimeError, "b should have at least 2 dimensions, but has 1 dimensions instead"),
    (lambda: la.svd(t.full((2, 2), float("nan"))), la.LinAlgError, "the input matrix contained non-finite values"),
    (lambda: la.eig(t.full((2, 2), float("nan"))), RuntimeError, "input tensor should not contain infs or NaNs"),
    (lambda: la.eigh(x(2, 2), "X"), RuntimeError, "Expected UPLO argument to be 'L' or 'U', but got X"),
    (lambda: la.qr(x(2, 2), "x"), RuntimeError, "qr received unrecognized mode 'x'"),
    (lambda: la.matrix_norm(x(3)), RuntimeError, "The input tensor A must have at least 2 dimensions"),
    (lambda: la.matrix_norm(x(3, 3), "foo"), RuntimeError, "Order foo not supported"),
    (lambda: la.matrix_norm(x(3, 3), dim=(0, 0)), RuntimeError, "dims must be different. Got (0, 0)"),
    (lambda: la.matrix_norm(t.ones(0, 0), -1), IndexError, "to have non-zero size"),
    (lambda: la.norm(x(2, 2, 2), "fro"), RuntimeError, "If dim is not specified but ord is, the input must be 1D or 2D. Got 3D"),
    (lambda: la.norm(x(2, 2), "nuc", dim=0), RuntimeError, "dim must be a 2-tuple"),
    (lambda: la.matrix_rank(x(3)), RuntimeError, "The input tensor input must have at least 2 dimensions"),
    (lambda: la.pinv(x(3)), RuntimeError, "expected a tensor with 2 or more dimensions of float, double, cfloat or cdouble types"),
    (lambda: la.matrix_power(x(2, 3), 2), RuntimeError, SQUARE),
    (lambda: la.tensorinv(x(2, 3), 1), RuntimeError, "Expected self to satisfy the requirement"),
    (lambda: la.tensorinv(x(2, 3), 0), RuntimeError, "Expected a strictly positive integer for 'ind', but got 0"),
    (lambda: la.tensorinv(t.zeros(2, 2), 1), la.LinAlgError, "the input matrix is singular"),
    (lambda: la.tensorsolve(x(2, 3), x(2)), RuntimeError, "Expected self to satisfy the requirement"),
    (lambda: la.vander(x(1)), RuntimeError, "N must be greater than 1."),
    (lambda: la.lu_factor(x(2, 2), pivot=False), RuntimeError, "without pivoting is not implemented on the CPU"),
    (lambda: la.lstsq(x(2, 2), x(3, 1)), RuntimeError, "input.size(-2) should match other.size(-2)"),
    (lambda: la.lstsq(x(2, 2), x(2, 1), driver="x"), RuntimeError, "parameter `driver` should be one of (gels, gelsy, gelsd, gelss)"),
    (lambda: la.householder_product(x(2), x(2)), RuntimeError, "input must have at least 2 dimensions"),
    (lambda: la.householder_product(x(2, 3), x(2)), RuntimeError, "must be greater than or equal to input.shape[-1]"),
    (lambda: la.householder_product(x(3, 2), x(3)), RuntimeError, "must be greater than or equal to tau.shape[-1]"),
    (lambda: la.householder_product(x(3, 2), x(2).double()), RuntimeError, "does not match input dtype"),
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("call", "kind", "phrase"), ERRORS, ids=[phrase[:48] for _, _, phrase in ERRORS])
def test_an_error_has_its_type_and_phrase(call, kind, phrase):
    with pytest.raises(kind, match=re.escape(phrase)):
        call()


def test_the_qr_gradient_needs_q():
    a = x(2, 2).requires_grad_()
    with pytest.raises(RuntimeError, match="depends on Q, which is not computed when mode='r'"):
        la.qr(a, "r")[1].sum().backward()
    b = x(3, 2).requires_grad_()
    with pytest.raises(RuntimeError, match="not differentiable when mode='complete' and nrows > ncols"):
        la.qr(b, "complete")[1].sum().backward()


def test_an_implicit_softmax_dimension_warns():
    with pytest.warns(UserWarning, match="Implicit dimension choice for softmax has been deprecated"):
        f.softmax(x(2, 3))


def test_shapes_of_a_squared_loss_that_differ_warn():
    with pytest.warns(UserWarning, match=r"Using a target size \(torch.Size\(\[3\]\)\) that is different to the input size"):
        f.mse_loss(x(2, 3), x(3))


@pytest.mark.parametrize(
    ("shapes", "node"),
    [
        (((3,), (3,)), "DotBackward0"),
        (((2, 3), (3,)), "MvBackward0"),
        (((2, 3), (3, 2)), "MmBackward0"),
        (((4, 2, 3), (3, 2)), "UnsafeViewBackward0"),
        (((4, 2, 3), (4, 3, 2)), "UnsafeViewBackward0"),
    ],
)
def test_the_node_of_a_product(shapes, node):
    a, b = (x(*shape).requires_grad_() for shape in shapes)
    assert (a @ b).grad_fn.name() == node


def test_a_convolution_known_by_heart():
    image, kernel = x(1, 1, 3, 3), t.tensor([[[[1.0, 0.0], [0.0, -1.0]]]])
    assert f.conv2d(image, kernel).tolist() == [[[[-4.0, -4.0], [-4.0, -4.0]]]]
    assert f.conv2d(image, kernel, padding="same").tolist() == [[[[-4.0, -4.0, 3.0], [-4.0, -4.0, 6.0], [7.0, 8.0, 9.0]]]]
    assert f.conv_transpose2d(x(1, 1, 1, 2), kernel, stride=2).tolist() == [[[[1.0, 0.0, 2.0, 0.0], [0.0, -1.0, 0.0, -2.0]]]]


def test_the_first_maximum_of_a_window_gets_the_gradient():
    a = t.ones(1, 1, 2, 2, requires_grad=True)
    best, where = f.max_pool2d(a, 2, return_indices=True)
    best.sum().backward()
    assert where.item() == 0
    assert a.grad.tolist() == [[[[1.0, 0.0], [0.0, 0.0]]]]


def test_batch_norm_moves_the_running_statistics():
    mean, var = t.zeros(1), t.ones(1)
    f.batch_norm(t.tensor([[1.0], [3.0]]), mean, var, training=True, momentum=0.5)
    assert mean.tolist() == [1.0]
    assert var.tolist() == [1.5]
