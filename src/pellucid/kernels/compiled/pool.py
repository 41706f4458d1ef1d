"""The threads that kernels share their work among: one job at a time, taken up within a microsecond or two.

Numba compiles a `prange` loop into a call of `numba_parallel_for`, which the layer of threads that Numba finds provides. TBB, the
only one that is safe under threads and after fork, makes an arena for each call, which its workers join late: 5 microseconds and
more, as long as many of our kernels take. The kernels of this library get `parallel_for` of this file instead (`linked`); what
other people compile with Numba is left alone.

A *job* is a loop: turns 0 to n, cut into as many equal *slices* as threads take part. The caller begins with the first slice and
worker w with slice w, so that the same part of equally long arrays meets the same thread, whose cache may still hold it; who is
done takes turns from the slices of others. A worker that comes late finds nothing to do, and nobody waits for it: a busy core
costs its share and no more. Where a job is running already (for another thread of the program, or around this one) the caller
does its own alone.

Workers look for a new job for about half a millisecond, then sleep until they are woken. Processes that are forked get workers
of their own.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import os

import llvmlite.binding
import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.compiler_lock import global_compiler_lock
from numba.extending import intrinsic

__all__ = ["POSSIBLE", "linked"]

POSSIBLE = os.name == "posix"
ENTRY, MEMORY = "numba_parallel_for", "pellucid_pool"  # symbols: what Numba calls, and the memory of the pool

LINE = 64  # bytes of a line of cache: what one thread writes often has one for itself
MOST = 256  # threads
LOOKS = 10_000  # of a worker for a job before it sleeps, of about 50 ns: to wake it takes a tenth of that
YIELDING = 2000  # looks of a caller for the last worker's end, before it gives way to whoever keeps that from running
BATCHES = 64  # of turns, at most, in a slice of many: who is done first waits for a batch at most

# Places in the pool's memory, in bytes; words of 8 bytes unless said otherwise.
BUSY = 0 * LINE  # 1 while there is a job
NUMBER = 1 * LINE  # of jobs so far
OPEN = 2 * LINE  # 1 while workers may join
ACTIVE = 3 * LINE  # workers that have joined, or are about to look whether they may
SLEEPING, ENDING = 4 * LINE, 4 * LINE + 8  # workers that sleep; 1 once all are to end
FUNCTION, ARGUMENTS, SIZES, STEPS, DATA, RANK, ARRAYS, TURNS, THREADS, BATCH = range(5 * LINE, 5 * LINE + 80, 8)  # of the job
WORKERS, BODY = 7 * LINE, 7 * LINE + 8  # how many there are; the address of `_live`
LOCK, SIGNAL = 8 * LINE, 10 * LINE  # pthread_mutex_t and pthread_cond_t, for sleepers
NEXT, THREAD = 12 * LINE, 12 * LINE + 8  # a line for each thread: the next turn of its slice, its pthread_t
BYTES = NEXT + MOST * LINE

_I8, _I64 = ir.IntType(8), ir.IntType(64)
_WORDS, _WORD = _I64.as_pointer(), types.int64  # to LLVM, to Numba


# --- words that threads share, by address --------------------------------------------------------------------------------


@intrinsic
def _read(typing, place):
    def generate(context, builder, signature, arguments):
        return builder.load_atomic(builder.inttoptr(arguments[0], _WORDS), "seq_cst", 8)

    return _WORD(_WORD), generate


@intrinsic
def _write(typing, place, value):
    def generate(context, builder, signature, arguments):
        builder.store_atomic(arguments[1], builder.inttoptr(arguments[0], _WORDS), "seq_cst", 8)
        return context.get_dummy_value()

    return types.void(_WORD, _WORD), generate


def _changer(operation):
    """What changes a word, with nobody in between, and returns what it was."""

    def change(typing, place, value):
        def generate(context, builder, signature, arguments):
            return builder.atomic_rmw(operation, builder.inttoptr(arguments[0], _WORDS), arguments[1], "seq_cst")

        return _WORD(_WORD, _WORD), generate

    return intrinsic(change)


_add, _exchange = _changer("add"), _changer("xchg")


@intrinsic
def _memory(typing):
    """The address of the pool's memory."""

    def generate(context, builder, signature, arguments):
        symbol = builder.module.globals.get(MEMORY) or ir.GlobalVariable(builder.module, _I8, MEMORY)
        return builder.ptrtoint(symbol, _I64)

    return _WORD(), generate


@intrinsic
def _pause(typing):
    """Leave the core to its other thread for a moment."""

    def generate(context, builder, signature, arguments):
        if "x86" in llvmlite.binding.get_process_triple():
            kind = ir.FunctionType(ir.VoidType(), [])
            builder.call(cgutils.get_or_insert_function(builder.module, kind, "llvm.x86.sse2.pause"), [])
        return context.get_dummy_value()

    return types.void(), generate


@intrinsic
def _do(typing, pool, first, count):
    """Call the function of the job for `count` turns, with the addresses that its arguments have reached by the first of them."""

    def generate(context, builder, signature, arguments):
        pool, first, count = arguments

        def word(place):
            return builder.load(builder.inttoptr(builder.add(pool, ir.Constant(_I64, place)), _WORDS))

        def words(place):
            return builder.inttoptr(word(place), _WORDS)

        number, rank = word(ARRAYS), word(RANK)
        reached, sizes = (builder.alloca(_I64, size=each) for each in (number, builder.add(rank, ir.Constant(_I64, 1))))
        with cgutils.for_range(builder, number) as loop:
            start, step = (builder.load(builder.gep(words(each), [loop.index])) for each in (ARGUMENTS, STEPS))
            builder.store(builder.add(start, builder.mul(step, first)), builder.gep(reached, [loop.index]))
        builder.store(count, sizes)
        with cgutils.for_range(builder, rank) as loop:
            place = [builder.add(loop.index, ir.Constant(_I64, 1))]
            builder.store(builder.load(builder.gep(words(SIZES), place)), builder.gep(sizes, place))
        kind = ir.FunctionType(ir.VoidType(), [_WORDS, _WORDS, _WORDS, _WORDS])
        function = builder.inttoptr(word(FUNCTION), kind.as_pointer())
        builder.call(function, [reached, sizes, words(STEPS), words(DATA)])
        return context.get_dummy_value()

    return types.void(_WORD, _WORD, _WORD), generate


@intrinsic
def _call(typing, function, arguments, sizes, steps, data):
    """Call the function of a job for all turns."""

    def generate(context, builder, signature, arguments):
        kind = ir.FunctionType(ir.VoidType(), [_I64] * 4)
        builder.call(builder.inttoptr(arguments[0], kind.as_pointer()), arguments[1:])
        return context.get_dummy_value()

    return types.void(*[_WORD] * 5), generate


# --- functions of the system ---------------------------------------------------------------------------------------------

_SYSTEM = ctypes.CDLL(None) if POSSIBLE else None
_wait = types.ExternalFunction("pthread_cond_wait", types.int32(_WORD, _WORD))
_wake_all = types.ExternalFunction("pthread_cond_broadcast", types.int32(_WORD))
_lock = types.ExternalFunction("pthread_mutex_lock", types.int32(_WORD))
_unlock = types.ExternalFunction("pthread_mutex_unlock", types.int32(_WORD))
_give_way = types.ExternalFunction("sched_yield", types.int32())
_create = types.ExternalFunction("pthread_create", types.int32(_WORD, _WORD, _WORD, _WORD))


def _make_known() -> None:
    """Tell LLVM where these functions are; on its own it does not look among those of the system."""
    for function in (_wait, _wake_all, _lock, _unlock, _give_way, _create):
        llvmlite.binding.add_symbol(function.symbol, ctypes.cast(getattr(_SYSTEM, function.symbol), ctypes.c_void_p).value)


# --- what workers and callers do -----------------------------------------------------------------------------------------

_inner = numba.njit(cache=True, nogil=True, no_cpython_wrapper=True, no_cfunc_wrapper=True)


@_inner
def _run(pool, first, count):
    """Some turns: a function of its own, so that what it puts on the stack goes with it."""
    _do(pool, first, count)


@_inner
def _take_part(pool, own):
    """Do turns of the open job: those of one's own slice first, then what others have left."""
    turns, threads, batch = _read(pool + TURNS), _read(pool + THREADS), _read(pool + BATCH)
    for k in range(threads):
        part = (own + k) % threads
        end = (part + 1) * turns // threads
        first = _add(pool + NEXT + part * LINE, batch)
        while first < end:
            _run(pool, first, min(batch, end - first))
            first = _add(pool + NEXT + part * LINE, batch)


@_inner
def _work(pool, own):
    """What a worker does all its life."""
    seen, looks = np.int64(0), 0
    while _read(pool + ENDING) == 0:
        number = _read(pool + NUMBER)
        if number != seen:
            seen, looks = number, 0
            _add(pool + ACTIVE, 1)  # before it looks whether the job is open: the caller closes the job, then looks here
            if _read(pool + OPEN) and own < _read(pool + THREADS):
                _take_part(pool, own)
            _add(pool + ACTIVE, -1)
        elif looks < LOOKS:
            looks += 1
            _pause()
        else:
            looks = 0
            _sleep(pool, seen)


@_inner
def _sleep(pool, seen):
    """Wait for another job than the one seen last."""
    _lock(pool + LOCK)
    _add(pool + SLEEPING, 1)  # before it looks at the number: the caller counts the job, then looks here
    while _read(pool + NUMBER) == seen and _read(pool + ENDING) == 0:
        _wait(pool + SIGNAL, pool + LOCK)
    _add(pool + SLEEPING, -1)
    _unlock(pool + LOCK)


@_inner
def _wake(pool):
    _lock(pool + LOCK)
    _wake_all(pool + SIGNAL)
    _unlock(pool + LOCK)


@_inner
def _start_workers(pool, threads):
    """See to it that there are so many threads, the caller included; returns how many there are."""
    workers = _read(pool + WORKERS)
    while workers < threads - 1:
        if _create(pool + THREAD + (workers + 1) * LINE, 0, _read(pool + BODY), pool + THREAD + (workers + 1) * LINE):
            break  # the system has no more
        workers += 1
        _write(pool + WORKERS, workers)
    return min(threads, workers + 1)


@_inner
def _share_out(pool, turns, threads):
    """Do the job that has been written down, with others."""
    _write(pool + TURNS, turns)
    _write(pool + THREADS, threads)
    _write(pool + BATCH, max(1, turns // (threads * BATCHES)))
    for i in range(threads):
        _write(pool + NEXT + i * LINE, i * turns // threads)
    _write(pool + OPEN, 1)
    _add(pool + NUMBER, 1)
    if _read(pool + SLEEPING):
        _wake(pool)
    _take_part(pool, 0)
    _write(pool + OPEN, 0)
    looks = 0
    while _read(pool + ACTIVE):
        looks += 1
        if looks < YIELDING:
            _pause()
        else:
            _give_way()


def _parallel_for(function, arguments, sizes, steps, data, rank, arrays, threads):
    """What Numba calls for a loop: all but `threads` are numbers or addresses of 64 bits, as in its layers.

    function(arguments, sizes, steps, data) does turns: sizes[0] is how many, followed by `rank` more; each of `arrays` arguments is
    an address, that of the first turn, which moves by its step from turn to turn.
    """
    pool, turns = _memory(), _read(sizes)
    if threads < 2 or turns < 2 or _exchange(pool + BUSY, 1):
        _call(function, arguments, sizes, steps, data)
        return
    _write(pool + FUNCTION, function)
    _write(pool + ARGUMENTS, arguments)
    _write(pool + SIZES, sizes)
    _write(pool + STEPS, steps)
    _write(pool + DATA, data)
    _write(pool + RANK, rank)
    _write(pool + ARRAYS, arrays)
    _share_out(pool, turns, _start_workers(pool, min(np.int64(threads), turns, MOST)))
    _write(pool + BUSY, 0)


def _live(place):
    """The first and last function of a worker; gets the address of its THREAD."""
    pool = _memory()
    _work(pool, (place - pool - THREAD) // LINE)
    return np.int64(0)


# --- a pool for this process ---------------------------------------------------------------------------------------------


class _Pool:
    """The memory that threads share, and what is compiled for them."""

    def __init__(self):
        self.buffer = ctypes.create_string_buffer(BYTES + LINE)
        self.address = (ctypes.addressof(self.buffer) + LINE - 1) // LINE * LINE
        llvmlite.binding.add_symbol(MEMORY, self.address)
        _make_known()
        self.live = numba.cfunc(_WORD(_WORD), cache=True)(_live)
        self.parallel_for = numba.cfunc(types.void(*[_WORD] * 7, types.int32), cache=True)(_parallel_for)
        self.reset()
        os.register_at_fork(after_in_child=self.reset)
        atexit.register(self.end)

    def word(self, place: int) -> ctypes.c_int64:
        """A word of the memory."""
        return ctypes.c_int64.from_address(self.address + place)

    def reset(self) -> None:
        """There are no workers, as after a fork, and no job; workers start with the first job."""
        ctypes.memset(self.address, 0, BYTES)
        for function, place in ((_SYSTEM.pthread_mutex_init, LOCK), (_SYSTEM.pthread_cond_init, SIGNAL)):
            function(ctypes.c_void_p(self.address + place), None)
        self.word(BODY).value = self.live.address

    def end(self) -> None:
        """Wait until the workers are gone: what they run will not be there for much longer. Callers then do jobs by themselves."""
        self.word(ENDING).value = 1
        lock, signal = ctypes.c_void_p(self.address + LOCK), ctypes.c_void_p(self.address + SIGNAL)
        _SYSTEM.pthread_mutex_lock(lock)
        _SYSTEM.pthread_cond_broadcast(signal)
        _SYSTEM.pthread_mutex_unlock(lock)
        for worker in range(1, self.word(WORKERS).value + 1):
            _SYSTEM.pthread_join(ctypes.c_void_p(self.word(THREAD + worker * LINE).value), None)


_pool: _Pool | None = None


@contextlib.contextmanager
def linked():
    """A block in which what is compiled, or loaded from disk, runs its loops on this pool."""
    global _pool
    if not POSSIBLE:
        yield
        return
    with global_compiler_lock:
        _pool = _pool or _Pool()
        numba.get_num_threads()  # loads a layer of Numba, which brings what else such loops call
        theirs = llvmlite.binding.address_of_symbol(ENTRY)
        llvmlite.binding.add_symbol(ENTRY, _pool.parallel_for.address)
        try:
            yield
        finally:
            llvmlite.binding.add_symbol(ENTRY, theirs)
