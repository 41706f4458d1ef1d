"""Anomaly mode: the operation that makes a NaN stops the program at once, in the forward and in the backward.

While it is on, a `Watch` stands around every operator and every node that runs. A NaN that was not in the operands raises
with line, shapes, ranges and counts. An Inf is often meant (a mask of -inf) and raises only on request; where the first one
was made is remembered and told with a NaN, an infinite result or an infinite gradient. The watch warns about a node that failed, and notes
for each node that a backward recorded (for a second derivative) which node it was made by, so that a failure in a
derivative of a derivative leads back to the line that the user wrote.
"""

from __future__ import annotations

import sys
import warnings
import weakref
from typing import Any

import numpy as np

from pellucid.autograd.around import Work
from pellucid.autograd.engine import current_task
from pellucid.autograd.node import AccumulateGrad, Node, next_sequence
from pellucid.autograd.nonfinite import (
    Bad,
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
from pellucid.core.language import say, sentences
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
    return modes.anomaly is False or modes.anomaly in LOOKED_FOR


LOOKED_FOR = {"nan": (Bad.NAN,), "inf": (Bad.NAN, Bad.INF)}  # by what `modes.anomaly` may be, beside True for no look


def _mode(check_nan: bool, check_inf: bool) -> bool | str:
    return "inf" if check_inf else "nan" if check_nan else True


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
        check_inf: whether what makes an Inf of finite values raises too.
    """

    def __init__(self, mode: bool, check_nan: bool = True, check_inf: bool = False):
        self.before = modes.anomaly
        _switch(_mode(check_nan, check_inf) if mode else False)

    def __enter__(self) -> None:
        return None

    def __exit__(self, *exception) -> None:
        _switch(self.before)


class detect_anomaly(set_detect_anomaly):
    """A block in which what makes a NaN raises RuntimeError: an operation in the forward, or its derivative in backward.

    The error names the operation and its line, what it was given and what it made. It also warns which operation failed
    where a backward fails in another way, and of infinite gradients and results.

    Args:
        check_nan: whether to look for NaN; without it only failures are explained.
        check_inf: whether what makes an Inf of finite values raises too: a value that overflows, a division by zero.
    """

    def __init__(self, check_nan: bool = True, check_inf: bool = False):
        warnings.warn(
            "Anomaly Detection has been enabled. This mode will increase the runtime and should only be enabled for "
            "debugging.",
            stacklevel=2,
        )
        self.before, self.mode = modes.anomaly, _mode(check_nan, check_inf)

    def __enter__(self) -> None:
        self.before = modes.anomaly
        _switch(self.mode)


# --- NaN and Inf ------------------------------------------------------------------------------------------------------


class Watch:
    """What stands around operations while the mode is on. It remembers, in words, where the first Inf was made."""

    def __init__(self):
        self.origin = ""  # of the forward
        self.origins: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()  # of each backward

    def __call__(self, work: Work, subject, arguments: tuple, call):
        if work is Work.NODE:
            return self._node(subject, arguments[0], call)
        if modes.anomaly not in LOOKED_FOR:
            return call()
        if work is Work.LEAF:
            self._leaf(arguments[0])
        elif current_task() is None:
            if work is Work.FUNCTION:
                return self._function(subject, arguments, call)
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
        self._judge(op.name, pairs, made)
        return made

    def _function(self, cls: type, values: tuple, call):
        """The same for the forward of a custom Function, which may compute by other means than operators."""
        pairs = list(zip(_parameters(cls, len(values)), values, strict=True))
        made = call()
        if not any(has_nan(value) for _, value in pairs):
            self._judge(cls.__name__, pairs, made)
        return made

    def _judge(self, name: str, pairs: list[tuple[str, Any]], made) -> None:
        """Raise for a result that holds what is looked for, which no operand held; note the first Inf."""
        infinite = any(has_inf(value) for _, value in pairs)
        for number, result in enumerate([made] if isinstance(made, Tensor) else list(made)):
            array = array_of(result)
            if array is None:
                continue
            for bad in LOOKED_FOR[str(modes.anomaly)]:
                if bad.held_by(array) and not (infinite and bad is Bad.INF):
                    names = names_here(sys._getframe(1))
                    origin = self.origin if infinite else ""
                    raise RuntimeError(made_in_forward(name, number, array, bad, pairs, Site.here(), names, origin))
            if not self.origin and not infinite and has_inf(array):
                self.origin = say("The first inf of the forward was made by {how}.", how=_origin(name, Site.here(), array, pairs))

    def _node(self, node: Node, grad, call):
        """Let a node run: explain its failure, tell the nodes that it records whose work they are, look at the result."""
        start = next_sequence()
        looks = modes.anomaly in LOOKED_FOR
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
        infinite = any(has_inf(grad) for grad in grads)
        for number, output in enumerate(outputs):
            array = None if output is None else array_of(output)
            if array is None:
                continue
            for bad in LOOKED_FOR[str(modes.anomaly)]:
                if bad.held_by(array) and not (infinite and bad is Bad.INF):
                    _explain(node)
                    origin = self.origins.get(task, "") if infinite else self.origin
                    origin = origin if infinite or any(has_inf(value) for _, value in saved) else ""
                    choice = where_text(node, () if task is None else task.reached, grads, array)
                    raise RuntimeError(made_in_backward(node, number, array, bad, grads, saved, origin, choice))
            if has_inf(array) and task not in self.origins and not infinite:
                given = [(say("gradient in"), grad) for grad in grads]
                given += [(say("saved {name}", name=name), value) for name, value in saved]
                how = _origin(node.name(), node.site, array, given)
                self.origins[task] = say("The first inf of the backward was made by {how}.", how=how)

    def _leaf(self, grad) -> None:
        """Warn of a gradient that arrives at a leaf with an Inf: it is no NaN, and raises nothing."""
        task = current_task()
        if task is not None and has_inf(grad) and self.origins.get(task):
            _warn(sentences(say("A gradient is infinite."), self.origins[task]))
            self.origins[task] = ""


def _parameters(cls: type, count: int) -> list[str]:
    """What the forward of a custom Function calls its arguments, as far as they have names."""
    code = getattr(cls.forward, "__code__", None)  # type: ignore[attr-defined]
    names = code.co_varnames[: code.co_argcount] if code is not None else ()
    names = names[1:] if names[:1] == ("ctx",) else names
    return [names[k] if k < len(names) else f"args[{k}]" for k in range(count)]


def _origin(name: str, site: Site | None, result: np.ndarray, pairs: list) -> str:
    """What made an Inf, where, and of what."""
    given = [say("{name} {what}", name=name, what=described(array)) for name, value in pairs if (array := array_of(value)) is not None]
    return say(
        "{operation}{place}: {result}, of {operands}",
        operation=name, place=at(site), result=described(result), operands=say("; ").join(given) or say("nothing"),
    )  # fmt: skip


def report_roots(roots) -> None:
    """Warn of results that a backward begins from although they are no finite numbers."""
    watch = next((around for around in modes.around if isinstance(around, Watch)), None)
    for root in roots:
        if isinstance(root, Tensor) and (has_nan(root) or has_inf(root)):
            node, what = None if root._edge is None else root._edge[0], described(root._array)
            if node is not None:
                what = say("{what}, made by {operation}{place}", what=what, operation=node.name(), place=at(node.site))
            seen = watch.origin if watch is not None else ""
            warn_caller(
                sentences(
                    say("backward() starts from a result that is not finite: {what}. Its gradients may be finite all the same.", what=what),
                    seen or say("Run the forward in detect_anomaly() too, and it stops at the operation that makes the first nan."),
                )
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
