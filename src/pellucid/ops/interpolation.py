"""Resizing of sequences, images and volumes: one operator for each mode. The tables of weights are in kernels/resampling.py.

Every mode is one linear map a dimension, so one raw operator serves them all, and its own derivative too. `interpolate`, which
chooses among them, is in `functions/interpolation.py`.
"""

from __future__ import annotations

from pellucid.autograd.operator import Array, operator
from pellucid.kernels.resampling import Axis, resize, resize_bytes

__all__: list[str] = []

ALONG = {"nearest": "nearest", "nearest-exact": "nearest-exact", "linear": "linear", "bilinear": "linear", "trilinear": "linear",
         "bicubic": "cubic", "lanczos": "lanczos"}  # what a mode does along each dimension  # fmt: skip


def _resized(xp, input, axes: tuple[Axis, ...]):
    """The forward; images of bytes are rounded to bytes after each dimension."""
    if input.dtype == xp.uint8 and not axes[0].mode.startswith("nearest"):
        return resize_bytes(input, axes)
    return resize(input, axes)


def _back(axes: tuple[Axis, ...]) -> tuple[Axis, ...]:
    return tuple([axis.transpose() for axis in axes])


@operator(module=None, linear=True, batching="leading")
class resample:
    """The last dimensions resized as `axes` say: the raw form of every mode, and the transpose of each. For formulas."""

    def forward(xp, input: Array, axes: tuple): return _resized(xp, input, axes)
    def vjp_input(F, grad, axes): return F.resample(grad, _back(axes))

    def samples(make):
        for mode in ("nearest", "linear", "cubic", "smooth cubic"):
            axes = (Axis(mode, 3, 5), Axis(mode, 4, 2))
            yield (make(2, 3, 4), axes), {}
            yield (make(2, 5, 2), _back(axes)), {}


def _declare(name: str, node: str, mode: str, count: int) -> None:
    """One mode for one number of dimensions, under PyTorch's name for its node."""

    class resizing(resample.operator.declaration):
        __doc__ = f"""The last {count} dimension{"s" * (count > 1)} resized in mode "{mode}".

        input: [N, C, {count} sizes], float or (nearest, or images) uint8. axes: how each dimension is resized. Returns [N, C, {count} sizes].
        """

        def samples(make):
            sizes = (2, 3, 4)[-count:]
            for counts, scale, align in (
                ((3, 2, 7), None, False),
                ((3, 1, 6), 1.6, mode not in ("nearest", "lanczos")),
            ):
                along = tuple([Axis(mode, s, c, scale, align) for s, c in zip(sizes, counts[-count:], strict=True)])
                yield (make(1, 2, *sizes), along), {}

    operator(module=None, linear=True, batching="leading", name=name, node=f"Upsample{node}Backward0")(resizing)


for _count in (1, 2, 3):
    _declare(f"upsample_nearest{_count}d", f"Nearest{_count}D", "nearest", _count)
    _declare(f"upsample_nearest_exact{_count}d", f"NearestExact{_count}D", "nearest-exact", _count)
_declare("upsample_linear1d", "Linear1D", "linear", 1)
_declare("upsample_bilinear2d", "Bilinear2D", "linear", 2)
_declare("upsample_trilinear3d", "Trilinear3D", "linear", 3)
_declare("upsample_bicubic2d", "Bicubic2D", "cubic", 2)
for _name in ("bilinear", "bicubic", "lanczos"):
    _declare(f"upsample_{_name}2d_aa", f"{_name.capitalize()}2DAa", f"smooth {ALONG[_name]}", 2)
