"""Tasks shared out from inside a kernel: each is done once, and how many threads did them leaves no trace."""

import numpy as np
import pytest

numba = pytest.importorskip("numba")

from pellucid.kernels import compiled, rectifiers  # noqa: E402
from pellucid.kernels.choice import always  # noqa: E402
from pellucid.kernels.compiled import rectifiers as kernels  # noqa: E402

FEW, MANY = 5, 10 * kernels.BLOCK + 3


@pytest.fixture(params=[1, 2])
def threads(request):
    if request.param > numba.config.NUMBA_NUM_THREADS:
        pytest.skip("this process has one processor")
    before = compiled.get_threads()
    compiled.set_threads(request.param)
    yield request.param
    compiled.set_threads(before)


@pytest.mark.parametrize("size", [0, 1, FEW, kernels.BLOCK, MANY])
@pytest.mark.parametrize("shared", [1, "all"])
def test_every_task_is_done_once(threads, size, shared):
    x, out = np.random.default_rng(0).standard_normal(size).astype(np.float32), np.full(size, np.nan, np.float32)
    kernels.relu(threads if shared == "all" else 1, x, out)
    np.testing.assert_array_equal(out, np.maximum(x, 0))


def test_work_that_one_thread_does_leaves_the_others_to_the_next_kernel(threads):
    with always():
        rectifiers.relu(np.ones(FEW, np.float32))
        rectifiers.pass_above(np.ones(FEW, np.float32), np.ones(FEW, np.float32), 0.0)
    assert numba.get_num_threads() == threads
