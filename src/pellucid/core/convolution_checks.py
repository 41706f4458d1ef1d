"""Checks of the operands and steps of convolutions, transposed or not."""

from __future__ import annotations

from pellucid.core.checks import require_kind, scalar_name

__all__ = ["check_operands", "check_steps", "spread"]


def spread(value, count: int, name: str, function: str) -> tuple:
    """An int or a sequence as a tuple with one number for each dimension; TypeError or RuntimeError otherwise."""
    if isinstance(value, int):
        return (value,) * count
    if hasattr(value, "__index__"):
        return (value.__index__(),) * count
    if isinstance(value, (tuple, list)) and all(isinstance(v, int) for v in value):
        if len(value) == 1:
            return tuple(value) * count
        if len(value) == count:
            return tuple(value)
        raise RuntimeError(f"expected {name} to be a single integer value or a list of {count} values to match the convolution "
                           f"dimensions, but got {name}={list(value)} for {function}()")  # fmt: skip
    raise TypeError(f"{function}(): argument '{name}' must be tuple of ints, not {type(value).__name__}")


def check_operands(function: str, input, weight, bias, count: int, groups: int, transposed: bool) -> bool:
    """Refuse what does not fit; returns whether the input has no batch dimension."""
    x, w = input._array, weight._array
    if x.ndim not in (count + 1, count + 2):
        raise RuntimeError(f"Expected {count + 1}D (unbatched) or {count + 2}D (batched) input to {function}, but got input of "
                           f"size: {list(x.shape)}")
    if w.ndim != count + 2:
        raise RuntimeError(f"weight should have {'at least three' if w.ndim < 3 else f'{count + 2}'} dimensions: expected "
                           f"{count + 2}-dimensional weight for {function}, but got weight of size {list(w.shape)}")
    if groups <= 0:
        raise RuntimeError(f"non-positive groups is not supported: got groups={groups}")
    if w.dtype != x.dtype:
        raise RuntimeError(f"expected scalar type {scalar_name(x)} but found {scalar_name(w)}: input and weight of {function}() must "
                           "have one dtype. Convert one of them with .to(dtype).")  # fmt: skip
    require_kind("convolution", x, "fci")
    if bias is not None and bias._array.dtype != x.dtype:
        raise RuntimeError(f"Input type ({scalar_name(x)}) and bias type ({scalar_name(bias._array)}) should be the same")
    _check_channels(x, w, bias, count, groups, transposed)
    return x.ndim == count + 1


def _check_channels(x, w, bias, count: int, groups: int, transposed: bool) -> None:
    channels = x.shape[-count - 1]
    described = f"weight of size {list(w.shape)}"
    if w.shape[0] < groups:
        raise RuntimeError(f"Given groups={groups}, expected weight to be at least {groups} at dimension 0, but got {described} instead")
    if w.shape[0] % groups:
        raise RuntimeError(f"Given groups={groups}, expected weight to be divisible by {groups} at dimension 0, but got {described} instead")
    expected = w.shape[0] if transposed else w.shape[1] * groups
    if channels != expected:
        raise RuntimeError(f"Given {'transposed=1' if transposed else f'groups={groups}'}, {described}, expected "
                           f"input{list(x.shape)} to have {expected} channels, but got {channels} channels instead")
    outputs = w.shape[1] * groups if transposed else w.shape[0]
    if bias is not None and bias._array.shape != (outputs,):
        raise RuntimeError(f"Given {'transposed=1' if transposed else f'groups={groups}'}, {described}, expected bias to be "
                           f"1-dimensional with {outputs} elements, but got bias of size {list(bias.shape)} instead")


def check_steps(stride: tuple, padding: tuple, dilation: tuple) -> None:
    """RuntimeError for a stride or dilation that is not positive, or a negative padding."""
    if any(s <= 0 for s in stride):
        raise RuntimeError(f"non-positive stride is not supported: got stride={stride}")
    if any(p < 0 for p in padding):
        raise RuntimeError(f"negative padding is not supported: got padding={padding}")
    if any(d <= 0 for d in dilation):
        raise RuntimeError(f"dilation should be greater than zero: got dilation={dilation}")
