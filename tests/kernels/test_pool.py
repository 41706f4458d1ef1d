"""The threads that kernels share: each turn is done once, whoever calls, after a fork too, and nobody waits or spins for long."""

import os
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

numba = pytest.importorskip("numba")

from llvmlite import binding  # noqa: E402

from pellucid.kernels import compiled  # noqa: E402
from pellucid.kernels.compiled import activations, pool  # noqa: E402

pytestmark = pytest.mark.skipif(not pool.POSSIBLE, reason="the pool is for POSIX systems")

SIZE = 1 << 17


@pytest.fixture(autouse=True)
def threads():
    if numba.config.NUMBA_NUM_THREADS < 2:
        pytest.skip("this process has one processor")
    before = compiled.get_threads()
    compiled.set_threads(2)
    yield
    compiled.set_threads(before)


def gradient(seed, size=SIZE):
    """A gradient of tanh by the kernel, and what it should be."""
    grad, y = np.random.default_rng(seed).standard_normal((2, size)).astype(np.float32)
    out = np.full(size, np.nan, np.float32)
    activations.tanh_backward(grad, y, out)
    return out, grad * (1 - y * y)


def run(code):
    """Run a program that has `gradient` and `check`; what it printed."""
    head = "import sys; sys.path[:0] = %r; from test_pool import *; compiled.set_threads(2)\n" % [os.path.dirname(__file__)]
    return subprocess.run([sys.executable, "-c", head + code], capture_output=True, text=True, check=True, timeout=120).stdout


def check(seed=0, size=SIZE):
    np.testing.assert_allclose(*gradient(seed, size), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("size", [0, 1, 2, 3, 1000, SIZE - 1])
def test_every_turn_is_done(size):
    check(size=size)


def test_workers_start_with_the_first_job():
    gradient(0)
    assert 1 <= pool._pool.word(pool.WORKERS).value < numba.config.NUMBA_NUM_THREADS


@pytest.mark.parametrize("turns", [2, 3, 64, 1000])
def test_long_and_short_turns_are_shared_out(turns):
    from pellucid.kernels.compiled import products

    a, b = (np.random.default_rng(turns).standard_normal((turns, 8, 8)).astype(np.float32) for _ in range(2))
    np.testing.assert_allclose(products.product(a, b), a @ b, rtol=1e-4, atol=1e-5)


def test_jobs_of_several_threads_of_a_program():
    failures = []

    def body(seed):
        try:
            for _ in range(50):
                check(seed)
        except AssertionError as error:
            failures.append(error)

    callers = [threading.Thread(target=body, args=(seed,)) for seed in range(4)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert not failures
    assert pool._pool.word(pool.BUSY).value == pool._pool.word(pool.ACTIVE).value == 0


def test_what_others_compile_keeps_its_threads():
    check()
    numba.get_num_threads()
    assert binding.address_of_symbol(pool.ENTRY) not in (None, pool._pool.parallel_for.address)


def test_workers_sleep_when_there_is_nothing_to_do():
    busy = run(
        "check(); time.sleep(0.1); before = time.process_time(); time.sleep(1); print(time.process_time() - before);"
        "print(pool._pool.word(pool.SLEEPING).value)"
    )
    seconds, sleeping = busy.split()
    assert float(seconds) < 0.2
    assert sleeping == "1"


def test_they_wake_again():
    for _ in range(3):
        check()
        deadline = time.monotonic() + 10
        while not pool._pool.word(pool.SLEEPING).value and time.monotonic() < deadline:
            time.sleep(0.01)
        assert pool._pool.word(pool.SLEEPING).value


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_process_has_workers_of_its_own():
    output = run(
        "check(1)\n"
        "child = os.fork()\n"
        "if not child:\n"
        "    before = pool._pool.word(pool.WORKERS).value\n"
        "    for _ in range(100): check(2)\n"
        "    os._exit(10 * before + pool._pool.word(pool.WORKERS).value)\n"
        "for _ in range(100): check(3)\n"
        "print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))\n"
    )
    assert output == "1\n"


def test_a_program_ends_while_a_thread_of_it_still_uses_kernels():
    run("def body():\n    while True: gradient(0)\nthreading.Thread(target=body, daemon=True).start(); check(); time.sleep(0.05)")


def test_kernels_called_at_the_end_of_a_program():
    code = "import atexit; check(); atexit.register(lambda: (check(1), print('done')))"
    assert run(code) == "done\n"
    early = "import atexit; atexit.register(lambda: (check(1), print('done'))); check()"  # called after the workers are gone
    assert run(early) == "done\n"
