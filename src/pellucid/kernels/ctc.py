"""Connectionist temporal classification: forward-backward over all alignments of labels with an input.

Source: Graves and others, Connectionist temporal classification, 2006. Labels are stretched to blank, l1, blank, l2, ...,
blank; `alpha[t, n, s]` is the log-probability of having emitted the first s of these by time t, `beta` of emitting the rest.
"""

from __future__ import annotations

import numpy as np

__all__ = ["gradient", "labels", "losses"]


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


def losses(log_probs: np.ndarray, targets: np.ndarray, input_lengths: np.ndarray, target_lengths: np.ndarray, blank: int):
    """The loss of each sequence: log_probs [T, N, C], targets [N, S], padded, lengths [N]. Returns [N]."""
    states, skips = _stretched(targets, blank)
    return _losses(_alphas(_emissions(log_probs, states), skips), input_lengths, target_lengths)


def gradient(grad: np.ndarray, log_probs: np.ndarray, targets: np.ndarray, input_lengths: np.ndarray, target_lengths: np.ndarray,
             blank: int, zero_infinity: bool) -> np.ndarray:  # fmt: skip
    """Probabilities minus the share of each class in the alignments, times grad [N]. Returns [T, N, C]."""
    states, skips = _stretched(targets, blank)
    emitted = _emissions(log_probs, states)
    alpha = _alphas(emitted, skips)
    loss = _losses(alpha, input_lengths, target_lengths)
    paths = alpha + _betas(emitted, skips, input_lengths, target_lengths)
    shares = np.full(log_probs.shape, -np.inf, log_probs.dtype)
    rows = np.arange(len(states))
    for s in range(states.shape[1]):
        valid = s < 2 * target_lengths + 1
        chosen = shares[:, rows, states[:, s]]
        shares[:, rows, states[:, s]] = np.where(valid, np.logaddexp(chosen, paths[:, :, s]), chosen)
    made = (np.exp(log_probs) - np.exp(shares + loss[:, None] - log_probs)) * grad[:, None]
    unused = np.arange(len(log_probs))[:, None] >= input_lengths
    if zero_infinity:
        unused = unused | np.isinf(loss)
    return np.where(unused[:, :, None], 0, made).astype(log_probs.dtype, copy=False)


def labels(targets: np.ndarray, lengths: np.ndarray, longest: int, blank: int) -> np.ndarray:
    """Targets [N, longest], from rows [N, S] or from one after another [sum of lengths]; beyond a length there are blanks."""
    places = np.arange(longest)
    if targets.ndim > lengths.ndim:
        found = targets[..., :longest]
    else:
        starts = np.cumsum(lengths, axis=-1) - lengths
        last = max(targets.shape[-1] - 1, 0)
        rows = np.minimum(starts[..., None] + places, last)
        whole = targets if targets.shape[-1] else np.zeros((*targets.shape[:-1], 1), targets.dtype)
        found = np.take_along_axis(whole, rows.reshape(*rows.shape[:-2], -1), axis=-1).reshape(rows.shape)
    return np.where(places < lengths[..., None], found, blank).astype(np.int64)
