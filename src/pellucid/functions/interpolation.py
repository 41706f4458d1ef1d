"""Resizing of sequences, images and volumes as users ask for it: sizes, factors and modes; and the older names.

The operators, one for each mode and rank, are in `ops/interpolation.py`.
"""

from __future__ import annotations

import warnings

from pellucid.autograd.operator import composite
from pellucid.autograd.operator import tensors as T
from pellucid.core.checks import scalar_name
from pellucid.core.tensor import Tensor
from pellucid.functions.pooling_adaptive import adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d
from pellucid.kernels.resampling import SMOOTH, Axis
from pellucid.ops.interpolation import ALONG

__all__ = ["interpolate", "upsample", "upsample_bilinear", "upsample_nearest"]


MODES = "nearest | linear | bilinear | bicubic | trilinear | lanczos | area | nearest-exact"


RANKS = {"linear": 3, "bilinear": 4, "bicubic": 4, "lanczos": 4, "trilinear": 5}  # of the input; other modes take any


AREA = {3: adaptive_avg_pool1d, 4: adaptive_avg_pool2d, 5: adaptive_avg_pool3d}


# --- arguments -------------------------------------------------------------------------------------------------------


def _each(value, input: Tensor, name: str, letter: str) -> list:
    """A number, or one for each dimension after the second, as a list."""
    dims = input._array.ndim - 2
    if not isinstance(value, (tuple, list)):
        return [value] * dims
    if len(value) != dims:
        spatial = list(input.shape[2:])
        what = ("Input and output must have the same number of spatial dimensions, but got" if name == "output size" else
                "Input and scale_factor must have the same number of spatial dimensions, but got")  # fmt: skip
        raise ValueError(f"{what} input with spatial dimensions of {spatial} and {name} of {value}. Please provide input tensor in "
                         f"(N, C, d1, d2, ...,dK) format and {name} in ({letter}1, {letter}2, ...,{letter}K) format.")
    return list(value)


def _sizes(input: Tensor, size, scale_factor, keep: bool) -> tuple[list[int], list]:
    """The sizes to reach, and the factors where these rule the steps (`keep`), None where the sizes do."""
    if size is not None and scale_factor is not None:
        raise ValueError(f"only one of size or scale_factor should be defined: got size={size} and scale_factor={scale_factor}")
    if size is not None:
        sizes = _each(size, input, "output size", "o")
        if not all(hasattr(s, "__index__") for s in sizes):
            raise TypeError("expected size to be one of int or Tuple[int] or Tuple[int, int] or Tuple[int, int, int], but got "
                            f"size with types {[type(s) for s in sizes]}")
        return [int(s) for s in sizes], [None] * len(sizes)
    if scale_factor is None:
        raise ValueError("either size or scale_factor should be defined")
    factors = [float(f) for f in _each(scale_factor, input, "scale_factor", "s")]
    sizes = [int(s * f) for s, f in zip(input.shape[2:], factors, strict=True)]
    return sizes, factors if keep else [None] * len(sizes)


def _check(input: Tensor, sizes: list[int], mode: str) -> None:
    array = input._array
    if mode not in (*ALONG, "area") or array.ndim not in (3, 4, 5):
        raise NotImplementedError(f"Input Error: Only 3D, 4D and 5D input Tensors supported (got {array.ndim}D) for the modes: "
                                  f"{MODES} (got {mode})")
    if RANKS.get(mode, array.ndim) != array.ndim:
        raise NotImplementedError(f"Got {array.ndim}D input, but {mode} mode needs {RANKS[mode]}D input")
    if mode == "area":
        return
    if min(*array.shape[2:], *sizes) <= 0:
        was, becomes = (", ".join(f"{d}: {s}" for d, s in zip("DHW"[-len(sizes) :], found, strict=True))
                        for found in (array.shape[2:], sizes))  # fmt: skip
        raise RuntimeError(f"Input and output sizes should be greater than 0, but got input ({was}) output ({becomes})")
    if not array.shape[1]:
        raise RuntimeError(f"Non-empty {array.ndim}D data tensor expected but got a tensor with sizes {list(array.shape)}")
    bytes_too = ALONG[mode].startswith("nearest") or array.ndim == 4
    if array.dtype.kind not in "fV" and not (bytes_too and array.dtype.name == "uint8"):
        name = f"upsample_{mode}{array.ndim - 2}d"
        raise NotImplementedError(f"\"{name}\" not implemented for '{scalar_name(array)}': convert the input with .float()")


def _check_options(input: Tensor, mode: str, align_corners, antialias: bool) -> None:
    if align_corners is not None and mode in ("nearest", "nearest-exact", "area"):
        raise ValueError("align_corners option can only be set with the interpolating modes: linear | bilinear | bicubic | "
                         f"trilinear, but got align_corners={align_corners} with mode {mode!r}")
    if antialias and not (mode in ("bilinear", "bicubic", "lanczos") and input._array.ndim == 4):
        raise ValueError("Anti-alias option is restricted to bilinear, bicubic, and lanczos modes and requires a 4-D tensor as "
                         f"input: got mode {mode!r} and a {input._array.ndim}-D tensor")
    if mode == "lanczos" and align_corners:
        raise ValueError("Lanczos mode does not support align_corners=True")
    if mode == "lanczos" and not antialias:
        raise ValueError("Lanczos mode requires antialias=True")


# --- public functions ------------------------------------------------------------------------------------------------


@composite(module="nn.functional")
def interpolate(
    input,
    size=None,
    scale_factor=None,
    mode="nearest",
    align_corners=None,
    recompute_scale_factor=None,
    antialias=False,
):
    """The dimensions after the second resized to `size`, or `scale_factor` times their size.

    Args:
        input: [N, C, *S] with one to three sizes, float or uint8.
        size, scale_factor: one of them: a number, or one for each dimension; products with a factor are rounded down.
        mode: "nearest", "nearest-exact" (the element whose middle is nearest), "linear" (3-D), "bilinear" and "bicubic"
            (4-D), "trilinear" (5-D), "area" (means), "lanczos" (4-D, with `antialias`).
        align_corners: whether the middles of the corner elements keep their places, and not their outer edges.
        recompute_scale_factor: whether steps follow from the rounded sizes and not from the factor.
        antialias: whether shrinking averages, with a filter as wide as the step; "bilinear", "bicubic" and "lanczos".

    Returns [N, C, *size]. Raises: ValueError for sizes and options that do not fit together, NotImplementedError for a mode that
    is not there, or not for so many dimensions, or another dtype, RuntimeError for a size that is not positive.
    """
    if recompute_scale_factor and size is not None:
        raise ValueError("recompute_scale_factor is not meaningful with an explicit size.")
    sizes, factors = _sizes(input, size, scale_factor, keep=not recompute_scale_factor and mode != "area")
    _check_options(input, mode, align_corners, antialias)
    _check(input, sizes, mode)
    count = len(sizes)
    if mode == "area":
        return AREA[count + 2](input, sizes)
    along = f"smooth {ALONG[mode]}" if antialias else ALONG[mode]
    axes = tuple([Axis(along, int(s), *rest, bool(align_corners))
                  for s, *rest in zip(input._array.shape[2:], sizes, factors, strict=True)])  # fmt: skip
    return getattr(T, f"upsample_{mode.replace('-', '_')}{count}d{'_aa' if along in SMOOTH else ''}")(input, axes)


def _deprecated(name: str) -> None:
    warnings.warn(f"`nn.functional.{name}` is deprecated. Use `nn.functional.interpolate` instead.", stacklevel=3)


@composite(module="nn.functional")
def upsample(input, size=None, scale_factor=None, mode="nearest", align_corners=None):
    """`interpolate`, by its old name."""
    _deprecated("upsample")
    return interpolate(input, size, scale_factor, mode, align_corners)


@composite(module="nn.functional")
def upsample_nearest(input, size=None, scale_factor=None):
    """`interpolate` in mode "nearest", by its old name."""
    _deprecated("upsample_nearest")
    return interpolate(input, size, scale_factor, mode="nearest")


@composite(module="nn.functional")
def upsample_bilinear(input, size=None, scale_factor=None):
    """`interpolate` in mode "bilinear" with aligned corners, by its old name."""
    _deprecated("upsample_bilinear")
    return interpolate(input, size, scale_factor, mode="bilinear", align_corners=True)
