"""Compiled convolutions give what the plain form gives: all three products, every method, any geometry."""

import numpy as np
import pytest

from pellucid.kernels import choice, convolution

# images, channels, outputs, size, kernel, stride, padding, dilation, groups
GEOMETRIES = {
    "blocks": (5, 17, 70, (7, 9), (3, 3), (1, 1), (1, 1), (1, 1), 1),
    "deep": (2, 130, 65, (5, 6), (3, 2), (1, 1), (1, 0), (1, 1), 1),
    "strided": (3, 20, 24, (9, 11), (3, 3), (2, 3), (1, 2), (1, 1), 1),
    "dilated": (3, 16, 16, (9, 10), (3, 3), (1, 1), (2, 1), (2, 3), 1),
    "strided and dilated": (2, 18, 16, (11, 13), (2, 3), (3, 2), (0, 2), (2, 3), 1),
    "groups": (3, 32, 48, (6, 16), (3, 3), (1, 1), (1, 1), (1, 1), 2),
    "pointwise": (3, 32, 33, (8, 8), (1, 1), (1, 1), (0, 0), (1, 1), 1),
    "strided pointwise": (3, 32, 33, (8, 7), (1, 1), (2, 2), (0, 0), (1, 1), 1),
    "one image": (1, 16, 200, (4, 4), (3, 3), (1, 1), (1, 1), (1, 1), 1),
    "wide padding": (2, 16, 16, (3, 2), (2, 2), (1, 1), (3, 4), (1, 1), 1),
    "sequences": (4, 24, 16, (37,), (5,), (2,), (3,), (1,), 1),
    "volumes": (2, 16, 20, (4, 5, 6), (3, 2, 3), (1, 2, 1), (1, 0, 2), (1, 1, 2), 1),
    "one channel": (4, 1, 32, (28, 28), (3, 3), (1, 1), (1, 1), (1, 1), 1),
    "few channels": (2, 3, 18, (40, 50), (5, 3), (2, 1), (2, 0), (1, 2), 1),
    "few channels of volumes": (2, 2, 9, (3, 5, 7), (2, 3, 3), (1, 2, 1), (1, 1, 1), (1, 1, 1), 1),
    "few channels in groups": (2, 8, 12, (6, 7), (3, 3), (1, 1), (1, 1), (1, 1), 4),
    "few outputs": (2, 40, 3, (6, 7), (3, 3), (1, 1), (1, 1), (1, 1), 1),
    "depthwise": (3, 8, 8, (9, 12), (3, 3), (1, 1), (1, 1), (1, 1), 8),
    "depthwise, strided": (3, 6, 12, (9, 12), (3, 5), (2, 2), (1, 2), (1, 1), 6),
    "depthwise, dilated sequences": (3, 6, 6, (31,), (3,), (1,), (4,), (2,), 6),
    "depthwise volumes": (2, 4, 4, (4, 5, 6), (3, 3, 2), (1, 1, 1), (1, 0, 1), (1, 1, 1), 4),
    "winograd": (6, 32, 80, (16, 18), (3, 3), (1, 1), (1, 1), (1, 1), 1),
    "winograd without padding": (12, 16, 16, (14, 14), (3, 3), (1, 1), (0, 0), (1, 1), 1),
    "winograd in groups": (12, 32, 64, (13, 11), (3, 3), (1, 1), (2, 1), (1, 1), 2),
    "winograd, deep": (25, 144, 16, (8, 8), (3, 3), (1, 1), (1, 1), (1, 1), 1),
}
ERRORS = {"float64": 1e-13, "float32": 2e-6}
WINOGRAD = 1e-5


def arrays(geometry, dtype):
    images, channels, outputs, size, kernel, stride, padding, dilation, groups = geometry
    random = np.random.default_rng(0)
    x = random.standard_normal((images, channels, *size)).astype(dtype)
    w = random.standard_normal((outputs, channels // groups, *kernel)).astype(dtype)
    places = convolution.output_size(size, kernel, stride, padding, dilation)
    grad = random.standard_normal((images, outputs, *places)).astype(dtype)
    return x, w, grad, random.standard_normal(outputs).astype(dtype), (stride, padding, dilation, groups)


def three_products(x, w, grad, bias, steps):
    return (
        convolution.forward(x, w, *steps, bias),
        convolution.input_gradient(grad, w, x.shape[2:], *steps),
        convolution.weight_gradient(grad, x, w.shape, *steps),
    )


def assert_close(got, expected, error):
    assert got.shape == expected.shape
    assert got.dtype == expected.dtype
    assert np.abs(got - expected).max() <= error * np.abs(expected).max()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", GEOMETRIES)
def test_compiled_products_are_the_plain_ones(name, dtype):
    given = arrays(GEOMETRIES[name], dtype)
    with choice.never():
        expected = three_products(*given)
    with choice.always():
        got = three_products(*given)
    error = WINOGRAD if name.startswith("winograd") and dtype == "float32" else ERRORS[dtype]
    for each, plain in zip(got, expected, strict=True):
        assert_close(each, plain, error)


def test_winograd_can_be_switched_off():
    given = arrays(GEOMETRIES["winograd"], "float32")
    exact = three_products(*(a.astype("float64") if isinstance(a, np.ndarray) else a for a in given))
    errors = {}
    for enabled in (True, False):
        convolution.winograd.enabled = enabled
        try:
            with choice.always():
                made = three_products(*given)
        finally:
            convolution.winograd.enabled = True
        errors[enabled] = [np.abs(m - e).max() / np.abs(e).max() for m, e in zip(made, exact, strict=True)]
    assert max(errors[False]) < 1e-6
    assert max(errors[True]) < WINOGRAD
    assert min(on / off for on, off in zip(errors[True], errors[False], strict=True)) > 1.2


@pytest.mark.parametrize("name", ["winograd", "blocks", "few channels", "depthwise", "strided"])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_what_is_not_finite_stays_where_it_belongs(name, value):
    x, w, grad, bias, steps = arrays(GEOMETRIES[name], "float32")
    x[1, 0, 3, 4] = grad[1, 2, 1, 2] = value
    with choice.never(), np.errstate(invalid="ignore"):
        expected = three_products(x, w, grad, bias, steps)
    with choice.always():
        got = three_products(x, w, grad, bias, steps)
    for each, plain in zip(got, expected, strict=True):
        np.testing.assert_array_equal(np.isnan(each), np.isnan(plain))
        np.testing.assert_array_equal(np.isposinf(each), np.isposinf(plain))
        np.testing.assert_array_equal(np.isneginf(each), np.isneginf(plain))


@pytest.mark.parametrize("name", ["blocks", "few channels", "depthwise", "winograd"])
def test_any_order_of_memory(name):
    x, w, grad, bias, steps = arrays(GEOMETRIES[name], "float32")
    with choice.always():
        expected = three_products(x, w, grad, bias, steps)
        turned = [np.asfortranarray(each) for each in (x, w, grad)]
        got = three_products(*turned, np.repeat(bias, 2)[::2], steps)
    for each, plain in zip(got, expected, strict=True):
        np.testing.assert_array_equal(each, plain)


def test_a_result_larger_than_what_windows_see():
    """The last pixels of a transposed convolution with output padding get no gradient."""
    _, w, grad, _, steps = arrays((2, 16, 20, (9, 9), (3, 3), (3, 3), (0, 0), (1, 1), 1), "float64")
    for size in ((9, 9), (11, 10)):
        with choice.always():
            got = convolution.input_gradient(grad, w, size, *steps)
        with choice.never():
            np.testing.assert_allclose(got, convolution.input_gradient(grad, w, size, *steps), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("shapes", [((0, 4, 5, 5), (6, 4, 3, 3)), ((2, 0, 5, 5), (6, 0, 3, 3)), ((2, 4, 5, 5), (0, 4, 3, 3))])
def test_nothing_to_convolve(shapes):
    x, w = (np.ones(shape, "float32") for shape in shapes)
    with choice.always():
        made = convolution.forward(x, w, (1, 1), (1, 1), (1, 1), 1)
        assert made.shape == (shapes[0][0], shapes[1][0], 5, 5)
        assert not made.any()
        assert convolution.input_gradient(made, w, (5, 5), (1, 1), (1, 1), (1, 1), 1).shape == shapes[0]
        assert convolution.weight_gradient(made, x, shapes[1], (1, 1), (1, 1), (1, 1), 1).shape == shapes[1]


def test_an_image_without_pixels():
    x, w = np.ones((2, 4, 0), "float32"), np.ones((6, 4, 3), "float32")
    with choice.always():
        assert convolution.forward(x, w, (1,), (2,), (1,), 1).shape == (2, 6, 2)
