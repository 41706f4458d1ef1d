"""Sampling images at the places of a grid, and grids of affine maps. Which elements count how much: kernels/grid_sampling.py.

The samples are linear in the image and in the weights of its elements; the weights are polynomials of the places, and their
derivatives are weights of the same kind, so derivatives of any order exist.
"""

from __future__ import annotations

import math
import warnings

from pellucid.autograd.operator import Array, Index, composite, operator
from pellucid.autograd.operator import tensors as T
from pellucid.core.checks import require_kind, same_dtype
from pellucid.core.tensor import wrap
from pellucid.kernels import grid_sampling as kernel
from pellucid.kernels.grid_sampling import Sampling

__all__ = ["affine_grid", "affine_grid_generator", "grid_sample", "grid_sampler"]

MODES = ("bilinear", "nearest", "bicubic")
PADDINGS = ("zeros", "border", "reflection")


# --- operators -------------------------------------------------------------------------------------------------------


def _pull(F, grad, grid, size: tuple, options: Sampling, orders: tuple):
    """The gradient of the grid from that of the weights: in each dimension, theirs times a derivative of the weights."""
    parts = []
    for d in reversed(range(len(size))):
        raised = tuple([order + (i == d) for i, order in enumerate(orders)])
        parts.append(F.sum_dim(grad * F.grid_weights(grid, size, options, raised), (1,), False))
    return F.reshape(F.stack(parts, -1), tuple(grid.shape))


def _push(F, tangent, grid, size: tuple, options: Sampling, orders: tuple):
    """The tangent of the weights from that of the grid, the transpose of `_pull`."""
    count = len(size)
    steps, made = F.reshape(tangent, (tangent.shape[0], 1, math.prod(tangent.shape[1:-1]), count)), None
    for d in range(count):
        raised = tuple([order + (i == d) for i, order in enumerate(orders)])
        part = steps[..., count - 1 - d] * F.grid_weights(grid, size, options, raised)
        made = part if made is None else made + part
    return made


@operator(module=None, batching="fold")
class grid_elements:
    """The elements that the places of a grid are made of: [N, K, P] positions in an image of that size."""

    def forward(xp, grid: Index, size: tuple, options: Sampling): return kernel.elements(grid, size, options)


@operator(module=None, batching="fold")
class grid_weights:
    """The weights of these elements, or their derivative, `orders[d]` times in dimension d. Returns [N, K, P]."""

    def forward(xp, grid: Array, size: tuple, options: Sampling, orders: tuple):
        return kernel.weights(grid, size, options, orders)

    def vjp_grid(F, grad, grid, size, options, orders): return _pull(F, grad, grid, size, options, orders)
    def jvp_grid(F, tangent, grid, size, options, orders): return _push(F, tangent, grid, size, options, orders)

    def samples(make):
        for mode in MODES:
            yield (make(1, 3, 2, low=-0.9, high=0.9), (4, 5), Sampling(mode, "zeros", False), (0, 0)), {}
        yield (make(1, 3, 2, low=-0.9, high=0.9), (4, 5), Sampling("bicubic", "zeros", True), (1, 0)), {}


@operator(module=None, linear="each", batching="fold")
class grid_gather:
    """Weighed sums of an image's elements: input [N, C, *S], weight and element [N, K, P]. Returns [N, C, P]."""

    def forward(xp, input: Array, weight: Array, element: Index): return kernel.gather(input, weight, element)
    def vjp_input(F, grad, weight, element, input_shape): return F.grid_scatter(grad, weight, element, input_shape[2:])
    def vjp_weight(F, grad, input, element): return F.grid_weigh(grad, input, element)
    def samples(make): yield (make(2, 2, 5), make(2, 3, 4), make.integers(2, 3, 4, high=5)), {}


@operator(module=None, linear="each", batching="fold")
class grid_scatter:
    """The transpose of `grid_gather` in the image: input [N, C, P]. Returns [N, C, *size]."""

    def forward(xp, input: Array, weight: Array, element: Index, size: tuple):
        return kernel.scatter(input, weight, element, math.prod(size)).reshape(*input.shape[:2], *size)

    def vjp_input(F, grad, weight, element): return F.grid_gather(grad, weight, element)
    def vjp_weight(F, grad, input, element): return F.grid_weigh(input, grad, element)
    def samples(make): yield (make(2, 2, 4), make(2, 3, 4), make.integers(2, 3, 4, high=6), (3, 2)), {}


@operator(module=None, linear="each", batching="fold")
class grid_weigh:
    """The transpose of `grid_gather` in the weights: input [N, C, P], image [N, C, *S]. Returns [N, K, P]."""

    def forward(xp, input: Array, image: Array, element: Index): return kernel.weigh(input, image, element)
    def vjp_input(F, grad, image, element): return F.grid_gather(image, grad, element)
    def vjp_image(F, grad, input, element, image_shape): return F.grid_scatter(input, grad, element, image_shape[2:])
    def samples(make): yield (make(2, 2, 4), make(2, 2, 5), make.integers(2, 3, 4, high=5)), {}


def _options(interpolation_mode: int, padding_mode: int, align_corners: bool) -> Sampling:
    return Sampling(MODES[interpolation_mode], PADDINGS[padding_mode], align_corners)


def _check(input, grid) -> None:
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


def _check_sampler(input, grid, interpolation_mode: int, padding_mode: int, align_corners: bool, count: int):
    """The options of grid_sampler_2d and grid_sampler_3d in canonical form."""
    if input.ndim != count + 2 or input.ndim != grid.ndim:
        raise RuntimeError(f"grid_sampler(): expected {count + 2}D input and grid with same number of dimensions, but got input "
                           f"with sizes {list(input.shape)} and grid with sizes {list(grid.shape)}")
    _check(input, grid)
    if count == 3 and interpolation_mode == 2:
        raise RuntimeError("grid_sampler(): bicubic interpolation only supports 4D input")
    require_kind(f"grid_sampler_{count}d_cpu_kernel_impl", input, "f")
    same_dtype(input, grid, "expected scalar type {a} but found {b}", "input and grid must have one dtype. ")
    return int(interpolation_mode), int(padding_mode), bool(align_corners)


def _declare(count: int) -> None:
    """The sampler of one number of dimensions, under PyTorch's names."""

    class sampler:
        __doc__ = f"""An image with {count} dimensions sampled at the places of a grid; see `nn.functional.grid_sample`.

        input: [N, C, {count} sizes]; grid: [N, {count} sizes, {count}]; of one float dtype. Modes are numbers: 0 bilinear,
        1 nearest, 2 bicubic; 0 zeros, 1 border, 2 reflection. Returns [N, C, {count} sizes].
        Raises: RuntimeError for shapes, dtypes or modes that do not fit.
        """

        def canonical(input, grid, interpolation_mode: int, padding_mode: int, align_corners: bool):
            return _check_sampler(input, grid, interpolation_mode, padding_mode, align_corners, count)

        def forward(xp, input: Array, grid: Array, interpolation_mode: int, padding_mode: int, align_corners: bool):
            size, options = input.shape[2:], _options(interpolation_mode, padding_mode, align_corners)
            weight = kernel.weights(grid, size, options, (0,) * count)
            made = kernel.gather(input, weight, kernel.elements(grid, size, options))
            return made.reshape(*input.shape[:2], *grid.shape[1:-1])

        def vjp(F, grad, needs, input, grid, interpolation_mode, padding_mode, align_corners):
            size, options = tuple(input.shape[2:]), _options(interpolation_mode, padding_mode, align_corners)
            grad = F.reshape(grad, (*grad.shape[:2], math.prod(grid.shape[1:-1])))
            element, none = F.grid_elements(grid, size, options), (0,) * count
            to_input = to_grid = None
            if needs[0]:
                to_input = F.grid_scatter(grad, F.grid_weights(grid, size, options, none), element, size)
            if needs[1]:
                to_grid = _pull(F, F.grid_weigh(grad, input, element), grid, size, options, none)
            return to_input, to_grid

        def jvp(F, tangents, input, grid, interpolation_mode, padding_mode, align_corners):
            size, options = tuple(input.shape[2:]), _options(interpolation_mode, padding_mode, align_corners)
            element, none = F.grid_elements(grid, size, options), (0,) * count
            image, places = tangents
            parts = [] if image is None else [F.grid_gather(image, F.grid_weights(grid, size, options, none), element)]
            if places is not None:
                parts.append(F.grid_gather(input, _push(F, places, grid, size, options, none), element))
            made = parts[0] if len(parts) == 1 else parts[0] + parts[1]
            return F.reshape(made, (*input.shape[:2], *grid.shape[1:-1]))

        def samples(make):
            for mode in range(3 if count == 2 else 2):
                for padding in range(3):
                    places = make(2, *(2, 1, 2)[:count], count, low=-1.2, high=1.2)
                    yield (make(2, 2, *(3, 4, 2)[:count]), places, mode, padding, bool(padding % 2)), {}

    operator(name=f"grid_sampler_{count}d", node=f"GridSampler{count}DBackward0", fused=True, batching="fold")(sampler)


_declare(2)
_declare(3)


# --- public functions ------------------------------------------------------------------------------------------------


@composite()
def grid_sampler(input, grid, interpolation_mode, padding_mode, align_corners):
    """`nn.functional.grid_sample` with numbers for modes: 0 bilinear, 1 nearest, 2 bicubic; 0 zeros, 1 border, 2 reflection."""
    _check(input._array, grid._array)
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
