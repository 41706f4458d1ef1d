"""How many threads are used: one setting, asked without loading anything, and one thread in workers of a DataLoader."""

import json
import os
import subprocess
import sys

import pytest

import pellucid
from pellucid.kernels import threads
from pellucid.utils.data import DataLoader, Dataset


def run(code, **environment):
    """What a fresh process prints, as JSON."""
    known = {k: v for k, v in os.environ.items() if not k.endswith("NUM_THREADS")}
    done = subprocess.run([sys.executable, "-c", code], env={**known, **environment}, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


@pytest.fixture
def restored():
    before = pellucid.get_num_threads()
    yield
    pellucid.set_num_threads(before)


ASKED = """
import sys, json, pellucid
print(json.dumps([pellucid.get_num_threads(), [m for m in ('numba', 'threadpoolctl') if m in sys.modules]]))
"""


def test_asking_loads_neither_numba_nor_threadpoolctl():
    assert run(ASKED)[1] == []


@pytest.mark.parametrize(("environment", "count"), [
    ({"OMP_NUM_THREADS": "3"}, 3), ({"NUMBA_NUM_THREADS": "1"}, 1), ({"OMP_NUM_THREADS": "2,4", "NUMBA_NUM_THREADS": "5"}, 2),
    ({"OMP_NUM_THREADS": "many", "NUMBA_NUM_THREADS": "6"}, 6),
])  # fmt: skip
def test_the_environment_is_heard(environment, count):
    assert run(ASKED, **environment)[0] == count


def test_processors_are_counted_where_nothing_is_said(monkeypatch):
    for name in threads.VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(threads._Setting, "count", None)
    assert 1 <= pellucid.get_num_threads() <= os.cpu_count()


def test_what_is_set_is_what_is_asked(restored):
    for count in (1, 2):
        pellucid.set_num_threads(count)
        assert pellucid.get_num_threads() == count
        pools = __import__("threadpoolctl").threadpool_info()
        assert [p["num_threads"] for p in pools if "numpy.libs" in p["filepath"]] in ([count], [])


@pytest.mark.parametrize("wrong", [0, -1])
def test_a_number_that_is_not_positive_is_refused(wrong):
    with pytest.raises(RuntimeError, match=f"set_num_threads expects a positive integer, but got {wrong}"):
        pellucid.set_num_threads(wrong)


@pytest.mark.parametrize("wrong", [True, 2.0, "2", None])
def test_what_is_no_int_is_refused(wrong):
    with pytest.raises(RuntimeError, match=f"set_num_threads expects an int, but got {type(wrong).__name__}"):
        pellucid.set_num_threads(wrong)


KERNELS = """
import json, pellucid
{before}
from pellucid.kernels import compiled
from pellucid.kernels.compiled import blas
{after}
from threadpoolctl import threadpool_info
scipy = [p["num_threads"] for p in threadpool_info() if p["user_api"] == "blas" and "scipy.libs" in p["filepath"]]
print(json.dumps([compiled.get_threads(), compiled.numba.get_num_threads(), scipy]))
"""


@pytest.mark.parametrize("when", ["before", "after"])
def test_kernels_follow_whenever_it_is_set_and_their_blas_keeps_to_one(when):
    pytest.importorskip("numba")
    lines = {"before": "", "after": "", when: "pellucid.set_num_threads(1)"}
    ours, numbas, scipy = run(KERNELS.format(**lines), NUMBA_NUM_THREADS="4")
    assert (ours, numbas) == (1, 1)
    assert scipy in ([1], [])


def test_kernels_hear_the_environment():
    pytest.importorskip("numba")
    assert run(KERNELS.format(before="", after=""), OMP_NUM_THREADS="1")[:2] == [1, 1]


class Threads(Dataset):
    """Items that say how many threads are used where they are made."""

    def __len__(self):
        return 4

    def __getitem__(self, index):
        return pellucid.get_num_threads()


def test_workers_use_one_thread_each(restored):
    pellucid.set_num_threads(2)
    assert [int(n) for batch in DataLoader(Threads(), batch_size=2, num_workers=2) for n in batch] == [1] * 4
    assert pellucid.get_num_threads() == 2
