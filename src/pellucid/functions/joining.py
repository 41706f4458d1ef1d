"""Tensors side by side, one below the other, one behind the other, along a diagonal. `cat` and `stack` are in `ops/joining.py`."""

from __future__ import annotations

from pellucid.autograd.operator import composite
from pellucid.core.dims import one_by_one
from pellucid.core.joins import list_of
from pellucid.core.tensor import Tensor
from pellucid.functions.shapes import atleast_1d, atleast_2d, atleast_3d
from pellucid.ops.joining import block_diag_, cat
from pellucid.ops.views import reshape

__all__ = ["block_diag", "column_stack", "dstack", "hstack", "vstack"]


def _several(tensors, name: str) -> list:
    tensors = list_of(tensors, name)
    if not tensors:
        raise RuntimeError(f"{name} expects a non-empty TensorList")
    return tensors


def _stacking(name: str, doc: str, grown, dim, **names):
    """Declare a concatenation of what `grown` makes of the tensors, along `dim` (of tensors)."""

    def function(tensors, *, out=None) -> Tensor:
        tensors = grown(_several(tensors, name))
        return cat(tensors, dim(tensors), out=out)

    function.__name__, function.__qualname__, function.__doc__ = name, name, doc
    return composite(**names)(function)


def _columns(tensors) -> list[Tensor]:
    return [t if t._array.ndim > 1 else reshape(t, (t._array.size, 1)) for t in tensors]


hstack = _stacking("hstack", "Tensors side by side: along the first dimension for vectors, else along the second.",
                   atleast_1d, lambda tensors: min(tensors[0]._array.ndim - 1, 1))  # fmt: skip
vstack = _stacking("vstack", "Tensors one below the other, vectors as rows.", atleast_2d, lambda tensors: 0, alias=["row_stack"])
dstack = _stacking("dstack", "Tensors one behind the other, along the third dimension.", atleast_3d, lambda tensors: 2)
column_stack = _stacking("column_stack", "Tensors side by side, vectors as columns.", _columns, lambda tensors: 1)


@composite()
def block_diag(*tensors) -> Tensor:
    """A matrix with the given ones along its diagonal and zeros elsewhere; vectors and numbers count as rows."""
    tensors = one_by_one(tensors)
    for position, tensor in enumerate(tensors):
        if tensor._array.ndim > 2:
            raise RuntimeError(f"torch.block_diag: Input tensors must have 2 or fewer dimensions. Input {position} has "
                               f"{tensor._array.ndim} dimensions")
    if not tensors:
        from pellucid.functions.factories import zeros

        return zeros(1, 0)
    return block_diag_(list(atleast_2d(list(tensors))))
