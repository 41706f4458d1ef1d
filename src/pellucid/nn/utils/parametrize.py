"""Parametrizations: a parameter that is computed from others each time it is read.

`register_parametrization(layer, "weight", Symmetric())` moves `layer.weight` to
`layer.parametrizations.weight.original`; `layer.weight` is then `Symmetric()(original)`. Ready-made ones are in
`parametrizations.py`.
"""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pellucid.autograd.grad_mode import no_grad
from pellucid.core.tensor import Parameter, Tensor
from pellucid.nn.modules.container import ModuleDict, ModuleList

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pellucid.nn.modules.module import Module

__all__ = [
    "ParametrizationList", "cached", "is_parametrized", "register_parametrization", "remove_parametrizations",
    "transfer_parametrizations_and_params", "type_before_parametrizations",
]


class _Cache:
    """Computed values, while some `cached()` is open."""

    def __init__(self):
        self.depth = 0
        self.values: dict[tuple[int, str], Tensor] = {}


CACHE = _Cache()


@contextlib.contextmanager
def cached() -> Iterator[None]:
    """A context in which every parametrized tensor is computed once and kept until the end."""
    CACHE.depth += 1
    try:
        yield
    finally:
        CACHE.depth -= 1
        if not CACHE.depth:
            CACHE.values.clear()


class ParametrizationList(ModuleList):
    """The parametrizations of one tensor, and what it is computed from: `original`, or `original0`, `original1`, ...

    Args:
        modules: the parametrizations, the first to be applied first.
        original: the tensor as it was.
        unsafe: whether they may change its shape and dtype.

    Raises:
        ValueError: they change the shape or dtype, or give or take back something else than tensors.
    """

    def __init__(self, modules: Sequence[Module], original: Tensor, unsafe: bool = False):
        if not modules:
            raise ValueError("ParametrizationList requires one or more modules.")
        super().__init__(modules)
        self.unsafe = unsafe
        before = (original.dtype, original.shape)
        self._store(original, self._first_inverse(original))
        if not unsafe:
            _check_result(self(), *before)

    def _first_inverse(self, original: Tensor) -> Any:
        """What the tensor has to be computed from to be what it is; as it is where no inverse is known."""
        value = original
        with no_grad():
            for module in reversed(list(self)):
                if hasattr(module, "right_inverse"):
                    with contextlib.suppress(NotImplementedError):
                        value = module.right_inverse(value)
        return value

    def _store(self, original: Tensor, value: Any) -> None:
        """Register what `right_inverse` gave, as parameters or buffers like the original."""
        self.is_tensor = isinstance(value, Tensor)
        if self.is_tensor:
            if value.dtype != original.dtype:
                raise ValueError(
                    "When `right_inverse` outputs one tensor, it may not change the dtype.\n"
                    f"original.dtype: {original.dtype}\nright_inverse(original).dtype: {value.dtype}"
                )
            self.ntensors = 1
            _set(original, value)
            _register(self, "original", original)
            return
        self._check_sequence(value)
        self.ntensors = len(value)
        for number, tensor in enumerate(value):
            if isinstance(original, Parameter):
                tensor = Parameter(tensor, original.requires_grad)
            _register(self, f"original{number}", tensor)

    @staticmethod
    def _check_sequence(value: Any) -> None:
        if not isinstance(value, Sequence) or not all(isinstance(tensor, Tensor) for tensor in value):
            raise ValueError(
                "'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...). "
                f"Got {type(value).__name__}."
            )

    def _originals(self) -> list[Tensor]:
        names = ["original"] if self.is_tensor else [f"original{number}" for number in range(self.ntensors)]
        return [getattr(self, name) for name in names]

    def right_inverse(self, value: Tensor) -> None:
        """Set what the tensor is computed from, so that it becomes `value`.

        Raises:
            RuntimeError: a parametrization has no `right_inverse`.
            ValueError: what it returned does not fit.
        """
        with no_grad():
            for module in reversed(list(self)):
                if not hasattr(module, "right_inverse"):
                    raise RuntimeError(f"parametrization {type(module).__name__} does not implement right_inverse.")
                value = module.right_inverse(value)
            values = [value] if self.is_tensor else value
            self._check_sequence(values)
            originals = self._originals()
            if len(values) != len(originals):
                raise ValueError(
                    f"'right_inverse' must return a sequence of tensors of length {len(originals)}. "
                    f"Got a sequence of length {len(values)}."
                )
            for number, (original, new) in enumerate(zip(originals, values, strict=True)):
                if new.dtype != original.dtype:
                    raise ValueError(
                        f"Tensor {number} returned by `right_inverse` has dtype {new.dtype} while the original has "
                        f"dtype {original.dtype}"
                    )
                _set(original, new)

    def forward(self) -> Tensor:
        """Compute the tensor."""
        first, *others = self._modules.values()
        value = first(*self._originals())
        for module in others:
            value = module(value)
        return value


def _set(original: Tensor, value: Tensor) -> None:
    """Let the original have these values, whatever their shape."""
    if value is not original:
        original.data = value.detach()


def _register(module: Module, name: str, tensor: Tensor) -> None:
    if isinstance(tensor, Parameter):
        module.register_parameter(name, tensor)
    else:
        module.register_buffer(name, tensor)


def _check_result(result: Any, dtype, shape) -> None:
    """A parametrization gives a tensor of the shape and dtype of the original."""
    if not isinstance(result, Tensor):
        raise ValueError(f"A parametrization must return a tensor. Got {type(result).__name__}.")
    for what, before, after in (("dtype", dtype, result.dtype), ("shape", shape, result.shape)):
        if before != after:
            raise ValueError(
                f"Registering a parametrization may not change the {what} of the tensor, unless `unsafe` flag is "
                f"enabled.\nunparametrized {what}: {before}\nparametrized {what}: {after}"
            )


# --- the module around -----------------------------------------------------------------------------------------------


def _inject_class(module: Module) -> None:
    """Give the module a class of its own, which can have properties of its own."""
    cls = module.__class__

    def getstate(self):
        raise RuntimeError(
            "Serialization of parametrized modules is only supported through state_dict(): save module.state_dict() "
            "instead."
        )

    names = {"__getstate__": getstate, "__deepcopy__": _deepcopy, "__module__": cls.__module__}
    module.__class__ = type(f"Parametrized{cls.__name__}", (cls,), names)


def _deepcopy(self, memo: dict):
    """A copy whose class has properties of its own too."""
    made = self.__new__(self.__class__.__bases__[0])
    memo[id(self)] = made
    made.__dict__ = copy.deepcopy(self.__dict__, memo)
    _inject_class(made)
    for name in made.parametrizations:
        _inject_property(made, name)
    return made


def _inject_property(module: Module, name: str) -> None:
    def read(self):
        if not CACHE.depth:
            return self.parametrizations[name]()
        key = (id(self), name)
        if key not in CACHE.values:
            CACHE.values[key] = self.parametrizations[name]()
        return CACHE.values[key]

    def write(self, value):
        self.parametrizations[name].right_inverse(value)

    setattr(module.__class__, name, property(read, write))


def register_parametrization(
    module: Module, tensor_name: str, parametrization: Module, *, unsafe: bool = False
) -> Module:
    """Let a parameter or buffer be computed by a module; further ones are applied to the result of the one before.

    Args:
        module: the module that has the tensor.
        tensor_name: its name.
        parametrization: the module that computes it; with a method `right_inverse` it can also be assigned to.
        unsafe: whether shape and dtype may change.

    Returns:
        The module.

    Raises:
        ValueError: there is no such tensor, or shape or dtype change.
    """
    parametrization.train(module.training)
    if is_parametrized(module, tensor_name):
        chain = module.parametrizations[tensor_name]
        if not unsafe:
            _check_result(parametrization(getattr(module, tensor_name)), chain().dtype, chain().shape)
        chain.append(parametrization)
        chain.unsafe |= unsafe
    elif tensor_name in module._parameters or tensor_name in module._buffers:
        chain = ParametrizationList([parametrization], getattr(module, tensor_name), unsafe)
        delattr(module, tensor_name)
        if not is_parametrized(module):
            _inject_class(module)
            module.parametrizations = ModuleDict()
        _inject_property(module, tensor_name)
        module.parametrizations[tensor_name] = chain
    else:
        raise ValueError(
            f"Module '{type(module).__name__}' does not have a parameter, a buffer, or a parametrized element with "
            f"name '{tensor_name}'"
        )
    return module


def is_parametrized(module: Module, tensor_name: str | None = None) -> bool:
    """Whether the module, or one of its tensors, is parametrized."""
    parametrizations = module._modules.get("parametrizations")
    if not isinstance(parametrizations, ModuleDict):
        return False
    return len(parametrizations) > 0 if tensor_name is None else tensor_name in parametrizations


def remove_parametrizations(module: Module, tensor_name: str, leave_parametrized: bool = True) -> Module:
    """Make a tensor an ordinary one again.

    Args:
        module: the module that has the tensor.
        tensor_name: its name.
        leave_parametrized: whether it keeps the value it has, or goes back to what it was computed from.

    Raises:
        ValueError: the tensor is not parametrized, or cannot go back, being computed from several.
    """
    if not is_parametrized(module, tensor_name):
        raise ValueError(f"Module {type(module).__name__} does not have a parametrization on {tensor_name}")
    chain = module.parametrizations[tensor_name]
    if chain.is_tensor:
        original = chain.original
        if leave_parametrized:
            with no_grad():
                _set(original, getattr(module, tensor_name))
    elif leave_parametrized:
        value = getattr(module, tensor_name)
        original = Parameter(value.detach()) if value.requires_grad else value
    else:
        raise ValueError(
            "Cannot leave unparametrized (`leave_parametrized=False`) a tensor that is parametrized in terms of a "
            "sequence "
            "of tensors."
        )
    delattr(module.__class__, tensor_name)
    del module.parametrizations[tensor_name]
    _register(module, tensor_name, original)
    if not is_parametrized(module):
        delattr(module, "parametrizations")
        module.__class__ = module.__class__.__bases__[0]
    return module


def type_before_parametrizations(module: Module) -> type:
    """The class that the module had before it was parametrized."""
    return type(module).__bases__[0] if is_parametrized(module) else type(module)


def transfer_parametrizations_and_params(
    from_module: Module, to_module: Module, tensor_name: str | None = None
) -> Module:
    """Let a module have the parametrizations of another, and what its tensors are computed from.

    Args:
        from_module: the module that has them; nothing happens if it has none.
        to_module: the module that gets them; a tensor that it lacks is made.
        tensor_name: the only tensor to do this for; all that are parametrized if None.

    Returns:
        to_module.
    """
    if not is_parametrized(from_module):
        return to_module
    for name in list(from_module.parametrizations) if tensor_name is None else [tensor_name]:
        if not hasattr(to_module, name):
            setattr(to_module, name, Parameter(getattr(from_module, name)))
        chain = from_module.parametrizations[name]
        for parametrization in chain:
            register_parametrization(to_module, name, parametrization, unsafe=chain.unsafe)
        target = to_module.parametrizations[name]
        for key, tensor in {**chain._parameters, **chain._buffers}.items():
            setattr(target, key, tensor)
    return to_module
