"""Calling a module with other tensors in place of its parameters and buffers, under PyTorch's older name."""

from __future__ import annotations

import contextlib
import warnings
from typing import TYPE_CHECKING

from pellucid.nn.parallel.data_parallel import DataParallel

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pellucid.core.tensor import Tensor
    from pellucid.nn.modules.module import Module

__all__ = ["functional_call"]

_MISSING = object()


def functional_call(
    module: Module, parameters_and_buffers: dict[str, Tensor], args=None, kwargs=None, *, tie_weights: bool = True,
    strict: bool = False,
):  # fmt: skip
    """Call a module with other tensors in place of its own; afterwards it has its own again. Deprecated: use
    `pellucid.func.functional_call`.

    Args:
        module: the module to call.
        parameters_and_buffers: tensors by name. What the call assigned to a name is in it afterwards.
        args: the positional arguments, a tuple; a single value stands for itself.
        kwargs: the keyword arguments.
        tie_weights: a tensor that the module holds under several names is replaced under all of them.
        strict: raise for names that are missing or unknown.

    Raises:
        ValueError: different values for names that are tied.
        RuntimeError: under `strict`, names that do not match the module's; a DataParallel module.
    """
    warnings.warn(
        "`torch.nn.utils.stateless.functional_call` is deprecated as of PyTorch 2.0 and will be removed in a future "
        "version of PyTorch. Please use `torch.func.functional_call` instead which is a drop-in replacement.",
        category=FutureWarning,
        stacklevel=2,
    )
    if isinstance(module, DataParallel):
        raise RuntimeError("The stateless API can't be used with nn.DataParallel module")
    positional = () if args is None else args if isinstance(args, tuple) else (args,)
    with _reparametrize_module(module, parameters_and_buffers, tie_weights=tie_weights, strict=strict):
        return module(*positional, **(kwargs or {}))


@contextlib.contextmanager
def _reparametrize_module(
    module: Module, parameters_and_buffers: dict[str, Tensor], tie_weights: bool = False, strict: bool = False
) -> Iterator[None]:
    """A context in which the module has the given tensors."""
    tensors = _spread(module, parameters_and_buffers) if tie_weights else parameters_and_buffers
    if strict:
        _check_names(module, tensors)
    before: dict = {}
    try:
        for name, tensor in tensors.items():
            before[name] = _exchange(module, name, tensor)
        yield
    finally:
        after = {name: _exchange(module, name, before[name]) for name in reversed(before)}
        parameters_and_buffers.update({name: after[name] for name in parameters_and_buffers if name in after})


def _exchange(module: Module, name: str, tensor):
    """Put a tensor in the place of a name, and return what was there."""
    path, _, key = name.rpartition(".")
    owner = module.get_submodule(path)
    for held in (owner._parameters, owner._buffers):
        if key in held:
            before, held[key] = held[key], tensor
            return before
    before = getattr(owner, key, _MISSING)
    if tensor is _MISSING:
        delattr(owner, key)
    else:
        setattr(owner, key, tensor)
    return before


def _own(module: Module) -> dict[str, Tensor]:
    """All parameters and buffers, also under further names."""
    return {
        **dict(module.named_parameters(remove_duplicate=False)),
        **dict(module.named_buffers(remove_duplicate=False)),
    }


def _spread(module: Module, given: dict[str, Tensor]) -> dict[str, Tensor]:
    """The given tensors, each also under the names that are tied to its own."""
    tied: dict[int, list[str]] = {}
    own = _own(module)
    for name, tensor in own.items():
        tied.setdefault(id(tensor), []).append(name)
    made = dict(given)
    for name in given:
        names = tied.get(id(own.get(name)), ())
        if len({id(given[other]) for other in names if other in given}) > 1:
            raise ValueError(
                f"functional_call got multiple values for keys {sorted(names)}, which are tied. Consider using "
                "tie_weights=False"
            )
        made.update(dict.fromkeys(names, given[name]))
    return made


def _check_names(module: Module, given: dict[str, Tensor]) -> None:
    own = _own(module)
    texts = []
    for what, names in (("Unexpected", given.keys() - own.keys()), ("Missing", own.keys() - given.keys())):
        if names:
            texts.append(f"{what} key(s): {', '.join([repr(name) for name in sorted(names)])}.")
    if texts:
        raise RuntimeError(f"Error(s) in reparametrizing for {type(module).__name__}:\n\t" + "\n\t".join(texts))
