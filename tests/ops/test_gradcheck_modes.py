"""gradcheck in forward mode, and batched in both modes, over every declaration."""

from __future__ import annotations

import warnings

import pytest
from test_declarations import call, cases, operands

import pellucid
from pellucid.func.trees import flatten, unflatten


@pytest.mark.parametrize(("op", "args", "kwargs"), cases(lambda op: op.differentiable and "generator" not in op.attributes))
def test_forward_and_batched_gradients(op, args, kwargs):
    leaves, shape = flatten(operands(op, args))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="There is a performance drop")
        assert pellucid.autograd.gradcheck(
            lambda *each: tuple(call(op, unflatten(each, shape), kwargs)),
            leaves,
            check_forward_ad=True,
            check_batched_grad=True,
            check_batched_forward_grad=True,
            check_undefined_grad=False,
            fast_mode=True,
        )
