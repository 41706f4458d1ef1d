"""Dropout: elements, or whole channels, set to zero (or to SELU's lower bound) at random while training.

The masks take the same numbers from the random stream as PyTorch's do. Attention's own dropout lives with attention.
"""

from __future__ import annotations

import math
import warnings

import numpy as np

from pellucid.autograd.operator import composite
from pellucid.core import random as draws
from pellucid.core.checks import scalar_name
from pellucid.core.tensor import Tensor, wrap
from pellucid.functions.randoms import drawn

__all__ = ["alpha_dropout", "dropout", "feature_alpha_dropout", "feature_dropout", "native_dropout"]

SELU_BOUND = -1.7580993408473766  # scale * alpha of SELU, negated: what it tends to for very negative arguments


# --- what all have in common ------------------------------------------------------------------------------------------


def _check(name: str, input, p) -> None:
    """TypeError unless `input` is a tensor and `p` a number; RuntimeError for a probability outside [0, 1]."""
    if not isinstance(input, Tensor):
        raise TypeError(f"{name}(): argument 'input' (position 1) must be Tensor, not {type(input).__name__}")
    if isinstance(p, bool) or not isinstance(p, (int, float, np.number)):
        raise TypeError(f"{name}(): argument 'p' (position 2) must be float, not {type(p).__name__}")
    if not 0 <= p <= 1:
        raise RuntimeError(f"dropout probability has to be between 0 and 1, but got {p:g}: it is the share to drop")


def _mask(input: Tensor, channels: bool, draw) -> Tensor:
    """Numbers from `draw(shape, dtype)`: one for each element, or one for each image and channel ([N, C, 1, ...])."""
    array = input._array
    if array.dtype.kind in "iub":
        raise RuntimeError(
            f"result type Float can't be cast to the desired output type {scalar_name(array)}: dropout scales what it keeps; "
            "convert the input with .float()"
        )
    if array.dtype.kind == "c":
        raise NotImplementedError(
            f"\"bernoulli_scalar_cpu_\" not implemented for '{scalar_name(array)}': drop real and imaginary parts on their own"
        )
    if channels and array.ndim < 2:
        raise RuntimeError(f"Feature dropout requires at least 2 dimensions in the input: got shape {list(array.shape)}")
    shape = array.shape[:2] + (1,) * (array.ndim - 2) if channels else array.shape
    return drawn(lambda size: draw(size, array.dtype), shape, None if channels else np.empty_like(array))


def _dropped(name: str, input: Tensor, p: float, train: bool, inplace: bool, channels: bool = False) -> Tensor:
    """The input times its mask; the input itself where there is nothing to drop."""
    _check(name, input, p)
    if p == 0 or not train or not input._array.size:
        return input
    if p == 1:
        mask = wrap(np.zeros((), input._array.dtype))
    else:
        mask = _mask(input, channels, lambda size, kind: draws.dropout_mask(size, kind, p))
    return input.mul_(mask) if inplace else input * mask


def _alpha_dropped(name: str, input: Tensor, p: float, train: bool, inplace: bool, channels: bool = False) -> Tensor:
    """a * (input where kept, SELU's bound where dropped) + b, with a and b such that mean 0 and variance 1 survive."""
    _check(name, input, p)
    if p in (0, 1) or not train or not input._array.size:
        return _dropped(name, input, p, train, inplace)
    kept = _mask(input, channels, lambda size, kind: draws.bernoulli(1 - p, size, kind))
    scale = 1 / math.sqrt((SELU_BOUND * SELU_BOUND * p + 1) * (1 - p))
    shift = (kept - 1) * (-SELU_BOUND * scale) + (-SELU_BOUND * scale * p)
    return input.mul_(kept * scale).add_(shift) if inplace else input * (kept * scale) + shift


def _probability(p: float) -> None:
    if not 0.0 <= p <= 1.0:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}: it is the share to drop")


# --- torch.dropout and its relatives, with their forms in nn.functional -----------------------------------------------


def _family(name: str, apply, channels: bool, training: bool | None, doc: str):
    """Declare `name`, its in-place form `name_`, and `nn.functional.name` with its default of `training` unless that is None."""

    def out_of_place(input, p, train):
        return apply(name, input, p, train, False, channels)

    def in_place(input, p, train):
        return apply(f"{name}_", input, p, train, True, channels)

    def functional(input, p=0.5, training=training, inplace=False):
        _probability(p)
        return apply(name, input, p, training, inplace, channels)

    raises = "Raises: RuntimeError for integers or a probability outside [0, 1] (nn.functional: ValueError)."
    for function, title in ((out_of_place, name), (in_place, f"{name}_"), (functional, name)):
        function.__name__ = function.__qualname__ = title
        function.__doc__ = f"{doc} Returns the input itself unless training.\n\n{raises}\n"
    composite()(out_of_place)
    composite()(in_place)
    if training is not None:
        composite(module="nn.functional")(functional)
    return out_of_place, functional


dropout, functional_dropout = _family("dropout", _dropped, False, True, """\
Elements set to zero with probability p, the others divided by 1 - p. input: [*S], float.""")  # fmt: skip

feature_dropout, _ = _family("feature_dropout", _dropped, True, None, """\
Channels set to zero with probability p, the others divided by 1 - p. input: [N, C, *S], float.""")  # fmt: skip

alpha_dropout, _ = _family("alpha_dropout", _alpha_dropped, False, False, """\
Elements set to SELU's lower bound with probability p, then scaled and shifted so that mean 0 and variance 1 stay.

input: [*S], float. Source: Klambauer and others, Self-normalizing neural networks, 2017.""")  # fmt: skip

feature_alpha_dropout, _ = _family("feature_alpha_dropout", _alpha_dropped, True, False, """\
`alpha_dropout` of whole channels. input: [N, C, *S], float.""")  # fmt: skip


@composite()
def native_dropout(input, p, train):
    """Dropout with its mask: (result, what was kept as bools [*S]).

    input: [*S], float. Without `train` everything is kept. Raises: RuntimeError for a probability outside [0, 1].
    """
    _check("native_dropout", input, p)
    shape = input._array.shape
    if not train or p == 0 or not input._array.size:
        return input.clone(), wrap(np.ones(shape, np.bool_))
    into = np.empty_like(input._array, np.bool_)
    kept = drawn(lambda size: draws.bernoulli(1 - p, size, np.dtype(np.bool_)), shape, into)
    return input * kept * (0.0 if p == 1 else 1 / (1 - p)), kept


# --- whole channels of sequences, images, volumes ---------------------------------------------------------------------


def _channels(input: Tensor, p: float, training: bool, inplace: bool, batched: bool) -> Tensor:
    """Channel dropout of a batch, or of a single example [C, *S]."""
    name = "feature_dropout_" if inplace else "feature_dropout"
    if batched:
        return _dropped(name, input, p, training, inplace, True)
    made = _dropped(name, input.unsqueeze(0), p, training, inplace, True)
    return input if inplace else made.squeeze(0)


def _advise(name: str, input: Tensor, ranks: tuple, spatial: int) -> None:
    if input.dim() not in ranks:
        warnings.warn(
            f"{name}: Received a {input.dim()}-D input to {name}, which is deprecated and will result in an error in a future "
            f"release. It takes {spatial} spatial dimensions, a channel dimension and an optional batch dimension (i.e. "
            f"{ranks[0]}D or {ranks[1]}D inputs); use dropout to drop single elements.", stacklevel=3)  # fmt: skip


@composite(module="nn.functional")
def dropout1d(input, p=0.5, training=True, inplace=False):
    """Dropout of whole channels of sequences.

    input: [N, C, L] or [C, L], float. Raises: ValueError for a p outside [0, 1], RuntimeError for other ranks.
    """
    _probability(p)
    if input.dim() not in (2, 3):
        raise RuntimeError(
            f"dropout1d: Expected 2D or 3D input, but received a {input.dim()}D input. It takes [N, C, L] or [C, L]; use dropout "
            "to drop single elements."
        )
    return _channels(input, p, training, inplace, input.dim() == 3)


@composite(module="nn.functional")
def dropout2d(input, p=0.5, training=True, inplace=False):
    """Dropout of whole channels of images.

    input: [N, C, H, W], float; [N, C, L] is taken as a batch of sequences, with a warning. Raises: ValueError for a p outside
    [0, 1].
    """
    _probability(p)
    _advise("dropout2d", input, (3, 4), 2)
    if input.dim() == 3:
        warnings.warn(
            "dropout2d: Received a 3D input to dropout2d and assuming that channel-wise 1D dropout behavior is desired - input "
            "is interpreted as shape (N, C, L), where C is the channel dim. Use dropout1d to say so.", stacklevel=2)  # fmt: skip
    return _channels(input, p, training, inplace, True)


@composite(module="nn.functional")
def dropout3d(input, p=0.5, training=True, inplace=False):
    """Dropout of whole channels of volumes.

    input: [N, C, D, H, W] or [C, D, H, W], float. Raises: ValueError for a p outside [0, 1].
    """
    _probability(p)
    _advise("dropout3d", input, (4, 5), 3)
    return _channels(input, p, training, inplace, input.dim() == 5)
