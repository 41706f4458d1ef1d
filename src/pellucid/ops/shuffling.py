"""Rearranging channels: trading them for resolution, and dealing them out to groups. Every one is a permutation of elements."""

from __future__ import annotations

from pellucid.autograd.operator import Array, operator
from pellucid.core.shuffling_checks import check_images, positive_factor
from pellucid.kernels import shuffling as kernel

__all__ = ["channel_shuffle", "pixel_shuffle", "pixel_unshuffle"]


@operator(module=("torch", "nn.functional"), exact=True, linear=True, batching="leading")
class pixel_shuffle:
    """Channels traded for resolution: each block of r * r channels becomes r * r neighbours, for r = `upscale_factor`.

    input: [*, C * r^2, H, W], any dtype. Returns [*, C, H * r, W * r].
    Raises: RuntimeError for fewer than three dimensions, a factor that is not positive or does not divide the channels.
    Source: Shi and others, Real-time single image and video super-resolution, 2016.
    """

    def canonical(input, upscale_factor: int):
        check_images("pixel_shuffle", input)
        r = positive_factor("pixel_shuffle", "upscale_factor", upscale_factor)
        if input.shape[-3] % (r * r):
            raise RuntimeError("pixel_shuffle expects its input's 'channel' dimension to be divisible by the square of "
                               f"upscale_factor, but input.size(-3)={input.shape[-3]} is not divisible by {r * r}")
        return r

    def forward(xp, input: Array, upscale_factor: int): return kernel.spread(input, upscale_factor)
    def vjp_input(F, grad, upscale_factor): return F.pixel_unshuffle(grad, upscale_factor)

    def samples(make):
        yield (make(2, 8, 2, 3), 2), {}
        yield (make(4, 3, 1), 1), {}
        yield (make(1, 2, 9, 1, 2), 3), {}


@operator(module=("torch", "nn.functional"), exact=True, linear=True, batching="leading")
class pixel_unshuffle:
    """Resolution traded for channels, the inverse of `pixel_shuffle`, for r = `downscale_factor`.

    input: [*, C, H * r, W * r], any dtype. Returns [*, C * r^2, H, W].
    Raises: RuntimeError for fewer than three dimensions, a factor that is not positive or does not divide height and width.
    """

    def canonical(input, downscale_factor: int):
        check_images("pixel_unshuffle", input)
        r = positive_factor("pixel_unshuffle", "downscale_factor", downscale_factor)
        for dim, what in ((-2, "height"), (-1, "width")):
            if input.shape[dim] % r:
                raise RuntimeError(f"pixel_unshuffle expects {what} to be divisible by downscale_factor, but "
                                   f"input.size({dim})={input.shape[dim]} is not divisible by {r}")
        return r

    def forward(xp, input: Array, downscale_factor: int): return kernel.stacked(input, downscale_factor)
    def vjp_input(F, grad, downscale_factor): return F.pixel_shuffle(grad, downscale_factor)

    def samples(make):
        yield (make(2, 2, 4, 6), 2), {}
        yield (make(4, 3, 1), 1), {}
        yield (make(1, 2, 1, 3, 6), 3), {}


@operator(module=("torch", "nn.functional"), exact=True, linear=True, batching="fold")
class channel_shuffle:
    """Channels dealt out to `groups`, in turn: the first of each of `groups` blocks, then the second of each, and so on.

    input: [N, C, *S], any dtype. Returns the same shape.
    Raises: RuntimeError for fewer than three dimensions, or a number of groups that is not positive or does not divide C.
    Source: Zhang and others, ShuffleNet, 2018.
    """

    def canonical(input, groups: int):
        if input.ndim < 3:
            raise RuntimeError(f"channel_shuffle expects input with > 2 dims, but got input with sizes {list(input.shape)}")
        if groups <= 0:
            raise RuntimeError(f"Number of groups to divide channels in must be positive. Value of groups:{groups}")
        if input.shape[1] % groups:
            raise RuntimeError(f"Number of channels must be divisible by groups. Got {input.shape[1]} channels and {groups} groups.")
        return groups

    def forward(xp, input: Array, groups: int): return kernel.dealt(input, groups)

    def vjp_input(F, grad, input_shape, groups):
        # dealing out to as many groups as a block has members puts everything back
        return F.channel_shuffle(grad, max(input_shape[1] // groups, 1))

    def samples(make):
        yield (make(2, 6, 3), 2), {}
        yield (make(1, 4, 2, 2), 4), {}
