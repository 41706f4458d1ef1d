"""The bilinear map of two vectors. Matrix products and the affine map of one are in ops/products.py."""

from __future__ import annotations

from pellucid.autograd.operator import composite
from pellucid.core.tensor import Tensor

__all__ = ["bilinear"]


def _check(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None) -> None:
    kinds = {str(x.dtype) for x in (input1, input2, weight)}
    if len(kinds) > 1:
        raise RuntimeError(f"All tensors must have the same dtype, got input1: {input1.dtype.name}, input2: {input2.dtype.name}, "
                           f"weight: {weight.dtype.name}")
    if input1.dim() != input2.dim():
        raise RuntimeError(f"bilinear(): input dimensions do not match: got {input1.dim()} and {input2.dim()}")
    for dim, (a, b) in enumerate(zip(input1.shape[:-1], input2.shape[:-1], strict=True)):
        if a != b:
            raise RuntimeError(f"bilinear(): input batch dimensions do not match at dim {dim}: got {a} and {b}")
    if weight.dim() != 3:
        raise RuntimeError(f"bilinear(): weight must be 3-D [out, in1, in2], got shape {list(weight.shape)}")
    for position, (x, size) in enumerate(zip((input1, input2), weight.shape[1:], strict=True), 1):
        if x.size(-1) != size:
            raise RuntimeError(f"bilinear(): input{position} size does not match weight size: got {x.size(-1)} but expected {size}")
    if bias is not None and bias.size(0) != weight.size(0):
        raise RuntimeError(f"bilinear(): bias size does not match weight size: got {bias.size(0)} but expected {weight.size(0)}")


@composite(module=("nn.functional", "torch"))
def bilinear(input1, input2, weight, bias=None):
    """x1^T W[o] x2 + b[o] for each output o.

    input1: [*S, in1]; input2: [*S, in2]; weight: [out, in1, in2]; bias: [out] or None; of one dtype. Returns [*S, out].
    Raises: RuntimeError for sizes that do not fit or different dtypes.
    """
    _check(input1, input2, weight, bias)
    out, in1, in2 = weight.shape
    rows1, rows2 = input1.reshape(-1, in1), input2.reshape(-1, in2)
    maps = (rows1 @ weight.transpose(0, 1).reshape(in1, out * in2)).reshape(rows1.size(0), out, in2)
    made = (maps @ rows2.unsqueeze(-1)).reshape(*input1.shape[:-1], out)
    return made if bias is None else made + bias
