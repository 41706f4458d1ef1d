"""Derivatives as functions of functions: `grad`, `vjp`, `jvp`, Jacobians, Hessians, `linearize`. They nest freely.

Reverse mode is the graph that every tensor has: `grad` marks its inputs and differentiates the result with respect to the
marks, so an inner derivative is part of an outer one's graph. Forward mode opens a level (`autograd/forward_mode.py`).
"""

from __future__ import annotations

import functools
from typing import Any

from pellucid.autograd import declaration, differentiate
from pellucid.autograd.batching import BatchedTensor, marked
from pellucid.autograd.forward_mode import DualLevel
from pellucid.autograd.grad_mode import enable_grad
from pellucid.autograd.node import AccumulateGrad
from pellucid.autograd.transforms import opened
from pellucid.core.modes import modes
from pellucid.core.tensor import Tensor, without_history
from pellucid.func.trees import flatten, tree_map, unflatten
from pellucid.func.vmap import vmap
from pellucid.functions.factories import eye

__all__ = ["grad", "grad_and_value", "hessian", "jacfwd", "jacrev", "jvp", "linearize", "vjp"]

F = declaration.tensors


# --- marks: inputs with respect to which a graph is differentiated ---------------------------------------------------


def _all_marked(tree, where: str):
    """Marks for all tensors of a structure; TypeError for anything else in it."""
    leaves, shape = flatten(tree)
    for leaf in leaves:
        if not isinstance(leaf, Tensor):
            raise ValueError(f"{where}: Expected all inputs to be Tensors, got {type(leaf).__name__} in an input to differentiate")
    marks = [marked(leaf) for leaf in leaves]
    return marks, unflatten(marks, shape), shape


def _reaches_more(outputs, marks) -> bool:
    """Whether outputs depend on leaves other than the marks: then their derivatives have a history too."""
    if any(mark._edge is not None for mark in marks):
        return True
    own = {id(mark._rare.accumulator) for mark in marks if mark._rare is not None}
    seen: set = set()
    stack = [o._edge[0] for o in outputs if o._edge is not None]
    while stack:
        node = stack.pop()
        if node in seen:
            continue
        seen.add(node)
        if isinstance(node, AccumulateGrad) and id(node) not in own:
            return True
        stack.extend(edge[0] for edge in node.edges if edge is not None)
    return False


def _behind_requires_grad(tensors) -> bool:
    """Whether what wrappers of vmap hold has a history of its own, which needs recording."""
    for tensor in tensors:
        while tensor.__class__ is BatchedTensor:
            tensor = tensor._value
            if tensor._requires_grad:
                return True
    return False


class _Reverse:
    """What `grad` and `vjp` share: whether results keep a history, decided by what surrounds the call."""

    def __init__(self):
        self.enabled = modes.grad_enabled and not modes.inference  # as the caller had it

    def settle(self, outputs, marks) -> None:
        """Look at the finished graph."""
        self.outer = self.enabled and _reaches_more(outputs, marks)
        self.recorded = self.outer or (self.enabled and _behind_requires_grad(outputs))

    def finished(self, tree):
        """Results as the caller gets them."""
        if self.outer:
            return tree
        return tree_map(lambda t: without_history(t) if isinstance(t, Tensor) else t, tree)


def _pull(outputs, marks, covectors, record: bool, retain: bool) -> list:
    """Vector-Jacobian products; zeros for marks that the outputs do not depend on."""
    roots = [(o, c) for o, c in zip(outputs, covectors, strict=True) if o.requires_grad]
    if not roots:
        return [F.zeros_as(mark.detach()) for mark in marks]
    outputs, covectors = zip(*roots, strict=True)
    found = differentiate.grad(outputs, marks, covectors, retain_graph=retain, create_graph=record, allow_unused=True)
    return [F.zeros_as(mark.detach()) if g is None else g for g, mark in zip(found, marks, strict=True)]


# --- reverse mode ----------------------------------------------------------------------------------------------------


def grad_and_value(func, argnums=0, has_aux: bool = False):
    """A function that returns the gradient of `func` and its value: `(grad, value)`, or `(grad, (value, aux))`.

    Args:
        func: returns a scalar tensor, with `has_aux` a pair of it and anything else.
        argnums: which argument to differentiate with respect to (nested tensors as you like), or a tuple of several.
        has_aux: whether func returns more than its value.

    Raises:
        RuntimeError: func returned something that is not a scalar tensor.
    """

    @functools.wraps(func)
    def derivative(*args, **kwargs):
        reverse = _Reverse()
        with enable_grad():
            marks, given, shape = _mark_arguments(args, argnums)
            output = func(*given, **kwargs)
            aux = None
            if has_aux:
                if not (isinstance(output, tuple) and len(output) == 2):
                    raise RuntimeError(
                        "grad_and_value(f)(*args): output of function f should be a tuple: (output, aux) if has_aux is True"
                    )
                output, aux = output
            _check_scalar(output)
            reverse.settle([output], marks)
            grads = _pull([output], marks, [None], reverse.recorded, reverse.outer)
        grads, output, aux = reverse.finished((unflatten(grads, shape), output, aux))
        return (grads, (output, aux)) if has_aux else (grads, output)

    return derivative


def grad(func, argnums=0, has_aux: bool = False):
    """A function that returns the gradient of `func`, which returns a scalar tensor.

    Args:
        func: see `grad_and_value`.
        argnums: which argument to differentiate with respect to, or a tuple of several.
        has_aux: func returns a pair; the second member is passed through: `(grad, aux)`.

    >>> import pellucid as torch
    >>> from pellucid.func import grad
    >>> grad(grad(torch.sin))(torch.tensor(0.5))
    tensor(-0.4794)
    """
    both = grad_and_value(func, argnums, has_aux)

    @functools.wraps(func)
    def derivative(*args, **kwargs):
        grads, value = both(*args, **kwargs)
        return (grads, value[1]) if has_aux else grads

    return derivative


def _mark_arguments(args, argnums):
    """Marks for the chosen arguments, and all arguments with the marks in place."""
    where = f"grad(f, argnums={argnums})(*args)"
    chosen = argnums if isinstance(argnums, tuple) else (argnums,)
    if not all(isinstance(n, int) for n in chosen):
        raise RuntimeError(f"argnum must be int or Tuple[int, ...], got: {argnums!r}")
    if not chosen:
        raise RuntimeError("argnums must be non-empty")
    for n in chosen:
        if not -len(args) <= n < len(args):
            raise RuntimeError(f"Got argnum={n}, but only {len(args)} positional inputs")
    numbers = [n % len(args) for n in chosen]
    if len(set(numbers)) != len(numbers):
        raise RuntimeError(f"argnums elements must be unique, got {argnums}")
    marks, tree, shape = _all_marked([args[n] for n in numbers], where)
    given = list(args)
    for n, value in zip(numbers, tree, strict=True):
        given[n] = value
    members = shape.children
    return marks, given, shape._replace(kind=tuple) if isinstance(argnums, tuple) else members[0]


def _check_scalar(output) -> None:
    if not isinstance(output, Tensor):
        raise RuntimeError(
            f"grad_and_value(f)(*args): Expected f(*args) to return a Tensor, got {type(output)}. If it returns more than its "
            "value, use has_aux=True."
        )
    if output.dim() != 0:
        raise RuntimeError(
            "grad_and_value(f)(*args): Expected f(*args) to return a scalar tensor, got tensor with "
            f"{output.dim()} dims. Maybe you wanted to use the vjp or jacrev APIs instead?"
        )


def vjp(func, *primals, has_aux: bool = False):
    """The value of `func` and a function of covectors that returns their products with its Jacobian.

    Args:
        func: takes the primals and returns tensors, nested as you like.
        primals: where to differentiate; tensors, nested as you like.
        has_aux: func returns a pair; the second member is passed through.

    Returns:
        `(output, vjp_fn)`, or `(output, vjp_fn, aux)`. `vjp_fn` takes covectors in the structure of the output and may be
        called many times.
    """
    reverse = _Reverse()
    with enable_grad():
        marks, given, shape = _all_marked(list(primals), "vjp(f, *primals)")
        output, aux = _with_aux(func(*given), has_aux, "vjp")
        outputs, out_shape = flatten(output)
        _check_tensors(outputs, "vjp(f, *primals)")
        reverse.settle(outputs, marks)

    def vjp_fn(*cotangents, retain_graph: bool = True, create_graph: bool | None = None):
        given = cotangents[0] if len(cotangents) == 1 else cotangents
        covectors, co_shape = flatten(given)
        if [c.shape for c in covectors] != [o.shape for o in outputs] or len(covectors) != len(outputs):
            raise RuntimeError(
                f"Expected pytree structure of cotangents to be the same as pytree structure of outputs to the function. "
                f"cotangents: {co_shape} of shapes {[tuple(c.shape) for c in covectors]}, primal output: {out_shape} of shapes "
                f"{[tuple(o.shape) for o in outputs]}"
            )
        recorded = modes.grad_enabled if create_graph is None else create_graph
        outer = reverse.outer or any(c.requires_grad for c in covectors)
        needed = outer or reverse.recorded or _behind_requires_grad(covectors)
        found = _pull(outputs, marks, covectors, recorded and needed, retain_graph)
        if not outer:
            found = [without_history(g) for g in found]
        tree = unflatten(found, shape)
        return tuple(tree)

    if has_aux:
        return reverse.finished(output), vjp_fn, reverse.finished(aux)
    return reverse.finished(output), vjp_fn


def _with_aux(output, has_aux: bool, name: str):
    if not has_aux:
        return output, None
    if not (isinstance(output, tuple) and len(output) == 2):
        raise RuntimeError(
            f"{name}(f, *primals): output of function f should be a tuple: (output, aux) if has_aux is True"
        )
    return output


def _check_tensors(outputs, where: str) -> None:
    if not outputs:
        raise RuntimeError(f"{where}: Expected f to be a function that has non-empty output (got output = {outputs})")
    for output in outputs:
        if not isinstance(output, Tensor):
            raise RuntimeError(
                f"{where}: expected f(*primals) to return only tensors, got unsupported type {type(output).__name__}"
            )


# --- forward mode ----------------------------------------------------------------------------------------------------


def jvp(func, primals: tuple, tangents: tuple, *, strict: bool = False, has_aux: bool = False):
    """The value of `func` and the product of its Jacobian with a tangent, in one forward pass.

    Args:
        func: takes the primals and returns tensors, nested as you like.
        primals: a tuple of arguments.
        tangents: a tuple of the same structure, shapes and dtypes.
        strict: raise if an output does not depend on the primals, instead of giving zeros.
        has_aux: func returns a pair; the second member is passed through.

    Returns:
        `(output, tangent)`, or `(output, tangent, aux)`.
    """
    if not isinstance(primals, tuple) or not primals:
        raise RuntimeError(f"jvp(f, primals, tangents): Expected primals to be a tuple, and not an empty one. Got {primals!r}")
    values, shape = flatten(primals)
    moves, moves_shape = flatten(tangents)
    if shape != moves_shape:
        raise RuntimeError(
            f"jvp(f, primals, tangents): Expected primals and tangents to have the same python structure. For example, if "
            f"primals is a tuple of 3 tensors, tangents also must be. Got primals with structure {shape} and tangents with "
            f"structure {moves_shape}"
        )
    level = DualLevel()
    with opened(level):
        duals = [_dual(level, v, t) for v, t in zip(values, moves, strict=True)]
        output, aux = _with_aux(func(*unflatten(duals, shape)), has_aux, "jvp")
        outputs, out_shape = flatten(output)
        _check_tensors(outputs, "jvp(f, primals, tangents)")
        pushed = [level.tangent(o) for o in outputs]
    if strict and any(t is None for t in pushed):
        raise RuntimeError("jvp(f, primals, tangents, strict=True): The output of f is independent of the inputs.")
    moved = [F.zeros_as(o.detach()) if t is None else t for t, o in zip(pushed, outputs, strict=True)]
    result = unflatten(outputs, out_shape), unflatten(moved, out_shape)
    return (*result, aux) if has_aux else result


def _dual(level: DualLevel, value, tangent):
    if not isinstance(value, Tensor) or not isinstance(tangent, Tensor):
        raise RuntimeError(
            f"jvp(f, primals, tangents): Expected all primals and tangents to be Tensors, got {type(value).__name__} and "
            f"{type(tangent).__name__}"
        )
    if value.shape != tangent.shape:
        raise RuntimeError(
            f"jvp(f, primals, tangents): expected tangents of the primals' shapes: got a primal of shape {tuple(value.shape)} "
            f"and a tangent of shape {tuple(tangent.shape)}"
        )
    dual = F.alias(value)
    level.attach(dual, tangent)
    return dual


def linearize(func, *primals):
    """The value of `func` and its derivative there as a linear function of tangents, which does not run `func` again.

    Returns:
        `(output, jvp_fn)`; `jvp_fn(*tangents)` takes a tangent for each primal.
    """
    with enable_grad():
        marks, given, _ = _all_marked(list(primals), "linearize(f, *primals)")
        outputs, out_shape = flatten(func(*given))
        _check_tensors(outputs, "linearize(f, *primals)")
        covectors = [F.zeros_as(o.detach()).requires_grad_() for o in outputs]
        pulled = _pull(outputs, marks, covectors, True, True)  # linear in the covectors: its derivative is J

    def jvp_fn(*tangents):
        vectors = flatten(list(tangents))[0]
        if [t.shape for t in vectors] != [m.shape for m in marks]:
            raise RuntimeError(
                "linearize: Expected the tangents to have the same structure and shapes as the primals: got shapes "
                f"{[tuple(t.shape) for t in vectors]}, expected {[tuple(m.shape) for m in marks]}"
            )
        return unflatten([without_history(t) for t in _pull(pulled, covectors, vectors, False, True)], out_shape)

    return unflatten([without_history(o) for o in outputs], out_shape), jvp_fn


# --- Jacobians -------------------------------------------------------------------------------------------------------


def _basis(tensors) -> list:
    """For each tensor the standard basis of the space of all of them together: [N, *shape]."""
    sizes = [t.numel() for t in tensors]
    whole = eye(sum(sizes), dtype=tensors[0].dtype)
    parts = whole.split(sizes, 1) if len(sizes) > 1 else [whole]
    return [p.to(t.dtype).reshape(-1, *t.shape) for p, t in zip(parts, tensors, strict=True)]


def jacrev(func, argnums=0, *, has_aux: bool = False, chunk_size: int | None = None, _preallocate_and_copy: bool = False):
    """A function that returns the Jacobian of `func`, by reverse mode: one row of all outputs at a time, batched.

    Args:
        func: returns tensors, nested as you like.
        argnums: which argument to differentiate with respect to, or a tuple of several.
        has_aux: func returns a pair; the second member is passed through.
        chunk_size: how many rows to compute at once; None for all.

    Returns:
        In the structure of the output, in the structure of the argument(s): tensors of shape [*output, *input].
    """

    @functools.wraps(func)
    def jacobian(*args):
        chosen, rest = _chosen(func, args, argnums)
        result = vjp(rest, *chosen, has_aux=has_aux)
        output, vjp_fn = result[:2]
        outputs, out_shape = flatten(output)
        covectors = _basis(outputs)

        def pull(*rows):
            return vjp_fn(unflatten(rows, out_shape))

        rows = vmap(pull, chunk_size=chunk_size)(*covectors)
        columns, in_shape = flatten(rows if isinstance(argnums, tuple) else rows[0])
        counts = [o.numel() for o in outputs]
        blocks = [_split_rows(column, counts, outputs) for column in columns]  # for each input, for each output
        tree = unflatten([unflatten(list(each), in_shape) for each in zip(*blocks, strict=True)], out_shape)
        return (tree, result[2]) if has_aux else tree

    return jacobian


def _split_rows(column: Tensor, counts: list, outputs) -> list:
    """The rows of one input's column of blocks, shaped as [*output, *input]."""
    parts = column.split(counts, 0) if len(counts) > 1 else [column]
    return [p.reshape(*o.shape, *column.shape[1:]) for p, o in zip(parts, outputs, strict=True)]


def jacfwd(func, argnums=0, has_aux: bool = False, *, randomness: str = "error"):
    """A function that returns the Jacobian of `func`, by forward mode: one column of all inputs at a time, batched.

    Args:
        func: returns tensors, nested as you like.
        argnums: which argument to differentiate with respect to, or a tuple of several.
        has_aux: func returns a pair; the second member is passed through.
        randomness: as for `vmap`.

    Returns:
        In the structure of the output, in the structure of the argument(s): tensors of shape [*output, *input].
    """

    @functools.wraps(func)
    def jacobian(*args):
        chosen, rest = _chosen(func, args, argnums)
        inputs, in_shape = flatten(chosen)
        vectors = _basis(inputs)
        kept: dict = {}

        def push(*columns):
            result = jvp(rest, tuple(chosen), tuple(unflatten(columns, in_shape)), has_aux=has_aux)
            kept["aux"] = result[2] if has_aux else None
            kept["shape"] = flatten(result[1])[1]
            return tuple(flatten(result[1])[0])

        pushed = vmap(push, randomness=randomness)(*vectors)
        counts = [t.numel() for t in inputs]
        blocks = []
        for output in pushed:  # [inputs together, *output]
            parts = output.split(counts, 0) if len(counts) > 1 else [output]
            each = [p.movedim(0, -1).reshape(*output.shape[1:], *t.shape) for p, t in zip(parts, inputs, strict=True)]
            tree = unflatten(each, in_shape)
            blocks.append(tuple(tree) if isinstance(argnums, tuple) else tree[0])
        tree = unflatten(blocks, kept["shape"])
        return (tree, kept["aux"]) if has_aux else tree

    return jacobian


def _chosen(func, args, argnums) -> tuple[Any, Any]:
    """The arguments to differentiate with respect to, and the function of them alone."""
    numbers = argnums if isinstance(argnums, tuple) else (argnums,)
    for n in numbers:
        if not -len(args) <= n < len(args):
            raise RuntimeError(f"Got argnum={n}, but only {len(args)} positional inputs")
    numbers = [n % len(args) for n in numbers]

    def rest(*values):
        given = list(args)
        for n, value in zip(numbers, values, strict=True):
            given[n] = value
        return func(*given)

    return [args[n] for n in numbers], rest


def hessian(func, argnums=0):
    """A function that returns the Hessian of `func`, by forward over reverse mode.

    Args:
        func: returns a scalar tensor (or several tensors: then for each of their elements).
        argnums: which argument to differentiate with respect to, or a tuple of several.
    """
    return jacfwd(jacrev(func, argnums), argnums)
