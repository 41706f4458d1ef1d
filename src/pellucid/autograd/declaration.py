"""What a declared operator is: its parameters, formulas and options, and its forward with promotion around it.

`autograd/operator.py` turns a declaration into functions; `autograd/call.py` calls one on the general road;
`autograd/templates.py` writes out the short road.
"""

from __future__ import annotations

import functools
import inspect
import re
from collections import namedtuple
from enum import Enum
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pellucid.autograd.registry import OPERATORS
from pellucid.core.dtype import Category, bfloat16, category, float16, get_default_dtype, number_dtype, promoted
from pellucid.core.errors import fail
from pellucid.core.quiet import quiet
from pellucid.core.tensor import Number, Tensor
from pellucid.kernels import elementwise

__all__ = [
    "NARROW",
    "OPERATORS",
    "Array",
    "Arrays",
    "Index",
    "Indices",
    "Operator",
    "Param",
    "Promote",
    "array_of",
    "arrays",
    "formula_arguments",
    "tensors",
    "wanted",
]

NARROW = (float16.numpy, bfloat16.numpy)  # computed in float32, rounded once


class Promote(Enum):
    """In which dtype the `Array` operands meet."""

    NONE = 0  # they must agree already
    SAME = 1  # the common dtype
    FLOAT = 2  # the common dtype, integers becoming the default float
    COMPARE = 3  # the common dtype; the result is a bool


class _Arrays:
    """`F` in a formula that runs on arrays: the raw forward of an operator, by name."""

    def __getattr__(self, name: str):
        if name not in OPERATORS:
            raise AttributeError(f"F.{name}: there is no operator of this name (a new one is found after docs/make_index.py has run)")
        found = OPERATORS[name].raw
        setattr(self, name, found)
        return found


class _Tensors:
    """`F` in a formula that runs on tensors: the public function of an operator, by name."""

    def __getattr__(self, name: str):
        if name not in OPERATORS:
            raise AttributeError(f"F.{name}: there is no operator of this name (a new one is found after docs/make_index.py has run)")
        found = OPERATORS[name].public
        setattr(self, name, found)
        return found


arrays, tensors = _Arrays(), _Tensors()


class Param(NamedTuple):
    """One parameter of a forward: kind is "array", "index", "arrays", "indices" or "attribute"."""

    name: str
    kind: str
    default: Any
    keyword: bool
    optional: bool  # None may stand for it


# Annotations of a forward's parameters say which are operands. They are read as text.
Array = Index = np.ndarray  # a tensor that takes part in promotion and may have a derivative; one that does not
Arrays = Indices = list  # a list of either

KINDS = {"Array": "array", "Index": "index", "Arrays": "arrays", "Indices": "indices"}
RESERVED = {"F", "xp", "grad", "tangent", "tangents", "result", "needs", "batched"}  # for formulas
RESERVED |= {"c", "d", "e", "f", "forward", "r", "road", "s"}  # for the code that is written for an operator
NODE_PARTS = {"adjust", "code", "edges", "extra", "fact", "facts", "lasti", "outputs", "sequence"}  # of nodes, beside what is saved
MISSING = inspect.Parameter.empty


def _parameters(forward) -> list[Param]:
    """The public parameters of a forward, from its signature and annotations."""
    found = []
    for name, p in list(inspect.signature(forward).parameters.items())[1:]:
        annotation = p.annotation if isinstance(p.annotation, str) else getattr(p.annotation, "__name__", "")
        optional = p.default is None or annotation.endswith(" | None")
        kind = KINDS.get(annotation.removesuffix(" | None"), "attribute")
        if name in RESERVED:
            raise TypeError(f"a parameter may not be called {name!r}: the name is reserved for formulas")
        found.append(Param(name, kind, p.default, p.kind is p.KEYWORD_ONLY, optional))
    return found


@functools.cache
def wanted(formula) -> list[str]:
    """What a formula asks for beside `F` and `grad`."""
    return [name for name in inspect.signature(formula).parameters if name not in ("F", "grad")]


@functools.cache
def formula_arguments(formula) -> list[str]:
    """The parameters of a formula after `F`, in order."""
    return list(inspect.signature(formula).parameters)[1:]


def _camel(name: str) -> str:
    return re.sub(r"(^|_)([a-z0-9])", lambda m: m.group(2).upper(), name)


class Operator:
    """One declared operator: everything the machinery knows about it."""

    def __init__(self, declaration: type, options: dict):
        self.name = options.pop("name", None) or declaration.__name__.rstrip("_")
        self.declaration, self.options = declaration, options

    if TYPE_CHECKING:
        canonical: Any
        node: Any
        outputs: Any
        public: Any
        raw: Any
        returns: Any
        source: str

    def __getattr__(self, name: str) -> Any:
        # Importing the library declares hundreds of operators and uses few: the rest is worked out on first use.
        if name.startswith("__") or "built" in self.__dict__:
            raise AttributeError(f"operator {self.name} has no {name!r}")
        self._read(self.declaration, dict(self.options))
        self.built = True
        self.complete(self)
        return getattr(self, name)

    complete = staticmethod(lambda op: None)  # autograd/templates.py puts node class and raw function in

    def _read(self, declaration: type, options: dict) -> None:
        """Work out everything from the declaration and its options."""
        own = {k: v for cls in reversed(declaration.__mro__) for k, v in cls.__dict__.items()}
        self.doc = inspect.cleandoc(declaration.__doc__ or "")
        self.forward = own["forward"]
        self.ufunc = options.pop("ufunc", None)
        self.large = elementwise.form_of(self.ufunc)  # what applies it to large arrays, on all threads
        self.promote: Promote = options.pop("promote", Promote.NONE)
        self.broadcast: bool = options.pop(
            "broadcast", self.promote is not Promote.NONE or options.get("elementwise", False)
        )
        self.view: bool = options.pop("view", False)
        self.multi_view: bool = options.pop("multi_view", False)
        self.holomorphic: bool = options.pop("holomorphic", True)
        self.exact: bool = options.pop("exact", self.view)  # its arithmetic raises no floating-point events
        # In PyTorch the backward of a fused operator is one function of the gradient and the operands: under create_graph
        # every gradient requires grad, also one that is constant in the operands.
        self.fused: bool = options.pop("fused", False)
        # Each element of the result depends on the one element of each operand that broadcasting puts beside it.
        self.elementwise: bool = options.pop("elementwise", self.promote is not Promote.NONE and self.broadcast)
        # Linear in all inputs together (True), or in each of them ("each"): tangents pass by calling it on them.
        self.linear: bool | str = options.pop("linear", self.view or self.multi_view)
        self.batching: str | None = options.pop("batching", None)  # see autograd/batching.py
        self.casts: bool = options.pop("casts", False)  # the result may be of a type without gradients
        self.fills: bool = options.pop("fills", False)  # in place, writes one value everywhere
        self.numbers: bool | tuple[str, ...] = options.pop(
            "numbers", False
        )  # Python numbers may stand for (these) Array operands
        self.widen: bool = options.pop("widen", not (self.view or self.multi_view))  # compute narrow floats in float32
        self.outputs = options.pop("outputs", ("result",))  # None: as many as forward returns
        self.constant: tuple[str, ...] = options.pop("constant", ())  # outputs without a derivative
        self.node_name = options.pop("node", f"{_camel(self.name)}Backward0")
        if options:
            raise TypeError(f"operator {self.name}: unknown options {', '.join(options)}")
        self.parameters = _parameters(self.forward)
        self.operands = [p for p in self.parameters if p.kind != "attribute"]
        self.attributes = [p.name for p in self.parameters if p.kind == "attribute"]
        self.canonical = own.get("canonical")
        self.formulas = {p.name: own.get(f"vjp_{p.name}") for p in self.operands}
        self.joint: Any = own.get("vjp")
        self.together: Any = own.get("vjp_arrays")  # `formulas` in one pass, on arrays, where all are asked for; or those it `needs`
        self.jvp: Any = own.get("jvp")
        self.jvp_formulas = {p.name: own[f"jvp_{p.name}"] for p in self.operands if f"jvp_{p.name}" in own}
        self.batch: Any = own.get("batch")
        self.samples, self.flops = own.get("samples", ()), own.get("flops")
        self.inputs = [
            p
            for p in self.operands
            if (p.kind in ("array", "arrays") if self.joint else self.formulas[p.name] is not None)
        ]
        self.differentiable = bool(self.inputs)
        if any(name.startswith("dim") for name in self.attributes):
            self.elementwise = False
        kept = [o for o in (self.outputs or ()) if o not in self.constant]
        self.multi = self.outputs is None or len(kept) > 1
        self.results = self.outputs if self.outputs and len(self.outputs) > 1 else None
        self._check(declaration)
        self.returns = None
        if self.results:
            self.returns = namedtuple(self.name, self.results)
            self.returns.__module__ = "torch.return_types"

    def _check(self, declaration) -> None:
        """Every name a formula asks for must exist, at import and not at the first backward."""
        names = {p.name for p in self.parameters}
        known = names | {f"{p.name}_shape" for p in self.operands} | {f"{p.name}_dtype" for p in self.operands}
        known |= set(self.outputs or ()) | {"needs", "tangent", "tangents"}
        known |= {"batched", "size_of_batch"}
        for name in self.outputs or ():
            if name in NODE_PARTS:
                raise TypeError(f"{declaration.__qualname__}: an output may not be called {name!r}, which every node has a place for")
        for formula in (self.joint, self.together, self.jvp, self.batch, *self.formulas.values(), *self.jvp_formulas.values()):
            if formula is None:
                continue
            for name in wanted(formula):
                if name not in known:
                    raise TypeError(
                        f"{declaration.__qualname__}.{formula.__name__}: there is no {name!r}; known are "
                        f"{', '.join(sorted(known))}"
                    )

    def __repr__(self) -> str:
        return f"<operator {self.name}>"

    # --- the general road --------------------------------------------------------------------------------------------

    def bind(self, values) -> list:
        """Operands as tensors, Numbers, None or lists of them; attributes untouched.

        Raises:
            TypeError: an operand that is no tensor (nor, where allowed, a Python number).
        """
        bound = []
        for p, value in zip(self.parameters, values, strict=True):
            if p.kind != "attribute":
                if p.kind in ("arrays", "indices"):
                    value = [self._operand(p, v, i) for i, v in enumerate(value)]
                elif not (value is None and p.optional):
                    value = self._operand(p, value)
            bound.append(value)
        if self.numbers and all(
            b.__class__ is Number for p, b in zip(self.parameters, bound, strict=True) if p.kind in ("array", "index")
        ):
            raise TypeError(
                f"{self.name}(): argument '{self.operands[0].name}' must be Tensor, not {type(bound[0]._array).__name__}"
            )
        return bound

    def takes_number(self, name: str) -> bool:
        """Whether a Python number may stand for this operand."""
        return self.numbers if isinstance(self.numbers, bool) else name in self.numbers

    def _operand(self, p, value, position: int | None = None):
        if isinstance(value, (Tensor, Number)):
            return value
        if p.kind == "indices" and value is None:
            return None
        if self.takes_number(p.name) and isinstance(value, (bool, int, float, complex, np.number, np.bool_)):
            return Number(value.item() if isinstance(value, np.generic) else value)
        where = f"'{p.name}'" if position is None else f"'{p.name}' (element {position})"
        raise TypeError(
            f"{self.name}(): argument {where} must be Tensor, not {type(value).__name__}"
            + (". Convert it with torch.from_numpy or torch.tensor." if isinstance(value, np.ndarray) else "")
        )

    def compute_dtype(self, bound) -> np.dtype | None:
        """The dtype in which the Array operands meet; None where the operator promotes nothing."""
        if self.promote is Promote.NONE:
            return None
        found, numbers = [], []
        for p, value in zip(self.parameters, bound, strict=True):
            for v in value if p.kind == "arrays" else [value] if p.kind == "array" else ():
                if v.__class__ is Number:
                    numbers.append(v._array)
                elif v is not None:
                    found.append(v._array)
        common = promoted(found, numbers)
        if self.promote is Promote.FLOAT and category(common) < Category.FLOAT:
            common = get_default_dtype().numpy
        return common

    def data(self, bound, common: np.dtype | None):
        """Run the forward in the compute dtype, with canonical attributes. Returns (result, all arguments as used)."""
        raw = [array_of(p.kind, v, common) for p, v in zip(self.parameters, bound, strict=True)]
        narrow = self._narrow(raw, common) if self.widen else None
        if narrow is not None:
            raw = [_widen(p, v, b) for p, v, b in zip(self.parameters, raw, bound, strict=True)]
        try:
            if self.canonical is not None:
                raw = self.canonicalised(raw)
            with quiet():
                positional, named = self.arguments(raw)
                result = self.forward(np, *positional, **named)
        except Exception as error:
            fail(self, error, bound)
        if narrow is not None and self.constant:  # facts for formulas keep what precision they have
            named = zip(self.outputs, result, strict=True)
            result = tuple([r if name in self.constant else _narrowed(r, narrow) for name, r in named])
        elif narrow is not None:
            result = _narrowed(result, narrow)
        return result, raw

    def arguments(self, raw) -> tuple[list, dict]:
        """All arguments, in order, as those given by position and those given by name."""
        positional = [v for p, v in zip(self.parameters, raw, strict=True) if not p.keyword]
        return positional, {p.name: v for p, v in zip(self.parameters, raw, strict=True) if p.keyword}

    def canonicalised(self, raw) -> list:
        """All arguments with the attributes in the form that formulas expect."""
        done = self.canonical(*raw)
        if len(self.attributes) == 1:
            done = (done,)
        canonical = dict(zip(self.attributes, done, strict=True))
        return [canonical.get(p.name, v) for p, v in zip(self.parameters, raw, strict=True)]

    def _narrow(self, raw, common) -> np.dtype | None:
        if common is not None:
            return common if common in NARROW else None
        for p, v in zip(self.parameters, raw, strict=True):
            for a in v if p.kind == "arrays" else [v] if p.kind == "array" else ():
                if a is not None and a.dtype in NARROW:
                    return a.dtype
        return None


def array_of(kind: str, value, common: np.dtype | None) -> Any:
    """The array of an operand, in the compute dtype; attributes as they are."""
    if kind == "attribute" or value is None:
        return value
    if kind == "arrays":
        return [array_of("array", v, common) for v in value]
    if kind == "indices":
        return [None if v is None else v._array for v in value]
    array = value._array
    if value.__class__ is Number:
        wanted_dtype = common if common is not None else number_dtype(array)
        try:
            return np.asarray(array, wanted_dtype)
        except OverflowError:  # an integer too large for the dtype wraps around, as in PyTorch
            return np.asarray(array).astype(wanted_dtype)
    if kind == "array" and common is not None and array.dtype != common:
        return array.astype(common)
    return array


def _widen(p, value, given):
    """An argument in float32 where it is a narrow float; a Python number is not rounded to the narrow type on the way."""
    if given.__class__ is Number and value.dtype in NARROW:
        return np.asarray(given._array, np.float32)
    if p.kind == "arrays":
        return [a.astype(np.float32) if a.dtype in NARROW else a for a in value]
    return value.astype(np.float32) if p.kind == "array" and value is not None and value.dtype in NARROW else value


def _narrowed(result, narrow: np.dtype):
    if isinstance(result, (tuple, list)):
        return type(result)(_narrowed(r, narrow) for r in result)
    return np.asarray(result).astype(narrow) if result.dtype == np.float32 else result
