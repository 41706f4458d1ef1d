"""The base class of everything with parameters: registration through attributes, the call, training mode, printing.

Its other parts are in files of their own: walking the tree in `members.py`, dtypes and devices in `conversion.py`,
state dicts in `state.py`, hooks in `hooks.py`.
"""

from __future__ import annotations

import inspect
import sys
from typing import TYPE_CHECKING, Any

from pellucid.core.errors import locate_raised
from pellucid.core.sites import caller
from pellucid.core.tensor import Buffer, Parameter, Tensor
from pellucid.nn.modules.conversion import Conversion
from pellucid.nn.modules.hooks import (
    EVERY,
    Hooks,
    call_with_hooks,
    register_module_backward_hook,
    register_module_buffer_registration_hook,
    register_module_forward_hook,
    register_module_forward_pre_hook,
    register_module_full_backward_hook,
    register_module_full_backward_pre_hook,
    register_module_module_registration_hook,
    register_module_parameter_registration_hook,
)
from pellucid.nn.modules.members import Members
from pellucid.nn.modules.state import State, _IncompatibleKeys

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = [
    "Module",
    "_IncompatibleKeys",
    "register_module_backward_hook",
    "register_module_buffer_registration_hook",
    "register_module_forward_hook",
    "register_module_forward_pre_hook",
    "register_module_full_backward_hook",
    "register_module_full_backward_pre_hook",
    "register_module_module_registration_hook",
    "register_module_parameter_registration_hook",
    "typename",
]


class Module(Members, Conversion, State, Hooks):
    """A piece of a model: parameters, buffers, submodules, and a `forward` that computes with them.

    A subclass calls `super().__init__()`, assigns its members to attributes, and defines `forward`. A `Parameter`, a
    `Buffer` or a `Module` that is assigned is registered: it is converted, saved and listed with the module.

    Example:
        >>> from pellucid import nn
        >>> class Net(nn.Module):
        ...     def __init__(self):
        ...         super().__init__()
        ...         self.layer = nn.Linear(4, 2)
        ...
        ...     def forward(self, x):
        ...         return self.layer(x).tanh()
        >>> [name for name, _ in Net().named_parameters()]
        ['layer.weight', 'layer.bias']
    """

    training: bool
    call_super_init: bool = False  # whether __init__ goes on to the next class of the MRO, with the arguments
    dump_patches: bool = False

    def __init__(self, *args, **kwargs):
        if not self.call_super_init:
            _refuse_arguments(type(self), args, kwargs)
        self.__dict__.update(
            training=True, _parameters={}, _buffers={}, _non_persistent_buffers_set=set(), _modules={}
        )
        self._init_hooks()
        if self.call_super_init:
            super().__init__(*args, **kwargs)

    def forward(self, *args, **kwargs):
        """What the module computes; a subclass defines it."""
        raise NotImplementedError(f'Module [{type(self).__name__}] is missing the required "forward" function')

    def __call__(self, *args, **kwargs):
        try:
            return call_with_hooks(self, args, kwargs) if self._hooked else self.forward(*args, **kwargs)
        except (RuntimeError, ValueError, IndexError, TypeError, AssertionError) as error:
            locate_raised(error, sys._getframe(), *_called(self, args, kwargs))
            raise

    # --- registration ------------------------------------------------------------------------------------------------

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Add a parameter, or None in the place of one that is left out.

        Raises:
            AttributeError: `Module.__init__` has not run.
            TypeError: the name is no string or the value no Parameter.
            KeyError: the name is empty, has a dot, or is taken by something else.
            ValueError: the parameter is the result of a computation.
        """
        if "_parameters" not in self.__dict__:
            raise AttributeError("cannot assign parameter before Module.__init__() call")
        _check_name("parameter", name, self, self._parameters)
        if param is not None:
            if not isinstance(param, Parameter):
                raise TypeError(
                    f"cannot assign '{typename(param)}' object to parameter '{name}' (nn.Parameter or None required). "
                    "Wrap a tensor: nn.Parameter(tensor)"
                )
            if param.grad_fn is not None:
                raise ValueError(
                    f"Cannot assign non-leaf Tensor to parameter '{name}'. Model parameters must be created "
                    "explicitly. To "
                    f"express '{name}' as a function of another Tensor, compute the value in the forward() method."
                )
            param = _through_hooks(EVERY.parameter_registration, self, name, param)
        self._parameters[name] = param

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Add a buffer: state that is no parameter, such as a running mean.

        Args:
            name: the attribute under which it is found.
            tensor: the values, or None in the place of a buffer that is left out.
            persistent: whether it is part of the state dict.

        Raises:
            AttributeError: `Module.__init__` has not run.
            TypeError: the name is no string or the value no Tensor.
            KeyError: the name is empty, has a dot, or is taken by something else.
        """
        if "_buffers" not in self.__dict__:
            raise AttributeError("cannot assign buffer before Module.__init__() call")
        _check_name("buffer", name, self, self._buffers)
        if tensor is not None and not isinstance(tensor, Tensor):
            raise TypeError(f"cannot assign '{typename(tensor)}' object to buffer '{name}' (Tensor or None required)")
        self._buffers[name] = _through_hooks(EVERY.buffer_registration, self, name, tensor)
        if persistent:
            self._non_persistent_buffers_set.discard(name)
        else:
            self._non_persistent_buffers_set.add(name)

    def add_module(self, name: str, module: Module | None) -> None:
        """Add a submodule, or None in the place of one that is left out.

        Raises:
            TypeError: the name is no string or the value no Module.
            KeyError: the name is empty, has a dot, or is taken by something else.
        """
        if not isinstance(module, Module) and module is not None:
            raise TypeError(f"{typename(module)} is not a Module subclass")
        _check_name("module", name, self, self._modules)
        self._modules[name] = _through_hooks(EVERY.module_registration, self, name, module)

    def register_module(self, name: str, module: Module | None) -> None:
        """The same as `add_module`."""
        self.add_module(name, module)

    # --- attributes --------------------------------------------------------------------------------------------------

    def __getattr__(self, name: str) -> Any:
        own = self.__dict__
        if "_parameters" in own:
            if name in own["_parameters"]:
                return own["_parameters"][name]
            if name in own["_modules"]:
                return own["_modules"][name]
            if name in own["_buffers"]:
                return own["_buffers"][name]
        raise AttributeError(_no_attribute(self, name), name=name, obj=self)

    def __setattr__(self, name: str, value: Any) -> None:
        own = self.__dict__
        parameters, modules, buffers = own.get("_parameters", ()), own.get("_modules", ()), own.get("_buffers", ())
        if isinstance(value, Parameter):
            self._require_init("_parameters", "parameters")
            self._forget(name, own, buffers, modules, self._non_persistent_buffers_set)
            self.register_parameter(name, value)
        elif name in parameters:
            _expect_none(value, "parameter", name, "nn.Parameter or None")
            self.register_parameter(name, None)
        elif isinstance(value, Module):
            self._require_init("_modules", "module")
            self._forget(name, own, parameters, buffers, self._non_persistent_buffers_set)
            modules[name] = _through_hooks(EVERY.module_registration, self, name, value)
        elif name in modules:
            _expect_none(value, "child module", name, "nn.Module or None")
            modules[name] = _through_hooks(EVERY.module_registration, self, name, None)
        elif isinstance(value, Buffer) or name in buffers:
            self._set_buffer(name, value)
        else:
            object.__setattr__(self, name, value)

    def _require_init(self, table: str, what: str) -> None:
        if table not in self.__dict__:
            raise AttributeError(
                f"cannot assign {what} before Module.__init__() call: begin {type(self).__name__}.__init__ with "
                "super().__init__()"
            )

    @staticmethod
    def _forget(name: str, *tables: dict | set) -> None:
        """Take a name out of the tables it does not belong to any more."""
        for table in tables:
            if name in table:
                if isinstance(table, set):
                    table.discard(name)
                else:
                    del table[name]

    def _set_buffer(self, name: str, value: Any) -> None:
        """Register what is assigned to a buffer's attribute; a subclass may have a `register_buffer` of its own, some
        of them without `persistent`."""
        if value is not None and not isinstance(value, Tensor):
            raise TypeError(
                f"cannot assign '{typename(value)}' as buffer '{name}' (nn.Buffer, Tensor or None expected)"
            )
        self._require_init("_buffers", "buffer")
        persistent = value.persistent if isinstance(value, Buffer) else name not in self._non_persistent_buffers_set
        if (
            type(self).register_buffer is Module.register_buffer
            or "persistent" in inspect.signature(self.register_buffer).parameters
        ):
            self.register_buffer(name, value, persistent)
        elif persistent:
            self.register_buffer(name, value)
        else:
            raise RuntimeError(
                "Registering a non-persistent buffer on a Module subclass that implements register_buffer() without "
                "the "
                f"persistent argument is not allowed: {type(self).__name__}.{name}"
            )

    def __delattr__(self, name: str) -> None:
        for table in (self._parameters, self._buffers, self._modules):
            if name in table:
                del table[name]
                self._non_persistent_buffers_set.discard(name)
                return
        object.__delattr__(self, name)

    def __dir__(self) -> list[str]:
        names = {*dir(type(self)), *self.__dict__, *self._parameters, *self._modules, *self._buffers}
        return sorted(name for name in names if not name[0].isdigit())

    # --- copies and pickles ------------------------------------------------------------------------------------------

    def __getstate__(self) -> dict:
        return self.__dict__.copy()

    def __setstate__(self, state: dict) -> None:
        self.__dict__.update(state)
        self.__dict__.setdefault("_non_persistent_buffers_set", set())
        self._init_hooks()
        if self._forward_hooks or self._forward_pre_hooks or self._backward_hooks or self._backward_pre_hooks:
            self._hooked = True

    def _replicate_for_data_parallel(self) -> Module:
        """A module that shares this one's values and has tables of its own, without parameters."""
        replica = type(self).__new__(type(self))
        replica.__dict__ = self.__dict__.copy()
        replica.__dict__.update(_parameters={}, _buffers=self._buffers.copy(), _modules=self._modules.copy())
        replica.__dict__["_is_replica"] = True
        return replica

    # --- the whole tree ----------------------------------------------------------------------------------------------

    def apply(self, fn: Callable[[Module], None]):
        """Call `fn` with every module of the tree, children before parents, and return the module."""
        for module in self.children():
            module.apply(fn)
        fn(self)
        return self

    def train(self, mode: bool = True):
        """Switch the tree to training mode (dropout drops, batch norm takes the batch's statistics), or out of it."""
        if not isinstance(mode, bool):
            raise ValueError(f"training mode is expected to be boolean, got {type(mode).__name__}")
        self.training = mode
        for module in self.children():
            module.train(mode)
        return self

    def eval(self):
        """Switch the tree to evaluation mode."""
        return self.train(False)

    def requires_grad_(self, requires_grad: bool = True):
        """Say of every parameter whether it wants a gradient."""
        for parameter in self.parameters():
            parameter.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Drop the gradients of every parameter, or set them to zero."""
        line = caller(sys._getframe(1))
        for parameter in self.parameters():
            if set_to_none or parameter.grad is None:
                parameter._drop_grad(line)
            else:
                if parameter.grad.grad_fn is not None:
                    parameter.grad.detach_()
                else:
                    parameter.grad.requires_grad_(False)
                parameter.grad.zero_()

    # --- printing ----------------------------------------------------------------------------------------------------

    def _get_name(self) -> str:
        return type(self).__name__

    def extra_repr(self) -> str:
        """What `repr` shows of the module itself, between the parentheses."""
        return ""

    def __repr__(self) -> str:
        extra = self.extra_repr()
        lines = extra.split("\n") if extra else []
        children = [f"({name}): " + indent(repr(module)) for name, module in self._modules.items()]
        if len(lines) == 1 and not children:
            return f"{self._get_name()}({extra})"
        if not lines and not children:
            return f"{self._get_name()}()"
        return f"{self._get_name()}(\n  " + "\n  ".join(lines + children) + "\n)"


def indent(text: str) -> str:
    """The text with every line but the first, and no blank one, moved to the right."""
    first, *others = text.split("\n")
    return "\n".join([first, *("  " + line if line.strip() else "" for line in others)])


def typename(value: Any) -> str:
    """The type of a value with its module, as errors name it; of a tensor the kind of its elements."""
    if isinstance(value, Tensor):
        return value.type()
    cls = value if isinstance(value, type) else type(value)
    return cls.__qualname__ if cls.__module__ == "builtins" else f"{cls.__module__}.{cls.__qualname__}"


def _called(module: Module, args: tuple, kwargs: dict) -> tuple[str, list[tuple[str, Tensor]]]:
    """A module's class, and the tensors that it was called with, by the names that its `forward` gives them."""
    code = getattr(module.forward, "__code__", None)
    names = code.co_varnames[1 : code.co_argcount] if code is not None else ()
    given = [(names[k] if k < len(names) else f"argument {k}", value) for k, value in enumerate(args)] + list(kwargs.items())
    return type(module).__name__, [(name, value) for name, value in given if isinstance(value, Tensor)]


def _refuse_arguments(cls: type, args: tuple, kwargs: dict) -> None:
    """Module takes no arguments of its own."""
    if kwargs:
        raise TypeError(f"{cls.__name__}.__init__() got an unexpected keyword argument '{next(iter(kwargs))}'")
    if args:
        raise TypeError(f"{cls.__name__}.__init__() takes 1 positional argument but {len(args) + 1} were given")


def _check_name(what: str, name: Any, module: Module, table: dict) -> None:
    """A name under which something can be registered: a string without dots that is not in use otherwise."""
    if not isinstance(name, str):
        raise TypeError(f"{what} name should be a string. Got {typename(name)}")
    if "." in name:
        raise KeyError(f'{what} name can\'t contain ".", got: {name}')
    if name == "":
        raise KeyError(f'{what} name can\'t be empty string ""')
    if hasattr(module, name) and name not in table:
        raise KeyError(f"attribute '{name}' already exists")


def _through_hooks(hooks: dict, module: Module, name: str, value: Any) -> Any:
    """The value to register, as the hooks on registration leave it."""
    for hook in hooks.values():
        changed = hook(module, name, value)
        if changed is not None:
            value = changed
    return value


def _expect_none(value: Any, what: str, name: str, expected: str) -> None:
    """Where a registered name is assigned to, only its own kind and None may follow."""
    if value is not None:
        way_out = f". Wrap a tensor: nn.Parameter(tensor), or del the {what} first" if isinstance(value, Tensor) else ""
        raise TypeError(f"cannot assign '{typename(value)}' as {what} '{name}' ({expected} expected){way_out}")


def _no_attribute(module: Module, name: str) -> str:
    """Why an attribute is not there: the usual reason, or one that is easily overlooked."""
    text = f"'{type(module).__name__}' object has no attribute '{name}'"
    if "_parameters" not in module.__dict__:
        return f"{text} (Module.__init__() has not been called yet)"
    if isinstance(inspect.getattr_static(type(module), name, None), property):
        return f"{text}: its property of that name raised an AttributeError itself"
    return text
