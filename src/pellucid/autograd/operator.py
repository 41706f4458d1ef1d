"""`@operator(...)` and `@composite(...)`: how functions become public.

The first turns a declaration into the public function, Tensor methods, node class and names in `F`. The second makes a
plain Python function, composed of operators, public under the same kinds of names. `PUBLIC` lists what each public
module exports; `pellucid/__init__.py` and its submodules take their names from there.
"""

from __future__ import annotations

from pellucid.autograd import templates
from pellucid.autograd.declaration import (
    OPERATORS,
    Array,
    Arrays,
    Index,
    Indices,
    Operator,
    Promote,
    arrays,
    tensors,
)
from pellucid.autograd.registry import PUBLIC, Registry
from pellucid.core.tensor import Tensor

__all__ = [
    "OPERATORS",
    "PUBLIC",
    "Array",
    "Arrays",
    "Index",
    "Indices",
    "Operator",
    "Promote",
    "arrays",
    "composite",
    "operator",
    "tensors",
]

NAMES = ("method", "inplace", "dunder", "reflected", "idunder", "alias", "module")


def operator(**options):
    """Declare an operator: the class below is the declaration; its public function takes its place.

    Options of the operator itself: `promote`, `numbers`, `broadcast`, `view`, `multi_view`, `holomorphic`, `exact`,
    `outputs`, `constant`, `node`, `ufunc`, `large`, `widen`, `casts`, `fills`, `fused`, `name` (see Operator). The names it goes by:

    Args:
        method: True for a Tensor method of the same name (and aliases).
        inplace: True for an in-place method `name_`.
        dunder, reflected, idunder: names of Python operators, such as "__add__", "__radd__", "__iadd__".
        alias: further public names.
        module: public module or modules that export it; "torch" by default, None for one that only formulas use.
    """
    names = {k: options.pop(k) for k in NAMES if k in options}

    def declare(declaration: type):
        op = Operator(declaration, options)
        if OPERATORS.declared(op.name):
            raise TypeError(f"there is an operator {op.name!r} already: formulas know operators by their bare names")
        public = templates.public_function(op)
        public.__doc__ = declaration.__doc__
        op.public, public.operator = public, op
        OPERATORS[op.name] = op
        _attach(
            op.name,
            public,
            inplace_method=templates.inplace_method(op) if names.pop("inplace", False) else None,
            **names,
        )
        return public

    return declare


def composite(**names):
    """Make a function that is composed of operators public; the names are given as for `operator`."""

    def declare(function):
        name = function.__name__.rstrip("_") if not function.__name__.endswith("__") else function.__name__
        name = names.pop("name", name)
        inplace_method = names.pop("inplace", None)
        _attach(name, function, inplace_method=inplace_method, **names)
        return function

    return declare


def _attach(name: str, public, *, method=False, dunder=(), reflected=(), idunder=(), alias=(), module="torch",
            inplace_method=None) -> None:  # fmt: skip
    """Put a function under all of its names."""
    every = (name, *alias)
    for where in (module,) if isinstance(module, str) else module or ():
        exported = PUBLIC.setdefault(where, Registry())
        for each in every:
            exported[each] = public
    if method:
        for each in every:
            setattr(Tensor, each, public)
    for each in dunder:
        setattr(Tensor, each, public)
    for each in reflected:
        setattr(Tensor, each, templates.reflected_function(public))
    if inplace_method is not None:
        for each in every:
            setattr(Tensor, f"{each}_", inplace_method)
        for each in idunder:
            setattr(Tensor, each, inplace_method)
