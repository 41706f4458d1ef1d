"""In-place methods that change a tensor's own sizes and strides: it becomes the view that the method of the same name makes."""

from __future__ import annotations

from pellucid.autograd.views import check_inplace, written
from pellucid.core.tensor import Tensor
from pellucid.functions.shapes import swapaxes
from pellucid.ops.parts import as_strided
from pellucid.ops.views import squeeze, t, transpose, unsqueeze

__all__ = ["own_geometry"]


def _own_geometry(name: str, taken):
    """A method that lets the tensor itself become the view that `taken(tensor, ...)` makes."""

    def change(self: Tensor, *args, **kwargs) -> Tensor:
        if self._requires_grad or self._view is not None:
            check_inplace(self, False)
        fresh = taken(self, *args, **kwargs)
        self._array, above = fresh._array, self._view
        if fresh._edge is not None:
            self._edge = fresh._edge
        if above is not None:
            self._view = fresh._view
        written(self, name)
        if above is not None and fresh._view is not None:
            self._view.version = self._counter.value
        return self

    change.__name__ = change.__qualname__ = name
    change.__doc__ = f"In-place form of `{name[:-1]}`: the tensor's own sizes and strides change, its memory stays."
    return change


def own_geometry(**methods) -> None:
    """Attach in-place methods that change geometry: name -> function that makes the view."""
    for name, taken in methods.items():
        setattr(Tensor, name, _own_geometry(name, taken))


own_geometry(transpose_=transpose, t_=t, squeeze_=squeeze, unsqueeze_=unsqueeze, swapaxes_=swapaxes, swapdims_=swapaxes,
             as_strided_=as_strided)  # fmt: skip
