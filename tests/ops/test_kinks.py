"""Where functions have a kink, a pole or no value: values and derivatives as PyTorch 2.13 gives them."""

from __future__ import annotations

import numpy as np
import pytest

import pellucid as t
from pellucid.nn import functional as f

inf, nan = float("inf"), float("nan")


def zeros(x):
    return t.zeros_like(x)


# function, points, values, first and second derivatives (None: not asked for)
KINKS = {
    "acosh": (t.acosh, [-1.0, -2.0, 1.0], [nan, nan, 0.0], [inf, 0.57735, inf], [inf, 0.3849, -inf]),
    "erfinv": (t.erfinv, [-0.0, 1.0], [-0.0, inf], [0.886227, inf], [-0.0, inf]),
    "lgamma": (t.lgamma, [-inf, inf], [inf, inf], [nan, inf], [nan, 0.0]),
    "relu": (t.relu, [-0.0, 0.0], [-0.0, 0.0], [0.0, 0.0], [0.0, 0.0]),
    "relu6": (f.relu6, [-0.0, 6.0], [-0.0, 6.0], [0.0, 0.0], [0.0, 0.0]),
    "sign": (t.sign, [nan, -0.5], [0.0, -1.0], [0.0, 0.0], None),
    "sgn": (t.sgn, [nan, -0.5], [0.0, -1.0], [0.0, 0.0], None),
    "sinc": (t.sinc, [0.0, 1e-200], [1.0, 1.0], [0.0, 0.0], [nan, nan]),
    "i1": (t.special.i1, [0.0, 1e-30, nan], [0.0, 5e-31, nan], [0.5, 0.5, 0.5], [0.0, 0.0, 0.0]),
    "i1e": (t.special.i1e, [0.0, 1e-30, nan], [0.0, 5e-31, nan], [0.5, 0.5, 0.5], [0.0, 0.0, 0.0]),
    "log_ndtr": (t.special.log_ndtr, [-1e20, 50.0, -5.0], [-5e39, -0.0, -15.065], [0.398942, 0.0, 5.1865], [3.98942e19, -0.0, -0.967304]),
    "zeta": (lambda x: t.special.zeta(3.0, x), [inf, 2.0], [nan, 0.2020569], [nan, -0.2469697], [nan, 0.4431333]),
    "polygamma": (lambda x: t.polygamma(2, x), [inf], [nan], [nan], [nan]),
    "elu": (f.elu, [0.0, -0.0], [0.0, -0.0], [1.0, 1.0], [0.0, 0.0]),
    "selu": (t.selu, [0.0], [0.0], [1.7581], [0.0]),
    "celu": (f.celu, [0.0], [0.0], [1.0], [0.0]),
    "remainder": (lambda x: x % 1.5, [-3.0, 3.0, -1.0], [-0.0, 0.0, 0.5], [1.0, 1.0, 1.0], None),
    "remainder by a negative number": (lambda x: x % -1.5, [-3.0, 3.0, 1.0], [-0.0, 0.0, -0.5], [1.0, 1.0, 1.0], None),
    "atan2": (lambda x: t.atan2(x, zeros(x)), [0.0, 1e-200, 1.0], [0.0, 1.5708, 1.5708], [0.0, 0.0, 0.0], [nan, nan, 0.0]),
    "xlogy": (lambda x: t.xlogy(zeros(x), x), [0.0, 1.0, nan], [0.0, 0.0, nan], [nan, 0.0, nan], [nan, -0.0, nan]),
    "huber_loss": (lambda x: f.huber_loss(x, zeros(x), reduction="none"), [1.0, -1.0], [0.5, 0.5], [1.0, -1.0], [0.0, 0.0]),
    "huber_loss of NaN": (lambda x: f.huber_loss(x, zeros(x), reduction="none"), [nan], [nan], [nan], None),
    "smooth_l1_loss": (lambda x: f.smooth_l1_loss(x, zeros(x), reduction="none"), [1.0, -1.0], [0.5, 0.5], [1.0, -1.0], [0.0, 0.0]),
    "soft_margin_loss": (
        lambda x: f.soft_margin_loss(x, zeros(x) - 1, reduction="none"), [800.0, 1.0], [inf, 1.31326], [nan, 0.731059], [nan, 0.196612]),
}  # fmt: skip


@pytest.mark.parametrize("name", KINKS)
def test_kink(name):
    compute, points, values, slopes, bends = KINKS[name]
    x = t.tensor(points, dtype=t.float64, requires_grad=True)
    y = compute(x)
    np.testing.assert_allclose(y.detach().numpy(), values, rtol=1e-5)
    known = ~np.isnan(values)
    assert (np.signbit(y.detach().numpy()) == np.signbit(values))[known].all()
    (slope,) = t.autograd.grad(y.sum(), x, create_graph=True)
    np.testing.assert_allclose(slope.detach().numpy(), slopes, rtol=1e-5)
    if bends is not None:
        np.testing.assert_allclose(t.autograd.grad(slope.sum(), x)[0].numpy(), bends, rtol=1e-5)
