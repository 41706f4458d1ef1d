"""Every operator's declaration is a test: each sample must pass each property. A new operator is covered without more.

The samples come from the declarations (`samples`); what is asked of them stands here.
"""

from __future__ import annotations

import gc
import itertools
import warnings
import weakref

import numpy as np
import pytest

import pellucid
from pellucid.autograd.declaration import OPERATORS, arrays, wanted
from pellucid.autograd.samples import Make
from pellucid.core.modes import modes
from pellucid.core.quiet import quiet
from pellucid.core.tensor import Tensor, wrap


def samples_of(op, dtype=np.float64):
    return list(op.samples(Make(0, dtype))) if callable(op.samples) else list(op.samples)


def cases(predicate=lambda op: True) -> list:
    """One parameter set for each sample of each operator that the predicate lets through."""
    return [
        pytest.param(op, args, kwargs, id=f"{name}-{index}")
        for name, op in sorted(OPERATORS.items())
        if op.samples and predicate(op)
        for index, (args, kwargs) in enumerate(samples_of(op))
    ]


def to_tensors(value, needs_grad: bool):
    """Arrays of a sample as tensors; floating-point ones require grad where asked."""
    if isinstance(value, np.ndarray):
        return wrap(value.copy(order="K"), bool(needs_grad and value.dtype.kind in "fc"))
    if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
        return type(value)(to_tensors(v, needs_grad) for v in value)
    return value


def operands(op, args):
    """The arguments of a sample as tensors; those that may have a derivative require grad."""
    inputs = {p.name for p in op.inputs}
    names = [p.name for p in op.parameters] + [None] * len(args)
    return [to_tensors(a, name in inputs) for name, a in zip(names, args, strict=False)]


def tensors_in(values):
    for v in values:
        if isinstance(v, Tensor):
            yield v
        elif isinstance(v, (list, tuple)):
            yield from tensors_in(v)


def call(op, args, kwargs):
    out = op.public(*args, **kwargs)
    return list(out) if isinstance(out, tuple) else [out]


def derivative(op, args, kwargs, create_graph=False):
    """Gradients of a fixed random combination of the results; None where there is nothing to differentiate."""
    outputs = [o for o in call(op, args, kwargs) if o.requires_grad]
    leaves = [t for t in tensors_in([*args, *kwargs.values()]) if t.requires_grad]
    if not outputs or not leaves:
        return None
    rng = np.random.default_rng(5)
    seeds = [wrap(np.asarray(rng.standard_normal(o.shape), o._array.dtype)) for o in outputs]
    return pellucid.autograd.grad(outputs, leaves, seeds, create_graph=create_graph, allow_unused=True)


@pytest.fixture(autouse=True)
def _loud():
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        yield


@pytest.mark.parametrize("name", sorted(OPERATORS))
def test_declaration_is_consistent(name):
    """Names in formulas exist, the code of both roads can be written, a purpose is stated."""
    op = OPERATORS[name]
    if hasattr(op.public, "finish"):
        op.public.finish()
    if op.differentiable:
        op.node.apply.finish()
        op.node.apply_tensors.finish()
    assert op.doc, "an operator without a docstring"


@pytest.mark.parametrize(("op", "args", "kwargs"), cases(lambda op: op.differentiable))
def test_first_derivative(op, args, kwargs):
    targs = operands(op, args)
    assert pellucid.autograd.gradcheck(lambda *a: tuple(call(op, a, kwargs)), targs)


@pytest.mark.parametrize(("op", "args", "kwargs"), cases(lambda op: op.together is not None))
def test_gradients_made_together_are_those_made_one_by_one(op, args, kwargs):
    values: dict = dict(zip([p.name for p in op.operands], args, strict=False))
    values |= {f"{name}_shape": value.shape for name, value in values.items() if value is not None}
    grad = np.asarray(np.random.default_rng(6).standard_normal(np.shape(op.forward(np, *args, **kwargs))))
    given = [p.name for p in op.inputs if values.get(p.name) is not None]
    some = (True, False) if "needs" in wanted(op.together) else (True,)
    for needed in itertools.product(some, repeat=len(given)):
        values["needs"] = tuple(dict(zip(given, needed, strict=True)).get(p.name, False) for p in op.inputs)
        saved = {"needs", *(name for p, need in zip(op.inputs, values["needs"], strict=True) if need for name in wanted(op.formulas[p.name]))}
        if len(some) == 1:
            saved |= set(values)
        given_values = {name: values.get(name) if name in saved else None for name in wanted(op.together) if name != "grad"}
        together = op.together(arrays, grad, **given_values)
        for made, need, formula in zip(together, values["needs"], op.formulas.values(), strict=True):
            if not need:
                assert made is None
                continue
            alone = formula(arrays, grad, **{name: values[name] for name in wanted(formula) if name != "grad"})
            assert made.shape == alone.shape
            np.testing.assert_allclose(made, alone, rtol=1e-12)


@pytest.mark.parametrize(("op", "args", "kwargs"), cases(lambda op: op.differentiable))
def test_second_derivative(op, args, kwargs):
    targs = operands(op, args)
    first = derivative(op, targs, kwargs, create_graph=True)
    if first is None or not any(g is not None and g.requires_grad for g in first):
        pytest.skip("the first derivative is constant")
    assert pellucid.autograd.gradgradcheck(lambda *a: tuple(call(op, a, kwargs)), targs, fast_mode=True)


@pytest.mark.parametrize(("op", "args", "kwargs"), cases())
def test_operands_are_not_modified_nor_shared(op, args, kwargs):
    targs = operands(op, args)
    before = [t._array.copy() for t in tensors_in(targs)]
    outputs = call(op, targs, kwargs)
    derivative(op, targs, kwargs)
    for t, old in zip(tensors_in(targs), before, strict=True):
        np.testing.assert_array_equal(t._array, old)
    for out in outputs:
        shared = any(np.shares_memory(out._array, t._array) for t in tensors_in(targs))
        assert not shared or op.view or op.multi_view, "a result that shares memory must be declared a view"


@pytest.mark.parametrize(("op", "args", "kwargs"), cases(lambda op: op.differentiable))
def test_arrays_and_tensors_give_the_same_derivative(op, args, kwargs):
    on_arrays = derivative(op, operands(op, args), kwargs)
    on_tensors = derivative(op, operands(op, args), kwargs, create_graph=True)
    for a, b in zip(on_arrays or (), on_tensors or (), strict=True):
        assert (a is None) == (b is None)
        if a is not None:
            np.testing.assert_allclose(a._array, b._array, rtol=1e-12, atol=1e-13)
            assert a.shape == b.shape
            assert a.dtype is b.dtype


@pytest.mark.parametrize(("op", "args", "kwargs"), cases(lambda op: op.differentiable))
def test_both_roads_agree(op, args, kwargs):
    """The generated short road and the general road make the same values, gradients and node."""
    short = call(op, operands(op, args), kwargs)
    short_grads = derivative(op, operands(op, args), kwargs)
    modes.observers = (lambda *event: None,)
    modes.update()
    try:
        general = call(op, operands(op, args), kwargs)
        general_grads = derivative(op, operands(op, args), kwargs)
    finally:
        modes.observers = ()
        modes.update()
    for a, b in zip(short, general, strict=True):
        np.testing.assert_array_equal(a._array, b._array)
        assert (a.grad_fn is None) == (b.grad_fn is None)
        assert a.grad_fn is None or a.grad_fn.name() == b.grad_fn.name()
        assert a.requires_grad == b.requires_grad
    for a, b in zip(short_grads or (), general_grads or (), strict=True):
        assert a is b is None or np.array_equal(a._array, b._array, equal_nan=True)


@pytest.mark.parametrize(("op", "args", "kwargs"), cases(lambda op: op.differentiable))
def test_formulas_hand_out_no_saved_memory(op, args, kwargs):
    """What a node returns may be written to by the engine, except views and the gradient itself."""
    targs = operands(op, args)
    outputs = [o for o in call(op, targs, kwargs) if o.requires_grad]
    if not outputs:
        pytest.skip("nothing to differentiate")
    node = outputs[0].grad_fn
    rng = np.random.default_rng(3)
    seeds = [np.asarray(rng.standard_normal(o.shape), o._array.dtype) for o in outputs if o.grad_fn is node]
    grad = seeds if node.multi else seeds[0]
    if node.multi:
        grad = [None] * node.outputs
        for o, s in zip(outputs, seeds, strict=True):
            grad[o.output_nr] = s
    mine = [s for s in seeds]
    held = [t._array for t in tensors_in(targs)] + [o._array for o in outputs]
    with quiet():
        results = node.apply(grad, node.edges, True)
    given = [r for r in results if r is not None and r.base is None and not any(r is s for s in mine)]
    for i, r in enumerate(given):
        assert not any(np.shares_memory(r, h) for h in held), "a formula returned saved memory"
        assert not any(r is other for other in given[i + 1 :]), "a formula returned one array twice"


@pytest.mark.parametrize(("op", "args", "kwargs"), cases(lambda op: op.differentiable))
def test_graph_is_freed_by_reference_counting(op, args, kwargs):
    targs = operands(op, args)
    gc.collect()
    gc.disable()
    try:
        grads = derivative(op, targs, kwargs, create_graph=True)
        outputs = call(op, targs, kwargs)
        nodes = [weakref.ref(o.grad_fn) for o in outputs if o.grad_fn is not None]
        nodes += [weakref.ref(g.grad_fn) for g in grads or () if g is not None and g.grad_fn is not None]
        del grads, outputs
        assert all(node() is None for node in nodes)
    finally:
        gc.enable()


@pytest.mark.parametrize(("op", "args", "kwargs"), cases(lambda op: op.differentiable and op.holomorphic))
def test_single_precision_stays_single(op, args, kwargs):
    def narrow(v):
        if isinstance(v, np.ndarray):
            return v.astype(np.float32) if v.dtype == np.float64 else v
        if isinstance(v, (list, tuple)) and not hasattr(v, "_fields"):
            return type(v)(narrow(x) for x in v)
        return v

    targs = operands(op, [narrow(a) for a in args])
    for out in call(op, targs, kwargs):
        assert out.dtype not in (pellucid.float64, pellucid.complex128)
    for g in derivative(op, targs, kwargs) or ():
        assert g is None or g.dtype in (pellucid.float32, pellucid.complex64)
