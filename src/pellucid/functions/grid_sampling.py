"""Sampling images at the places of a grid as users ask for it, and grids of affine maps.

The samplers are operators, in `ops/grid_sampling.py`.
"""

from __future__ import annotations

import warnings

from pellucid.autograd.operator import composite
from pellucid.autograd.operator import tensors as T
from pellucid.core.sampling_checks import check_grid
from pellucid.core.tensor import wrap
from pellucid.kernels import grid_sampling as kernel
from pellucid.ops.grid_sampling import MODES, PADDINGS

__all__ = ["affine_grid", "affine_grid_generator", "grid_sample", "grid_sampler"]


@composite()
def grid_sampler(input, grid, interpolation_mode, padding_mode, align_corners):
    """`nn.functional.grid_sample` with numbers for modes: 0 bilinear, 1 nearest, 2 bicubic; 0 zeros, 1 border, 2 reflection."""
    check_grid(input._array, grid._array)
    count = input._array.ndim - 2
    if count not in (2, 3) or grid._array.ndim != count + 2:
        raise RuntimeError("grid_sampler(): expected 4D or 5D input and grid with same number of dimensions, but got input with "
                           f"sizes {list(input.shape)} and grid with sizes {list(grid.shape)}")
    return getattr(T, f"grid_sampler_{count}d")(input, grid, interpolation_mode, padding_mode, bool(align_corners))


@composite(module="nn.functional")
def grid_sample(input, grid, mode="bilinear", padding_mode="zeros", align_corners=None):
    """Images or volumes sampled at the places of a grid.

    input: [N, C, H, W] or [N, C, D, H, W], float. grid: [N, *P, 2] or [N, *P, 3] of the same dtype: (x, y) or (x, y, z), from
    -1 at one end to 1 at the other. mode: "bilinear" (for volumes trilinear), "nearest" or, for images, "bicubic".
    padding_mode: what lies outside: "zeros", the "border", or a "reflection" of the image. align_corners: whether -1 and 1 are
    the middles of the outer elements, and not their outer edges. Returns [N, C, *P].
    Raises: ValueError for another mode, RuntimeError for shapes or dtypes that do not fit.
    """
    if mode not in MODES:
        raise ValueError(f"nn.functional.grid_sample(): expected mode to be 'bilinear', 'nearest' or 'bicubic', but got: '{mode}'")
    if padding_mode not in PADDINGS:
        raise ValueError("nn.functional.grid_sample(): expected padding_mode to be 'zeros', 'border', or 'reflection', but got: "
                         f"'{padding_mode}'")
    if align_corners is None:
        _say_default()
    return grid_sampler(input, grid, MODES.index(mode), PADDINGS.index(padding_mode), bool(align_corners))


def _say_default() -> None:
    warnings.warn(
        "Default grid_sample and affine_grid behavior has changed to align_corners=False since 1.3.0. Please specify "
        "align_corners=True if the old behavior is desired. See the documentation of grid_sample for details.", stacklevel=3
    )  # fmt: skip


@composite()
def affine_grid_generator(theta, size, align_corners):
    """The grid of affine maps: see `nn.functional.affine_grid`, which checks its arguments first."""
    sizes = tuple([int(s) for s in size[2:]])
    if theta._array.shape[0] != size[0]:
        raise RuntimeError(f"Expected size for first two dimensions of theta to be: [{size[0]}, {len(sizes)}] but got: "
                           f"{list(theta.shape[:2])}")
    base = wrap(kernel.places(sizes, theta._array.dtype, bool(align_corners)))
    return (base @ theta.transpose(1, 2)).reshape((theta.shape[0], *sizes, len(sizes)))


@composite(module="nn.functional")
def affine_grid(theta, size, align_corners=None):
    """The grid of places to which affine maps send those of an image: `grid_sample` then moves the image.

    theta: [N, 2, 3] for images, [N, 3, 4] for volumes, float. size: of the image, (N, C, H, W) or (N, C, D, H, W).
    align_corners: as for `grid_sample`. Returns [N, H, W, 2] or [N, D, H, W, 3].
    Raises: ValueError for integers, matrices or sizes that do not fit, NotImplementedError for another number of sizes.
    """
    if align_corners is None:
        _say_default()
    if theta._array.dtype.kind not in "fV":
        raise ValueError(f"Expected theta to have floating point type, but got {theta.dtype}")
    if len(size) not in (4, 5):
        raise NotImplementedError("affine_grid only supports 4D and 5D sizes, for 2D and 3D affine transforms, respectively. Got "
                                  f"size {size}.")
    count = len(size) - 2
    if theta._array.ndim != 3 or theta._array.shape[1:] != (count, count + 1):
        raise ValueError(f"Expected a batch of {count}D affine matrices of shape Nx{count}x{count + 1} for size {size}. Got {theta.shape}.")
    if min(size) <= 0:
        raise ValueError(f"Expected non-zero, positive output size. Got {size}")
    return affine_grid_generator(theta, size, bool(align_corners))
