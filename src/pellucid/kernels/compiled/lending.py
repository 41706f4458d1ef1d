"""Arrays lent to tasks: `lent(arguments)` is the tuple with arrays that belong to nobody, for `share`.

Each slice of an array counts a reference to its owner, and all threads would count at one address, atomically: with short rows
that took half of a kernel's time. The caller of `share` holds the arrays until the last task is done, so tasks need not.
"""

from __future__ import annotations

from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

__all__ = ["lent"]


@intrinsic
def lent(typingctx, arguments):
    """The same tuple, its arrays without owners; inside kernels only, as the arguments of `share`."""

    def generate(context, builder, signature, values):
        each = cgutils.unpack_tuple(builder, values[0])
        each = [_without_owner(context, builder, *pair) for pair in zip(arguments, each, strict=True)]
        return context.make_tuple(builder, arguments, each)

    return arguments(arguments), generate


def _without_owner(context, builder, kind, value):
    if not isinstance(kind, types.Array):
        return value
    array = context.make_array(kind)(context, builder, value)
    array.meminfo = cgutils.get_null_value(array.meminfo.type)
    return array._getvalue()
