"""Copying forms of the view operators (`expand_copy`, ...), made from the views themselves."""

from __future__ import annotations

from pellucid.autograd.operator import composite
from pellucid.core.memory_format import contiguous_format
from pellucid.core.tensor import Tensor
from pellucid.functions.splitting import split, split_with_sizes, unbind
from pellucid.ops.expansion import expand
from pellucid.ops.parts import as_strided, diagonal, select, unfold
from pellucid.ops.views import alias, permute, squeeze, t, transpose, unsqueeze, view, view_as_complex, view_as_real

__all__ = ["copying"]

ONE = {"alias": alias, "as_strided": as_strided, "diagonal": diagonal, "expand": expand, "permute": permute, "select": select,
       "squeeze": squeeze, "t": t, "transpose": transpose, "unfold": unfold, "unsqueeze": unsqueeze, "view": view,
       "view_as_complex": view_as_complex, "view_as_real": view_as_real}  # fmt: skip
SEVERAL = {"split": split, "split_with_sizes": split_with_sizes, "unbind": unbind}


def copying(name: str, take):
    """A public function `name_copy` that copies what `take` gives, one view or several."""

    def copy(input: Tensor, *args, **kwargs):
        made = take(input, *args, **kwargs)
        copies = [part.clone(memory_format=contiguous_format) for part in (made if isinstance(made, tuple) else (made,))]
        return tuple(copies) if isinstance(made, tuple) else copies[0]

    copy.__name__ = copy.__qualname__ = f"{name}_copy"
    copy.__doc__ = f"`{name}`, copied: the result does not share memory with the input."
    return composite()(copy)


for _name, _take in (*ONE.items(), *SEVERAL.items()):
    copying(_name, _take)
