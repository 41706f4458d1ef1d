"""Modules as functions of their parameters: `functional_call`, `stack_module_state`."""

from __future__ import annotations

from pellucid.autograd import declaration
from pellucid.nn.modules.module import Module

__all__ = ["functional_call", "stack_module_state"]

F = declaration.tensors


def _places(module: Module) -> dict:
    """Where each parameter and buffer of a module stands: name -> every (dictionary, key) that holds that tensor."""
    by_tensor: dict = {}
    names: dict = {}
    for prefix, each in module.named_modules(remove_duplicate=False):
        for held in (each._parameters, each._buffers):
            for key, tensor in held.items():
                if tensor is not None:
                    by_tensor.setdefault(id(tensor), []).append((held, key))
                    names[f"{prefix}.{key}" if prefix else key] = id(tensor)
    return {name: by_tensor[key] for name, key in names.items()}


def functional_call(
    module: Module, parameter_and_buffer_dicts, args=None, kwargs=None, *, tie_weights: bool = True, strict: bool = False
):
    """Call a module with other tensors in place of its parameters and buffers; afterwards it has its own again.

    Args:
        module: the module to call.
        parameter_and_buffer_dicts: a dictionary of tensors by name, or a sequence of such dictionaries.
        args: the positional arguments, a tuple; a single value stands for itself.
        kwargs: the keyword arguments.
        tie_weights: a tensor that the module holds under several names is replaced under all of them.
        strict: raise for names that are missing or unknown.

    Raises:
        ValueError: one name in two of the dictionaries.
        RuntimeError: under `strict`, names that do not match the module's.
    """
    if isinstance(parameter_and_buffer_dicts, dict):
        given = dict(parameter_and_buffer_dicts)
    else:
        given = {}
        for each in parameter_and_buffer_dicts:
            repeated = set(given) & set(each)
            if repeated:
                raise ValueError(
                    f"{sorted(repeated)} appeared in multiple dictionaries; behavior of functional call is ambiguous"
                )
            given.update(each)
    places = _places(module)
    if strict and set(given) != set(places):
        missing, unknown = sorted(set(places) - set(given)), sorted(set(given) - set(places))
        raise RuntimeError(
            "Error(s) in reparametrizing:"
            + (f" Missing key(s): {', '.join(missing)}." if missing else "")
            + (f" Unexpected key(s): {', '.join(unknown)}." if unknown else "")
        )
    replaced = []
    try:
        for name, tensor in given.items():
            spots = places.get(name, ())
            for held, key in spots if tie_weights else spots[:1]:
                replaced.append((held, key, held[key]))
                held[key] = tensor
        positional = () if args is None else args if isinstance(args, tuple) else (args,)
        return module(*positional, **(kwargs or {}))
    finally:
        for held, key, tensor in reversed(replaced):
            held[key] = tensor


def stack_module_state(models) -> tuple[dict, dict]:
    """The parameters and buffers of several modules of one class, stacked along a new first dimension, for `vmap`.

    Args:
        models: modules of the same class, all in training or all in evaluation mode.

    Returns:
        `(parameters, buffers)`, dictionaries by name; the stacked parameters are leaves that require grad where theirs did.

    Raises:
        RuntimeError: no models, different classes, or different modes.
    """
    models = list(models)
    if not models:
        raise RuntimeError("stack_module_state: Expected at least one model, got 0.")
    if any(m.training != models[0].training for m in models):
        raise RuntimeError("stack_module_state: Expected all models to have the same training/eval mode.")
    if any(type(m) is not type(models[0]) for m in models):
        raise RuntimeError("stack_module_state: Expected all models to be of the same class.")
    parameters = _stacked([dict(m.named_parameters()) for m in models])
    buffers = _stacked([dict(m.named_buffers()) for m in models])
    return parameters, buffers


def _stacked(states: list[dict]) -> dict:
    """For each name one leaf that holds the tensors of all models."""
    made = {}
    for name, first in states[0].items():
        each = [state[name] for state in states]
        if any(t.requires_grad != first.requires_grad for t in each):
            raise RuntimeError(f"Expected all tensors to have the same requires_grad to be stacked: {name!r} differs")
        made[name] = F.stack([t.detach() for t in each], 0).requires_grad_(first.requires_grad)
    return made
