"""Sharing tasks out among threads from inside a kernel: `share(tasks, threads, function, arguments)`.

It does what a `prange` loop does that calls one function. Numba compiles such loops slowly, seconds for one with many
arguments, because it analyses them as array expressions; here the function's address goes straight to Numba's thread pool,
whose threads take tasks from one another when they run out.

One thread is the calling one: it does all tasks itself. It is not given to the pool, which would take "one" for what the
calling thread wants from then on.

Tasks get arrays that belong to nobody: each slice of an array counts a reference to its owner, and all threads would count at
one address, atomically; with short rows that took half of a kernel's time. The caller holds the arrays until the last task is done.
"""

from __future__ import annotations

import numba
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

__all__ = ["share"]

numba.get_num_threads()  # starts the pool, and makes its entry known to the linker

_WORD, _BYTES = ir.IntType(64), ir.IntType(8).as_pointer()


@intrinsic
def share(typingctx, tasks, threads, function, arguments):
    """Call function(task, *arguments) for every task below `tasks`, on the threads of the pool; inside kernels only.

    threads: 1, or all that kernels use. function: a kernel that returns nothing; arguments: a tuple. Tasks must not write what
    others read or write.
    """
    signature = function.get_call_type(typingctx, (types.int64, *arguments), {})

    def generate(context, builder, outer, values):
        compiled = function.dispatcher.get_compile_result(signature)
        context.add_linking_libs([compiled.library])
        worker = _worker(context, builder.module, compiled.fndesc, signature, outer.args[3])
        each = zip(arguments, cgutils.unpack_tuple(builder, values[3]), strict=True)
        lent = context.make_tuple(builder, arguments, [_without_owner(context, builder, *pair) for pair in each])
        _hand_over(builder, worker, *values[:2], lent)
        return context.get_dummy_value()

    return types.void(tasks, threads, function, arguments), generate


def _without_owner(context, builder, kind, value):
    if not isinstance(kind, types.Array):
        return value
    array = context.make_array(kind)(context, builder, value)
    array.meminfo = cgutils.get_null_value(array.meminfo.type)
    return array._getvalue()


def _worker(context, module, description, signature, arguments):
    """What the pool calls with a range of tasks: (address of the first, address of their number, steps, arguments)."""
    kind = ir.FunctionType(ir.VoidType(), [_BYTES.as_pointer(), _WORD.as_pointer(), _WORD.as_pointer(), _BYTES])
    worker = ir.Function(module, kind, module.get_unique_name(f"share.{description.unique_name}"))
    worker.linkage = "internal"
    builder = ir.IRBuilder(worker.append_basic_block())
    starts, counts, _, data = worker.args
    first = builder.ptrtoint(builder.load(starts), _WORD)
    packed = builder.load(builder.bitcast(data, context.get_value_type(arguments).as_pointer()))
    values = cgutils.unpack_tuple(builder, packed)
    with cgutils.for_range(builder, builder.load(counts)) as loop:
        task = builder.add(first, loop.index)
        context.call_internal_no_propagate(builder, description, signature, [task, *values])
    builder.ret_void()
    return worker


def _hand_over(builder, worker, tasks, threads, arguments) -> None:
    """Call the worker for all tasks, or Numba's pool: it adds step * number of the first task to the start, which is address 0."""
    start = cgutils.alloca_once_value(builder, ir.Constant(_WORD, 0))
    step = cgutils.alloca_once_value(builder, ir.Constant(_WORD, 1))
    count = cgutils.alloca_once_value(builder, tasks)
    data = cgutils.alloca_once_value(builder, arguments)
    kind = ir.FunctionType(ir.VoidType(), [_BYTES] * 5 + [_WORD] * 2 + [ir.IntType(32)])
    pool = cgutils.get_or_insert_function(builder.module, kind, "numba_parallel_for")
    zero, one = ir.Constant(_WORD, 0), ir.Constant(_WORD, 1)
    function, *pointers = (builder.bitcast(each, _BYTES) for each in (worker, start, count, step, data))
    with builder.if_else(builder.icmp_signed("<=", threads, one)) as (alone, together):
        with alone:
            builder.call(worker, [builder.bitcast(start, _BYTES.as_pointer()), count, step, pointers[-1]])
        with together:
            builder.call(pool, [function, *pointers, zero, one, builder.trunc(threads, ir.IntType(32))])
