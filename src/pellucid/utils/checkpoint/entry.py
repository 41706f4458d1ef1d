"""`checkpoint` and `checkpoint_sequential`: which form runs, what is around the function, what is refused."""

from __future__ import annotations

import warnings
from contextlib import nullcontext

from pellucid.autograd.autocast import autocast_as_now
from pellucid.autograd.grad_mode import is_grad_enabled
from pellucid.autograd.saved_hooks import saved_tensors_hooks
from pellucid.core.random import get_rng_state
from pellucid.utils.checkpoint.debugging import debug_contexts
from pellucid.utils.checkpoint.frame import FACTS, Frame
from pellucid.utils.checkpoint.random_state import random_state
from pellucid.utils.checkpoint.reentrant import CheckpointFunction
from pellucid.utils.checkpoint.settings import settings

__all__ = ["checkpoint", "checkpoint_sequential", "noop_context_fn"]


def noop_context_fn():
    """Two contexts that do nothing: the default `context_fn`."""
    return nullcontext(), nullcontext()


def checkpoint(function, *args, use_reentrant: bool | None = None, context_fn=noop_context_fn,
               determinism_check: str = "default", debug: bool = False, early_stop: bool = True,
               preserve_rng_state: bool = True, **kwargs):  # fmt: skip
    """Call `function(*args, **kwargs)` without keeping what backward needs; backward runs the function again for it.

    Args:
        function: what to run. It must do the same the second time; random numbers are the same by themselves.
        use_reentrant: False for the form that works with everything (`grad`, keyword arguments, nesting, arguments of
            any kind). True for the older one, whose backward starts a backward of its own. To be passed explicitly;
            None means True, with a warning.
        context_fn: gives two contexts, for the forward and for the recomputation.
        determinism_check: "default" compares shape, dtype and device of what is saved both times, "none" only how much.
        debug: keep a log of operators of both runs, to show if they do not fit.
        early_stop: recompute to the last tensor needed, not to the end of the function.
        preserve_rng_state: recompute with the random numbers of the forward.

    With `use_reentrant=True` only `preserve_rng_state` counts of these.

    Raises:
        ValueError: an option or keyword that this form does not take.
        CheckpointError: in backward, if the recomputation does not fit the forward.
    """
    if use_reentrant is None:
        _warn_unset("torch.utils.checkpoint")
    if use_reentrant is None or use_reentrant:
        if kwargs:
            raise ValueError(
                f"Unexpected keyword arguments: {','.join(kwargs)}. Keywords of the function need use_reentrant=False."
            )
        if context_fn is not noop_context_fn or debug is not False:
            raise ValueError("Passing `context_fn` or `debug` is only supported when use_reentrant=False.")
        return CheckpointFunction.apply(function, preserve_rng_state, *args)
    explain = None
    if debug if settings.debug is None else settings.debug:
        if context_fn is not noop_context_fn:
            raise ValueError("debug=True is incompatible with non-default context_fn")
        forward_context, recompute_context, explain = debug_contexts()
    if determinism_check not in FACTS:
        raise ValueError(f"determinism_check should be one of {list(FACTS)}, but got {determinism_check}")
    if explain is None:
        forward_context, recompute_context = context_fn()
    if not is_grad_enabled():
        return function(*args, **kwargs)
    run = _again(function, kwargs, get_rng_state() if preserve_rng_state else None, recompute_context)
    stop = early_stop if settings.early_stop is None else settings.early_stop
    return _forward(Frame(run, args, stop, FACTS[determinism_check], explain), function, args, kwargs, forward_context)


def _again(function, kwargs: dict, state, context):
    """The function as the recomputation runs it."""
    casting = autocast_as_now()

    def run(*args) -> None:
        with random_state(state), casting, context:
            function(*args, **kwargs)

    return run


def _forward(frame: Frame, function, args: tuple, kwargs: dict, context):
    """Run the function with everything it saves left to the frame."""
    with saved_tensors_hooks(frame.pack, frame.unpack), context:
        result = function(*args, **kwargs)
        frame.complete = True
    if not frame.complete:
        raise RuntimeError(
            "torch.utils.checkpoint: the forward context provided by context_fn suppressed an exception raised during "
            "the checkpointed forward. checkpoint has no result to return then: let the context pass exceptions on."
        )
    return result


def checkpoint_sequential(functions, segments: int, input, use_reentrant: bool | None = None, *,
                          preserve_rng_state: bool = True, **kwargs):  # fmt: skip
    """Run functions one after another, in segments of which each but the last is a checkpoint.

    Args:
        functions: an nn.Sequential, or a list of modules or functions of one argument.
        segments: into how many parts of equal length to divide them; the last takes what is left over.
        input: the argument of the first.
        use_reentrant, preserve_rng_state: as for `checkpoint`.

    Raises:
        ValueError: fewer functions than segments.
    """
    if use_reentrant is None:
        _warn_unset("torch.utils.checkpoint.checkpoint_sequential")
        use_reentrant = True
    if kwargs:
        raise ValueError(f"Unexpected keyword arguments: {','.join(kwargs)}. Functions get one argument.")
    steps = list(functions.children() if hasattr(functions, "children") else functions)
    if not 1 <= segments <= len(steps):
        raise ValueError(f"segments must be from 1 to the number of functions, {len(steps)}, but got {segments}")
    size = len(steps) // segments
    for start in range(0, size * (segments - 1), size):
        part = _chain(steps[start : start + size])
        input = checkpoint(part, input, use_reentrant=use_reentrant, preserve_rng_state=preserve_rng_state)
    return _chain(steps[size * (segments - 1) :])(input)


def _chain(steps: list):
    def run(value):
        for step in steps:
            value = step(value)
        return value

    return run


def _warn_unset(who: str) -> None:
    warnings.warn(
        f"{who}: the use_reentrant parameter should be passed explicitly. False is the form to choose; True is what "
        "you get now, by a default that PyTorch has announced to make an error.",
        stacklevel=3,
    )
