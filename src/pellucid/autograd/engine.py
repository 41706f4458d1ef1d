"""The engine: walks the graph from the roots and accumulates gradients. There is only this one.

It counts how often each node is reached, then runs the ready node with the highest sequence number: iterative, linear
in the number of edges, deterministic, re-entrant, safe with threads. Without `create_graph` gradients are arrays and no
tensor is made; with it they are tensors, and the same formulas record themselves.

Ownership: a buffer may be added to in place only if the engine made it (by adding two gradients), or an operator's
formula did, or if it is the only view of one that they made. Everything else, such as a gradient passed through or a view of
one, is copied before it is kept.
"""

from __future__ import annotations

import functools
import itertools
import operator
import sys
import threading
from heapq import heappop, heappush
from typing import Any

import numpy as np

from pellucid.autograd.around import Work, surrounded
from pellucid.autograd.few_rows import in_full, wrap_rows
from pellucid.autograd.hooks import (
    run_leaf_hooks,
    run_post_accumulate,
    run_post_hooks,
    run_pre_hooks,
    run_tensor_hooks,
)
from pellucid.autograd.node import MULTI, AccumulateGrad, Freed, Node, hooked, next_sequence, numbering
from pellucid.core.modes import modes
from pellucid.core.quiet import hush, quiet, speak
from pellucid.core.tensor import Tensor, counter, is_dense, make, wrap
from pellucid.kernels import elementwise
from pellucid.kernels.elementwise import LARGE
from pellucid.kernels.few_rows import FewRows

__all__ = ["Task", "call_node", "current_task", "run"]

_accumulating = threading.RLock()  # two threads may reach one leaf
_task_ids = itertools.count()
NOTHING: dict = {}  # never written to
ndarray, asarray, add = np.ndarray, np.asarray, np.add
getframe, getrefcount = sys._getframe, sys.getrefcount
sequence_of = operator.attrgetter("sequence")


class Task:
    """One running backward: what hooks and callbacks may ask about."""

    depth = 0  # how many backwards this one is nested in
    outer: Task | None = None  # the backward in which this one was started
    needed: set | None = None  # nodes on a path to a target; None if all are
    node: Node | None = None  # the node being run
    reached: dict = NOTHING  # all nodes that the roots lead to
    keep: Any = True  # what nodes are told about their saved values: True to keep them, or what to leave in their place
    callbacks: Any = ()  # functions to call at the end

    def __init__(self, keep_graph: bool, create_graph: bool, tensors: bool):
        self.keep_graph, self.create_graph = keep_graph, create_graph
        self.tensors = tensors  # whether formulas run on tensors

    @functools.cached_property
    def id(self) -> int:
        """A number that no other backward has."""
        return next(_task_ids)

    def queue_callback(self, callback) -> None:
        """Call `callback` when all nodes have run; a callback may queue another."""
        if not self.callbacks:
            self.callbacks = []
        self.callbacks.append(callback)


class _Local(threading.local):
    task: Task | None = None


_local = _Local()


def current_task() -> Task | None:
    """The backward that is running in this thread, innermost."""
    return _local.task


def run(
    roots, grads, *, keep_graph: bool, create_graph: bool, targets=None, accumulate: bool = True, above: int = 2,
    plain: bool = False,
) -> list:  # fmt: skip
    """Differentiate.

    Args:
        roots: edges (node, output number) to start from.
        grads: the gradient of each root, arrays (tensors under `create_graph` or inside a transform).
        keep_graph: whether saved values are kept for another run.
        create_graph: whether the derivative is itself recorded.
        targets: edges whose gradients are wanted; nothing that does not lead to them is run. None for all leaves.
        accumulate: with targets, whether their gradients go to `.grad` instead of being returned.
        above: how many frames up the line stands that asks for the gradient, if it is no line of the library.
        plain: whether it is known that no transform is open.

    Returns:
        The gradients of the targets, None for those not reached.
    """
    outer = _local.task
    task = _local.task = Task(keep_graph, create_graph, create_graph or not (plain or not modes.transforms))
    if not keep_graph:
        task.keep = freed = Freed()
        frame = getframe(above)
        freed.code, freed.lasti, freed.sequence = frame.f_code, frame.f_lasti, next_sequence()
    if outer is not None:
        task.outer, task.depth = outer, outer.depth + 1
        if task.depth % DEEP == 0:
            _local.task = outer
            return _in_a_new_thread(task, roots, grads, targets, accumulate)
    token = hush()
    try:
        if task.tensors:
            return _recorded(task, roots, grads, targets, accumulate)
        captured = _walk(task, roots, grads, targets, accumulate)
        if task.callbacks:
            _call_back(task)
        return captured
    finally:
        speak(token)
        _local.task = outer


def _recorded(task: Task, roots, grads, targets, accumulate) -> list:
    """Walk the graph with gradients that are tensors, recording or not as the task says."""
    enabled = modes.grad_enabled
    try:
        if enabled is not task.create_graph:
            modes.grad_enabled = task.create_graph
            modes.update()
        captured = _walk(task, roots, grads, targets, accumulate)
        _call_back(task)
        return captured
    finally:
        if modes.grad_enabled is not enabled:
            modes.grad_enabled = enabled
            modes.update()


def _call_back(task: Task) -> None:
    """What was to be called at the end of the backward. A callback may queue another."""
    enabled = modes.grad_enabled
    try:
        for callback in task.callbacks:
            callback()
    finally:
        if modes.grad_enabled is not enabled:
            modes.grad_enabled = enabled
            modes.update()


DEEP = 40  # a backward nested so deep goes on in a thread of its own, whose stack is empty


def _in_a_new_thread(task: Task, roots, grads, targets, accumulate) -> list:
    """`run`, for a backward that was started inside many others."""
    switches, result, failure = dict(vars(modes)), [], []

    def body():
        vars(modes).update(switches)
        _local.task = task
        if task.tensors:
            modes.grad_enabled = task.create_graph
        modes.update()
        try:
            with quiet():
                result.extend(_walk(task, roots, grads, targets, accumulate))
                _call_back(task)
        except BaseException as error:
            failure.append(error)

    thread = threading.Thread(target=body)
    thread.start()
    thread.join()
    if failure:
        raise failure[0]
    return result


def _count(roots) -> dict:
    """How many edges lead to each node from the roots."""
    dependencies: dict = {}
    stack = []
    for root in roots:
        if root[0] not in dependencies:
            dependencies[root[0]] = 0
            stack.append(root[3])
    while stack:
        for edge in stack.pop():
            if edge is not None:
                node = edge[0]
                if node in dependencies:
                    dependencies[node] += 1
                else:
                    dependencies[node] = 1
                    if edge[3]:
                        stack.append(edge[3])
    return dependencies


def _leading_to(reached, targets) -> set:
    """Those of the reached nodes from which a target can be reached, targets included.

    A node is made after those that its edges lead to, so that these come first in the order of numbers: once through is enough,
    unless numbers were changed.
    """
    needed = {edge[0] for edge in targets}
    in_order = sorted(reached, key=sequence_of)
    while True:
        before = len(needed)
        for node in in_order:
            for edge in node.edges:
                if edge is not None and edge[0] in needed:
                    needed.add(node)
                    break
        if not numbering.changed or len(needed) == before:
            return needed


def _walk(task: Task, roots, grads, targets, accumulate) -> list:
    """Run the nodes in order. A hot path: see the module's first lines for what it guarantees."""
    dependencies = task.reached = _count(roots)
    captures: Any = NOTHING
    captured: Any = ()
    needed = None
    if targets is not None:
        task.needed = needed = _leading_to(dependencies, targets)
        captures, captured = {}, [None] * len(targets)
        for position, edge in enumerate(() if accumulate else targets):
            captures.setdefault(edge[0], []).append((edge[1], position))
    tensors, keep = task.tensors, task.keep
    watched = bool(modes.around)  # every node is asked about, not only those with hooks; anomaly mode stands around too
    pending: dict = {}  # node -> gradient of its result, or a list of them for a node with several outputs
    owned: set = set()  # nodes whose pending gradient nobody else holds
    ready: list[Any] = []  # heap of (-sequence, id, edge)
    following: Any = None  # the node to run next, where it is known without the heap
    if len(roots) == 1:
        following = roots[0]
        if grads[0] is not None:
            _store(following, grads[0], pending, owned)
    else:
        for edge, grad in zip(roots, grads, strict=True):
            if edge[0] not in pending and not dependencies[edge[0]]:
                heappush(ready, (-edge[0].sequence, id(edge[0]), edge))
            if grad is not None:
                _store(edge, grad, pending, owned)
    while True:
        if following is None:
            if not ready:
                return captured
            following = heappop(ready)[2]
        node, _, kind, edges, apply = following
        following = None
        grad = pending.pop(node, None)
        task.node = node
        special = watched or (hooked.count and node.extra is not None) or (captures and node in captures)
        if special or apply is None:
            grad = _before(task, node, kind, grad, captures, captured, node in owned)
            if grad is STOP:
                continue
        if needed is not None:
            edges = tuple([e if e is not None and e[0] in needed else None for e in edges])
        if special:
            outputs = _run_watched(task, node, grad, edges)
        elif grad is None and not node.undefined:
            outputs = (None,) * len(edges)
        elif tensors:
            outputs = node.apply_tensors(grad, edges, keep)
        else:
            outputs = apply(node, grad, edges, keep)  # pyright: ignore[reportOptionalCall]
        if hooked.count and node.extra is not None and not special:  # registered while the formula ran
            outputs = _after(task, node, grad, outputs)
        for edge, output in zip(edges if needed is None else node.edges, outputs):  # noqa: B905 (one for each edge)
            if edge is None:
                continue
            child, _, kind, _, _ = edge
            left = dependencies[child] = dependencies[child] - 1
            if output is not None:
                if child in pending or kind is MULTI:
                    _store(edge, output, pending, owned)
                else:
                    mine = output is not grad and not tensors and (output.base is None or _is_sole_view(output))
                    if not (left or kind is None or watched or needed is not None or child.extra is not None):
                        _reach_leaf(task, kind, output, mine)  # the only gradient of a leaf
                        continue
                    pending[child] = output
                    if mine:
                        owned.add(child)
                    elif output.__class__ is FewRows:
                        pending[child] = output.whole()  # pyright: ignore[reportAttributeAccessIssue]
                        owned.add(child)
            if left or (needed is not None and child not in needed):
                continue
            if kind is None or kind is MULTI or watched or child.extra is not None or (captures and child in captures):
                if following is None and not ready:
                    following = edge
                else:
                    if following is not None:
                        heappush(ready, (-following[0].sequence, id(following[0]), following))
                        following = None
                    heappush(ready, (-child.sequence, id(child), edge))
            elif child in pending:
                _reach_leaf(task, kind, pending.pop(child), child in owned)


def _holders(view: Any) -> int:
    """The references to the array that a view is a view of, those of the question among them."""
    base = view.base
    return getrefcount(base)


SOLE = _holders(np.empty(2)[1:])  # counted, for versions of Python differ in what they count


def _is_sole_view(array: Any) -> bool:
    """Whether nobody but this view holds the array that it is a view of, so that whoever holds the view owns both."""
    return array.base.__class__ is ndarray and array.base.base is None and _holders(array) == SOLE


def _reach_leaf(task: Task, leaf: Tensor, grad, owned: bool) -> None:
    """The end of a path: hooks of the leaf, if it has any, and accumulation into `.grad`."""
    watched = leaf._rare.watched
    if grad.__class__ is FewRows:
        if not watched and _keep_rows(leaf, grad):
            return
        grad, owned = grad.whole(), True
    if watched and leaf._rare.hooks:
        grad, owned = run_leaf_hooks(task, leaf, grad), False
        if grad is None:
            return
    _accumulate(task, leaf, grad, owned, watched)


def _keep_rows(leaf: Tensor, rows: FewRows) -> bool:
    """Let the rows alone be the gradient of a leaf that has none; say whether that was possible."""
    with _accumulating:
        array = leaf._array
        if leaf._grad is not None or array.dtype is not rows.dtype or not array.flags.c_contiguous:
            return False
        leaf._grad = wrap_rows(rows)
    return True


def _accumulate(task: Task, leaf: Tensor, grad, owned: bool, watched: bool) -> None:
    """Add to `.grad` of a leaf, then call the hooks that want to see the sum. `watched` is what its Rare says."""
    if watched and leaf._rare.grad_dtype is not None:
        grad, owned = _in_grad_dtype(leaf, grad), False
    with _accumulating:
        if leaf._grad is None and not task.tensors:
            made = make()
            made._array = _own(grad, leaf, owned)
            made._requires_grad = False
            made._edge = made._grad = made._view = made._counter = made._rare = None
            leaf._grad = made
        else:
            _add_to(leaf, grad, task.tensors)
    if watched and leaf._rare.post_accumulate:
        run_post_accumulate(task, leaf)


class _Stop:
    """What `_before` returns for a node that has nothing more to do."""


STOP = _Stop()


def _store(edge, grad, pending: dict, owned: set) -> None:
    """Add one gradient to what a node has received so far."""
    node = edge[0]
    if grad.__class__ is FewRows:
        grad = grad.whole()
    before = pending.get(node)
    if edge[2] is MULTI:
        if before is None:
            before = pending[node] = [None] * node.outputs
        number = edge[1]
        before[number] = grad if before[number] is None else before[number] + grad
    elif before is None:
        pending[node] = grad
    elif grad.__class__ is ndarray:
        large = before.size >= LARGE
        if node in owned and before.dtype is grad.dtype and before.shape == grad.shape:
            if large:
                elementwise.add_to(before, grad)
            else:
                add(before, grad, before)
        else:
            pending[node] = elementwise.apply_to_two(add, before, grad) if large else asarray(before + grad)
            owned.add(node)
    else:
        pending[node] = before + grad


def _before(task, node, kind: Any, grad: Any, captures, captured, owned):
    """Tensor hooks, captures, node pre-hooks: everything that comes before a node's own formula."""
    extra = node.extra
    is_leaf = kind is not None and kind is not MULTI
    leaf: Any = kind
    if is_leaf:
        if leaf._rare.watched and leaf._rare.hooks:
            grad, owned = run_leaf_hooks(task, leaf, grad), False
    elif extra is not None and (extra.tensor_hooks or extra.retain):
        grad = run_tensor_hooks(task, node, grad)
    wanted = captures.get(node)
    if wanted is not None:
        for number, position in wanted:
            captured[position] = grad[number] if kind is MULTI and grad is not None else grad
        if not any(edge is not None and edge[0] in task.needed for edge in node.edges):
            return STOP
    if extra is not None and extra.pre_hooks:
        grad, owned = run_pre_hooks(task, node, grad), False
    if not is_leaf:
        return grad
    if grad is not None:
        owned = owned and wanted is None
        surrounded(Work.LEAF, leaf, (grad,), functools.partial(_accumulate, task, leaf, grad, owned, leaf._rare.watched))
    if extra is not None and extra.post_hooks:
        run_post_hooks(task, node, (grad,), ())
    return STOP


def _run_watched(task, node, grad, edges):
    """Run a node that hooks or something else watches; what comes before it has been done."""
    if grad is None and not node.undefined:
        outputs = (None,) * len(edges)
    else:
        apply = node.apply_tensors if task.tensors else node.apply
        outputs = surrounded(Work.NODE, node, (grad,), lambda: in_full(apply(grad, edges, task.keep)))
    return _after(task, node, grad, outputs)


def _after(task, node, grad, outputs):
    """Post-hooks: what comes after a node's own formula."""
    if node.extra is not None and node.extra.post_hooks:
        outputs = run_post_hooks(task, node, grad if node.multi else (grad,), outputs)
    return outputs


def _add_to(leaf: Tensor, grad, tensors: bool) -> None:
    """Add to `.grad`: in place into the tensor that is there, unless the gradient is a tensor itself."""
    before = leaf._grad
    if tensors:
        if before is None:
            leaf._grad = grad if grad._requires_grad or modes.transforms else wrap(_own(grad._array, leaf, False))
        else:
            leaf._grad = before + grad
    elif before._requires_grad:
        leaf._grad = wrap(before._array + _own(grad, leaf, True))
    else:
        total = before._array
        if total.size >= LARGE and total.dtype is grad.dtype and total.shape == grad.shape:
            elementwise.add_to(total, grad)
        else:
            np.add(total, grad, out=total, casting="unsafe")
        counter(before).bump()


def _in_grad_dtype(leaf: Tensor, grad):
    """A gradient in the dtype that the leaf wants its gradients to have."""
    wanted = leaf._rare.grad_dtype
    if not hasattr(wanted, "numpy"):
        return grad
    return grad.to(wanted) if isinstance(grad, Tensor) else grad.astype(wanted.numpy, copy=False)


def _own(grad: np.ndarray, leaf: Tensor, owned: bool) -> np.ndarray:
    """The gradient as an array that nobody else holds, in the leaf's type, laid out in memory as the leaf is."""
    like = leaf._array
    if grad.dtype is like.dtype and ((owned and grad.ndim < 2) or grad.strides == like.strides):
        return grad if owned else grad.copy()
    order = "K" if like.flags.c_contiguous or is_dense(like) else "C"
    made = np.empty_like(like, dtype=None if leaf._rare.grad_dtype is None else grad.dtype, order=order)
    made[...] = grad
    return made


def call_node(node: Node, grads: tuple) -> tuple | Tensor | None:
    """Run one node on tensors: what calling `grad_fn(...)` does."""
    outer = _local.task
    tensors = modes.grad_enabled or bool(modes.transforms)
    task = Task(True, modes.grad_enabled, tensors)
    values = list(grads) if tensors else [None if g is None else g._array for g in grads]
    value = values if node.multi else values[0]
    if isinstance(node, AccumulateGrad):
        _accumulate(task, node.variable, value, False, node.variable._rare.watched)
        return None
    _local.task = task
    try:
        with quiet():
            outputs = in_full((node.apply_tensors if tensors else node.apply)(value, node.edges, True))
    finally:
        _local.task = outer
    made = tuple(o if o is None or tensors else wrap(o) for o in outputs)
    return made[0] if len(made) == 1 else made


def _call(self: Node, *grads):
    """Differentiate this one operation: gradients of the results in, gradients of the inputs out."""
    if len(grads) != self.outputs:
        raise TypeError(f"{self.name()}: expected {self.outputs} arguments, got {len(grads)} arguments instead")
    return call_node(self, grads)


setattr(Node, "__call__", _call)  # noqa: B010 (nodes stand below the engine that runs them)
