"""In-place methods that PyTorch also has as functions: `relu_(x)` is `x.relu_()`."""

from __future__ import annotations

from pellucid.autograd.operator import composite
from pellucid.core.tensor import Tensor
from pellucid.ops import (  # noqa: F401 (imported for the methods they make)
    arithmetic,
    bitwise,
    complex,
    extrema,
    pointwise,
    powers,
    rectifiers,
    special,
    trigonometry,
)

NAMES = """
abs acos acosh arccos arccosh arcsin arcsinh arctan arctanh asin asinh atan atanh ceil clamp
clamp_max clamp_min clip conj_physical cos cosh deg2rad erf erfc exp exp2 expm1 fix floor frac gcd
i0 lcm ldexp log log10 log1p log2 logit nan_to_num neg negative rad2deg reciprocal relu round rsqrt
sigmoid sin sinc sinh sqrt square tan tanh trunc xlogy
"""

for _name in NAMES.split():
    composite(name=f"{_name}_")(getattr(Tensor, f"{_name}_"))
