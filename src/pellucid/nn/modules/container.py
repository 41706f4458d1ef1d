"""Modules that hold other modules or parameters: Sequential, ModuleList, ModuleDict, ParameterList, ParameterDict."""

from __future__ import annotations

import itertools
import operator
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from pellucid.core.tensor import Parameter, Tensor
from pellucid.nn.modules.module import Module, indent, typename

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Container", "ModuleDict", "ModuleList", "ParameterDict", "ParameterList", "Sequential"]


def _position(index: Any, size: int) -> int:
    """An index counted from the front; IndexError if it is out of range."""
    position = operator.index(index)
    if not -size <= position < size:
        raise IndexError(f"index {position} is out of range: there are {size} elements")
    return position % size


class Container(Module):
    """A module with the given submodules and no `forward`; kept for old programs."""

    def __init__(self, **modules: Module | None):
        super().__init__()
        for name, module in modules.items():
            self.add_module(name, module)


class _Row(Module):
    """What `Sequential` and `ModuleList` share: submodules in order, by index, slice and iteration."""

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Module]:
        return iter(self._modules.values())

    def _name_at(self, index: Any) -> str:
        """The name under which the module at an index is registered."""
        return next(itertools.islice(self._modules, _position(index, len(self)), None))

    def __setitem__(self, index: int, module: Module) -> None:
        setattr(self, self._name_at(index), module)

    def __delitem__(self, index: int | slice) -> None:
        names = list(self._modules)[index] if isinstance(index, slice) else [self._name_at(index)]
        for name in names:
            delattr(self, name)
        self._renumber(list(self._modules.values()))

    def _renumber(self, modules: Iterable[Module | None]) -> None:
        """Register these modules, and no others, under 0, 1, 2, ..."""
        self._modules = {str(number): module for number, module in enumerate(modules)}

    def append(self, module: Module):
        """Add a module at the end, and return this one."""
        self.add_module(str(len(self)), module)
        return self

    def insert(self, index: int, module: Module):
        """Add a module before the one at `index`, and return this one."""
        modules = list(self._modules.values())
        modules.insert(index, module)
        self._renumber(modules)
        return self

    def extend(self, modules: Iterable[Module]):
        """Add modules at the end, and return this one; TypeError if they cannot be iterated over."""
        if not isinstance(modules, Iterable):
            raise TypeError(
                f"{type(self).__name__}.extend should be called with an iterable, but got {type(modules).__name__}"
            )
        for module in list(modules):
            self.append(module)
        return self

    def pop(self, key: int | slice):
        """Take the module at an index (or those of a slice) out, and return it."""
        module = self[key]
        del self[key]
        return module


class Sequential(_Row):
    """Modules that are called one after the other, each with what the one before returned.

    Args:
        args: the modules, or one OrderedDict from names to modules.
    """

    def __init__(self, *args):
        super().__init__()
        named = args[0].items() if len(args) == 1 and isinstance(args[0], OrderedDict) else enumerate(args)
        for name, module in named:
            self.add_module(str(name), module)

    def forward(self, input):
        """Call the modules in turn."""
        for module in self._modules.values():
            input = module(input)
        return input

    def __getitem__(self, index: int | slice):
        if isinstance(index, slice):
            return type(self)(OrderedDict(list(self._modules.items())[index]))
        return self._modules[self._name_at(index)]

    def insert(self, index: int, module: Module) -> Sequential:
        """Add a module before the one at `index`, and return this one.

        Raises:
            AssertionError: `module` is not a Module.
            IndexError: the index is out of range.
        """
        if not isinstance(module, Module):
            raise AssertionError(f"module should be of type: {Module}, got {type(module).__name__}")
        if not -len(self) <= index <= len(self):
            raise IndexError(f"Index out of range: {index}, for {len(self)} modules")
        return super().insert(index, module)

    def __add__(self, other: Sequential) -> Sequential:
        self._check_sequential(other)
        return Sequential(*self, *other)

    def __iadd__(self, other: Sequential) -> Sequential:
        self._check_sequential(other)
        return self.extend(other)

    def __mul__(self, other: int) -> Sequential:
        self._check_count(other)
        return Sequential(*itertools.chain.from_iterable(itertools.repeat(list(self), other)))

    __rmul__ = __mul__

    def __imul__(self, other: int) -> Sequential:
        self._check_count(other)
        return self.extend(list(self) * (other - 1))

    def _check_sequential(self, other: Any) -> None:
        if not isinstance(other, Sequential):
            raise ValueError(f"add operator supports only objects of Sequential class, but {type(other)} is given.")

    def _check_count(self, other: Any) -> None:
        if not isinstance(other, int):
            raise TypeError(f"unsupported operand type(s) for *: {type(self)} and {type(other)}")
        if other <= 0:
            raise ValueError(f"Non-positive multiplication factor {other} for {type(self)}")


class ModuleList(_Row):
    """A list of modules; it registers them and leaves calling them to you."""

    def __init__(self, modules: Iterable[Module] | None = None):
        super().__init__()
        if modules is not None:
            self.extend(modules)

    def __getitem__(self, index: int | slice):
        if isinstance(index, slice):
            return type(self)(list(self._modules.values())[index])
        return self._modules[str(_position(index, len(self)))]

    def __setitem__(self, index: int, module: Module) -> None:
        setattr(self, str(_position(index, len(self))), module)

    def insert(self, index: int, module: Module) -> None:
        """Add a module before the one at `index`."""
        super().insert(index, module)

    def __iadd__(self, modules: Iterable[Module]) -> ModuleList:
        return self.extend(modules)

    def __add__(self, other: Iterable[Module]) -> ModuleList:
        return ModuleList([*self, *other])

    def __repr__(self) -> str:
        """Modules that print alike and follow one another are shown once, with their count."""
        lines, start = [], 0
        for text, group in itertools.groupby(repr(module) for module in self):
            count = len(list(group))
            label = f"({start})" if count == 1 else f"({start}-{start + count - 1})"
            lines.append(f"  {label}: " + indent(text if count == 1 else f"{count} x {text}"))
            start += count
        return f"{self._get_name()}(" + "".join(f"\n{line}" for line in lines) + ("\n)" if lines else ")")


def _pairs(name: str, values: Any) -> Iterator[tuple[str, Any]]:
    """The (key, value) pairs of a mapping, or of an iterable of pairs, for `update` of the class `name`."""
    if isinstance(values, (Mapping, ModuleDict, ParameterDict)):
        yield from values.items()
        return
    for number, pair in enumerate(values):
        if not isinstance(pair, Iterable):
            raise TypeError(f"{name} update sequence element #{number} should be Iterable; is {type(pair).__name__}")
        pair = list(pair)
        if len(pair) != 2:
            raise ValueError(f"{name} update sequence element #{number} has length {len(pair)}; 2 is required")
        yield pair[0], pair[1]


def _check_iterable(name: str, values: Any) -> None:
    if not isinstance(values, Iterable):
        raise TypeError(
            f"{name}.update should be called with an iterable of key/value pairs, but got {type(values).__name__}"
        )


class ModuleDict(Module):
    """Modules by name; it registers them and leaves calling them to you.

    Args:
        modules: a mapping from names to modules, or pairs of them.
    """

    def __init__(self, modules: Mapping[str, Module] | Iterable[tuple[str, Module]] | None = None):
        super().__init__()
        if modules is not None:
            self.update(modules)

    def __getitem__(self, key: str) -> Module:
        return self._modules[key]

    def __setitem__(self, key: str, module: Module) -> None:
        self.add_module(key, module)

    def __delitem__(self, key: str) -> None:
        del self._modules[key]

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __contains__(self, key: str) -> bool:
        return key in self._modules

    def clear(self) -> None:
        """Take all modules out."""
        self._modules.clear()

    def pop(self, key: str) -> Module:
        """Take a module out and return it; KeyError if it is not there."""
        return self._modules.pop(key)

    def keys(self):
        """The names."""
        return self._modules.keys()

    def items(self):
        """The pairs (name, module)."""
        return self._modules.items()

    def values(self):
        """The modules."""
        return self._modules.values()

    def update(self, modules: Mapping[str, Module] | Iterable[tuple[str, Module]]) -> None:
        """Add modules, in the place of those of the same name."""
        _check_iterable("ModuleDict", modules)
        for key, module in _pairs("ModuleDict", modules):
            self[key] = module


def _as_parameter(value: Any) -> Any:
    """A tensor as a parameter; anything else as it is."""
    return Parameter(value) if isinstance(value, Tensor) and not isinstance(value, Parameter) else value


def _member_line(key: Any, value: Any, kind: str) -> str:
    """How a parameter container prints one of its values; `kind` is what it calls the elements of a tensor."""
    if not isinstance(value, Tensor):
        return f"  ({key}): Object of type: {type(value).__name__}"
    what = "Parameter" if isinstance(value, Parameter) else "Tensor"
    size = "x".join(str(n) for n in value.shape)
    return f"  ({key}): {what} containing: [{kind} of size {size}]"


class ParameterList(Module):
    """A list whose tensors are registered as parameters; other values may stand in it too.

    Args:
        values: what to begin with. Tensors become Parameters.
    """

    def __init__(self, values: Iterable[Any] | None = None):
        super().__init__()
        self._size = 0
        if values is not None:
            self.extend(values)

    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return type(self)(self[i] for i in range(*index.indices(len(self))))
        return getattr(self, str(_position(index, len(self))))

    def __setitem__(self, index: int, value: Any) -> None:
        setattr(self, str(_position(index, len(self))), _as_parameter(value))

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self)))

    def __iadd__(self, values: Iterable[Any]) -> ParameterList:
        return self.extend(values)

    def append(self, value: Any) -> ParameterList:
        """Add a value at the end, and return the list."""
        self._size += 1
        self[self._size - 1] = value
        return self

    def extend(self, values: Iterable[Any]) -> ParameterList:
        """Add values at the end, and return the list; TypeError for a tensor, which would be taken apart."""
        if not isinstance(values, Iterable) or isinstance(values, Tensor):
            raise TypeError(f"ParameterList.extend should be called with an iterable, but got {type(values).__name__}")
        for value in values:
            self.append(value)
        return self

    def extra_repr(self) -> str:
        """One line a value."""
        return "\n".join(_member_line(i, v, getattr(v, "dtype", "")) for i, v in enumerate(self))

    def __call__(self, *args, **kwargs):
        raise RuntimeError("ParameterList should not be called.")


class ParameterDict(Module):
    """A dictionary whose tensors are registered as parameters; other values may stand in it too.

    Args:
        parameters: a mapping or pairs to begin with. Tensors become Parameters.
    """

    def __init__(self, parameters: Any = None):
        super().__init__()
        self._keys: dict[str, None] = {}
        if parameters is not None:
            self.update(parameters)

    @staticmethod
    def _check_key(key: Any) -> str:
        if not isinstance(key, str):
            raise TypeError(
                "Index given to ParameterDict cannot be used as a key as it is not a string "
                f"(type is '{type(key).__name__}')"
            )
        return key

    def __getitem__(self, key: str) -> Any:
        if self._check_key(key) not in self._keys:
            raise KeyError(key)
        return getattr(self, key)

    def __setitem__(self, key: str, value: Any) -> None:
        setattr(self, self._check_key(key), _as_parameter(value))
        self._keys[key] = None

    def __delitem__(self, key: str) -> None:
        del self._keys[key]
        delattr(self, key)

    def __len__(self) -> int:
        return len(self._keys)

    def __iter__(self) -> Iterator[str]:
        return iter(self._keys)

    def __reversed__(self) -> Iterator[str]:
        return reversed(self._keys)

    def __contains__(self, key: str) -> bool:
        return key in self._keys

    def copy(self) -> ParameterDict:
        """Another dictionary with the same values."""
        return ParameterDict(OrderedDict(self.items()))

    def setdefault(self, key: str, default: Any = None) -> Any:
        """The value of a key; if it is not there, `default` is put in first."""
        if key not in self:
            self[key] = default
        return self[key]

    def clear(self) -> None:
        """Take everything out."""
        for key in list(self._keys):
            del self[key]

    def pop(self, key: str) -> Any:
        """Take a value out and return it; KeyError if it is not there."""
        value = self[key]
        del self[key]
        return value

    def popitem(self) -> tuple[str, Any]:
        """Take the last pair out and return it; KeyError if there is none."""
        if not self._keys:
            raise KeyError("popitem(): ParameterDict is empty")
        key = next(reversed(self._keys))
        return key, self.pop(key)

    def get(self, key: str, default: Any = None) -> Any:
        """The value of a key, or `default`."""
        return self[key] if key in self else default

    def fromkeys(self, keys: Iterable[str], default: Any = None) -> ParameterDict:
        """A new dictionary with these keys and one value for all."""
        return ParameterDict((key, default) for key in keys)

    def keys(self):
        """The keys."""
        return self._keys.keys()

    def items(self) -> Iterator[tuple[str, Any]]:
        """The pairs (key, value)."""
        return ((key, self[key]) for key in self._keys)

    def values(self) -> Iterator[Any]:
        """The values."""
        return (self[key] for key in self._keys)

    def update(self, parameters: Any) -> None:
        """Add values, in the place of those of the same key. The keys of a plain dict are added in sorted order."""
        _check_iterable("ParameterDict", parameters)
        pairs = _pairs("ParameterDict", parameters)
        plain = isinstance(parameters, Mapping) and not isinstance(parameters, OrderedDict)
        for key, value in sorted(pairs, key=operator.itemgetter(0)) if plain else pairs:
            self[key] = value

    def extra_repr(self) -> str:
        """One line a value."""
        return "\n".join(_member_line(key, value, typename(value)) for key, value in self.items())

    def __call__(self, *args, **kwargs):
        raise RuntimeError("ParameterDict should not be called.")

    def __or__(self, other: ParameterDict) -> ParameterDict:
        merged = self.copy()
        merged.update(other)
        return merged

    def __ror__(self, other: ParameterDict) -> ParameterDict:
        merged = other.copy()
        merged.update(self)
        return merged

    def __ior__(self, other: ParameterDict) -> ParameterDict:
        self.update(other)
        return self
