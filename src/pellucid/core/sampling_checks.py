"""Checks of images and the grids at whose places they are sampled."""

from __future__ import annotations

from pellucid.core.checks import require_kind, same_dtype

__all__ = ["check_grid", "sampler_options"]


def check_grid(input, grid) -> None:
    """What every sampling asks of its operands."""
    sizes = f"input with sizes {list(input.shape)} and grid with sizes {list(grid.shape)}"
    if input.shape[:1] != grid.shape[:1]:
        raise RuntimeError(f"grid_sampler(): expected grid and input to have same batch size, but got {sizes}")
    if not grid.ndim or grid.shape[-1] != input.ndim - 2:
        raise RuntimeError(f"grid_sampler(): expected grid to have size {input.ndim - 2} in last dimension, but got grid with "
                           f"sizes {list(grid.shape)} for input with sizes {list(input.shape)}")
    for dim, size in enumerate(input.shape[2:], 2):
        if not size:
            raise RuntimeError("grid_sampler(): expected input to have non-empty spatial dimensions, but input has sizes "
                               f"{list(input.shape)} with dimension {dim} being empty")


def sampler_options(input, grid, interpolation_mode: int, padding_mode: int, align_corners: bool, count: int):
    """The options of grid_sampler_2d and grid_sampler_3d in canonical form."""
    if input.ndim != count + 2 or input.ndim != grid.ndim:
        raise RuntimeError(f"grid_sampler(): expected {count + 2}D input and grid with same number of dimensions, but got input "
                           f"with sizes {list(input.shape)} and grid with sizes {list(grid.shape)}")
    check_grid(input, grid)
    if count == 3 and interpolation_mode == 2:
        raise RuntimeError("grid_sampler(): bicubic interpolation only supports 4D input")
    require_kind(f"grid_sampler_{count}d_cpu_kernel_impl", input, "f")
    same_dtype(input, grid, "expected scalar type {a} but found {b}", "input and grid must have one dtype. ")
    return int(interpolation_mode), int(padding_mode), bool(align_corners)
