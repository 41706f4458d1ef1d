"""Errors of elementwise operators, reductions, scans, sorting and activations: PyTorch's type and key phrase."""

from __future__ import annotations

import re

import pytest

import pellucid as t
from pellucid.nn import functional as f


def x():
    return t.tensor([[0.5, -1.25, 2.0], [3.0, 0.25, -0.75]])


def n():
    return t.tensor([[3, -1, 0], [2, 7, -5]])


def b():
    return t.tensor([True, False, True])


def c():
    return t.tensor([1 + 2j])


ERRORS = [
    (lambda: t.add(n(), n(), alpha=0.5), RuntimeError, "argument alpha must not be a floating point number"),
    (lambda: t.add(x(), x(), alpha=True), RuntimeError, "Boolean alpha only supported for Boolean results"),
    (lambda: t.add(x(), x(), alpha=1j), RuntimeError, "argument alpha must not be a complex number"),
    (lambda: b() - b(), RuntimeError, "Subtraction, the `-` operator, with two bool tensors is not supported"),
    (lambda: -b(), RuntimeError, "Negation, the `-` operator, on a bool tensor is not supported"),
    (lambda: n() // 0, RuntimeError, "ZeroDivisionError"),
    (lambda: n() % 0, RuntimeError, "ZeroDivisionError"),
    (
        lambda: t.div(x(), 2, rounding_mode="up"),
        RuntimeError,
        "div expected rounding_mode to be one of None, 'trunc', or 'floor' but found 'up'",
    ),
    (lambda: t.div(c(), 2, rounding_mode="floor"), NotImplementedError, "not implemented for 'ComplexFloat'"),
    (lambda: t.addcdiv(n(), n(), n()), RuntimeError, "Integer division with addcdiv is no longer supported"),
    (lambda: x() + "one", TypeError, "argument 'other' must be Tensor, not str"),
    (lambda: x() + t.ones(4), RuntimeError, "The size of tensor a (3) must match the size of tensor b (4)"),
    (lambda: n() ** -1, RuntimeError, "Integers to negative integer powers are not allowed"),
    (lambda: x().float_power_(2), RuntimeError, "float_power_"),
    (lambda: t.clamp(x()), RuntimeError, "At least one of 'min' or 'max' must not be None"),
    (lambda: t.clamp(c(), 0, 1), NotImplementedError, "clamp is not supported for complex types"),
    (lambda: t.maximum(c(), c()), RuntimeError, "maximum not implemented for complex tensors"),
    (lambda: t.minimum(c(), c()), RuntimeError, "minimum not implemented for complex tensors"),
    (lambda: t.fmax(c(), c()), RuntimeError, "fmax not implemented for complex tensors"),
    (lambda: t.fmin(c(), c()), RuntimeError, "fmin not implemented for complex tensors"),
    (lambda: t.ldexp(x(), 2), TypeError, "argument 'other'"),
    (lambda: t.heaviside(x(), n()), RuntimeError, "heaviside is not yet implemented for tensors with different dtypes"),
    (lambda: t.heaviside(c(), c()), RuntimeError, "heaviside is not yet implemented for complex tensors"),
    (lambda: t.nextafter(n(), n()), NotImplementedError, "not implemented for 'Long'"),
    (lambda: t.sign(c()), NotImplementedError, "Unlike NumPy, torch.sign is not intended to support complex numbers"),
    (lambda: t.deg2rad(c()), RuntimeError, "deg2rad is not supported for complex tensors"),
    (lambda: t.rad2deg(c()), RuntimeError, "rad2deg is not supported for complex tensors"),
    (lambda: t.frexp(n()), RuntimeError, "torch.frexp() only supports floating-point dtypes"),
    (lambda: t.isposinf(c()), RuntimeError, "isposinf does not support complex inputs"),
    (lambda: t.isneginf(c()), RuntimeError, "isneginf does not support complex inputs"),
    (lambda: t.isclose(x(), n()), RuntimeError, "did not match"),
    (lambda: t.isclose(x(), x(), rtol=-1.0), RuntimeError, "rtol must be greater than or equal to zero, but got -1"),
    (lambda: x().is_nonzero(), RuntimeError, "Boolean value of Tensor with more than one value is ambiguous"),
    (lambda: x() & x(), NotImplementedError, "not implemented for 'Float'"),
    (
        lambda: t.where(x(), x(), x()),
        RuntimeError,
        "where expected condition to be a boolean tensor, but got a tensor with dtype",
    ),
    (lambda: t.where(True, x(), x()), TypeError, "argument 'condition' must be Tensor, not bool"),
    (lambda: x().imag, RuntimeError, "imag is not implemented for tensors with non-complex dtypes."),
    (lambda: x().sum(5), IndexError, "Dimension out of range (expected to be in range of [-2, 1], but got 5)"),
    (lambda: x().sum((0, 0)), RuntimeError, "dim 0 appears multiple times in the list of dims"),
    (
        lambda: n().mean(),
        RuntimeError,
        "could not infer output dtype. Input dtype must be either a floating point or complex dtype. Got: Long",
    ),
    (lambda: t.nansum(c()), RuntimeError, "nansum on CPU does not support complex inputs"),
    (lambda: t.nanmean(n()), RuntimeError, "expected input to have floating point"),
    (lambda: n().var(), RuntimeError, "std and var only support floating point and complex dtypes"),
    (lambda: t.ones(0).max(), RuntimeError, "Expected reduction dim to be specified for input.numel() == 0"),
    (lambda: t.ones(2, 0).max(1), IndexError, "Expected reduction dim 1 to have non-zero size"),
    (lambda: t.ones(0).amax(), RuntimeError, "Expected reduction dim to be specified"),
    (lambda: t.ones(0).argmax(), IndexError, "Expected reduction dim to be specified for input.numel() == 0"),
    (lambda: t.ones(0).aminmax(), RuntimeError, "cannot compute aminmax over an empty dimension"),
    (lambda: x().topk(9), RuntimeError, "selected index k out of range"),
    (lambda: x().kthvalue(9), RuntimeError, "selected number k out of range for dimension"),
    (lambda: x().quantile(2.0), RuntimeError, "q must be in the range [0, 1] but got 2"),
    (lambda: n().quantile(0.5), RuntimeError, "input tensor must be either float or double dtype"),
    (lambda: t.ones(0).quantile(0.5), RuntimeError, "input tensor must be non-empty"),
    (lambda: x().quantile(0.5, interpolation="cubic"), RuntimeError, "interpolation must be one of"),
    (lambda: x().quantile(t.ones(1, 1)), RuntimeError, "q must be a scalar or 1D tensor"),
    (lambda: x().quantile(t.ones(1, dtype=t.float64)), RuntimeError, "q tensor must be same dtype as the input tensor"),
    (lambda: t.cov(t.ones(1, 1, 1)), RuntimeError, "expected input to have two or fewer dimensions"),
    (lambda: t.cov(b()), RuntimeError, "bool dtype is not supported for input"),
    (lambda: t.cov(x(), fweights=x()[0]), RuntimeError, "expected fweights to have integral dtype"),
    (
        lambda: t.cov(x(), aweights=t.ones(2)),
        RuntimeError,
        "expected aweights to have the same numel as there are observations",
    ),
    (lambda: t.cov(x(), aweights=-t.ones(3)), RuntimeError, "aweights cannot be negative"),
    (lambda: t.norm(n()), RuntimeError, "Expected a floating point or complex tensor as input"),
    (lambda: t.norm(x(), "max"), RuntimeError, "unsupported norm"),
    (lambda: t.linalg.vector_norm(x(), "2"), TypeError, "must be Number, not str"),
    (
        lambda: t.linalg.vector_norm(t.ones(0), -1),
        RuntimeError,
        "norm on an empty tensor because the operation does not have an identity",
    ),
    (lambda: t.renorm(x(), -1, 0, 1), RuntimeError, "non-positive-norm not supported"),
    (lambda: t.renorm(x(), 2, 0, -1), RuntimeError, "expected maxnorm to be >= 0 but got"),
    (lambda: t.renorm(x()[0], 2, 0, 1), RuntimeError, "input needs at least 2 dimensions, got 1 dimensions"),
    (lambda: t.linalg.cross(x(), x()[0]), RuntimeError, "inputs must have the same number of dimensions"),
    (lambda: t.linalg.cross(x(), x(), dim=0), RuntimeError, "must have length 3"),
    (lambda: t.cross(t.ones(2), t.ones(2)), RuntimeError, "no dimension of size 3 in input"),
    (lambda: t.diff(t.tensor(1.0)), RuntimeError, "diff expects input to be at least one-dimensional"),
    (lambda: t.diff(x(), n=-1), RuntimeError, "order must be non-negative but got -1"),
    (lambda: t.diff(x(), prepend=x()[0]), RuntimeError, "diff expects prepend or append to be the same dimension as input"),
    (lambda: t.trapezoid(b()), RuntimeError, "bool is not supported"),
    (lambda: t.gradient(x(), edge_order=3), RuntimeError, "torch.gradient only supports edge_order=1 and edge_order=2"),
    (lambda: t.gradient(t.ones(1)), RuntimeError, "torch.gradient expected each dimension size to be at least edge_order+1"),
    (lambda: t.gradient(x(), spacing=[1.0]), RuntimeError, "torch.gradient expected spacing"),
    (lambda: t.logcumsumexp(n(), 0), NotImplementedError, "not implemented for 'Long'"),
    (lambda: t.searchsorted(x(), 1.0), RuntimeError, "input value can be a scalar only when boundaries tensor dimension is 1"),
    (lambda: t.searchsorted(x(), x()[0]), RuntimeError, "boundaries tensor should be 1 dimension or the first N-1 dimensions"),
    (lambda: t.searchsorted(x()[0], x(), side="up"), RuntimeError, "side can only be 'left' or 'right' but got up"),
    (lambda: t.searchsorted(x()[0], x(), side="left", right=True), RuntimeError, "side and right can't be set to opposites"),
    (lambda: t.searchsorted(x()[0], x(), sorter=n()[0][:2]), RuntimeError, "boundary and sorter must have the same size"),
    (lambda: t.bucketize(x(), x()), RuntimeError, "must be 1 dimension"),
    (lambda: t.bincount(t.tensor([-1])), RuntimeError, "bincount only supports 1-d non-negative integral inputs"),
    (lambda: t.bincount(t.tensor([1]), minlength=-1), RuntimeError, "minlength should be >= 0"),
    (lambda: t.bincount(t.tensor([1]), t.ones(2)), RuntimeError, "weights should be 1-d and have the same length as input"),
    (lambda: t.histc(x(), 0), RuntimeError, "bins must be > 0"),
    (lambda: t.histc(x(), 3, 2, 1), RuntimeError, "max must be larger than min"),
    (lambda: t.histc(x(), 3, 0, float("inf")), RuntimeError, "is not finite"),
    (lambda: t.histogram(x(), 0), RuntimeError, "bins must be > 0"),
    (lambda: t.polygamma(-1, x()), RuntimeError, "polygamma(n, x) does not support negative n."),
    (lambda: t.mvlgamma(x(), 0), RuntimeError, "p has to be greater than or equal to 1"),
    (lambda: t.erf(c()), NotImplementedError, "not implemented for 'ComplexFloat'"),
    (lambda: f.gelu(x(), approximate="erf"), RuntimeError, "approximate argument must be either none or tanh"),
    (lambda: f.gelu(n()), NotImplementedError, "\"GeluKernelImpl\" not implemented for 'Long'"),
    (lambda: f.glu(t.tensor(1.0)), RuntimeError, "glu does not support scalars"),
    (lambda: f.glu(x()), RuntimeError, "Halving dimension must be even, but dimension"),
    (lambda: f.celu(x(), 0), RuntimeError, "ZeroDivisionError: alpha cannot be 0 for CELU"),
    (lambda: f.hardtanh(x(), 1, -1), ValueError, "min_val cannot be greater than max_val"),
    (
        lambda: f.softshrink(x(), -1),
        RuntimeError,
        "lambda must be in range [0, 3.40282e+38] for input dtype Float, but found -1",
    ),
    (lambda: f.relu(b()), RuntimeError, "Boolean inputs not supported for relu"),
    (lambda: f.rrelu(x(), 0.3, 0.1), RuntimeError, "Lower bound should be less than or equal to the upper bound"),
    (
        lambda: f.prelu(x(), t.ones(2)),
        RuntimeError,
        "Mismatch of parameter numbers and input channel size. Found parameter numbers = 2 and channel size = 3",
    ),
    (lambda: f.prelu(x(), t.ones(1, 1)), RuntimeError, "Expected `weight` to be a scalar or 1D tensor"),
    (lambda: f.prelu(t.tensor(1.0), t.ones(2)), RuntimeError, "Not allow zero-dim input tensor"),
    (lambda: x().requires_grad_().floor_divide(2).sum().backward(), RuntimeError, "is not implemented"),
    (lambda: n().add_(0.5), RuntimeError, "can't be cast to the desired output type Long"),
    (lambda: t.unique(c()), NotImplementedError, "not implemented for 'ComplexFloat'"),
]


@pytest.mark.parametrize(("compute", "kind", "phrase"), [pytest.param(*e, id=str(i)) for i, e in enumerate(ERRORS)])
def test_error(compute, kind, phrase):
    with pytest.raises(kind, match=re.escape(phrase)):
        compute()
