"""Connectionist temporal classification as users call it: checks of lengths and targets, and the reduction.

The loss of each sequence and its gradient are operators, in `ops/ctc.py`.
"""

from __future__ import annotations

import numpy as np

from pellucid.autograd.operator import composite
from pellucid.autograd.operator import tensors as T
from pellucid.core.checks import check_reduction, every_value, scalar_name
from pellucid.core.tensor import Tensor, wrap
from pellucid.ops.ctc import ctc_labels

__all__ = ["ctc_loss"]


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
