"""NumPy's own loops on all threads: what a ufunc does with arrays of one dtype, a block of elements a task.

A ufunc holds a table of machine code, a loop for each dtype; NumPy runs the one it chooses on one thread. Here the same loop is
called for each block, so that results are NumPy's to the last bit. The table is where NumPy's C interface has it since its first
release (`PyUFuncObject` in its header `ufuncobject.h`); `loop_of` compares the fields beside it with what the ufunc says of itself.
"""

from __future__ import annotations

import ctypes
import functools

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from . import serial
from .addresses import data_at
from .sharing import share

__all__ = ["apply", "loop_of"]

BLOCK = 1 << 14  # elements: each thread has a few blocks of the smallest arrays that come here
_WORD, _BYTES = ir.IntType(64), ir.IntType(8).as_pointer()


class _Ufunc(ctypes.Structure):
    """The first fields of `PyUFuncObject`."""

    _fields_ = (
        ("header", ctypes.c_byte * object.__basicsize__),
        *[(name, ctypes.c_int) for name in ("nin", "nout", "nargs", "identity")],
        ("functions", ctypes.POINTER(ctypes.c_void_p)),
        ("data", ctypes.POINTER(ctypes.c_void_p)),
        ("ntypes", ctypes.c_int),
    )


@functools.cache
def loop_of(ufunc: np.ufunc, kind: str) -> tuple[int, int, np.dtype] | None:
    """Where a ufunc's loop for operands of a dtype, by its `char`, begins, what is handed to it, and the dtype of its result.

    None if the ufunc has no such loop, has several results, or is not laid out as expected.
    """
    known = _Ufunc.from_address(id(ufunc))
    if any(getattr(known, name) != getattr(ufunc, name) for name in ("nin", "nout", "nargs", "ntypes")) or ufunc.nout != 1:
        return None
    for number, signature in enumerate(ufunc.types):
        given, made = signature.split("->")
        if given == kind * ufunc.nin:
            loop = known.functions[number]
            return loop and (loop, known.data[number] or 0 if known.data else 0, np.dtype(made))
    return None


@intrinsic
def _call(typing, loop, data, count, places, steps):
    """Call a loop: void (char **places, npy_intp *count, npy_intp *steps, void *data), for tuples of three places and steps."""

    def generate(context, builder, signature, arguments):
        loop, data, count, places, steps = arguments

        def listed(values):
            kept = cgutils.alloca_once(builder, ir.ArrayType(_WORD, len(values)))
            for number, value in enumerate(values):
                builder.store(value, cgutils.gep_inbounds(builder, kept, 0, number))
            return builder.bitcast(kept, _BYTES)

        function = builder.inttoptr(loop, ir.FunctionType(ir.VoidType(), [_BYTES] * 4).as_pointer())
        lists = [listed(cgutils.unpack_tuple(builder, each)) for each in (places, steps)]
        builder.call(function, [lists[0], listed([count]), lists[1], builder.inttoptr(data, _BYTES)])
        return context.get_dummy_value()

    return types.void(loop, data, count, places, steps), generate


@serial
def _block(block, size, loop, data, places, steps):
    start = block * BLOCK
    here = places[0] + start * steps[0], places[1] + start * steps[1], places[2] + start * steps[2]
    _call(loop, data, min(BLOCK, size - start), here, steps)


@serial
def apply(threads, size, loop, data, arrays, steps):
    """Run a loop over `size` elements of its operands and its result, in this order.

    arrays: the addresses of their Python objects, of which as many count as the loop takes; steps: bytes from element to element,
    0 for a number that stands for a whole array. Traffic: each is read or written once.
    """
    places = data_at(arrays[0]), data_at(arrays[1]), data_at(arrays[2])
    share((size + BLOCK - 1) // BLOCK, threads, _block, (size, loop, data, places, steps))
