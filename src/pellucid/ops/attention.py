"""What attention with dropout is composed of: a softmax that knows rows without any key, and a mask as numbers to add.

Attention without dropout is one operator, in `attention_tiles.py`; the functions that users call are in `functions/attention.py`.
"""

from __future__ import annotations

import math

from pellucid.autograd.operator import Array, Index, operator
from pellucid.kernels import softmax as kernel

__all__: list[str] = []


@operator(module=None, node="SafeSoftmaxBackward0", batching="leading")
class safe_softmax:
    """Softmax along the last dimension; a row of -inf alone, a query that sees no key, becomes zeros.

    input: [*, S], float. Returns [*, S]. Derivative: that of softmax.
    """

    def forward(xp, input: Array):
        return kernel.softmax_or_zeros(input)

    def vjp_input(F, grad, result): return F.softmax_backward(grad, result, -1)
    def jvp_input(F, tangent, result): return F.softmax_backward(tangent, result, -1)

    def samples(make):
        yield (make(3, 4),), {}
        yield (make(2, 3, 2),), {}


@operator(module=None, elementwise=True)
class barrier:
    """What to add to scores: 0 where a query may see a key, -inf elsewhere."""

    def forward(xp, allowed: Index, kind): return xp.where(allowed, 0, -math.inf).astype(kind)
