"""`backward` and `grad`: what users call; they check and complete arguments, the engine does the work."""

from __future__ import annotations

import math
import sys
import warnings
from typing import Any, NamedTuple

import numpy as np

from pellucid.autograd.batching import vmap_over
from pellucid.autograd.engine import run
from pellucid.autograd.node import AccumulateGrad, Node, edge_of, edge_to, leaf_edge
from pellucid.autograd.views import refresh
from pellucid.core.callers import warn_caller
from pellucid.core.dtype import dtype_of
from pellucid.core.language import message, say
from pellucid.core.modes import modes
from pellucid.core.records import CONSTANT, Cut
from pellucid.core.sites import Site, at, caller, outside
from pellucid.core.size import Size
from pellucid.core.tensor import Parameter, Tensor, without_history, wrap

__all__ = ["GradientEdge", "backward", "get_gradient_edge", "grad"]


class GradientEdge(NamedTuple):
    """A place in the graph: output `output_nr` of `node`. Stands for a tensor as a root or an input of `grad`."""

    node: Node
    output_nr: int
    ownership_token: object = None  # the leaf, which its node does not keep alive
    fact: tuple | None = None  # (shape, dtype) of the tensor it was taken from


def get_gradient_edge(tensor: Tensor) -> GradientEdge:
    """The edge at which gradients for a tensor arrive; RuntimeError for one that needs none."""
    if not tensor.requires_grad:
        raise RuntimeError("It is not possible to get the gradient edge for a Tensor that does not require gradients")
    edge = _edge(tensor)
    token = tensor if tensor._edge is None else None
    return GradientEdge(edge[0], edge[1], token, (tensor._array.shape, tensor._array.dtype))


def _edge(value) -> Any:
    if isinstance(value, GradientEdge):
        if isinstance(value.node, AccumulateGrad):
            return (value.node, 0, value.node.variable, (), None)
        return edge_to(value.node, value.output_nr)
    if value._view is not None:
        refresh(value)
    return edge_of(value)


def _fact(root) -> tuple | None:
    """Shape and dtype that a gradient for a root must have, as far as they are known."""
    if isinstance(root, Tensor):
        return root._array.shape, root._array.dtype
    if root.fact is None and isinstance(root.node, AccumulateGrad):
        return root.node.variable._array.shape, root.node.variable._array.dtype
    if root.fact is not None:
        return root.fact
    facts = getattr(root.node, "facts", None)
    return facts[root.output_nr] if facts else getattr(root.node, "fact", None)


def _sequence(value) -> tuple:
    if isinstance(value, (Tensor, GradientEdge)):
        return (value,)
    return tuple(value)


def _root_gradients(roots, grads, tensors: bool) -> list:
    """The gradient to start from at each root: given, or one for a real scalar; tensors or arrays."""
    if len(grads) != len(roots):
        raise RuntimeError(f"got {len(roots)} tensors and {len(grads)} gradients")
    made = []
    for index, (root, g) in enumerate(zip(roots, grads, strict=True)):
        if g is None:
            made.append(_implicit(root, tensors))
            continue
        if not isinstance(g, Tensor):
            raise TypeError(f"gradients can be either Tensors or None, but got {type(g).__name__}")
        _check_root(_fact(root), g, index)
        made.append(g if tensors else g._array)
    return made


def _implicit(root, tensors: bool):
    fact = _fact(root)
    if fact is None:
        raise RuntimeError(
            "grad can be implicitly created only for scalar outputs: give a gradient for this GradientEdge"
        )
    shape, dtype = fact
    if isinstance(root, GradientEdge) or root.requires_grad:
        if math.prod(shape) != 1:
            advice = say(
                "This tensor has shape {shape}. Reduce it to one number, for example with .sum() or .mean(), or pass gradient= of "
                "its shape.", shape=list(shape),
            )  # fmt: skip
            raise RuntimeError(message("grad can be implicitly created only for scalar outputs", advice))
        if dtype.kind == "c":
            raise RuntimeError(f"grad can be implicitly created only for real scalar outputs but got {dtype_of(dtype)}")
    one = np.ones(shape, dtype)
    return wrap(one) if tensors else one


def _check_root(fact: tuple | None, g: Tensor, index: int) -> None:
    if fact is None:
        return
    shape, dtype = fact
    if g._array.shape != shape:
        raise RuntimeError(
            f"Mismatch in shape: grad_output[{index}] has a shape of {g.shape} and output[{index}] has a shape of "
            f"{Size(shape)}."
        )
    if (g._array.dtype.kind == "c") != (dtype.kind == "c"):
        raise RuntimeError(
            "For complex Tensors, both grad_output and output are required to have the same dtype. Mismatch in dtype: "
            f"grad_output[{index}] has a dtype of {g.dtype} and output[{index}] has a dtype of {dtype_of(dtype)}."
        )


_ones: dict = {}  # (number of dimensions, type code) -> a read-only array: most backward passes start from one of these


def _one(array: np.ndarray) -> np.ndarray:
    """The gradient of a one-element tensor with respect to itself."""
    key = array.ndim, array.dtype.num
    found = _ones.get(key)
    if found is None:
        found = _ones[key] = np.ones(array.shape, array.dtype)
        found.flags.writeable = False
    return found


def backward_one(root: Tensor, retain_graph: bool) -> None:
    """Hot path of `Tensor.backward()`: one real one-element root, nothing else asked for."""
    if root._view is not None:
        refresh(root)
    if root._edge is None:
        _warn_of_made_leaf(root)
    array = root._array
    if array.size != 1 or not root._requires_grad or array.dtype.kind == "c" or modes.apart:
        backward(root, retain_graph=retain_graph)
    else:
        run((root._edge or leaf_edge(root),), (_one(array),), keep_graph=retain_graph, create_graph=False, above=3, plain=True)


def _check_roots(roots) -> None:
    for index, root in enumerate(roots):
        if isinstance(root, Tensor) and not root.requires_grad:
            first = f"element {index} of tensors does not require grad and does not have a grad_fn"
            raise RuntimeError(message(first, _why(root)))
        if isinstance(root, Tensor) and root._edge is None:
            _warn_of_made_leaf(root)


def _look_at_roots(roots) -> None:
    """In anomaly mode, warn of roots that are not finite."""
    if modes.anomaly and modes.anomaly is not True:
        from pellucid.autograd.anomaly import report_roots

        report_roots(roots)


def _why(tensor: Tensor, root: Any = None) -> str:
    """What `why` says of a tensor, to the program that has called."""
    from pellucid.autograd.why import explained

    return str(explained(tensor, sys._getframe(2), root if isinstance(root, Tensor) else None))


def _warn_of_made_leaf(root: Tensor) -> None:
    """Warn of a backward from a result that was made a leaf by setting requires_grad: nothing that led to it is reached."""
    rare = root._rare
    if rare is None or rare.made is None or not root.requires_grad:
        return
    made = at(Site.of(*rare.made[:2]))
    if rare.cut is not None:
        warn_caller(
            say(
                "backward() starts from a tensor that was computed, but whose gradient path was cut by {operation}{place}. Setting "
                "requires_grad = True on it{made} has made it a leaf, with nothing before it: no gradient goes further, and nothing "
                "will be trained. Take the setting out, and do without the cut.",
                operation=rare.cut.reason, place=at(Site.of(rare.cut.code, rare.cut.lasti)), made=made,
            )
        )  # fmt: skip
    elif len(rare.made) == 3 and not isinstance(root, Parameter):
        warn_caller(
            say(
                "backward() starts from a tensor on which requires_grad = True was set{made}. That makes it a leaf, with nothing before "
                "it: no gradient goes further, and nothing will be trained. Take the setting out, and ask pellucid.graph.why() of the "
                "tensor why it does not require grad by itself.",
                made=made,
            )
        )  # fmt: skip


def _depth() -> int:
    """How many frames above `run`, called by the caller of this function, the program's line stands."""
    depth, frame = 1, sys._getframe(1)
    while frame.f_back is not None and not outside[frame.f_code.co_filename]:
        depth, frame = depth + 1, frame.f_back
    return depth


def backward(tensors, grad_tensors=None, retain_graph: bool | None = None, create_graph: bool = False,
             grad_variables=None, inputs=None) -> None:  # fmt: skip
    """Accumulate into `.grad` of the leaves the sum of the vector-Jacobian products of several tensors.

    Args:
        tensors: tensors (or GradientEdges) to differentiate.
        grad_tensors: for each, the gradient to start from; None for real scalars.
        retain_graph: keep saved values for another run; by default what `create_graph` says.
        create_graph: record the derivative itself.
        inputs: accumulate into these tensors only.

    Raises:
        RuntimeError: a tensor needs no gradient, shapes differ, or the graph was freed.
    """
    if inputs is not None and not isinstance(inputs, (Tensor, GradientEdge)) and len(inputs) == 0:
        raise RuntimeError("`inputs` argument to `backward` cannot be empty.")
    roots = _sequence(tensors)
    grads = (
        (None,) * len(roots)
        if grad_tensors is None
        else (grad_tensors,)
        if isinstance(grad_tensors, Tensor)
        else tuple(grad_tensors)
    )
    gradients = _root_gradients(roots, grads, create_graph or bool(modes.transforms))
    _check_roots(roots)
    _look_at_roots(roots)
    if create_graph:
        warnings.warn(
            "Using backward() with create_graph=True will create a reference cycle between the parameter and its "
            "gradient "
            "which can cause a memory leak. We recommend using autograd.grad when creating the graph to avoid this. "
            "If you "
            "have to use this function, make sure to reset the .grad fields of your parameters to None after use to "
            "break the cycle and avoid the leak.",
            UserWarning,
            stacklevel=3,
        )
    keep = create_graph if retain_graph is None else retain_graph
    edges = [_edge(root) for root in roots]
    if inputs is None:
        run(edges, gradients, keep_graph=keep, create_graph=create_graph, above=_depth())
        return
    wanted = _sequence(inputs)
    for index, tensor in enumerate(wanted):
        if isinstance(tensor, Tensor) and not tensor.requires_grad:
            first = f"One of the differentiated Tensors does not require grad (inputs[{index}])."
            raise RuntimeError(message(first, _why(tensor)))
    targets = [_edge(t) for t in wanted]
    for tensor in wanted:
        if isinstance(tensor, Tensor):
            tensor.retain_grad()  # nothing to do for a leaf
    run(edges, gradients, keep_graph=keep, create_graph=create_graph, targets=targets, above=_depth())


def grad(outputs, inputs, grad_outputs=None, retain_graph: bool | None = None, create_graph: bool = False,
         only_inputs: bool = True, allow_unused: bool | None = None, is_grads_batched: bool = False,
         materialize_grads: bool = False) -> tuple:  # fmt: skip
    """The vector-Jacobian products of `outputs` with respect to `inputs`, returned; `.grad` is left alone.

    Args:
        outputs: tensors (or GradientEdges) to differentiate.
        inputs: tensors (or GradientEdges) to differentiate with respect to.
        grad_outputs: for each output the vector of the product; None for real scalars.
        retain_graph: keep saved values for another run; by default what `create_graph` says.
        create_graph: record the derivative itself.
        allow_unused: give None for an input that the outputs do not depend on, instead of raising.
        is_grads_batched: the first dimension of each grad_output counts independent vectors.
        materialize_grads: give zeros for unused inputs.

    Raises:
        RuntimeError: an input needs no gradient or is unused, shapes differ, or the graph was freed.
        ValueError: `allow_unused=False` together with `materialize_grads`.
    """
    if materialize_grads and allow_unused is False:
        raise ValueError(
            "Expected allow_unused to be True or not passed when materialize_grads=True, but got: allow_unused=False."
        )
    unused_allowed = materialize_grads if allow_unused is None else allow_unused
    roots, wanted = _sequence(outputs), _sequence(inputs)
    if not wanted:
        raise RuntimeError("`inputs` argument to `grad()` cannot be empty.")
    if materialize_grads and any(isinstance(t, GradientEdge) for t in wanted):
        raise RuntimeError("materialize_grads cannot be used when the given input is a GradientEdge")
    grads = (
        (None,) * len(roots)
        if grad_outputs is None
        else (grad_outputs,)
        if isinstance(grad_outputs, Tensor)
        else tuple(grad_outputs)
    )
    for index, tensor in enumerate(wanted):
        if isinstance(tensor, Tensor) and not tensor.requires_grad:
            first = f"One of the differentiated Tensors does not require grad (inputs[{index}])."
            raise RuntimeError(message(first, _why(tensor)))
    keep = create_graph if retain_graph is None else retain_graph
    if is_grads_batched:
        return _batched(roots, wanted, grads, keep, create_graph, unused_allowed, materialize_grads)
    gradients = _root_gradients(roots, grads, create_graph or bool(modes.transforms))
    _check_roots(roots)
    _look_at_roots(roots)
    captured = run([_edge(r) for r in roots], gradients, keep_graph=keep, create_graph=create_graph,
                   targets=[_edge(t) for t in wanted], accumulate=False, above=_depth())  # fmt: skip
    return tuple(
        _result(tensor, g, index, roots, create_graph, unused_allowed, materialize_grads)
        for index, (tensor, g) in enumerate(zip(wanted, captured, strict=True))
    )


def _result(tensor, g, index: int, roots, create_graph: bool, unused_allowed: bool, materialize: bool):
    if g is None:
        if not unused_allowed:
            first = (
                f"One of the differentiated Tensors appears to not have been used in the graph (inputs[{index}]). "
                "Set allow_unused=True if this is the desired behavior."
            )
            raise RuntimeError(message(first, _why(tensor, roots[0]) if isinstance(tensor, Tensor) else ""))
        return wrap(np.zeros_like(tensor._array), create_graph) if materialize else None
    if create_graph:
        if not g._requires_grad and g._rare is None:
            g.rare.cut = Cut(CONSTANT, *caller(sys._getframe(1)))
        return g
    if isinstance(g, Tensor):  # inside a transform
        return without_history(g)
    return wrap(g.copy() if g.base is not None or not g.flags.writeable else g)


def _batched(roots, wanted, grads, keep, create_graph, unused_allowed, materialize) -> tuple:
    """One product for each entry of the first dimension, all in one pass."""
    for index, (root, g) in enumerate(zip(roots, grads, strict=True)):
        if g is not None and isinstance(root, Tensor) and g._array.shape[1:] != root._array.shape:
            raise RuntimeError(
                f"If `is_grads_batched=True`, we interpret the first dimension of each grad_output as the batch dimension. "
                f"The sizes of the remaining dimensions are expected to match the shape of corresponding output, but a "
                f"mismatch was detected: grad_output[{index}] has a shape of {g.shape} and output[{index}] has a shape of "
                f"{root.shape}."
            )

    def one(*given):
        some = iter(given)
        row = tuple(None if g is None else next(some) for g in grads)
        return grad(roots, wanted, row, keep, create_graph, True, unused_allowed, False, materialize)

    return tuple(vmap_over(one, [g for g in grads if g is not None]))
