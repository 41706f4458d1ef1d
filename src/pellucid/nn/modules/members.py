"""Walking a tree of modules: children, parameters and buffers by name, and access by dotted path.

Registration is in `module.py`. Every walk here is iterative, parents before children, and names each thing once unless
asked otherwise.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pellucid.core.tensor import Parameter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pellucid.core.tensor import Tensor
    from pellucid.nn.modules.module import Module

__all__ = ["Members"]


class Members:
    """The part of `Module` that finds things in the tree."""

    if TYPE_CHECKING:
        _parameters: dict[str, Parameter | None]
        _buffers: dict[str, Tensor | None]
        _modules: dict[str, Module | None]

    # --- walks -------------------------------------------------------------------------------------------------------

    def named_modules(
        self, memo: set[Module] | None = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Module]]:
        """Yield (dotted name, module) for this module and all below it.

        Args:
            memo: modules that have been seen already and are passed over.
            prefix: put before every name.
            remove_duplicate: whether a module that stands in several places is yielded only at the first.
        """
        seen = set() if memo is None else memo
        waiting = [(prefix, self)]
        while waiting:
            name, module = waiting.pop()
            if module is None or (remove_duplicate and module in seen):
                continue
            if remove_duplicate:
                seen.add(module)
            yield name, module
            lead = name + "." if name else ""
            waiting += [(lead + key, child) for key, child in reversed(module._modules.items())]

    def modules(self, remove_duplicate: bool = True) -> Iterator[Module]:
        """Yield this module and all below it."""
        for _, module in self.named_modules(remove_duplicate=remove_duplicate):
            yield module

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """Yield (name, module) for the modules directly below this one, each module once."""
        seen = set()
        for name, module in self._modules.items():
            if module is not None and module not in seen:
                seen.add(module)
                yield name, module

    def children(self) -> Iterator[Module]:
        """Yield the modules directly below this one, each once."""
        for _, module in self.named_children():
            yield module

    def _named_members(
        self, get_members_fn: Callable, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        """Yield (dotted name, member) for what `get_members_fn(module)` gives for each module of the tree."""
        seen = set()
        modules = self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate) if recurse else [(prefix, self)]
        for module_name, module in modules:
            lead = module_name + "." if module_name else ""
            for name, member in get_members_fn(module):
                if member is None or member in seen:
                    continue
                if remove_duplicate:
                    seen.add(member)
                yield lead + name, member

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """Yield (dotted name, parameter); `recurse=False` stays in this module."""
        return self._named_members(lambda module: module._parameters.items(), prefix, recurse, remove_duplicate)

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """Yield the parameters, each once; this is what an optimizer is given."""
        for _, parameter in self.named_parameters(recurse=recurse):
            yield parameter

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        """Yield (dotted name, buffer); `recurse=False` stays in this module."""
        return self._named_members(lambda module: module._buffers.items(), prefix, recurse, remove_duplicate)

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """Yield the buffers, each once."""
        for _, buffer in self.named_buffers(recurse=recurse):
            yield buffer

    # --- access by dotted path ---------------------------------------------------------------------------------------

    def get_submodule(self, target: str) -> Module:
        """The module at a dotted path such as `"encoder.layers.0"`; `""` is this module.

        Raises:
            AttributeError: a name on the path is not there, or is not a module.
        """
        module = self
        for name in target.split(".") if target else ():
            if not hasattr(module, name):
                raise AttributeError(_no_attribute(module, name, target))
            module = getattr(module, name)
            if not isinstance(module, Members):
                raise AttributeError(f"`{name}` is not an nn.Module: it is a {type(module).__name__} (in {target!r})")
        return module

    def set_submodule(self, target: str, module: Module, strict: bool = False) -> None:
        """Put a module at a dotted path, in place of the one that is there or, unless `strict`, as a new one.

        Raises:
            ValueError: the path is empty, or `module` is no module.
            AttributeError: a name on the path is not there, or is not a module.
        """
        if target == "":
            raise ValueError("Cannot set the submodule without a target name! To replace a whole model, assign it.")
        if not isinstance(module, Members):
            raise ValueError(f"`module` is not an nn.Module, found {type(module)}")
        path, _, name = target.rpartition(".")
        parent = self.get_submodule(path)
        if strict and not hasattr(parent, name):
            raise AttributeError(_no_attribute(parent, name, target) + ". Pass strict=False to add it")
        if hasattr(parent, name) and not isinstance(getattr(parent, name), Members):
            raise AttributeError(f"`{name}` is not an nn.Module: it is a {type(getattr(parent, name)).__name__}")
        setattr(parent, name, module)

    def get_parameter(self, target: str) -> Parameter:
        """The parameter at a dotted path; AttributeError where there is none."""
        module, name = self._owner(target)
        parameter = getattr(module, name)
        if not isinstance(parameter, Parameter):
            raise AttributeError(f"`{name}` is not an nn.Parameter: it is a {type(parameter).__name__}")
        return parameter

    def get_buffer(self, target: str) -> Tensor:
        """The buffer at a dotted path; AttributeError where there is none."""
        module, name = self._owner(target)
        if name not in module._buffers:
            raise AttributeError(f"`{name}` is not a buffer: it is a {type(getattr(module, name)).__name__}")
        return getattr(module, name)

    def _owner(self, target: str) -> tuple[Module, str]:
        """The module that holds the last name of a path, and that name."""
        path, _, name = target.rpartition(".")
        module = self.get_submodule(path)
        if not hasattr(module, name):
            raise AttributeError(_no_attribute(module, name, target))
        return module, name


def _no_attribute(module: Module, name: str, target: str) -> str:
    """The text of the error about a name on a path that is not there."""
    where = f" (in {target!r})" if "." in target else ""
    return f"{type(module).__name__} has no attribute `{name}`{where}"
