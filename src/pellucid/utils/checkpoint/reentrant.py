"""The older form of checkpoint: one node whose backward runs the function again and differentiates that by itself."""

from __future__ import annotations

import warnings

from pellucid.autograd.autocast import autocast_as_now
from pellucid.autograd.differentiate import backward
from pellucid.autograd.engine import current_task
from pellucid.autograd.function import Function
from pellucid.autograd.grad_mode import enable_grad
from pellucid.core.random import get_rng_state
from pellucid.core.tensor import Tensor
from pellucid.utils.checkpoint.random_state import random_state

__all__ = ["CheckpointFunction", "check_backward_validity", "detach_variable"]


def detach_variable(inputs: tuple) -> tuple:
    """The same arguments, their tensors as leaves: without a history, requiring grad where they did.

    Raises:
        RuntimeError: `inputs` is no tuple.
    """
    if not isinstance(inputs, tuple):
        raise RuntimeError(
            f"Only tuple of tensors is supported. Got Unsupported input type: {type(inputs).__name__}. Pass (x,)."
        )
    return tuple(_leaf(value) if isinstance(value, Tensor) else value for value in inputs)


def _leaf(tensor: Tensor) -> Tensor:
    made = tensor.detach()
    made.requires_grad = tensor.requires_grad
    return made


def check_backward_validity(inputs) -> None:
    """Warn if no tensor among the arguments requires grad: nothing would reach what the function holds itself."""
    if not any(isinstance(value, Tensor) and value.requires_grad for value in inputs):
        warnings.warn(
            "None of the inputs have requires_grad=True. Gradients will be None, those of tensors that the function "
            "holds included. Pass use_reentrant=False, or an input that requires grad.",
            stacklevel=2,
        )


class CheckpointFunction(Function):
    """What `checkpoint(..., use_reentrant=True)` applies: (function, preserve_rng_state, *args) -> its results."""

    @staticmethod
    def forward(ctx, run_function, preserve_rng_state, *args):
        """Run the function without recording it; keep its arguments and where the random stream stood."""
        check_backward_validity(args)
        ctx.run_function = run_function
        ctx.state = get_rng_state() if preserve_rng_state else None
        ctx.casting = autocast_as_now()
        ctx.inputs = [None if isinstance(value, Tensor) else value for value in args]
        ctx.places = [i for i, value in enumerate(args) if isinstance(value, Tensor)]
        ctx.save_for_backward(*(args[i] for i in ctx.places))
        return run_function(*args)

    @staticmethod
    def backward(ctx, *grads):
        """Run the function again, recorded, and differentiate it."""
        _refuse_targets()
        inputs = list(ctx.inputs)
        for place, tensor in zip(ctx.places, ctx.saved_tensors, strict=True):
            inputs[place] = tensor
        leaves = detach_variable(tuple(inputs))
        with random_state(ctx.state), ctx.casting, enable_grad():
            outputs = ctx.run_function(*leaves)
        outputs = outputs if isinstance(outputs, tuple) else (outputs,)
        roots = [(o, g) for o, g in zip(outputs, grads, strict=True) if isinstance(o, Tensor) and o.requires_grad]
        if not roots:
            raise RuntimeError(
                "none of output has requires_grad=True, this checkpoint() is not necessary: the function has no "
                "differentiable result when it is given inputs without a history"
            )
        backward([o for o, _ in roots], [g for _, g in roots])
        return (None, None, *(value.grad if isinstance(value, Tensor) else None for value in leaves))


def _refuse_targets() -> None:
    """Raise where a running backward wants the gradients of chosen tensors only: the one in here would not know."""
    task = current_task()
    while task is not None:
        if task.needed is not None:
            raise RuntimeError(
                "When use_reentrant=True, torch.utils.checkpoint is incompatible with .grad() or passing an `inputs` "
                "parameter to .backward(). To resolve this error, you can either set use_reentrant=False, or call "
                ".backward() without passing the `inputs` argument."
            )
        task = task.outer
