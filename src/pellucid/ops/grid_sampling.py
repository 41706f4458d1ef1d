"""Sampling images at the places of a grid. Which elements count how much: kernels/grid_sampling.py.

The samples are linear in the image and in the weights of its elements; the weights are polynomials of the places, and their
derivatives are weights of the same kind, so derivatives of any order exist. `grid_sample` and grids of affine maps are in
`functions/grid_sampling.py`.
"""

from __future__ import annotations

import math

from pellucid.autograd.operator import Array, Index, operator
from pellucid.core.sampling_checks import sampler_options
from pellucid.kernels import grid_sampling as kernel
from pellucid.kernels.grid_sampling import Sampling

__all__: list[str] = []

MODES = ("bilinear", "nearest", "bicubic")
PADDINGS = ("zeros", "border", "reflection")


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


def _declare(count: int) -> None:
    """The sampler of one number of dimensions, under PyTorch's names."""

    class sampler:
        __doc__ = f"""An image with {count} dimensions sampled at the places of a grid; see `nn.functional.grid_sample`.

        input: [N, C, {count} sizes]; grid: [N, {count} sizes, {count}]; of one float dtype. Modes are numbers: 0 bilinear,
        1 nearest, 2 bicubic; 0 zeros, 1 border, 2 reflection. Returns [N, C, {count} sizes].
        Raises: RuntimeError for shapes, dtypes or modes that do not fit.
        """

        def canonical(input, grid, interpolation_mode: int, padding_mode: int, align_corners: bool):
            return sampler_options(input, grid, interpolation_mode, padding_mode, align_corners, count)

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
