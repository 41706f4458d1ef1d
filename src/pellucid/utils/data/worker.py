"""What runs in a worker process: its random seeds, its loop, and how it reports what went wrong.

The other end, which starts workers and collects what they send, is `workers.py`.
"""

from __future__ import annotations

import os
import queue
import random as python_random
import signal
import threading
import traceback
from collections.abc import Callable
from enum import Enum
from multiprocessing.connection import Connection
from typing import Any, NamedTuple

import numpy as np

from pellucid.core import random
from pellucid.kernels.threads import set_threads
from pellucid.utils.data.dataset import IterableDataset
from pellucid.utils.data.fetch import fetcher
from pellucid.utils.data.info import WorkerInfo, set_worker_info
from pellucid.utils.data.transport import receive, send

__all__ = ["Failure", "Job", "Reply", "ReplyKind", "Restart", "Task", "run", "seeds_of"]

CHECK_INTERVAL = 5.0  # seconds between two looks at whether the parent is still there


class Job(NamedTuple):
    """Everything that a worker needs from the start."""

    dataset: Any
    batched: bool
    collate: Callable
    drop_last: bool
    base_seed: int
    init: Callable | None
    id: int
    workers: int


class Task(NamedTuple):
    """What the parent asks for: what the sampler gave, and in which run through the data."""

    run: int
    index: Any


class Restart(NamedTuple):
    """The parent begins another run through the data."""

    run: int


class ReplyKind(Enum):
    """What a reply carries."""

    DATA = 0
    FAILURE = 1
    END = 2  # this worker's share of an IterableDataset is used up


class Reply(NamedTuple):
    """What a worker sends for a task."""

    run: int
    kind: ReplyKind
    value: Any


class _Message(str):
    """A text that shows as it is, also where its repr is asked for: KeyError prints the repr of what it holds."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


class Failure(NamedTuple):
    """An exception of a worker, in a form that survives the way to the parent."""

    kind: type[BaseException] | None
    name: str
    text: str
    where: str

    @classmethod
    def of(cls, error: BaseException, where: str) -> Failure:
        """Note an exception that was just caught, with its traceback as text."""
        return cls(type(error), type(error).__name__, "".join(traceback.format_exception(error)), where)

    def without_type(self) -> Failure:
        """The same for a type that cannot be sent."""
        return self._replace(kind=None)

    def error(self) -> BaseException:
        """The exception to raise in the parent: of the same type where that can be made from a text."""
        text = f"Caught {self.name} {self.where}.\nOriginal {self.text}"
        if self.kind is None:
            return RuntimeError(text)
        try:
            return self.kind(_Message(text) if issubclass(self.kind, KeyError) else text)
        except Exception:
            return RuntimeError(text)


def seeds_of(base_seed: int, worker: int) -> np.ndarray:
    """Seeds of NumPy's global generator for a worker, uint32 [4]; different for every pair of arguments."""
    low, high = base_seed & 0xFFFFFFFF, base_seed >> 32
    return np.random.SeedSequence([worker, low, high, 0]).generate_state(4)


def run(job: Job, connection: Connection, to_close: list[Connection]) -> None:
    """The life of a worker process.

    Args:
        job: what to do.
        connection: to the parent.
        to_close: ends of other connections that a forked process has and must not keep open.
    """
    for other in to_close:
        other.close()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C goes to all processes; the parent decides what follows
    set_threads(1)  # workers share out the processors among themselves
    _seed(job)
    tasks: queue.SimpleQueue = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(connection, tasks), daemon=True).start()
    try:
        _serve(job, connection, tasks)
    except (BrokenPipeError, ConnectionResetError):
        pass  # the parent has gone, or no longer listens
    # The connection is left to the end of the process: `_listen` may be reading from it.


def _seed(job: Job) -> None:
    seed = job.base_seed + job.id
    python_random.seed(seed)
    random.manual_seed(seed)
    np.random.seed(seeds_of(job.base_seed, job.id))
    set_worker_info(WorkerInfo(job.id, job.workers, seed, job.dataset))


def _listen(connection: Connection, tasks: queue.SimpleQueue) -> None:
    """Take in what the parent sends while the worker computes, so that neither ever waits for the other to read."""
    try:
        while True:
            tasks.put(receive(connection))
    except (EOFError, OSError):
        tasks.put(None)


def _next_task(tasks: queue.SimpleQueue, parent: int):
    """The next task; None when the parent wants no more or is gone."""
    while True:
        try:
            return tasks.get(timeout=CHECK_INTERVAL)
        except queue.Empty:
            if os.getppid() != parent:
                return None


def _serve(job: Job, connection: Connection, tasks: queue.SimpleQueue) -> None:
    where, streamed = f"in DataLoader worker process {job.id}", isinstance(job.dataset, IterableDataset)
    parent, current, fetch, failure = os.getppid(), 0, None, None
    try:
        if job.init is not None:
            job.init(job.id)
    except Exception as error:
        failure = Failure.of(error, where)
    while (task := _next_task(tasks, parent)) is not None:
        if isinstance(task, Restart):
            current, fetch = task.run, None
            continue
        if task.run != current:
            continue
        try:
            if failure is None and fetch is None:
                fetch = fetcher(job.dataset, job.batched, job.collate, job.drop_last)
            reply = Reply(current, ReplyKind.FAILURE, failure) if failure else _fetched(fetch, task, where, streamed)
        except Exception as error:
            reply = Reply(current, ReplyKind.FAILURE, Failure.of(error, where))
        failure = None
        _answer(connection, reply, where)


def _fetched(fetch: Callable, task: Task, where: str, streamed: bool) -> Reply:
    try:
        return Reply(task.run, ReplyKind.DATA, fetch(task.index))
    except StopIteration as error:
        if streamed:
            return Reply(task.run, ReplyKind.END, None)
        return Reply(task.run, ReplyKind.FAILURE, Failure.of(error, where))


def _answer(connection: Connection, reply: Reply, where: str) -> None:
    try:
        send(connection, reply)
    except (BrokenPipeError, ConnectionResetError):
        raise
    except Exception as error:  # what was fetched, or the type of an exception, cannot be pickled
        failure = reply.value if reply.kind is ReplyKind.FAILURE else Failure.of(error, where)
        send(connection, Reply(reply.run, ReplyKind.FAILURE, failure.without_type()))
