"""Anomaly mode: the operation that makes a NaN stops the program at once, in the forward and in the backward.

While it is on, a `Watch` stands around every operator and every node that runs. A NaN that was not in the operands raises
with line, shapes, ranges and counts. An Inf is often meant (a mask of -inf) and raises nothing; where the first one was
made is remembered and told with a NaN, or with an infinite gradient. The watch warns about a node that failed, and notes
for each node that a backward recorded (for a second derivative) which node it was made by, so that a failure in a
derivative of a derivative leads back to the line that the user wrote.
"""

from __future__ import annotations

import sys
import warnings
import weakref

from pellucid.autograd.around import Work
from pellucid.autograd.engine import current_task
from pellucid.autograd.node import AccumulateGrad, Node, next_sequence
from pellucid.autograd.nonfinite import (
    array_of,
    described,
    has_inf,
    has_nan,
    made_in_backward,
    made_in_forward,
    operands_of,
    saved_arrays,
    where_text,
)
from pellucid.core.callers import warn_caller
from pellucid.core.modes import modes
from pellucid.core.names import names_here
from pellucid.core.sites import Site, at
from pellucid.core.tensor import Tensor

__all__ = [
    "detect_anomaly",
    "is_anomaly_check_nan_enabled",
    "is_anomaly_enabled",
    "report_roots",
    "set_detect_anomaly",
]


def is_anomaly_enabled() -> bool:
    """Whether anomaly mode is on in this thread."""
    return bool(modes.anomaly)


def is_anomaly_check_nan_enabled() -> bool:
    """Whether anomaly mode, if it is on, also looks for NaN."""
    return modes.anomaly in (False, "nan")


def _switch(anomaly: bool | str) -> None:
    modes.anomaly = anomaly
    watches = [around for around in modes.around if isinstance(around, Watch)]
    if anomaly and not watches:
        modes.around = (*modes.around, Watch())
    elif not anomaly:
        modes.around = tuple(around for around in modes.around if around not in watches)
    modes.update()


class set_detect_anomaly:
    """Switch anomaly mode on or off; as a context manager, for a block.

    Args:
        mode: on or off.
        check_nan: whether what makes a NaN raises; without it only failures are explained.
    """

    def __init__(self, mode: bool, check_nan: bool = True):
        self.before = modes.anomaly
        _switch("nan" if mode and check_nan else bool(mode))

    def __enter__(self) -> None:
        return None

    def __exit__(self, *exception) -> None:
        _switch(self.before)


class detect_anomaly(set_detect_anomaly):
    """A block in which what makes a NaN raises RuntimeError: an operation in the forward, or its derivative in backward.

    The error names the operation and its line, what it was given and what it made. It also warns which operation failed
    where a backward fails in another way, and of infinite gradients and results.

    Args:
        check_nan: whether to look for NaN and Inf; without it only failures are explained.
    """

    def __init__(self, check_nan: bool = True):
        warnings.warn(
            "Anomaly Detection has been enabled. This mode will increase the runtime and should only be enabled for "
            "debugging.",
            stacklevel=2,
        )
        self.before, self.check_nan = modes.anomaly, check_nan

    def __enter__(self) -> None:
        self.before = modes.anomaly
        _switch("nan" if self.check_nan else True)


# --- NaN and Inf ------------------------------------------------------------------------------------------------------


class Watch:
    """What stands around operations while the mode is on. It remembers, in words, where the first Inf was made."""

    def __init__(self):
        self.origin = ""  # of the forward
        self.origins: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()  # of each backward

    def __call__(self, work: Work, subject, arguments: tuple, call):
        if work is Work.NODE:
            return self._node(subject, arguments[0], call)
        if modes.anomaly != "nan":
            return call()
        if work is Work.LEAF:
            self._leaf(arguments[0])
        elif current_task() is None and work in (Work.OPERATOR, Work.IN_PLACE):
            return self._operator(subject, arguments, call, work is Work.IN_PLACE)
        return call()

    def _operator(self, op, values: tuple, call, in_place: bool):
        """Let an operator run, and stop if it makes a NaN of operands that have none."""
        pairs = operands_of(op, values)
        if not op.differentiable or any(has_nan(value) for _, value in pairs):
            return call()
        before = values[0]._snapshot() if in_place else None
        made = call()
        if in_place:
            held = names_here(sys._getframe(1)).of_tensor(values[0])
            called = f" `{held}`" if held else ""
            pairs = [(name + called, before) if value is values[0] else (name, value) for name, value in pairs]
        results = [made] if isinstance(made, Tensor) else list(made)
        site = Site.here()
        for number, result in enumerate(results):
            if has_nan(result):
                names = names_here(sys._getframe(1))
                origin = self.origin if any(has_inf(value) for _, value in pairs) else ""
                raise RuntimeError(made_in_forward(op.name, number, result._array, pairs, site, names, origin))
            if not self.origin and has_inf(result) and not any(has_inf(value) for _, value in pairs):
                self.origin = _origin("forward", op.name, site, result._array, pairs)
        return made

    def _node(self, node: Node, grad, call):
        """Let a node run: explain its failure, tell the nodes that it records whose work they are, look at the result."""
        start = next_sequence()
        looks = modes.anomaly == "nan"
        grads = [g for g in (grad if node.multi and grad is not None else (grad,)) if g is not None]
        saved = saved_arrays(node) if looks else []
        try:
            outputs = call()
        except Exception:
            _explain(node)
            raise
        _adopt(node, outputs, start)
        if looks:
            self._look(node, grads, saved, outputs)
        return outputs

    def _look(self, node: Node, grads: list, saved: list, outputs) -> None:
        """Raise if one of the gradients that a node made holds a NaN; note the first that holds an Inf."""
        task = current_task()
        for number, output in enumerate(outputs):
            array = None if output is None else array_of(output)
            if array is None:
                continue
            if has_nan(array):
                _explain(node)
                infinite = any(has_inf(grad) for grad in grads)
                origin = self.origins.get(task, "") if infinite else self.origin
                origin = origin if infinite or any(has_inf(value) for _, value in saved) else ""
                choice = where_text(node, () if task is None else task.reached, grads, array)
                raise RuntimeError(made_in_backward(node, number, array, grads, saved, origin, choice))
            if has_inf(array) and task not in self.origins and not any(has_inf(grad) for grad in grads):
                given = [("gradient in", grad) for grad in grads] + [(f"saved {name}", value) for name, value in saved]
                self.origins[task] = _origin("backward", node.name(), node.site, array, given)

    def _leaf(self, grad) -> None:
        """Warn of a gradient that arrives at a leaf with an Inf: it is no NaN, and raises nothing."""
        task = current_task()
        if task is not None and has_inf(grad) and self.origins.get(task):
            _warn(f"A gradient is infinite. {self.origins[task]}")
            self.origins[task] = ""


def _origin(phase: str, name: str, site: Site | None, result, pairs: list) -> str:
    """Where the first Inf of a forward or backward was made, and of what."""
    given = "; ".join(f"{name} {described(array)}" for name, value in pairs if (array := array_of(value)) is not None)
    return f"The first inf of the {phase} was made by {name}{at(site)}: {described(result)}, of {given or 'nothing'}."


def report_roots(roots) -> None:
    """Warn of results that a backward begins from although they are no finite numbers."""
    for root in roots:
        if isinstance(root, Tensor) and (has_nan(root) or has_inf(root)):
            node = None if root._edge is None else root._edge[0]
            made = "" if node is None else f", made by {node.name()}{at(node.site)}"
            warn_caller(
                f"backward() starts from a result that is not finite: {described(root._array)}{made}. Its gradients may be finite "
                "all the same. Run the forward in detect_anomaly() too, and it stops at the operation that makes the first nan."
            )


# --- failures --------------------------------------------------------------------------------------------------------


def _adopt(parent: Node, outputs, start: int) -> None:
    """Note in every node recorded since `start` that leads to `outputs` that `parent` made it."""
    stack = [o._edge[0] for o in outputs if isinstance(o, Tensor) and o._edge is not None]
    while stack:
        node = stack.pop()
        if node.sequence > start and not isinstance(node, AccumulateGrad) and "parent_" not in node.metadata:
            node.metadata["parent_"] = parent
            stack.extend(child for child, _ in node.next_functions if child is not None)


def _explain(node: Node) -> None:
    """Warn where the operation ran whose derivative failed, and whose derivatives led to it."""
    _warn(
        f"Error detected in {node.name()}. "
        + (
            f"Traceback of forward call that caused the error: {node.site}"
            if node.site
            else "No forward pass information available."
        )
    )
    while (parent := node.metadata.get("parent_")) is not None:
        _warn(
            f"Previous calculation was induced by {parent.name()}. Traceback of forward call that induced the previous "
            f"calculation: {parent.site}"
        )
        node = parent


def _warn(text: str) -> None:
    """Warn; where warnings are errors, print: the failure itself must surface."""
    try:
        warn_caller(text)
    except UserWarning:
        print(text, file=sys.stderr)
