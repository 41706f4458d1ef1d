"""Counts for the table in `cost_rules.py` that are more than a factor: each takes a call and gives (MACs, other FLOPs)."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from pellucid.graph.cost_rules import Call

TAPS = {"nearest": 0, "nearest-exact": 0, "linear": 3, "cubic": 7, "smooth cubic": 7, "lanczos": 11}


# --- element by element and along dimensions --------------------------------------------------------------------------


def scaled_sum(call: Call) -> tuple[int, int]:
    """A sum, with or without a factor."""
    return 0, call.out.size * (1 if call.arguments.get("alpha", 1) in (1, None) else 2)


def var(call: Call) -> tuple[int, int]:
    """A variance."""
    return 0, 4 * call.input.size + 2 * call.out.size


def norm(call: Call) -> tuple[int, int]:
    """A norm of vectors."""
    return 0, (2 if call["order"] == 2 else 3) * call.input.size + call.out.size


def sorting(call: Call) -> tuple[int, int]:
    """Sorting, and what is done by sorting."""
    dim = call.arguments.get("dim")
    length = call.input.size if dim is None or not call.input.ndim else call.input.shape[dim]
    return 0, call.input.size * math.ceil(math.log2(length)) if length > 1 else 0


def normalising(call: Call) -> tuple[int, int]:
    """Normalising by the operand's own mean and variance, or by its mean square alone."""
    moments, unit = (4, 2) if call["centred"] else (2, 1)
    each = (0 if call.derivative else moments) + unit + (call["weight"] is not None) + (call["bias"] is not None)
    return 0, each * call.out.size


def normalising_gradients(call: Call) -> tuple[int, int]:
    """Those of the three gradients that are wanted."""
    each = 10 * call["of_input"] + 4 * (call["of_weight"] is not None) + (call["of_bias"] is not None)
    return 0, each * call.input.size


def ctc(call: Call) -> tuple[int, int]:
    """The lattice of CTC: steps times states."""
    steps, batch = call["log_probs"].shape[:2]
    longest = int(np.max(call["target_lengths"])) if np.size(call["target_lengths"]) else 0
    return 0, 10 * steps * batch * (2 * longest + 1)


# --- products ---------------------------------------------------------------------------------------------------------


def product(call: Call) -> tuple[int, int]:
    """A product of matrices or vectors, perhaps added to something: results times the length of each sum."""
    a, b = _factors(call)
    inner = a.shape[-1]
    if a.ndim == 1 and b.ndim == 1:
        macs = inner
    elif "batch1" in call.arguments:
        macs = a.size * b.shape[-1]
    else:
        macs = call.out.size * inner
    scaled = sum(call.arguments.get(name, 1) not in (1, 0) for name in ("alpha", "beta"))
    return macs, scaled * call.out.size


def _factors(call: Call) -> tuple[np.ndarray, np.ndarray]:
    for first, second in (("mat1", "mat2"), ("batch1", "batch2"), ("mat", "vec"), ("input", "weight"), ("input", "mat2"),
                          ("input", "vec"), ("input", "tensor"), ("input", "other")):  # fmt: skip
        if first in call.arguments and second in call.arguments:
            return call[first], call[second]
    raise KeyError("no factors")


def rows_product(call: Call) -> tuple[int, int]:
    """input^T @ other over all rows."""
    return call.input.size * call["other"].shape[-1], 0


def attended(call: Call) -> tuple[int, int]:
    """Attention: scaled queries, scores, their softmax, and what the weights take from the values; hidden scores count too."""
    query, key, value = (call[name] for name in ("query", "key", "value"))
    scores = query.size // max(1, query.shape[-1]) * key.shape[-2]
    return scores * (query.shape[-1] + value.shape[-1]), query.size + 5 * scores


def attended_back(call: Call) -> tuple[int, int]:
    """The derivative of attention: scores again, and two products for each of both factors of each product."""
    macs, _ = attended(call)
    scores = macs // max(1, call["query"].shape[-1] + call["value"].shape[-1])
    return 2 * macs + scores * call["query"].shape[-1], 4 * scores + 2 * call["grad_output"].size


FOR_EACH_STATE = {"LSTM": 22, "GRU": 16, "RNN_TANH": 2, "RNN_RELU": 2}


def recurrent(call: Call) -> tuple[int, int]:
    """A recurrent layer over packed rows: weight_ih [gates * hidden, input], weight_hh [gates * hidden, hidden]."""
    rows = len(call["data"])
    return rows * (call["weight_ih"].size + call["weight_hh"].size), FOR_EACH_STATE[call["mode"]] * call.out.size


def outer(call: Call) -> tuple[int, int]:
    """An outer product added to a matrix."""
    return call.out.size, 0


def convolution(call: Call) -> tuple[int, int]:
    """A convolution: weight [O, C / groups, *K]."""
    return call.out.size * math.prod(call["weight"].shape[1:]), 0


def convolution_transposed(call: Call) -> tuple[int, int]:
    """Its transpose in the input: input [N, O, *P], weight [O, C / groups, *K]."""
    return call.input.size * math.prod(call["weight"].shape[1:]), 0


def convolution_weight(call: Call) -> tuple[int, int]:
    """Its transpose in the weight, of `shape` [O, C / groups, *K]: input is the gradient [N, O, *P]."""
    return call.input.size * math.prod(call["shape"][1:]), 0


# --- images -----------------------------------------------------------------------------------------------------------


def windows(call: Call) -> tuple[int, int]:
    """All places of all windows."""
    return 0, call.out.size * math.prod(call["size"])


def adaptive_pool(call: Call) -> tuple[int, int]:
    """Windows that cover the last dimensions evenly; they may overlap."""
    size = call["size"]
    small, large = sorted((call.input, call.out), key=lambda array: array.size)
    spatial = large.shape[large.ndim - len(size) :]
    places = math.prod(_covered(whole, parts) for whole, parts in zip(spatial, size, strict=True))
    return 0, small.size // max(math.prod(size), 1) * places + small.size


def _covered(whole: int, parts: int) -> int:
    """The lengths of `parts` windows over `whole` places, added up."""
    return sum(-(-(i + 1) * whole // parts) - i * whole // parts for i in range(parts))


def resize(call: Call) -> tuple[int, int]:
    """Resizing dimension by dimension."""
    return 0, sum(TAPS.get(axis.mode, 7) for axis in call["axes"]) * max(call.out.size, call.input.size)


# --- distances, matrices, transforms ----------------------------------------------------------------------------------


def pairs(call: Call) -> tuple[int, int]:
    """Every pair of vectors, coordinate by coordinate."""
    return 0, 3 * call.out.size * call.input.shape[-1]


def pairs_of_products(call: Call) -> tuple[int, int]:
    """Distances by a matrix product of vectors that are longer by two."""
    return call.out.size * (call.input.shape[-1] + 2), 0


def matrices(call: Call, each: Callable[[int, int], float]) -> tuple[int, int]:
    """So much for each matrix [m, n] of a batch, m >= n."""
    *batch, rows, columns = call.input.shape
    return 0, round(math.prod(batch) * each(max(rows, columns), min(rows, columns)))


def fourier(call: Call) -> tuple[int, int]:
    """Fourier transforms over dimensions: half of what they cost, since what is done to complex numbers counts twice."""
    larger = max(call.input, call.out, key=lambda array: array.size)
    length = math.prod(larger.shape[d] for d in call["dim"])
    if length < 2:
        return 0, 0
    real = call.input.dtype.kind != "c" or call.out.dtype.kind != "c"
    return 0, round(2.5 * larger.size * math.log2(length) / (2 if real else 1))
