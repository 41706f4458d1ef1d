"""Connectionist temporal classification: the loss of an unaligned sequence of labels. Forward-backward over all alignments.

Source: Graves and others, Connectionist temporal classification, 2006. Labels are stretched to blank, l1, blank, l2, ...,
blank; `alpha[t, n, s]` is the log-probability of having emitted the first s of these by time t, `beta` of emitting the rest.
"""

from __future__ import annotations

import numpy as np

from pellucid.autograd.operator import Array, Index, composite, operator
from pellucid.autograd.operator import tensors as T
from pellucid.core.checks import check_reduction, every_value, scalar_name
from pellucid.core.tensor import Tensor, wrap
from pellucid.ops.batch_places import into, out_of
from pellucid.ops.batches import for_each

__all__ = ["ctc_loss"]


# --- forward-backward --------------------------------------------------------------------------------------------------


def _stretched(labels: np.ndarray, blank: int) -> tuple[np.ndarray, np.ndarray]:
    """Labels [N, S] with blanks around each, [N, 2 S + 1], and where the blank between two labels may be left out."""
    states = np.full((labels.shape[0], 2 * labels.shape[1] + 1), blank, np.int64)
    states[:, 1::2] = labels
    skips = np.zeros(states.shape, bool)
    skips[:, 3::2] = labels[:, 1:] != labels[:, :-1]
    return states, skips


def _emissions(log_probs: np.ndarray, states: np.ndarray) -> np.ndarray:
    """The log-probability of each state at each time: [T, N, 2 S + 1]."""
    return np.take_along_axis(log_probs, np.broadcast_to(states, (len(log_probs), *states.shape)), axis=2)


def _log_sum(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """log(exp(a) + exp(b) + exp(c)); -inf where all three are."""
    top = np.maximum(np.maximum(a, b), c)
    base = np.where(np.isneginf(top), 0, top).astype(a.dtype, copy=False)
    return np.log(np.exp(a - base) + np.exp(b - base) + np.exp(c - base)) + base


def _moved(row: np.ndarray, by: int) -> np.ndarray:
    """States moved up by some places (down, if negative), -inf coming in."""
    made = np.full_like(row, -np.inf)
    if by > 0:
        made[:, by:] = row[:, :-by]
    else:
        made[:, :by] = row[:, -by:]
    return made


def _alphas(emitted: np.ndarray, skips: np.ndarray) -> np.ndarray:
    alpha = np.full_like(emitted, -np.inf)
    alpha[0, :, :2] = emitted[0, :, :2]
    for t in range(1, len(emitted)):
        last = alpha[t - 1]
        skipping = np.where(skips, _moved(last, 2), -np.inf).astype(last.dtype, copy=False)
        alpha[t] = _log_sum(last, _moved(last, 1), skipping) + emitted[t]
    return alpha


def _betas(emitted: np.ndarray, skips: np.ndarray, input_lengths: np.ndarray, target_lengths: np.ndarray) -> np.ndarray:
    beta = np.full_like(emitted, -np.inf)
    place = np.arange(emitted.shape[2])
    final = (place == 2 * target_lengths[:, None]) | (place == 2 * target_lengths[:, None] - 1)
    can_skip = np.zeros_like(skips)
    can_skip[:, :-2] = skips[:, 2:]
    following = np.full_like(emitted[0], -np.inf)
    for t in range(len(emitted) - 1, -1, -1):
        skipping = np.where(can_skip, _moved(following, -2), -np.inf).astype(following.dtype, copy=False)
        row = _log_sum(following, _moved(following, -1), skipping) + emitted[t]
        ends = (input_lengths == t + 1)[:, None]
        beta[t] = following = np.where(ends, np.where(final, emitted[t], -np.inf), row).astype(row.dtype, copy=False)
    return beta


def _losses(alpha: np.ndarray, input_lengths: np.ndarray, target_lengths: np.ndarray) -> np.ndarray:
    """Minus the log-probability of the whole: in the last blank or the last label when the input ends."""
    rows = np.arange(alpha.shape[1])
    end = alpha[np.maximum(input_lengths - 1, 0), rows]
    blank = end[rows, 2 * target_lengths]
    label = np.where(target_lengths > 0, end[rows, np.maximum(2 * target_lengths - 1, 0)], -np.inf)
    total = np.logaddexp(blank, label.astype(blank.dtype, copy=False))
    return -np.where(input_lengths > 0, total, np.where(target_lengths > 0, -np.inf, 0)).astype(alpha.dtype, copy=False)


def _more_sequences(F, size: int, batched: set, operands: dict) -> list:
    """The examples of a batch as more sequences of one."""
    return [into(F, for_each(F, t, n in batched, size), int(n == "log_probs")) for n, t in operands.items()]


@operator(module=None, name="ctc_loss", node="CtcLossBackward0", widen=False)
class _ctc_loss:
    """The loss of each sequence. log_probs: [T, N, C]; targets: [N, S], padded; lengths: [N]. Returns [N].

    The gradient is that with respect to the scores before log_softmax, as in PyTorch; it is the same once it went through
    log_softmax's own.
    """

    def forward(
        xp,
        log_probs: Array,
        targets: Index,
        input_lengths: Index,
        target_lengths: Index,
        blank: int,
        zero_infinity: bool,
    ):
        states, skips = _stretched(targets, blank)
        loss = _losses(_alphas(_emissions(log_probs, states), skips), input_lengths, target_lengths)
        return xp.where(xp.isinf(loss), 0, loss).astype(loss.dtype, copy=False) if zero_infinity else loss

    def vjp_log_probs(F, grad, log_probs, targets, input_lengths, target_lengths, blank, zero_infinity):
        return F.ctc_loss_backward(grad, log_probs, targets, input_lengths, target_lengths, blank, zero_infinity)

    def jvp_log_probs(F, tangent, log_probs, targets, input_lengths, target_lengths, result, blank, zero_infinity):
        one = F.zeros_as(result) + 1
        slope = F.ctc_loss_backward(one, log_probs, targets, input_lengths, target_lengths, blank, zero_infinity)
        return F.sum_dim(slope * tangent, (0, 2), False)

    def batch(F, size_of_batch, batched, log_probs, targets, input_lengths, target_lengths, blank, zero_infinity):
        operands = {"log_probs": log_probs, "targets": targets, "input_lengths": input_lengths, "target_lengths": target_lengths}
        made = F.ctc_loss(*_more_sequences(F, size_of_batch, batched, operands), blank, zero_infinity)
        return out_of(F, made, 0, size_of_batch, input_lengths.shape[-1])


@operator(module=None, widen=False)
class ctc_loss_backward:
    """The gradient of `ctc_loss`: probabilities minus the share of each class in the alignments, times grad.

    input: [N]; the rest as for ctc_loss. Returns [T, N, C]. It has no derivative.
    """

    def forward(
        xp, input: Array, log_probs: Array, targets: Index, input_lengths: Index, target_lengths: Index, blank: int,
        zero_infinity: bool,
    ):  # fmt: skip
        states, skips = _stretched(targets, blank)
        emitted = _emissions(log_probs, states)
        alpha = _alphas(emitted, skips)
        loss = _losses(alpha, input_lengths, target_lengths)
        paths = alpha + _betas(emitted, skips, input_lengths, target_lengths)
        shares = xp.full(log_probs.shape, -np.inf, log_probs.dtype)
        rows = xp.arange(len(states))
        for s in range(states.shape[1]):
            valid = s < 2 * target_lengths + 1
            chosen = shares[:, rows, states[:, s]]
            shares[:, rows, states[:, s]] = xp.where(valid, xp.logaddexp(chosen, paths[:, :, s]), chosen)
        made = (xp.exp(log_probs) - xp.exp(shares + loss[:, None] - log_probs)) * input[:, None]
        unused = xp.arange(len(log_probs))[:, None] >= input_lengths
        if zero_infinity:
            unused = unused | xp.isinf(loss)
        return xp.where(unused[:, :, None], 0, made).astype(log_probs.dtype, copy=False)

    def batch(F, size_of_batch, batched, input, log_probs, targets, input_lengths, target_lengths, blank, zero_infinity):
        operands = {"input": input, "log_probs": log_probs, "targets": targets}
        operands |= {"input_lengths": input_lengths, "target_lengths": target_lengths}
        made = F.ctc_loss_backward(*_more_sequences(F, size_of_batch, batched, operands), blank, zero_infinity)
        return out_of(F, made, 1, size_of_batch, input_lengths.shape[-1])

    def vjp(F, grad, needs):
        raise RuntimeError("derivative for aten::_ctc_loss_backward is not implemented: ctc_loss has a first derivative only, so "
                           "leave out create_graph=True")


# --- nn.functional -----------------------------------------------------------------------------------------------------


def _lengths(name: str, lengths, batch: int, longest: int | None) -> Tensor:
    """Lengths [N] as int64; RuntimeError for a wrong number of them, or values out of range."""
    lengths = lengths if isinstance(lengths, Tensor) else wrap(np.asarray(lengths))
    if lengths._array.dtype.kind not in "iu":
        raise RuntimeError(f"{name} must be integral: got {lengths._array.dtype.name}")
    lengths = lengths.long() if lengths._array.ndim else lengths.long().reshape(-1)
    if lengths._array.shape != (batch,):
        raise RuntimeError(f"{name} must be of size batch_size: expected [{batch}], got {list(lengths.shape)}")
    values, where = every_value(lengths), "(while checking arguments for ctc_loss_allocate_outputs)"
    if values.size and values.min() < 0:
        raise RuntimeError(f"Expected {name} to have value at least 0, but got value {values.min()} {where}")
    if longest is not None and values.size and values.max() > longest:
        raise RuntimeError(f"Expected {name} to have value at most {longest}, but got value {values.max()} {where}: log_probs has "
                           "no more times")
    return lengths


@operator(module=None, batching="leading")
class ctc_labels:
    """Targets [N, longest], from rows [N, S] or from one after another [sum of lengths]; beyond a length there are blanks."""

    def forward(xp, targets: Index, lengths: Index, longest: int, blank: int):
        places = xp.arange(longest)
        if targets.ndim > lengths.ndim:
            found = targets[..., :longest]
        else:
            starts = xp.cumsum(lengths, axis=-1) - lengths
            last = max(targets.shape[-1] - 1, 0)
            rows = xp.minimum(starts[..., None] + places, last)
            whole = targets if targets.shape[-1] else xp.zeros((*targets.shape[:-1], 1), targets.dtype)
            found = xp.take_along_axis(whole, rows.reshape(*rows.shape[:-2], -1), axis=-1).reshape(rows.shape)
        return xp.where(places < lengths[..., None], found, blank).astype(xp.int64)


def _padded_targets(targets: Tensor, lengths: Tensor, blank: int) -> Tensor:
    """`ctc_labels`, checked."""
    shape = targets._array.shape
    if targets._array.dtype.kind == "b" or len(shape) not in (1, 2):
        raise RuntimeError(f"ctc_loss takes targets [N, S] or [sum of target_lengths]: got shape {list(shape)}")
    values, batch = every_value(lengths), lengths._array.size
    longest, total = int(values.max(initial=0)), int(values.sum(axis=-1).max())
    where = "for argument #2 'targets' (while checking arguments for ctc_loss_allocate_outputs)"
    expected = total if len(shape) == 1 else batch
    if shape[0] != expected or (len(shape) == 1 and int(values.sum(axis=-1).min()) != total):
        raise RuntimeError(f"Expected tensor to have size {expected} at dimension 0, but got size {shape[0]} {where}")
    if len(shape) == 2 and shape[1] < longest:
        raise RuntimeError(f"Expected tensor to have size at least {longest} at dimension 1, but got size {shape[1]} {where}")
    return ctc_labels(targets, lengths, longest, blank)


def _check_log_probs(log_probs: np.ndarray, blank: int) -> None:
    if log_probs.ndim != 3:
        raise RuntimeError(f"Expected 3-dimensional tensor, but got {log_probs.ndim}-dimensional tensor for argument #1 "
                           "'log_probs' (while checking arguments for ctc_loss_allocate_outputs): it takes [T, N, C] or [T, C]")
    if not log_probs.size:
        raise RuntimeError(f"log_probs tensor must not be empty: got shape {list(log_probs.shape)}")
    if not 0 <= blank < log_probs.shape[2]:
        raise RuntimeError(f"blank must be in label range: got {blank} for {log_probs.shape[2]} classes")
    if log_probs.dtype not in (np.float32, np.float64):
        raise NotImplementedError(f"\"ctc_loss_cpu\" not implemented for '{scalar_name(log_probs)}': convert log_probs with .float()")


@composite(module="nn.functional")
def ctc_loss(
    log_probs, targets, input_lengths, target_lengths, blank=0, reduction="mean", zero_infinity=False
):  # fmt: skip
    """Minus the log-probability of the targets, over all their alignments with the input.

    log_probs: [T, N, C] or [T, C], logarithms of probabilities, float32 or float64; targets: [N, S] or all one after another
    [sum(target_lengths)], class numbers other than `blank`; input_lengths, target_lengths: [N] (or [] without N), tensors or
    sequences. Returns [N] (or []) for reduction "none"; "mean" divides each loss by its target's length first.
    `zero_infinity` takes 0 for losses of targets too long for their input. There is no second derivative.
    Raises: RuntimeError for shapes and lengths that do not fit, NotImplementedError for other dtypes, ValueError for an
    unknown reduction.
    """
    check_reduction(reduction)
    single = log_probs.dim() == 2 and (not isinstance(target_lengths, Tensor) or target_lengths.dim() == 0)
    batched = log_probs.unsqueeze(1) if single else log_probs
    _check_log_probs(batched._array, blank)
    times, batch, classes = batched._array.shape
    input_sizes = _lengths("input_lengths", input_lengths, batch, times)
    target_sizes = _lengths("target_lengths", target_lengths, batch, None)
    labels = _padded_targets(targets, target_sizes, blank)
    found = every_value(labels)
    if found.size and (found.min() < 0 or found.max() >= classes):
        raise RuntimeError(f"ctc_loss: targets must be classes 0 to {classes - 1}, they go from {found.min()} to {found.max()}")
    loss = T.ctc_loss(batched, labels, input_sizes, target_sizes, blank, bool(zero_infinity))
    if reduction == "mean":
        return (loss / target_sizes.clamp_min(1).to(loss.dtype)).mean()
    return loss.sum() if reduction == "sum" else loss.squeeze(0) if single else loss
