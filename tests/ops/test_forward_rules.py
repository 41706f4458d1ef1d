"""Forward mode over every declaration: tangents are J times tangents, at each sample, real and complex."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from test_declarations import call, cases, operands, samples_of, tensors_in

import pellucid
from pellucid.autograd.declaration import OPERATORS
from pellucid.autograd.forward_mode import DualLevel
from pellucid.autograd.transforms import opened
from pellucid.core.tensor import wrap


def with_tangents(op, args, kwargs, rng):
    """Results, their tangents, and the tangents that the operands were given."""
    level = DualLevel()
    given = []
    with opened(level):
        for t in tensors_in([*args, *kwargs.values()]):
            if t.requires_grad:
                draw = rng.standard_normal(t.shape)
                if t.is_complex():
                    draw = draw + 1j * rng.standard_normal(t.shape)
                tangent = wrap(np.asarray(draw, t._array.dtype))
                level.attach(t, tangent)
                given.append((t, tangent))
        outputs = call(op, args, kwargs)
        return outputs, [level.tangent(o) for o in outputs], given


def inner(a, b) -> float:
    """The real inner product, in which complex numbers are pairs of reals."""
    return float(np.sum((np.conj(a._array) * b._array).real))


def check(op, args, kwargs) -> None:
    """<u, J t> = <J^H u, t> for random u and t, and shape and dtype of the tangents."""
    rng = np.random.default_rng(11)
    args = operands(op, args)
    outputs, tangents, given = with_tangents(op, args, kwargs, rng)
    moving = [(o, t) for o, t in zip(outputs, tangents, strict=True) if o.requires_grad]
    if not moving:
        pytest.skip("nothing to differentiate")
    if not any(t is not None for _, t in moving):
        pytest.fail("no tangent came out")
    for o, t in moving:
        assert t.shape == o.shape
        assert t.dtype is o.dtype
    seeds = []
    for o, _ in moving:
        draw = rng.standard_normal(o.shape)
        seeds.append(wrap(np.asarray(draw + 1j * rng.standard_normal(o.shape) if o.is_complex() else draw, o._array.dtype)))
    pulled = pellucid.autograd.grad([o for o, _ in moving], [t for t, _ in given], seeds, allow_unused=True)
    forward = sum(inner(u, t) for u, (_, t) in zip(seeds, moving, strict=True))
    backward = sum(inner(g, t) for g, (_, t) in zip(pulled, given, strict=True) if g is not None)
    assert forward == pytest.approx(backward, rel=1e-9, abs=1e-11)


@pytest.mark.parametrize(("op", "args", "kwargs"), cases(lambda op: op.differentiable))
def test_forward_mode_is_the_adjoint_of_reverse_mode(op, args, kwargs):
    check(op, args, kwargs)


# What PyTorch offers for real numbers only, or does not differentiate with complex ones.
FOR_REAL_NUMBERS = frozenset(
    """
    _adaptive_avg_pool _avg_pool _cdist _image_gather _pdist binary_cross_entropy binary_cross_entropy_with_logits complex_of
    embedding embedding_dense_backward embedding_shares euclidean_dist grid_gather grid_weigh grid_weights huber_loss index_reduce
    log_softmax log_softmax_backward mse_loss nan_to_num nll_loss_backward normalised_fixed prelu_kernel resample safe_softmax
    scatter_reduce silu slope_below smooth_l1_loss soft_margin_loss softmax softmax_backward sum_bags upsample_bicubic2d
    upsample_bicubic2d_aa upsample_bilinear2d upsample_bilinear2d_aa upsample_lanczos2d_aa upsample_linear1d
    upsample_nearest1d upsample_nearest2d upsample_nearest3d upsample_nearest_exact1d upsample_nearest_exact2d
    upsample_nearest_exact3d upsample_trilinear3d xlog1py
    """.split()
)


def right_in_reverse(op, args, kwargs) -> bool:
    """Whether an operator takes these operands and differentiates them right."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            return pellucid.autograd.gradcheck(
                lambda *a: tuple(call(op, a, kwargs)), operands(op, args), fast_mode=True, raise_exception=False
            )
    except (RuntimeError, TypeError, ValueError, NotImplementedError, Warning):
        return False


def complex_cases():
    """The samples on which an operator for complex numbers is right in reverse mode."""
    found = []
    for name, op in sorted(OPERATORS.items()):
        if op.differentiable and op.samples and name not in FOR_REAL_NUMBERS:
            try:
                samples = samples_of(op, np.complex128)
            except (TypeError, ValueError):
                continue
            found += [
                pytest.param(op, args, kwargs, id=f"{name}-{index}")
                for index, (args, kwargs) in enumerate(samples)
                if right_in_reverse(op, args, kwargs)
            ]
    return found


@pytest.mark.parametrize(("op", "args", "kwargs"), complex_cases())
def test_forward_mode_is_the_adjoint_of_reverse_mode_on_complex_numbers(op, args, kwargs):
    check(op, args, kwargs)
