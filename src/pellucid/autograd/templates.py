"""Hot path: the code written out for each operator, as dataclasses do it.

For a declaration this makes the short road of its public function (plain real tensors of one dtype, nothing watching),
its node class with `apply` (on arrays) and `apply_tensors` (on tensors, recorded), and its raw form for `F`.
Everything else is the general road in `autograd/call.py`, which decides the same things in plain code. To read what was
written for an operator: `pellucid.add.operator.source`.
"""

from __future__ import annotations

import builtins
import functools
import inspect
import linecache
import sys
import types

import numpy as np

from pellucid.autograd import call, declaration, lists
from pellucid.autograd.declaration import Operator, wanted
from pellucid.autograd.node import Adjust, Node, leaf_edge, next_sequence
from pellucid.autograd.saved import Packed, linked, stale, unpack_input, unpack_result
from pellucid.autograd.views import refresh, take_view
from pellucid.core.errors import fail
from pellucid.core.modes import RECORD, modes
from pellucid.core.quiet import hush, speak
from pellucid.core.sites import caller, outside
from pellucid.core.tensor import Counter, Number, Parameter, Tensor, make, wrap
from pellucid.kernels.elementwise import LARGE
from pellucid.kernels.few_rows import FewRows

__all__ = ["inplace_method", "node_class", "public_function", "raw_function", "reflected_function"]

_SCALARS: tuple[dict, dict] = {}, {}  # number -> read-only 0-d array, in float32 and float64


def scalar(value, dtype: np.dtype) -> np.ndarray:
    """A Python number as an array. Ufuncs take these in half the time they need for a number, so they are kept."""
    array = np.array(value, dtype)
    array.flags.writeable = False
    known = _SCALARS[dtype.itemsize // 4 - 1]
    if value:  # 0.0 and -0.0 are one key
        if len(known) > 2000:
            known.clear()
        known[value] = array
    return array


SCOPE = {
    "scalar": scalar, "scalars4": _SCALARS[0], "scalars8": _SCALARS[1],
    "make": make, "wrap": wrap, "Tensor": Tensor, "Parameter": Parameter, "Number": Number, "Counter": Counter,
    "Adjust": Adjust, "FewRows": FewRows,
    "ndarray": np.ndarray, "asarray": np.asarray, "f4": np.dtype(np.float32), "f8": np.dtype(np.float64), "xp": np,
    "modes": modes, "RECORD": RECORD, "hush": hush, "speak": speak, "getframe": sys._getframe, "outside": outside,
    "caller": caller, "next_sequence": next_sequence, "leaf_edge": leaf_edge, "linked": linked, "Packed": Packed,
    "refresh": refresh, "LARGE": LARGE,
    "take_view": take_view, "joined_list": lists.joined, "pieces_of_list": lists.pieces,
    "general": call.general, "inplace": call.inplace, "carry_cut": call.carry_cut, "view_step": call.view_step,
    "fail": fail, "stale": stale, "unpack_input": unpack_input, "unpack_result": unpack_result,
}  # fmt: skip


def _compile(op: Operator, what: str, source: str, scope: dict) -> None:
    """Run generated source; its lines stay readable in tracebacks."""
    filename = f"<pellucid {op.name} {what}>"
    linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
    exec(compile(source, filename, "exec"), scope)
    op.source = getattr(op, "source", "") + source


def _block(lines, depth: int) -> str:
    return "".join("    " * depth + line + "\n" for line in lines)


# --- node classes ----------------------------------------------------------------------------------------------------


def _saved_slots(op: Operator) -> dict[str, str]:
    """What the formulas name, and of which kind each is: operand, result, fact or attribute."""
    formulas = [op.joint] if op.joint else [f for f in op.formulas.values() if f]
    slots: dict[str, str] = {}
    operands = {p.name for p in op.operands}
    for formula in formulas:
        for name in wanted(formula):
            if name == "needs":
                continue
            kind = "attribute"
            if name in operands:
                kind = "operand"
            elif name in (op.outputs or ()):
                kind = "result"
            elif name.removesuffix("_shape") in operands or name.removesuffix("_dtype") in operands:
                kind = "fact"
            slots[name] = kind
    return slots


def node_class(op: Operator) -> type[Node]:
    """The class of the operator's nodes, with generated `apply` and `apply_tensors`."""
    slots = _saved_slots(op)
    members = list(slots)
    for name, kind in slots.items():
        members += [f"{name}_v"] if kind == "operand" else [f"{name}_c", f"{name}_v"] if kind == "result" else []
    if op.multi:
        members += ["facts", "outputs"]
    cls = type(op.node_name, (Node,), {"__slots__": tuple(members), "__module__": "pellucid.autograd.graph"})
    cls.operator, cls.slots, cls.kinds = op, tuple(slots), slots
    cls.multi = op.multi
    cls.saved = tuple(n for n, kind in slots.items() if kind in ("operand", "result"))
    if op.differentiable:
        scope: dict = dict(SCOPE, F_arrays=declaration.arrays, F_tensors=declaration.tensors)
        for name, formula in (("joint", op.joint), ("together", op.together), *op.formulas.items()):
            scope[f"vjp_{name}"] = formula
        for mode in ("apply", "apply_tensors"):
            setattr(cls, mode, _lazy(mode, functools.partial(_write_apply, op, slots, mode, scope)))
    return cls


def _write_apply(op: Operator, slots: dict, mode: str, scope: dict):
    _compile(op, mode, _apply_source(op, slots, mode), scope)
    return scope[mode]


def _apply_source(op: Operator, slots: dict, mode: str) -> str:
    """Source of `apply(n, grad, edges)`: call the needed formulas, then undo broadcasting and promotion if need be."""
    on_arrays = mode == "apply"
    suffix = "" if on_arrays else "_tensors"
    names = [p.name for p in op.inputs]
    is_list = bool(op.inputs) and op.inputs[0].kind == "arrays"
    lines = ["adjust = n.adjust", f"if adjust is not None: grad = adjust.before{suffix}(n, grad)"]
    if op.joint:
        lines += _in_one_call(op, slots, "joint", op.joint, on_arrays)
    elif is_list:
        lines += _in_one_call(op, slots, names[0], op.formulas[names[0]], on_arrays)
    elif on_arrays and op.together and "needs" in wanted(op.together):
        lines += _in_one_call(op, slots, "together", op.together, on_arrays, missing=True)
    else:
        each = _one_by_one(op, slots, names, on_arrays)
        if on_arrays and op.together:
            all_of_them = _in_one_call(op, slots, "together", op.together, on_arrays)
            each = ["if None not in edges:", *("    " + line for line in all_of_them), "else:", *("    " + line for line in each)]
        lines += each
    freed = [f"n.{name}" for name, kind in slots.items() if kind in ("operand", "result")]
    if freed:
        lines += [f"if keep is not True: {' = '.join(freed)} = None; n.adjust = keep"]
    if op.fused and not on_arrays:
        lines += ["results = linked(n, results)"]
    lines += [f"return results if adjust is None else adjust.after{suffix}(results)"]
    return f"def {mode}(n, grad, edges, keep):\n" + _block(lines, 1)


def _in_one_call(op: Operator, slots: dict, name: str, formula, on_arrays: bool, missing: bool = False) -> list[str]:
    """Lines that make `results` by one formula, known as `vjp_NAME`; `missing` if it gets None for what no needed formula names."""
    names = wanted(formula)
    lines = _loads(op, slots, names, on_arrays, missing)
    if "needs" in names:
        lines += ["needs = tuple([e is not None for e in edges])"]
    lines += [f"results = tuple(vjp_{name}(F{'_arrays' if on_arrays else '_tensors'}, {_arguments(formula)}))"]
    if on_arrays:  # arithmetic on 0-d arrays gives NumPy scalars
        lines += ["results = tuple([r if r is None or r.__class__ is ndarray else asarray(r) for r in results])"]
    return lines


def _one_by_one(op: Operator, slots: dict, names: list[str], on_arrays: bool) -> list[str]:
    """Lines that make `results`, a formula for each operand whose gradient is asked for."""
    lines = [f"{', '.join(f'e{k}' for k in range(len(names)))}, = edges"]
    shared = _shared(op, slots, names)
    for name, users in shared.items():
        lines += [f"if {' or '.join(f'e{k} is not None' for k in users)}:"]
        lines += ["    " + line for line in _loads(op, slots, [name], on_arrays)]
    for k, name in enumerate(names):
        own = [n for n in wanted(op.formulas[name]) if n not in shared]
        lines += [f"if e{k} is None: g{k} = None", "else:"]
        body = _loads(op, slots, own, on_arrays)
        body += [f"g{k} = vjp_{name}(F{'_arrays' if on_arrays else '_tensors'}, {_arguments(op.formulas[name])})"]
        if on_arrays:
            kept = f"g{k} is None or g{k}.__class__ is FewRows"
            body += [f"if g{k}.__class__ is not ndarray: g{k} = g{k} if {kept} else asarray(g{k})"]
        lines += ["    " + line for line in body]
    return [*lines, f"results = ({', '.join(f'g{k}' for k in range(len(names)))},)"]


def _shared(op: Operator, slots: dict, names: list[str]) -> dict[str, list[int]]:
    """Saved values that several formulas name, and the positions of those: hooks see each unpacked once a run."""
    users: dict[str, list[int]] = {}
    for k, name in enumerate(names):
        for value in wanted(op.formulas[name]):
            if slots.get(value) in ("operand", "result"):
                users.setdefault(value, []).append(k)
    return {value: positions for value, positions in users.items() if len(positions) > 1}


def _arguments(formula) -> str:
    """The arguments of a formula after F, by position: a call by name costs a tenth of a small operation."""
    formula = list(inspect.signature(formula).parameters)[1:]
    return ", ".join([f"s_{name}" if name not in ("needs", "grad") else name for name in formula])


def _loads(op: Operator, slots: dict, formula: list[str], on_arrays: bool, missing: bool = False) -> list[str]:
    """Lines that bring saved values into local names `s_NAME`, checking versions; None for operands that may be missing."""
    lines = []
    positions = {p.name: k for k, p in enumerate(op.inputs)}
    lists = {p.name for p in op.operands if p.kind in ("arrays", "indices")}
    optional = {p.name for p in op.operands if p.optional}
    for name in formula:
        kind = slots.get(name)
        if kind == "operand" and name in lists:
            lines += [f"s = n.{name}"]
            if on_arrays:
                lines += [f"s_{name} = s if s is None else [None if t is None else t._array for t in s]"]
            else:
                edge = "n.edges" if name in positions and op.inputs[0].kind == "arrays" else "None"
                lines += [f"s_{name} = unpack_input(n, s, {edge})"]
        elif kind == "operand":
            lines += [f"s = n.{name}"]
            body = ["c = s._counter", f"if c is not None and c.value != n.{name}_v: stale(n, {name!r}, c, n.{name}_v)"]
            edge = f"n.edges[{positions[name]}]" if name in positions else "None"
            body += [f"s_{name} = s._array" if on_arrays else f"s_{name} = unpack_input(n, s, {edge})"]
            if name in optional or missing:
                body = [f"if s is None: s_{name} = None", "else:", *("    " + line for line in body)]
            lines += body
        elif kind == "result":
            lines += [
                f"s = n.{name}",
                f"c = n.{name}_c",
                f"if c is not None and c.value != n.{name}_v and s.__class__ is not Packed:",
                f"    stale(n, {name!r}, c, n.{name}_v)",
            ]
            if on_arrays:
                lines += [f"s_{name} = s if s.__class__ is ndarray or s is None else s._array"]
            else:
                number = (
                    [o for o in op.outputs if o not in op.constant].index(name) if name not in op.constant else None
                )
                lines += [f"s_{name} = unpack_result(n, s, {number}, c)"]
        elif kind:
            lines += [f"s_{name} = n.{name}"]
    return lines


# --- public functions ------------------------------------------------------------------------------------------------


def _signature(op: Operator, with_out: bool) -> tuple[str, dict]:
    """Text of the public signature, and the default values it refers to."""
    parts, scope, starred = [], {}, False
    for p in op.parameters:
        if p.keyword and not starred:
            parts.append("*")
            starred = True
        text = p.name
        if p.default is not declaration.MISSING:
            scope[f"default_{p.name}"] = p.default
            text += f"=default_{p.name}"
        parts.append(text)
    if with_out:
        parts += ["out=None"] if starred else ["*", "out=None"]
    return ", ".join(parts), scope


_LAZY = compile(
    "def lazy(*args, **kwargs): return first_call(args, kwargs)", "<pellucid first call>", "exec"
).co_consts[0]


def _lazy(name: str, write):
    """A function whose code is written when it is first called: `write()` gives the finished function.

    The finished code is put into the function object that everybody already holds.
    """

    def first_call(args, kwargs):
        finish()
        return function(*args, **kwargs)

    def finish() -> None:
        made = write()
        function.__globals__.update(made.__globals__)
        function.__defaults__, function.__kwdefaults__ = made.__defaults__, made.__kwdefaults__
        function.__code__ = made.__code__

    function = types.FunctionType(
        _LAZY, {"first_call": first_call, "__name__": "pellucid.ops", "__builtins__": builtins}, name
    )
    function.finish, function.__qualname__ = finish, name
    function.__module__ = "pellucid"
    return function


def public_function(op: Operator):
    """The function users call: the short road where it applies, else the general road."""
    return _lazy(op.name, lambda: _write_public(op))


def _write_public(op: Operator):
    with_out = not (op.view or op.multi_view)
    signature, scope = _signature(op, with_out)
    values = ", ".join(p.name for p in op.parameters)
    away = f"return general(op, ({values},){', out' if with_out else ''})"
    scope = dict(
        SCOPE, op=op, node=op.node, apply=op.node.apply, forward=op.ufunc or op.forward, large=op.large, canonical=op.canonical,
        returns=op.returns, **scope
    )  # fmt: skip
    for p in op.parameters:
        if p.name in scope:
            raise TypeError(f"operator {op.name}: a parameter may not be called {p.name!r}, which names something in generated code")
    # one output with a derivative, and beside it any that have none
    simple = op.outputs is not None and tuple(op.outputs[1:]) == tuple(op.constant) and not op.multi_view
    simple = simple and all(p.kind in ("array", "index") for p in op.operands) and op.operands
    if not simple:
        short = lists.short_form(op)
        given = ", ".join(p.name for p in op.parameters)
        lines = [away]
        if short:
            unless = "if out is None: " if with_out else ""
            lines = ["r = None", f"{unless}r = {short}(op, {given})", "if r is not None: return r", away]
    elif op.numbers and len(op.operands) == 2 and op.operands[0].kind == op.operands[1].kind == "array":
        lines = _short_binary(op, away, with_out)
    else:
        lines = _short(op, away, with_out)
    _compile(op, "forward", f"def {op.name}({signature}):\n" + _block(lines, 1), scope)
    return scope[op.name]


def _unusual(op: Operator, with_out: bool) -> str:
    """The condition under which even a plain call leaves the short road."""
    tests = ["not road"] + (["out is not None"] if with_out else [])
    if op.ufunc is not None:
        tests += [f"{name} is not default_{name}" for name in op.attributes]
    return " or ".join(tests)


def _short_binary(op: Operator, away: str, with_out: bool) -> list[str]:
    """Two operands, either of which may be a Python number: one straight piece of code for each of the three cases."""
    a, b = (p.name for p in op.operands)
    inputs = [p.name for p in op.inputs]
    shapes = ", ".join(f"x_{name}.shape if r_{name} else None" for name in inputs)
    nones = ", ".join(["None"] * len(inputs))
    both = f"None if x_{a}.shape == x_{b}.shape else Adjust(({shapes},), ({nones},), False, None)"
    first = (
        []
        if not op.takes_number(a)
        else [
            "if (ca is float or ca is int) and (cb is Tensor or cb is Parameter):",
            f"    x_{b} = {b}._array; dtype = x_{b}.dtype",
            f"    if dtype is not f4 and dtype is not f8: {away}",
            f"    x_{a} = (scalars4 if dtype is f4 else scalars8).get({a})",
            f"    if x_{a} is None: x_{a} = scalar({a}, dtype)",
            *("    " + line for line in _run(op) + _tail(op, "None", number=a)),
        ]
    )
    return [
        "road = modes.road",
        f"if {_unusual(op, with_out)}: {away}",
        f"ca = {a}.__class__; cb = {b}.__class__",
        "if ca is Tensor or ca is Parameter:",
        f"    x_{a} = {a}._array; dtype = x_{a}.dtype",
        f"    if dtype is not f4 and dtype is not f8: {away}",
        "    if cb is Tensor or cb is Parameter:",
        f"        x_{b} = {b}._array",
        f"        if x_{b}.dtype is not dtype: {away}",
        *("        " + line for line in _run(op) + _tail(op, both)),
        "    if cb is float or cb is int:",
        f"        x_{b} = (scalars4 if dtype is f4 else scalars8).get({b})",
        f"        if x_{b} is None: x_{b} = scalar({b}, dtype)",
        *("        " + line for line in _run(op) + _tail(op, "None", number=b)),
        f"    {away}",
        *first,
        away,
    ]


def _short(op: Operator, away: str, with_out: bool) -> list[str]:
    """Operands that are tensors, or None where that is the default."""
    lines = ["road = modes.road", f"if {_unusual(op, with_out)}: {away}"]
    first = None
    for p in op.operands:
        plain = [
            f"c = {p.name}.__class__",
            f"if c is not Tensor and c is not Parameter: {away}",
            f"x_{p.name} = {p.name}._array",
        ]
        if p.kind == "array":
            if first is None:
                first = p.name
                plain += [f"dtype = x_{first}.dtype", f"if dtype is not f4 and dtype is not f8: {away}"]
            else:
                plain += [f"if x_{p.name}.dtype is not dtype: {away}"]
        if p.optional:
            lines += [f"if {p.name} is None: x_{p.name} = None", "else:", *("    " + line for line in plain)]
        else:
            lines += plain
    adjust = "None"
    inputs = [p.name for p in op.inputs]
    if op.broadcast and len(op.operands) > 1 and inputs:
        shapes = ", ".join(f"x_{name}.shape if r_{name} else None" for name in inputs)
        optional = {p.name for p in op.inputs if p.optional}
        same = " and ".join(
            f"({f'x_{name} is None or ' if name in optional else ''}x_{name}.shape == d.shape)" for name in inputs
        )
        nones = ", ".join(["None"] * len(inputs))
        adjust = f"None if {same} else Adjust(({shapes},), ({nones},), False, None)"
    return lines + _run(op) + _tail(op, adjust)


def _run(op: Operator) -> list[str]:
    """Call the forward on arrays `x_NAME`."""
    names = [f"x_{p.name}" if p.kind != "attribute" else p.name for p in op.parameters]
    lines = []
    attributes = ", ".join(op.attributes)
    if op.ufunc is not None:
        arrays = [f"x_{p.name}" for p in op.operands]
        run = f"d = forward({', '.join(arrays)})"
        if op.large is not None:
            run += f" if {arrays[0]}.size < LARGE else large(forward, {', '.join(arrays)})"
    else:
        passed = [n if not p.keyword else f"{p.name}={n}" for p, n in zip(op.parameters, names, strict=True)]
        run = f"{', '.join(['d', *_beside(op, 'd')])} = forward(xp, {', '.join(passed)})"
    body = [run]
    if op.canonical is not None:
        body = [f"{attributes} = canonical({', '.join(names)})", run]
    operands = ", ".join(p.name for p in op.parameters)
    caught = f"except Exception as error: fail(op, error, ({operands},))"
    if op.exact:  # overflow can still raise, where the user has made warnings errors
        again = ["token = hush()", f"try: {run}", "finally: speak(token)"]
        lines += ["try:", *("    " + line for line in body), "except RuntimeWarning:", *("    " + a for a in again), caught]
    else:
        lines += ["token = hush()", "try:", *("    " + line for line in body), caught, "finally: speak(token)"]
    return [*lines, *(f"if {d}.__class__ is not ndarray: {d} = asarray({d})" for d in ("d", *_beside(op, "d")))]


def _beside(op: Operator, letter: str) -> list[str]:
    """Names for the outputs without a derivative that stand beside the first: d1, d2 (arrays) or r1, r2 (tensors)."""
    return [f"{letter}{k}" for k in range(1, len(op.outputs))]


def _tail(op: Operator, adjust: str, number: str = "") -> list[str]:
    """Make the result and, where a gradient is wanted, the node. `number` names the operand that is a Python number."""
    operands = [p for p in op.operands if p.name != number]
    inputs = [p for p in op.inputs if p.name != number]
    guards = {p.name: f"{p.name} is not None and " if p.optional else "" for p in operands}
    lines = ["r = make(); r._array = d; r._grad = r._view = r._counter = r._rare = None"]
    lines += [f"{r} = wrap({d})" for r, d in zip(_beside(op, "r"), _beside(op, "d"), strict=True)]
    done = f"return returns({', '.join(['r', *_beside(op, 'r')])})" if op.results else "return r"
    lines += [f"if {guards[p.name]}{p.name}._view is not None: refresh({p.name})" for p in operands]
    attach = []
    if op.view:
        rest = ", ".join(p.name if p.kind == "attribute" else f"x_{p.name}" for p in op.parameters[1:])
        attach = [
            f"take_view(r, {op.operands[0].name}, view_step(op, ({rest}{',' if rest else ''})), {op.node_name!r})"
        ]
    carry = "; ".join(
        f"carry_cut({r}, ({', '.join(p.name for p in operands)},), need, {op.name!r})" for r in ("r", *_beside(op, "r"))
    )
    rares = " or ".join(f"({guards[p.name]}{p.name}._rare is not None)" for p in operands)
    if not inputs:
        need = " or ".join(f"({guards[p.name]}{p.name}._requires_grad)" for p in operands)
        return [
            *lines,
            *attach,
            "r._requires_grad = False; r._edge = None",
            f"need = {need}",
            f"if need or {rares}: {carry}",
            done,
        ]
    if len(inputs) == 1:
        lines += [f"need = r_{inputs[0].name} = {guards[inputs[0].name]}{inputs[0].name}._requires_grad"]
    else:
        lines += [f"r_{p.name} = {guards[p.name]}{p.name}._requires_grad" for p in inputs]
        lines += [f"need = {' or '.join(f'r_{p.name}' for p in inputs)}"]
    edges = ", ".join("None" if p.name == number else _edge_source(p.name, len(inputs) == 1) for p in op.inputs)
    made = [
        "n = node()",
        f"n.edges = edges = ({edges},)",
        f"n.adjust = {adjust}",
        "n.sequence = next_sequence(); n.extra = None; n.fact = d.shape, d.dtype",
        "f = getframe(1); code = f.f_code",
        "if outside[code.co_filename]: n.code = code; n.lasti = f.f_lasti",
        "else: n.code, n.lasti = caller(f)",
        *_save_lines(op, number),
        "r._requires_grad = True; r._edge = (n, 0, None, edges, apply)",
    ]
    kept = " and d.dtype.kind in 'fcV'" if op.casts else ""  # the result may be of a type without gradients
    lines += [f"if need and road is RECORD{kept}:", *("    " + line for line in made)]
    return [
        *lines,
        "else:",
        "    r._requires_grad = False; r._edge = None",
        f"    if need or {rares}: {carry}",
        *attach,
        done,
    ]


def _edge_source(name: str, needed: bool) -> str:
    edge = f"{name}._edge or leaf_edge({name})"
    return edge if needed else f"({edge}) if r_{name} else None"


def _save_lines(op: Operator, number: str = "") -> list[str]:
    """Keep what the needed formulas name."""
    lines = []
    inputs = [p.name for p in op.inputs if p.name != number]
    optional = {p.name for p in op.operands if p.optional}
    for name, kind in _saved_slots(op).items():
        users = inputs if op.joint else [i for i in inputs if name in wanted(op.formulas[i])]
        if not users:
            lines += [f"n.{name} = None"]
        elif kind == "attribute":
            lines += [f"n.{name} = {name}"]
        elif kind == "fact":
            operand, _, what = name.rpartition("_")
            guard = f" if x_{operand} is not None else None" if operand in optional else ""
            lines += [f"n.{name} = x_{operand}.{what}{guard}"]
        elif name == number:
            lines += [f"n.{name} = Number(x_{name})"]
        elif kind == "operand":
            keep = f"n.{name} = {name}; c = {name}._counter; n.{name}_v = 0 if c is None else c.value"
            if name in optional:
                keep = (
                    f"n.{name} = {name}; c = None if {name} is None else {name}._counter; "
                    f"n.{name}_v = 0 if c is None else c.value"
                )
            lines += _only_if_needed(users, inputs, keep, f"n.{name} = None")
        else:
            number_of = str(op.outputs.index(name) or "")
            keep = f"n.{name} = d{number_of}; n.{name}_v = 0; r{number_of}._counter = n.{name}_c = Counter()"
            lines += _only_if_needed(users, inputs, keep, f"n.{name} = n.{name}_c = None")
    return lines


def _only_if_needed(users, inputs, keep: str, drop: str) -> list[str]:
    if set(users) == set(inputs):
        return [keep]
    return [f"if {' or '.join(f'r_{u}' for u in users)}: {keep}", f"else: {drop}"]


# --- the other forms of a function -----------------------------------------------------------------------------------


def raw_function(op: Operator):
    """The operator on arrays, for the namespace `F` that formulas get."""
    if op.ufunc is not None and not op.attributes:
        return op.ufunc
    signature, scope = _signature(op, False)
    scope = dict(SCOPE, forward=op.forward, canonical=op.canonical, **scope)
    lines = []
    if op.canonical is not None:
        lines += [f"{', '.join(op.attributes)} = canonical({', '.join(p.name for p in op.parameters)})"]
    passed = ", ".join(p.name if not p.keyword else f"{p.name}={p.name}" for p in op.parameters)
    lines += [f"return forward(xp, {passed})"]
    _compile(op, "raw", f"def {op.name}({signature}):\n" + _block(lines, 1), scope)
    return scope[op.name]


def reflected_function(public):
    """`__radd__` and the like: the operands in the other order."""
    return lambda self, other: public(other, self)


def inplace_method(op: Operator):
    """`tensor.name_(...)`."""

    def write():
        signature, scope = _signature(op, False)
        rest = "".join(f"{p.name}, " for p in op.parameters[1:])
        scope = dict(SCOPE, op=op, **scope)
        source = f"def {op.name}_({signature}):\n    return inplace(op, {op.parameters[0].name}, ({rest}))\n"
        _compile(op, "inplace", source, scope)
        return scope[f"{op.name}_"]

    method = _lazy(f"{op.name}_", write)
    method.__doc__ = f"In-place form of `{op.name}`: writes the result into this tensor and returns it."
    return method


def _complete(op: Operator) -> None:
    """What an operator has beside its declaration."""
    op.node = node_class(op)
    op.raw = raw_function(op)


Operator.complete = staticmethod(_complete)
