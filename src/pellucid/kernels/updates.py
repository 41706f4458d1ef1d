"""Update rules of optimizers: how a parameter, its gradient and what is remembered of it make the next parameter.

A rule is a function `rule(f, param, grad, slots, work, spare)` that treats every element alone and changes `param` and
`slots` in place, never `grad`. `f` holds the numbers of the step, a named tuple that begins as `Factors`; `work` and
`spare` are scratch arrays. Here is the plain form of each; `compiled/updates.py` has the same in one pass over memory,
for all parameters of an optimizer in one call. `move` chooses. Formulas and their sources are in `optim/`, one file a
family; nothing here knows of tensors, options and steps.

In the plain form a rule is a dozen array operations, so it walks each parameter in blocks that fit the processor's cache:
only the first operation fetches a block from memory. A rule sees contiguous float32 or float64 arrays and nothing else:
half precision is computed in float32, complex numbers as pairs, odd memory layouts through a copy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, Protocol

import numpy as np

from .choice import FLOATS, are_loaded, compiled
from .few_rows import FewRows

__all__ = ["BLOCK", "WIDE", "Move", "Prepared", "Scratch", "is_packed", "leaves_others", "lerp", "move", "prepare"]

# Elements that each parameter counts for, beside its own, when the crossover is asked: a plain rule is a dozen calls from Python, in
# whose time thousands of elements could be moved. While no kernel is in use, small models are better off without loading Numba.
OF_CALLS, OF_FIRST_CALLS = 8000, 500
BLOCK = 32768  # elements; six arrays of float32 then take 790 KB, which stays in a core's second-level cache

WIDE = {"f": np.float32, "d": np.float64, "F": np.float32, "D": np.float64}  # what a rule computes in, by dtype.char


class Move(NamedTuple):
    """One parameter's share of a step."""

    factors: tuple
    param: np.ndarray
    grad: np.ndarray | FewRows
    slots: list[np.ndarray]  # of the parameter's shape and dtype, in the order the rule knows them
    packed: bool  # what `is_packed` says of the parameter and the slots


def is_packed(arrays: list[np.ndarray]) -> bool:
    """Whether compiled rules can have these arrays as they are."""
    kind = arrays[0].dtype
    return kind in FLOATS and all([a.dtype == kind and a.flags.c_contiguous for a in arrays])


def move(rule: Callable, moves: list[Move], scratch: Scratch) -> None:
    """Carry out a step of one rule for several parameters."""
    packed = [m for m in moves if m.packed]
    fast = compiled("updates", _work(packed), packed[0].param) if packed else None
    if fast is not None:
        kind = packed[0].param.dtype
        together = [m for m in packed if m.param.dtype == kind]
        fast.move(rule.__name__, together)
        moves = [m for m in moves if not m.packed or m.param.dtype != kind] if len(together) < len(moves) else []
    if moves:
        scratch.grow(max([m.param.size for m in moves]))
    for each in moves:
        if isinstance(each.grad, FewRows):
            each = each._replace(grad=each.grad.whole())
        _move_plainly(rule, each, scratch)


class Prepared(Protocol):
    """Moves to be carried out again, with other gradients and numbers."""

    def move(self, factors: tuple, grads: list[np.ndarray]) -> None:
        """Carry them out. The gradients have to lie in memory as the parameters do, and all share the numbers."""
        ...


def prepare(rule: Callable, moves: list[Move]) -> Prepared | None:
    """What carries out moves like these in one call of a compiled rule; None where `move` would take another road."""
    if not moves or not all([m.packed and m.param.dtype == moves[0].param.dtype and m.grad.__class__ is np.ndarray for m in moves]):
        return None
    fast = compiled("updates", _work(moves), moves[0].param)
    return None if fast is None else fast.Prepared(rule.__name__, moves)


def _work(moves: list[Move]) -> int:
    """What is compared with the crossover."""
    more = OF_CALLS if moves and are_loaded(moves[0].param.dtype) else OF_FIRST_CALLS
    return sum([m.param.size + more for m in moves])


def leaves_others(rule: str, f: Any) -> bool:
    """Whether a rule with these numbers changes nothing where the gradient is zero."""
    if f.penalty != 0 or f.shrink != 1:
        return False
    return (rule == "sgd" and f.momentum == 0) or (rule == "adagrad" and f.eps > 0)


def _move_plainly(rule: Callable, each: Move, scratch: Scratch) -> None:
    arrays = (each.param, *each.slots)
    if scratch.takes_whole(each.param, (*arrays, each.grad)):
        rule(each.factors, each.param, each.grad, each.slots, *scratch.shaped(each.param))
        return
    for param, grad, slots, work, spare in blocks(arrays, each.grad, scratch):
        rule(each.factors, param, grad, slots, work, spare)


# --- the numbers of a step -------------------------------------------------------------------------------------------


class Factors(NamedTuple):
    """What every rule's numbers begin with; on its own, those of rules without others."""

    sign: float  # -1 to ascend
    penalty: float  # the gradient grows by this share of the parameter
    shrink: float  # by which the parameter is multiplied first; 1 for nothing


class SGDFactors(NamedTuple):
    """Numbers of `sgd`; flags are 0 or 1 here and below."""

    sign: float
    penalty: float
    shrink: float
    rate: float
    momentum: float
    share: float  # of the gradient in the buffer
    nesterov: float
    fresh: float  # whether the buffer begins with this gradient


class AdamFactors(NamedTuple):
    """Numbers of `adam`. The complement of a rate is given beside it: 1 - float32(beta) would lose digits."""

    sign: float
    penalty: float
    shrink: float
    beta1_rest: float
    beta2: float
    beta2_rest: float
    rate: float
    eps: float
    amsgrad: float


class NAdamFactors(NamedTuple):
    """Numbers of `nadam`."""

    sign: float
    penalty: float
    shrink: float
    beta1_rest: float
    beta2: float
    beta2_rest: float
    correction: float
    eps: float
    of_grad: float
    of_mean: float


class RAdamFactors(NamedTuple):
    """Numbers of `radam`."""

    sign: float
    penalty: float
    shrink: float
    beta1_rest: float
    beta2: float
    beta2_rest: float
    rate: float
    eps: float
    adaptive: float


class AdamaxFactors(NamedTuple):
    """Numbers of `adamax`."""

    sign: float
    penalty: float
    shrink: float
    beta1_rest: float
    beta2: float
    rate: float
    eps: float


class AdagradFactors(NamedTuple):
    """Numbers of `adagrad`."""

    sign: float
    penalty: float
    shrink: float
    rate: float
    eps: float


class AdadeltaFactors(NamedTuple):
    """Numbers of `adadelta`."""

    sign: float
    penalty: float
    shrink: float
    rate: float
    rho: float
    rho_rest: float
    eps: float


class RMSpropFactors(NamedTuple):
    """Numbers of `rmsprop`."""

    sign: float
    penalty: float
    shrink: float
    rate: float
    alpha: float
    alpha_rest: float
    eps: float
    momentum: float
    centered: float


class ASGDFactors(NamedTuple):
    """Numbers of `asgd`."""

    sign: float
    penalty: float
    shrink: float
    rate: float
    mean_share: float  # of the parameter in its mean


class RpropFactors(NamedTuple):
    """Numbers of `rprop`."""

    sign: float
    penalty: float
    shrink: float
    less: float
    more: float
    smallest: float
    largest: float


# --- plain rules -----------------------------------------------------------------------------------------------------


def sgd(f: SGDFactors, param, grad, slots, work, spare) -> None:
    """Stochastic gradient descent; slots: the momentum buffer, or none."""
    grad = _shaped(f, param, grad, spare)
    if slots:
        (buffer,) = slots
        if f.fresh:
            buffer[...] = grad
        else:
            buffer *= f.momentum
            add_scaled(buffer, grad, f.share, work)
        if f.nesterov:
            np.multiply(buffer, f.momentum, out=work)
            grad = np.add(grad, work, out=spare)
        else:
            grad = buffer
    add_scaled(param, grad, -f.rate, work)


def adam(f: AdamFactors, param, grad, slots, work, spare) -> None:
    """Adam and AdamW; slots: the means of the gradient and of its square, and with amsgrad the largest of those."""
    exp_avg, exp_avg_sq = slots[:2]
    _update_moments(f, _shaped(f, param, grad, spare), exp_avg, exp_avg_sq, work)
    if f.amsgrad:
        exp_avg_sq = np.maximum(slots[2], exp_avg_sq, out=slots[2])
    add_scaled(param, _over_root(exp_avg, exp_avg_sq, f.eps, work), -f.rate, work)


def nadam(f: NAdamFactors, param, grad, slots, work, spare) -> None:
    """NAdam; slots: the means of the gradient and of its square."""
    exp_avg, exp_avg_sq = slots
    grad = _shaped(f, param, grad, spare)
    _update_moments(f, grad, exp_avg, exp_avg_sq, work)
    np.divide(exp_avg_sq, f.correction, out=work)
    np.sqrt(work, out=work)
    work += f.eps
    np.divide(grad, work, out=spare)
    add_scaled(param, spare, f.of_grad, spare)
    np.divide(exp_avg, work, out=work)
    add_scaled(param, work, f.of_mean, work)


def radam(f: RAdamFactors, param, grad, slots, work, spare) -> None:
    """RAdam; slots: the means of the gradient and of its square."""
    exp_avg, exp_avg_sq = slots
    _update_moments(f, _shaped(f, param, grad, spare), exp_avg, exp_avg_sq, work)
    step = _over_root(exp_avg, exp_avg_sq, f.eps, work) if f.adaptive else exp_avg
    add_scaled(param, step, -f.rate, work)


def adamax(f: AdamaxFactors, param, grad, slots, work, spare) -> None:
    """Adamax; slots: the mean of the gradient and its largest magnitude."""
    exp_avg, exp_inf = slots
    grad = _shaped(f, param, grad, spare)
    lerp(exp_avg, grad, f.beta1_rest, work)
    exp_inf *= f.beta2
    np.abs(grad, out=work)
    work += f.eps
    np.maximum(exp_inf, work, out=exp_inf)
    np.divide(exp_avg, exp_inf, out=work)
    add_scaled(param, work, -f.rate, work)


def adagrad(f: AdagradFactors, param, grad, slots, work, spare) -> None:
    """Adagrad; slots: the sum of squares."""
    (total,) = slots
    grad = _shaped(f, param, grad, spare)
    np.multiply(grad, grad, out=work)
    total += work
    add_scaled(param, _over_root(grad, total, f.eps, work), -f.rate, work)


def adadelta(f: AdadeltaFactors, param, grad, slots, work, spare) -> None:
    """Adadelta; slots: the means of the square of the gradient and of that of the step."""
    square_avg, acc_delta = slots
    grad = _shaped(f, param, grad, spare)
    square_avg *= f.rho
    np.multiply(grad, grad, out=work)
    add_scaled(square_avg, work, f.rho_rest, work)
    np.add(square_avg, f.eps, out=work)
    np.sqrt(work, out=work)
    np.divide(grad, work, out=spare)
    np.add(acc_delta, f.eps, out=work)
    np.sqrt(work, out=work)
    delta = np.multiply(spare, work, out=spare)
    acc_delta *= f.rho
    np.multiply(delta, delta, out=work)
    add_scaled(acc_delta, work, f.rho_rest, work)
    add_scaled(param, delta, -f.rate, work)


def rmsprop(f: RMSpropFactors, param, grad, slots, work, spare) -> None:
    """RMSprop; slots: the mean square, with momentum the buffer, if centered the mean, in this order."""
    square_avg = slots[0]
    grad = _shaped(f, param, grad, spare)
    square_avg *= f.alpha
    np.multiply(grad, grad, out=work)
    add_scaled(square_avg, work, f.alpha_rest, work)
    spread = square_avg
    if f.centered:
        grad_avg = slots[-1]
        lerp(grad_avg, grad, f.alpha_rest, work)
        np.multiply(grad_avg, grad_avg, out=work)
        spread = np.subtract(square_avg, work, out=work)
    step = _over_root(grad, spread, f.eps, work)
    if f.momentum > 0:
        buffer = slots[1]
        buffer *= f.momentum
        buffer += step
        step = buffer
    add_scaled(param, step, -f.rate, work)


def asgd(f: ASGDFactors, param, grad, slots, work, spare) -> None:
    """Averaged gradient descent; slots: the mean of the parameter."""
    (ax,) = slots
    grad = _penalised(f, param, grad, spare)  # before the parameter shrinks, unlike in the other rules
    param *= f.shrink
    add_scaled(param, grad, -f.rate, work)
    if f.mean_share == 1:
        ax[...] = param
    else:
        np.subtract(param, ax, out=work)
        add_scaled(ax, work, f.mean_share, work)


def rprop(f: RpropFactors, param, grad, slots, work, spare) -> None:
    """Rprop; slots: the last gradient and the size of the step."""
    prev, step_size = slots
    grad = _shaped(f, param, grad, spare)
    np.multiply(grad, prev, out=work)
    turned = work < 0
    factor = np.where(turned, f.less, np.where(work > 0, f.more, 1.0))
    np.multiply(step_size, factor, out=step_size)
    np.clip(step_size, f.smallest, f.largest, out=step_size)
    prev[...] = grad
    prev[turned] = 0
    np.subtract(prev > 0, prev < 0, out=work, dtype=work.dtype)  # the sign; 0 for NaN, where np.sign gives NaN
    work *= step_size
    param -= work


# --- steps that rules share ------------------------------------------------------------------------------------------


def _shaped(f: Any, param, grad, spare):
    """The gradient that a rule goes on with; the parameter shrinks first."""
    if f.shrink != 1:
        param *= f.shrink
    return _penalised(f, param, grad, spare)


def _penalised(f: Any, param, grad, spare):
    """sign * grad + penalty * param: `grad` itself where that is all, `spare` filled otherwise."""
    if f.penalty == 0:
        return np.negative(grad, out=spare) if f.sign < 0 else grad
    np.multiply(param, f.penalty, out=spare)
    return np.subtract(spare, grad, out=spare) if f.sign < 0 else np.add(spare, grad, out=spare)


def _over_root(value, square, eps: float, work):
    """value / (sqrt(square) + eps), in `work`, which may be `square`."""
    np.sqrt(square, out=work)
    work += eps
    return np.divide(value, work, out=work)


def _update_moments(f: Any, grad, exp_avg, exp_avg_sq, work) -> None:
    """Move the running means of the gradient and of its square, in place."""
    lerp(exp_avg, grad, f.beta1_rest, work)
    exp_avg_sq *= f.beta2
    np.multiply(grad, grad, out=work)
    work *= f.beta2_rest
    exp_avg_sq += work


def lerp(start, end, weight: float, work) -> None:
    """start += weight * (end - start), in place; from the other end for weights of a half and more, as PyTorch does."""
    np.subtract(end, start, out=work)
    if abs(weight) < 0.5:
        work *= weight
        start += work
    else:
        work *= 1 - weight
        np.subtract(end, work, out=start)


def add_scaled(total, value, factor: float, work) -> None:
    """total += factor * value, in place."""
    if factor == 1:
        total += value
        return
    np.multiply(value, factor, out=work)
    total += work


# --- blocks ----------------------------------------------------------------------------------------------------------


class Scratch:
    """Two scratch arrays of each computing type, made on first use and kept from step to step."""

    def __init__(self, largest: int):
        self.size = min(2 * largest, BLOCK)  # a complex element counts as two
        self.flat: dict[Any, tuple[np.ndarray, np.ndarray]] = {}
        self.by_shape: dict[Any, tuple[np.ndarray, np.ndarray]] = {}

    def grow(self, largest: int) -> None:
        """Make room for blocks of parameters of up to `largest` elements."""
        if min(2 * largest, BLOCK) > self.size:
            self.__init__(largest)

    def get(self, kind, size: int) -> tuple[np.ndarray, np.ndarray]:
        """Two arrays of `size` elements."""
        pair = self.flat.get(kind)
        if pair is None:
            pair = self.flat[kind] = (np.empty(self.size, kind), np.empty(self.size, kind))
        return pair[0][:size], pair[1][:size]

    def shaped(self, array: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Two arrays like `array`."""
        key = (array.dtype, array.shape)
        pair = self.by_shape.get(key)
        if pair is None:
            work, spare = self.get(array.dtype.type, array.size)
            pair = self.by_shape[key] = (work.reshape(array.shape), spare.reshape(array.shape))
        return pair

    @staticmethod
    def takes_whole(param: np.ndarray, arrays: tuple[np.ndarray, ...]) -> bool:
        """Whether a rule can have the arrays as they are: one small block, and nothing to convert."""
        kind = param.dtype
        if param.size > BLOCK or not param.ndim or kind.char not in "fd":
            return False
        for array in arrays:
            if array.dtype is not kind or not array.flags.c_contiguous:
                return False
        return True


def blocks(arrays: tuple[np.ndarray, ...], grad: np.ndarray, scratch: Scratch) -> Iterator[tuple]:
    """Cut a parameter into pieces for a rule.

    Args:
        arrays: the parameter and its slots, of one shape; written to through the yielded pieces.
        grad: the gradient, same shape, any floating dtype; only read.

    Yields:
        (param, grad, slots, work, spare): flat contiguous arrays of one length.
    """
    kind = WIDE.get(arrays[0].dtype.char, np.float32)
    flats, grad, copied = _flattened(arrays, grad, kind)
    exact = all(flat.dtype == kind for flat in flats)
    total = flats[0].size
    for start in range(0, total, BLOCK):
        stop = min(start + BLOCK, total)
        work, spare = scratch.get(kind, stop - start)
        pieces = [flat[start:stop] for flat in flats] if total > BLOCK else flats
        if exact:
            yield pieces[0], grad[start:stop], pieces[1:], work, spare
        else:
            wide = [piece.astype(kind) for piece in pieces]
            yield wide[0], grad[start:stop].astype(kind), wide[1:], work, spare
            for piece, value in zip(pieces, wide, strict=True):
                piece[...] = value
    for array, flat in copied:
        array[...] = (flat.view(array.dtype) if array.dtype.kind == "c" else flat).reshape(array.shape)


def _flattened(arrays: tuple[np.ndarray, ...], grad: np.ndarray, kind):
    """Flat views where all share a packed layout, flat copies else; and which copies have to be written back."""
    if arrays[0].dtype.kind == "c":
        grad = grad.astype(arrays[0].dtype, copy=False)
    if all(array.flags.c_contiguous for array in arrays):
        copied, flats = [], [array.reshape(-1) for array in arrays]
        grad = grad.reshape(-1)
    else:
        order = sorted(range(arrays[0].ndim), key=lambda axis: -abs(arrays[0].strides[axis]))
        turned = [array.transpose(order) for array in arrays]
        if all(array.flags.c_contiguous for array in turned):
            copied, flats = [], [array.reshape(-1) for array in turned]
            grad = grad.transpose(order).reshape(-1)
        else:
            flats = [np.array(array, order="C").reshape(-1) for array in arrays]
            copied, grad = list(zip(arrays, flats, strict=True)), grad.reshape(-1)
    if arrays[0].dtype.kind == "c":
        flats, grad = [flat.view(kind) for flat in flats], grad.view(kind)
        copied = [(array, flat) for (array, _), flat in zip(copied, flats, strict=False)]
    return flats, grad, copied
