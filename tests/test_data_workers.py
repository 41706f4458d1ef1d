"""DataLoader with worker processes: the same batches, failures told, nothing left behind."""

import gc
import io
import multiprocessing
import os
import random
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import pellucid
from pellucid.core.tensor import Tensor, wrap
from pellucid.utils.data import DataLoader, IterableDataset, TensorDataset, get_worker_info
from pellucid.utils.data import transport as transport_module
from pellucid.utils.data.transport import receive, send
from pellucid.utils.data.worker import Failure, seeds_of

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="workers start with fork on Linux")


class Calls:
    """A dataset whose samples are what a function returns; fork hands over functions that do not pickle."""

    def __init__(self, length, function):
        self.length, self.function = length, function

    def __len__(self):
        return self.length

    def __getitem__(self, index):
        return self.function(index)


class Shares(IterableDataset):
    """0, 1, 2, ..., each number in one worker."""

    def __init__(self, length):
        self.length = length

    def __iter__(self):
        info = get_worker_info()
        return iter(range(info.id, self.length, info.num_workers))


def lists(loader):
    return [batch.tolist() if isinstance(batch, Tensor) else batch for batch in loader]


@pytest.fixture(autouse=True)
def nothing_left_behind():
    """No process, no file descriptor and no thread stays."""
    before = os.listdir("/proc/self/fd"), threading.active_count()
    yield
    gc.collect()
    deadline = time.monotonic() + 10
    while multiprocessing.active_children() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not multiprocessing.active_children()
    assert len(os.listdir("/proc/self/fd")) <= len(before[0])
    assert threading.active_count() <= before[1]


# --- the same batches ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("options", [{"batch_size": 3}, {"batch_size": 3, "drop_last": True}, {"batch_size": None}])
@pytest.mark.parametrize("shuffle", [False, True])
def test_batches_are_those_of_one_process(workers, options, shuffle):
    pellucid.manual_seed(5)
    expected = lists(DataLoader(range(11), shuffle=shuffle, **options))
    after = pellucid.rand(1).item()
    pellucid.manual_seed(5)
    assert lists(DataLoader(range(11), shuffle=shuffle, num_workers=workers, **options)) == expected
    assert pellucid.rand(1).item() == after


def test_large_arrays_come_whole_and_can_be_written_to():
    data = Calls(8, lambda index: {"x": np.full((64, 64), index, np.float32), "y": index})
    for number, batch in enumerate(DataLoader(data, batch_size=2, num_workers=2)):
        assert batch["y"].tolist() == [2 * number, 2 * number + 1]
        np.testing.assert_array_equal(batch["x"]._array[:, 5, 7], batch["y"]._array)
        batch["x"]._array += 1


def test_batches_outlive_their_workers_and_do_not_hold_descriptors():
    data = Calls(600, lambda index: np.full(5000, index, np.float32))
    batches = list(DataLoader(data, num_workers=2))
    assert len(os.listdir("/proc/self/fd")) < 400
    assert [int(batch._array[0, -1]) for batch in batches] == list(range(600))


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("length", [0, 1, 3, 10, 11])
def test_streams_are_shared_out(workers, length):
    with np.errstate(all="raise"):
        batches = lists(DataLoader(Shares(length), batch_size=2, num_workers=workers))
    assert sorted(number for batch in batches for number in batch) == list(range(length))


def test_streams_in_turn():
    assert lists(DataLoader(Shares(10), batch_size=2, num_workers=2)) == [[0, 2], [1, 3], [4, 6], [5, 7], [8], [9]]
    assert lists(DataLoader(Shares(5), batch_size=None, num_workers=2)) == [0, 1, 2, 3, 4]


def test_a_stream_that_was_announced_shorter():
    class Announced(Shares):
        def __len__(self):
            return 1

    loader = DataLoader(Announced(2), num_workers=1)
    assert len(loader) == 1
    with pytest.warns(UserWarning, match="replica at each worker"):
        lists(loader)


def test_free_order_does_not_wait_for_the_slow():
    data = Calls(6, lambda index: time.sleep(0.3 if index == 0 else 0) or index)
    numbers = [batch.item() for batch in DataLoader(data, num_workers=2, in_order=False)]
    assert sorted(numbers) == list(range(6))
    assert numbers[0] != 0


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_other_ways_to_start_processes(method):
    data = TensorDataset(wrap(np.arange(4)))
    loader = DataLoader(data, 2, num_workers=1, multiprocessing_context=multiprocessing.get_context(method))
    assert [x.tolist() for (x,) in loader] == [[0, 1], [2, 3]]
    if method == "forkserver":
        multiprocessing.forkserver._forkserver._stop()
    multiprocessing.resource_tracker._resource_tracker._stop()


# --- persistent workers ----------------------------------------------------------------------------------------------


def test_persistent_workers_stay_and_begin_anew_after_a_break():
    data = Calls(12, lambda index: (index, os.getpid()))
    loader = DataLoader(data, batch_size=3, num_workers=2, persistent_workers=True)
    processes = set()
    for epoch in range(3):
        seen = []
        for numbers, pids in loader:
            seen += numbers.tolist()
            processes |= set(pids.tolist())
            if epoch == 1:
                break
        assert seen == list(range(3 if epoch == 1 else 12))
    assert len(processes) == 2
    del loader


def test_persistent_streams_begin_anew():
    loader = DataLoader(Shares(4), batch_size=2, num_workers=2, persistent_workers=True)
    assert lists(loader) == lists(loader) == [[0, 2], [1, 3]]
    del loader


# --- seeds and information -------------------------------------------------------------------------------------------


def test_each_worker_has_its_own_random_numbers():
    def draw(index):
        info = get_worker_info()
        return (info.id, info.num_workers, info.seed, random.random(), np.random.rand(), pellucid.rand(1).item())

    def both():
        return [tuple(sample) for sample in DataLoader(Calls(2, draw), batch_size=None, num_workers=2)]

    pellucid.manual_seed(0)
    first, second = both()
    assert (first[:2], second[:2]) == ((0, 2), (1, 2))
    assert second[2] == first[2] + 1
    assert all(a != b for a, b in zip(first[3:], second[3:], strict=True))
    others = both()
    assert others[0][3:] != first[3:]
    pellucid.manual_seed(0)
    assert both() == [first, second]


def test_seeds_of_numpy_are_pytorchs():
    assert seeds_of(0, 0).tolist() == [2968811710, 3677149159, 745650761, 2884920346]
    assert seeds_of(2**40 + 5, 3).tolist() == [3453014069, 1603536151, 2410470037, 3509082754]


def test_worker_init_fn_knows_the_worker():
    started = []

    def begin(worker):
        started.append((worker, get_worker_info().id))

    samples = list(DataLoader(Calls(2, lambda index: started), None, num_workers=2, worker_init_fn=begin))
    assert samples == [[[0, 0]], [[1, 1]]]


# --- failures --------------------------------------------------------------------------------------------------------


class Odd(Exception):
    def __init__(self, first, second):
        super().__init__(first, second)


def fail_with(error):
    def sample(index):
        if index == 4:
            raise error
        return index

    return Calls(9, sample)


@pytest.mark.parametrize(
    ("error", "kind"),
    [(ValueError("bad sample"), ValueError), (KeyError("bad key"), KeyError), (Odd(1, 2), RuntimeError)],
)
def test_an_exception_comes_with_the_workers_traceback(error, kind):
    loader = iter(DataLoader(fail_with(error), batch_size=3, num_workers=2))
    assert next(loader).tolist() == [0, 1, 2]
    with pytest.raises(kind) as caught:
        next(loader)
    text = str(caught.value)
    assert text.startswith(f"Caught {type(error).__name__} in DataLoader worker process 1.\nOriginal Traceback")
    assert "raise error" in text
    assert next(loader).tolist() == [6, 7, 8]


def test_an_exception_whose_type_does_not_pickle():
    class Local(Exception):
        pass

    with pytest.raises(RuntimeError, match="Caught Local in DataLoader worker process 0"):
        list(DataLoader(fail_with(Local()), num_workers=1))


def test_a_sample_that_does_not_pickle():
    with pytest.raises((RuntimeError, AttributeError, TypeError), match=r"worker process 0(.|\n)*ickle"):
        list(DataLoader(Calls(2, lambda index: lambda: 0), batch_size=None, num_workers=1))


def test_a_failing_worker_init_fn():
    with pytest.raises(ZeroDivisionError, match="Caught ZeroDivisionError in DataLoader worker process 0"):
        list(DataLoader(range(4), num_workers=2, worker_init_fn=lambda worker: 1 / 0))


def test_an_exception_whose_type_wants_no_text_is_a_runtime_error():
    class Silent(Exception):
        def __init__(self):
            pass

    failure = Failure.of(Silent(), "here")
    assert isinstance(failure.error(), RuntimeError)
    assert str(failure.error()).startswith("Caught Silent here.\nOriginal ")


@pytest.mark.parametrize(
    ("end", "phrase"),
    [(lambda: os.kill(os.getpid(), signal.SIGKILL), "killed by signal SIGKILL"), (lambda: os._exit(3), "exit code 3")],
)
def test_a_dead_worker_is_noticed(end, phrase):
    data = Calls(9, lambda index: end() if index == 4 else index)
    with pytest.raises(RuntimeError, match=r"DataLoader worker \(pid\(s\) \d+\) exited unexpectedly") as caught:
        list(DataLoader(data, batch_size=2, num_workers=2))
    assert phrase in str(caught.value)


@pytest.mark.parametrize("in_order", [True, False])
def test_timeout(in_order):
    data = Calls(2, lambda index: time.sleep(1))
    with pytest.raises(RuntimeError, match=r"DataLoader timed out after 0\.1 seconds"):
        list(DataLoader(data, num_workers=1, timeout=0.1, in_order=in_order))


def test_what_cannot_be_sent_to_a_spawned_process():
    with pytest.raises((AttributeError, TypeError)):
        iter(DataLoader(Calls(2, lambda index: index), num_workers=1, multiprocessing_context="spawn"))
    multiprocessing.resource_tracker._resource_tracker._stop()


# --- leaving early ---------------------------------------------------------------------------------------------------


def test_leaving_a_loop_ends_the_workers():
    data = Calls(100, lambda index: np.ones(20000, np.float32))
    for _ in DataLoader(data, batch_size=4, num_workers=2):
        break


def test_an_interrupt_ends_the_workers():
    def interrupt(*_):
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 0.2)
    try:
        with pytest.raises(KeyboardInterrupt):
            list(DataLoader(Calls(4, lambda index: time.sleep(5)), num_workers=2))
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_a_broken_loader_begins_anew():
    loader = DataLoader(range(3), num_workers=1, persistent_workers=True)
    lists(loader)
    loader._iterator.workers.close()
    assert list(loader._iterator) == []
    assert lists(loader) == [[0], [1], [2]]
    del loader


def test_loaders_inside_loaders():
    outer = DataLoader(range(2), num_workers=1, persistent_workers=True)
    inner = DataLoader(range(2), num_workers=1, persistent_workers=True)
    assert [(a.item(), b.item()) for a in outer for b in inner] == [(0, 0), (0, 1), (1, 0), (1, 1)]
    start = time.monotonic()
    del outer
    gc.collect()
    assert time.monotonic() - start < 2
    del inner


PROGRAM = """
    import os, sys, time
    from pellucid.utils.data import DataLoader

    class Data:
        def __len__(self):
            return 100
        def __getitem__(self, index):
            return os.getpid()

    loader = iter(DataLoader(Data(), num_workers=2))
    print(*{next(loader).item() for _ in range(4)}, flush=True)
"""


def run_program(ending):
    source = str(Path(pellucid.__file__).parents[1])
    code = textwrap.dedent(PROGRAM) + ending
    environment = {**os.environ, "PYTHONPATH": source}
    result = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=60)
    workers = [int(pid) for pid in result.stdout.split()]
    assert len(workers) == 2
    return workers, result.stderr


def runs(pid):
    """Whether a process is there and not merely waiting to be buried."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.parametrize("ending", ["", "raise SystemExit", "os.kill(os.getpid(), 9)", "os._exit(0)"])
def test_workers_do_not_outlive_the_program(ending):
    workers, errors = run_program(ending)
    assert errors == ""
    deadline = time.monotonic() + 10
    while any(map(runs, workers)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(map(runs, workers))


# --- transport -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("size", [0, 10, 4095, 4096, 100_000])
def test_values_cross_a_pipe(size, shared, monkeypatch):
    monkeypatch.setattr(transport_module, "SHARED", shared)
    value = {"array": np.arange(size, dtype=np.int32), "turned": np.ones((30, size)).T, "tensor": wrap(np.zeros(size))}
    mine, other = multiprocessing.Pipe()
    got = []
    reader = threading.Thread(target=lambda: got.append(receive(other)))
    reader.start()
    send(mine, value)
    reader.join()
    for name in ("array", "turned"):
        np.testing.assert_array_equal(got[0][name], value[name])
        assert got[0][name].flags.writeable
    assert got[0]["tensor"].tolist() == [0.0] * size
    mine.close()
    with pytest.raises(EOFError):
        receive(other)
    other.close()


def test_what_does_not_pickle_sends_nothing():
    mine, other = multiprocessing.Pipe()
    with pytest.raises((AttributeError, TypeError)):
        send(mine, [np.zeros(100_000), io.StringIO(), lambda: 0])
    assert not other.poll()
    mine.close()
    other.close()
