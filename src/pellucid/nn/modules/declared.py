"""A short way to write a module that is nothing but its settings.

    @declared
    class ELU(Module):
        alpha: float = 1.0
        inplace: bool = False

        def forward(self, input):
            return F.elu(input, self.alpha, self.inplace)

The annotated names are the constructor's arguments, in this order, and the attributes of the instance. Modules that do
more than keep their arguments have an `__init__` of their own and no use for this file.
"""

from __future__ import annotations

import inspect
from typing import Any

from pellucid.nn.modules.module import Module

__all__ = ["Declared", "declared"]

REQUIRED = inspect.Parameter.empty


def declared(cls: type | None = None, *, inherit: bool = True):
    """Class decorator: add the annotated names of the class to the fields it has inherited.

    `@declared(inherit=False)` lets it have only its own, where they come in another order than in the base.
    """
    if cls is None:
        return lambda cls: declared(cls, inherit=inherit)
    own = {name: cls.__dict__.get(name, REQUIRED) for name in cls.__annotations__}
    for name, default in own.items():
        if default is not REQUIRED:
            delattr(cls, name)  # or a buffer of this name could not be registered
    cls._fields = {**(cls._fields if inherit else {}), **own}
    return cls


class _Signature:
    """`inspect.signature` of a class whose constructor is that of `Declared`."""

    def __get__(self, instance, owner: type) -> inspect.Signature:
        if owner.__init__ is not Declared.__init__:
            raise AttributeError("__signature__")  # a subclass with an __init__ of its own: look at that
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        return inspect.Signature([inspect.Parameter(name, kind, default=d) for name, d in owner._fields.items()])


class Declared(Module):
    """The base of modules written with `declared`.

    A subclass may name in `_shown` the fields that `repr` shows as name=value, and define `_settle`, which is called
    when the fields are set.
    """

    _fields: dict[str, Any] = {}  # noqa: RUF012 - never changed, only replaced in subclasses
    _shown: tuple[str, ...] = ()
    __signature__ = _Signature()

    def __init__(self, *args, **kwargs):
        super().__init__()
        for name, value in self._bind(args, kwargs).items():
            setattr(self, name, value)
        self._settle()

    def _settle(self) -> None:
        """Check or complete the fields."""

    def _bind(self, args: tuple, kwargs: dict) -> dict[str, Any]:
        """The value of each field, from the arguments or by default; TypeError as for any function."""
        fields, name = self._fields, type(self).__name__
        if len(args) > len(fields):
            counts = f"{len(fields) + 1} positional arguments but {len(args) + 1} were given"
            raise TypeError(f"{name}.__init__() takes {counts}")
        given = dict(zip(fields, args, strict=False))
        for key in kwargs:
            if key not in fields:
                raise TypeError(f"{name}.__init__() got an unexpected keyword argument '{key}'")
            if key in given:
                raise TypeError(f"{name}.__init__() got multiple values for argument '{key}'")
        values = {**fields, **given, **kwargs}
        missing = [f"'{key}'" for key, value in values.items() if value is REQUIRED]
        if missing:
            raise TypeError(f"{name}.__init__() missing required arguments: {', '.join(missing)}")
        return values

    def extra_repr(self) -> str:
        """The fields to show; `inplace` only when it is on."""
        shown = [name for name in self._shown if name != "inplace" or self.inplace]
        return ", ".join(f"{name}={getattr(self, name)!r}" for name in shown)
