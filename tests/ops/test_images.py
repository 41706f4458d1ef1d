"""Padding, resizing, sampling and shuffling of images: fixed values, and what these functions refuse."""

from __future__ import annotations

import re

import numpy as np
import pytest

import pellucid as torch
from pellucid.nn import functional as F

IMAGE = torch.arange(6.0).reshape(1, 1, 2, 3)
GRID = torch.tensor([[[[-1.5, 0.3], [0.2, -0.4], [0.9, 1.1]]]])


def zeros(*shape):
    return torch.zeros(*shape)


PADDED = [
    ((2, -1), "constant", [9, 9, 0, 1, 9, 9, 3, 4]),
    ((2, 1), "reflect", [2, 1, 0, 1, 2, 1, 5, 4, 3, 4, 5, 4]),
    ((2, 1), "replicate", [0, 0, 0, 1, 2, 2, 3, 3, 3, 4, 5, 5]),
    ((2, 1), "circular", [1, 2, 0, 1, 2, 0, 4, 5, 3, 4, 5, 3]),
    ((1, -1), "circular", [1, 0, 1, 4, 3, 4]),  # what is cut off does not come back
    ((-1, 1), "reflect", [1, 2, 1, 4, 5, 4]),
]


@pytest.mark.parametrize(("padding", "mode", "expected"), PADDED)
def test_pad(padding, mode, expected):
    made = F.pad(IMAGE[0], padding, mode, 9 if mode == "constant" else None)
    assert made.reshape(-1).tolist() == expected


RESIZED = [
    ((3, 2), {"mode": "nearest"}, [0, 1, 0, 1, 3, 4]),
    ((3, 4), {"mode": "nearest-exact"}, [0, 1, 1, 2, 3, 4, 4, 5, 3, 4, 4, 5]),
    ((3, 2), {"mode": "bilinear"}, [0.25, 1.75, 1.75, 3.25, 3.25, 4.75]),
    ((3, 2), {"mode": "bilinear", "align_corners": True}, [0, 2, 1.5, 3.5, 3, 5]),
    ((3, 2), {"mode": "bicubic"}, [-0.06901, 1.548177, 1.691406, 3.308594, 3.451823, 5.06901]),
    ((1, 2), {"mode": "bicubic", "antialias": True}, [1.809791, 3.190208]),
    ((1, 2), {"mode": "area"}, [2, 3]),
]


@pytest.mark.parametrize(("size", "options", "expected"), RESIZED)
def test_interpolate(size, options, expected):
    made = F.interpolate(IMAGE, size, **options)
    np.testing.assert_allclose(made.reshape(-1).tolist(), expected, rtol=1e-5, atol=1e-6)


def bytes_image():
    return (torch.arange(24) * 37 % 251).to(torch.uint8).reshape(1, 1, 4, 6)


BYTES = [
    ((3, 4), {"mode": "bilinear"}, [[36, 60, 115, 171], [186, 53, 77, 133], [178, 203, 38, 94]]),
    ((3, 4), {"mode": "bicubic"}, [[30, 57, 118, 174], [210, 22, 81, 135], [177, 226, 16, 95]]),
    ((2, 3), {"mode": "bilinear", "antialias": True}, [[82, 77, 138], [175, 94, 93]]),
    ((2, 3), {"mode": "bicubic", "antialias": True}, [[75, 69, 148], [192, 88, 88]]),
    (
        (5, 4),
        {"mode": "bilinear", "align_corners": True},
        [[0, 62, 123, 185], [167, 40, 101, 163], [208, 60, 80, 142], [186, 122, 58, 120], [164, 226, 36, 98]],
    ),
]


@pytest.mark.parametrize(("size", "options", "expected"), BYTES)
def test_images_of_bytes_are_rounded_after_each_dimension(size, options, expected):
    image = bytes_image()
    assert F.interpolate(image, size, **options)[0, 0].tolist() == expected


def test_a_dimension_of_bytes_that_keeps_its_size_is_not_touched():
    image = bytes_image()
    assert F.interpolate(image, scale_factor=1.1, mode="bilinear")[0, 0].tolist() == image[0, 0].tolist()


@pytest.mark.parametrize(("mode", "shape"), [("linear", (1, 1, 4)), ("trilinear", (1, 1, 2, 2, 2))])
def test_only_images_of_bytes_are_interpolated(mode, shape):
    with pytest.raises(NotImplementedError, match="not implemented for 'Byte'"):
        F.interpolate(torch.zeros(shape, dtype=torch.uint8), scale_factor=2, mode=mode)


@pytest.mark.parametrize("mode", ["bilinear", "nearest"])
def test_old_names_of_interpolate_warn(mode):
    with pytest.warns(UserWarning, match=r"nn.functional.upsample_\w+` is deprecated"):
        made = getattr(F, f"upsample_{mode}")(IMAGE, scale_factor=2)
    assert made.shape == (1, 1, 4, 6)
    with pytest.warns(UserWarning, match="nn.functional.upsample` is deprecated"):
        assert F.upsample(IMAGE, (1, 1)).item() == 0


SAMPLED = [
    ("bilinear", "zeros", [0.0, 1.6, 1.3]),
    ("bilinear", "border", [2.4, 1.6, 5.0]),
    ("bilinear", "reflection", [2.65, 1.6, 5.0]),
    ("nearest", "zeros", [0.0, 1.0, 0.0]),
    ("nearest", "border", [3.0, 1.0, 5.0]),
    ("bicubic", "zeros", [-0.291094, 1.862734, 1.48122]),
    ("bicubic", "border", [2.472, 1.635249, 5.326906]),
    ("bicubic", "reflection", [2.663406, 1.635249, 5.710626]),
]


@pytest.mark.parametrize(("mode", "padding", "expected"), SAMPLED)
def test_grid_sample(mode, padding, expected):
    made = F.grid_sample(IMAGE, GRID, mode, padding, align_corners=False)
    np.testing.assert_allclose(made.reshape(-1).tolist(), expected, rtol=1e-5, atol=1e-5)


def test_affine_grid():
    theta = torch.tensor([[[1.0, 0.5, 0.0], [0.0, 2.0, -0.25]]])
    made = F.affine_grid(theta, (1, 1, 2, 2), align_corners=False)
    assert made.reshape(-1).tolist() == [-0.75, -1.25, 0.25, -1.25, -0.25, 0.75, 0.75, 0.75]
    with pytest.warns(UserWarning, match="Default grid_sample and affine_grid behavior has changed"):
        F.affine_grid(theta, (1, 1, 2, 2))
    with pytest.warns(UserWarning, match="Default grid_sample and affine_grid behavior has changed"):
        F.grid_sample(IMAGE, GRID)


def test_shuffles_and_their_inverse():
    x = torch.arange(8.0).reshape(1, 4, 1, 2)
    assert F.pixel_shuffle(x, 2).reshape(-1).tolist() == [0, 2, 1, 3, 4, 6, 5, 7]
    assert torch.equal(F.pixel_unshuffle(F.pixel_shuffle(x, 2), 2), x)
    assert F.channel_shuffle(x, 2).reshape(-1).tolist() == [0, 1, 4, 5, 2, 3, 6, 7]


X = zeros(2, 3, 4)
BATCH = zeros(2, 3, 4, 5)
PLACES = zeros(2, 3, 4, 2)

REFUSED = [
    (lambda: F.pad(X, (1, 1), "foo"), NotImplementedError, "Unrecognised padding mode foo"),
    (lambda: F.pad(X, (1,)), RuntimeError, "Padding length must be divisible by 2"),
    (lambda: F.pad(X, (1.5, 1)), TypeError, "argument 'pad' must be tuple of ints"),
    (lambda: F.pad(X, (1,) * 8), RuntimeError, "Padding length should be less than or equal to two times the input dim"),
    (lambda: F.pad(X, (1, 1), "reflect", 1.0), RuntimeError, 'Padding mode "reflect" doesn\'t take in value argument'),
    (lambda: F.pad(X, (1,) * 6, "reflect"), NotImplementedError, "Padding size 6 is not supported for 3D input tensor"),
    (lambda: F.pad(X, (4, 1), "reflect"), RuntimeError, "Argument #4: Padding size should be less than the corresponding"),
    (lambda: F.pad(X, (-2, -2), "replicate"), RuntimeError, "input (W: 4) is too small. Calculated output size: 0"),
    (lambda: F.pad(X, (5, 0), "circular"), RuntimeError, "Padding value causes wrapping around more than once"),
    (lambda: F.pad(X, (-3, -2), "circular"), RuntimeError, "Negative padding value is resulting in an empty dimension"),
    (lambda: F.pad(zeros(2, 0, 3), (1, 1), "replicate"), RuntimeError, "Expected 2D or 3D (batch mode) tensor"),
    (lambda: F.pad(X, (-3, -2)), RuntimeError, "resulted in a negative output size, which is invalid. Check dimension 2"),
    (lambda: F.pad(X, (-5, 2)), RuntimeError, "narrow(): length must be non-negative"),
    (lambda: torch.constant_pad_nd(X, (1,)), RuntimeError, "Length of pad must be even but instead it equals 1"),
    (lambda: torch.constant_pad_nd(X, (1,) * 8), RuntimeError, "no more than twice the number of dimensions"),
    (lambda: F.interpolate(zeros(2, 3), 4), NotImplementedError, "Only 3D, 4D and 5D input Tensors supported (got 2D)"),
    (lambda: F.interpolate(BATCH, 4, mode="foo"), NotImplementedError, "(got foo)"),
    (lambda: F.interpolate(BATCH, 4, mode="linear"), NotImplementedError, "Got 4D input, but linear mode needs 3D input"),
    (lambda: F.interpolate(BATCH), ValueError, "either size or scale_factor should be defined"),
    (lambda: F.interpolate(BATCH, 4, 2.0), ValueError, "only one of size or scale_factor should be defined"),
    (lambda: F.interpolate(BATCH, (4, 3, 2)), ValueError, "Input and output must have the same number of spatial dim"),
    (lambda: F.interpolate(BATCH, None, (4, 3, 2)), ValueError, "Input and scale_factor must have the same number"),
    (lambda: F.interpolate(BATCH, (4.5, 2)), TypeError, "expected size to be one of int or Tuple[int]"),
    (lambda: F.interpolate(BATCH, (4, 0)), RuntimeError, "but got input (H: 4, W: 5) output (H: 4, W: 0)"),
    (lambda: F.interpolate(zeros(2, 0, 4, 5), 2), RuntimeError, "Non-empty 4D data tensor expected"),
    (lambda: F.interpolate(BATCH.long(), 2), NotImplementedError, "not implemented for 'Long'"),
    (lambda: F.interpolate(BATCH, 2, align_corners=True), ValueError, "align_corners option can only be set"),
    (lambda: F.interpolate(X, 2, mode="linear", antialias=True), ValueError, "Anti-alias option is restricted to"),
    (lambda: F.interpolate(BATCH, 2, mode="lanczos"), ValueError, "Lanczos mode requires antialias=True"),
    (lambda: F.interpolate(BATCH, 2, mode="lanczos", antialias=True, align_corners=True), ValueError,
     "Lanczos mode does not support align_corners=True"),
    (lambda: F.interpolate(BATCH, 2, recompute_scale_factor=True), ValueError, "not meaningful with an explicit size"),
    (lambda: F.grid_sample(BATCH, PLACES, "x"), ValueError, "expected mode to be 'bilinear', 'nearest' or 'bicubic'"),
    (lambda: F.grid_sample(BATCH, PLACES, padding_mode="x"), ValueError, "expected padding_mode to be 'zeros'"),
    (lambda: F.grid_sample(BATCH, PLACES[:1], align_corners=True), RuntimeError, "expected grid and input to have same"),
    (lambda: F.grid_sample(X, PLACES, align_corners=True), RuntimeError, "expected grid to have size 1 in last dimension"),
    (lambda: F.grid_sample(BATCH, PLACES[0, :2], align_corners=True), RuntimeError, "expected 4D or 5D input and grid"),
    (lambda: F.grid_sample(BATCH[:, :, :0], PLACES, align_corners=True), RuntimeError, "non-empty spatial dimensions"),
    (lambda: F.grid_sample(BATCH, PLACES.double(), align_corners=True), RuntimeError, "expected scalar type Float but"),
    (lambda: F.grid_sample(BATCH.long(), PLACES.long(), align_corners=True), NotImplementedError, "for 'Long'"),
    (lambda: F.grid_sample(BATCH[None], zeros(1, 1, 1, 1, 3), "bicubic", align_corners=True), RuntimeError,
     "bicubic interpolation only supports 4D input"),
    (lambda: torch.grid_sampler_3d(BATCH, PLACES, 0, 0, True), RuntimeError, "expected 5D input and grid"),
    (lambda: F.affine_grid(zeros(2, 2, 3).long(), (2, 1, 4, 5), True), ValueError, "theta to have floating point type"),
    (lambda: F.affine_grid(zeros(2, 2, 3), (2, 1, 4), True), NotImplementedError, "only supports 4D and 5D sizes"),
    (lambda: F.affine_grid(zeros(2, 3, 3), (2, 1, 4, 5), True), ValueError, "2D affine matrices of shape Nx2x3"),
    (lambda: F.affine_grid(zeros(2, 2, 3), (2, 1, 4, 0), True), ValueError, "Expected non-zero, positive output size"),
    (lambda: F.affine_grid(zeros(2, 2, 3), (3, 1, 4, 5), True), RuntimeError, "Expected size for first two dimensions"),
    (lambda: F.pixel_shuffle(X[0], 2), RuntimeError, "pixel_shuffle expects input to have at least 3 dimensions"),
    (lambda: F.pixel_shuffle(X, 2), RuntimeError, "divisible by the square of upscale_factor"),
    (lambda: F.pixel_shuffle(X, -2), RuntimeError, "pixel_shuffle expects a positive upscale_factor, but got -2"),
    (lambda: F.pixel_shuffle(X, 2.0), TypeError, "argument 'upscale_factor' must be int, not float"),
    (lambda: F.pixel_unshuffle(X, 2), RuntimeError, "expects height to be divisible by downscale_factor"),
    (lambda: F.pixel_unshuffle(X, 3), RuntimeError, "expects width to be divisible by downscale_factor"),
    (lambda: F.channel_shuffle(X[0], 2), RuntimeError, "channel_shuffle expects input with > 2 dims"),
    (lambda: F.channel_shuffle(X, 0), RuntimeError, "Number of groups to divide channels in must be positive"),
    (lambda: F.channel_shuffle(X, 2), RuntimeError, "Number of channels must be divisible by groups. Got 3"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "kind", "phrase"), REFUSED, ids=[r[2][:40] for r in REFUSED])
def test_refused(call, kind, phrase):
    with pytest.raises(kind, match=re.escape(phrase)):
        call()
