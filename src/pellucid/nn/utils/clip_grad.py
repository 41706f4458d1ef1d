"""Keeping gradients within bounds before an optimizer's step. Gradients are changed in place, outside the graph."""

from __future__ import annotations

import types
import warnings
from typing import TYPE_CHECKING

import numpy as np

from pellucid.autograd.grad_mode import no_grad
from pellucid.core.dtype import get_default_dtype
from pellucid.core.language import message, say, sentences
from pellucid.core.quiet import quiet
from pellucid.core.tensor import Tensor, wrap
from pellucid.kernels import clipping
from pellucid.nn.utils.naming import parameter_names

if TYPE_CHECKING:
    from collections.abc import Iterable

    Tensors = Tensor | Iterable[Tensor]

__all__ = ["clip_grad_norm", "clip_grad_norm_", "clip_grad_value_", "clip_grads_with_norm_", "get_total_norm"]


def get_total_norm(
    tensors: Tensors, norm_type: float = 2.0, error_if_nonfinite: bool = False, foreach: bool | None = None
) -> Tensor:
    """The norm of all tensors as one vector, a tensor without dimensions.

    Args:
        tensors: one or several; 0 for none.
        norm_type: the p of the norm; infinity for the largest magnitude.
        error_if_nonfinite: whether an infinite or undefined norm is an error.
        foreach: accepted, with no effect.

    Raises:
        RuntimeError: the norm is not finite though it must be; the text names the tensors at fault.
    """
    tensors = _as_list(tensors)
    total = _total_norm([tensor._array for tensor in tensors], float(norm_type))
    if error_if_nonfinite:
        _check_finite(total, float(norm_type), tensors, tensors)
    return wrap(total)


def _total_norm(arrays: list[np.ndarray], p: float) -> np.ndarray:
    if not arrays:
        return np.zeros((), get_default_dtype().numpy)
    fast = clipping.norm(arrays) if p == 2 else None
    if fast is not None:
        return fast
    with quiet():
        norms = [_norm(array, p) for array in arrays]
        return np.asarray(_norm(np.stack(norms), p))


def _norm(array: np.ndarray, p: float) -> np.ndarray:
    """The p-norm of all elements, in the dtype of their magnitudes; narrow floats are summed in float32."""
    narrow = array.dtype.itemsize == 2
    values = array.astype(np.float32).ravel() if narrow else array.ravel()
    norm = np.asarray(np.linalg.norm(values, p) if values.size else np.abs(values).sum())
    return norm.astype(array.dtype) if narrow else norm


def _check_finite(total: np.ndarray, p: float, grads: list[Tensor], owners: list[Tensor]) -> None:
    """RuntimeError for a norm that is infinite or undefined; it names the tensors whose gradients are."""
    if np.isfinite(total):
        return
    names = parameter_names()
    faulty = [
        _described(number, names.get(id(owner), ""), grad._array.astype(np.float64))
        for number, (owner, grad) in enumerate(zip(owners, grads, strict=True))
    ]
    cause = say(", ").join(filter(None, faulty))
    first = (
        f"The total norm of order {p} for gradients from `parameters` is non-finite, so it cannot be clipped. "
        "To disable this error and scale the gradients by the non-finite norm anyway, set `error_if_nonfinite=False`"
    )
    if not cause:
        raise RuntimeError(message(first, say("Every gradient is finite, the sum overflows.")))
    seen = say("Not finite is the gradient of {tensors}.", tensors=cause)
    way_out = say("detect_anomaly() names the operation that makes the first such value.")
    raise RuntimeError(message(first, sentences(seen, way_out)))


def _described(number: int, name: str, grad: np.ndarray) -> str:
    """A gradient with its numbers of undefined and infinite elements; empty where there are none."""
    undefined, infinite = int(np.isnan(grad).sum()), int(np.isinf(grad).sum())
    if not undefined and not infinite:
        return ""
    counts = [f"{undefined} nan"] * bool(undefined) + [f"{infinite} inf"] * bool(infinite)
    place = say("number {number}", number=number)
    called = f"`{name}`{say(', ')}{place}" if name else place
    counted = say("{counts} of {n}", counts=", ".join(counts), n=grad.size)
    return say("{tensor} of shape {shape} ({counts})", tensor=called, shape=grad.shape, counts=counted)


def clip_grads_with_norm_(
    parameters: Tensors, max_norm: float, total_norm: Tensor, foreach: bool | None = None
) -> None:
    """Scale every gradient by max_norm / (total_norm + 1e-6), if that is less than 1."""
    factor = np.asarray(float(max_norm) / (total_norm._array + total_norm._array.dtype.type(1e-6)))
    factor = factor.astype(total_norm._array.dtype)
    if factor >= 1:
        return
    grads = _grads(_as_list(parameters))
    if grads and all([_is_plain(grad) for grad in grads]) and clipping.scale([g._array for g in grads], float(factor)):
        for grad in grads:
            grad._bump_version()
        return
    with no_grad():
        for grad in grads:
            grad.mul_(float(factor))


def _is_plain(grad: Tensor) -> bool:
    """Whether nobody but autograd's counter of versions has to know that a gradient is written to."""
    return grad.__class__ is Tensor and grad._edge is None and grad._view is None and not grad._requires_grad


def clip_grad_norm_(
    parameters: Tensors, max_norm: float, norm_type: float = 2.0, error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """Scale the gradients so that their norm, taken over all of them together, is at most `max_norm`.

    Args:
        parameters: one or several; those without a gradient are passed over.
        max_norm: the largest norm allowed.
        norm_type, error_if_nonfinite, foreach: as for `get_total_norm`.

    Returns:
        The norm before.

    Raises:
        RuntimeError: the norm is not finite though it must be; the text names the parameters at fault.
    """
    if isinstance(parameters, types.GeneratorType):
        parameters = list(parameters)
        if not parameters:
            warnings.warn("`parameters` is an empty generator, no gradient clipping will occur.", stacklevel=2)
    parameters = _as_list(parameters)
    owners = [parameter for parameter in parameters if parameter.grad is not None]
    grads = _grads(owners)
    total = _total_norm([grad._array for grad in grads], float(norm_type))
    if error_if_nonfinite:
        _check_finite(total, float(norm_type), grads, owners)
    total_norm = wrap(total)
    clip_grads_with_norm_(parameters, max_norm, total_norm)
    return total_norm


def clip_grad_norm(*args, **kwargs) -> Tensor:
    """The old name of `clip_grad_norm_`."""
    warnings.warn(
        "`nn.utils.clip_grad_norm` is now deprecated in favor of `nn.utils.clip_grad_norm_`.", FutureWarning,
        stacklevel=2,
    )
    return clip_grad_norm_(*args, **kwargs)


def clip_grad_value_(parameters: Tensors, clip_value: float, foreach: bool | None = None) -> None:
    """Limit every element of the gradients to [-clip_value, clip_value]."""
    bound = float(clip_value)
    with no_grad():
        for grad in _grads(_as_list(parameters)):
            grad.clamp_(-bound, bound)


def _as_list(tensors: Tensors) -> list[Tensor]:
    return [tensors] if isinstance(tensors, Tensor) else list(tensors)


def _grads(parameters: list[Tensor]) -> list[Tensor]:
    return [parameter.grad for parameter in parameters if parameter.grad is not None]
