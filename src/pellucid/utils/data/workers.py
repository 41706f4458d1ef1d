"""Starts worker processes, hands them tasks, collects what they send, and sees that they end.

A worker answers its tasks in order, so results come in order by asking the right worker; nothing has to be sorted.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import warnings
import weakref
from collections import deque
from collections.abc import Iterator
from multiprocessing.connection import wait
from time import monotonic
from typing import Any

from pellucid.utils.data.transport import receive, send
from pellucid.utils.data.worker import Job, Reply, ReplyKind, Restart, Task, run

__all__ = ["Job", "Workers"]

PATIENCE = 5.0  # seconds that a worker gets to end by itself


_parents_ends: weakref.WeakSet = weakref.WeakSet()  # of all loaders: a forked worker must not keep them open


class Workers:
    """A set of worker processes and the tasks they have.

    Args:
        jobs: one for each worker.
        context: of multiprocessing, or None for the platform's (fork on Linux).
        prefetch: how many tasks each may have.
        timeout: seconds to wait for a result; 0 for no limit.
        in_order: whether results come in the order of the tasks.
    """

    def __init__(self, jobs: list[Job], context, prefetch: int, timeout: float, in_order: bool):
        self.limit = prefetch * len(jobs)
        self.timeout, self.in_order = timeout, in_order
        self.run = 0
        self.processes: list[Any] = []
        self.connections: list[Any] = []
        self.finalizer = weakref.finalize(self, _end, self.processes, self.connections, os.getpid())
        context = context or _default_context()
        try:
            for job in jobs:
                self._start(job, context)
        except BaseException:
            self.close()
            raise
        self._begin()

    def _start(self, job: Job, context) -> None:
        mine, its = context.Pipe(duplex=True)
        _parents_ends.add(mine)
        inherited = list(_parents_ends) if context.get_start_method() == "fork" else []
        process = context.Process(target=run, args=(job, its, inherited), daemon=True)
        try:
            with warnings.catch_warnings():
                # Python 3.12 warns of any fork beside other threads; workers use none of the parent's locks or threads
                warnings.filterwarnings("ignore", message=".*multi-threaded.*", category=DeprecationWarning)
                process.start()
        except BaseException:
            mine.close()
            raise
        finally:
            its.close()
        self.processes.append(process)
        self.connections.append(mine)

    def _begin(self) -> None:
        self.sent: deque[int] = deque()  # the worker of each task that is out, oldest first
        self.ended = [False] * len(self.processes)
        self.turn = 0

    @property
    def closed(self) -> bool:
        """Whether the processes are gone."""
        return not self.finalizer.alive

    def close(self) -> None:
        """End all processes; nothing happens the second time."""
        self.finalizer()

    def restart(self) -> None:
        """Begin another run through the data with the same processes; what they still send of the last is dropped."""
        self.run += 1
        for connection in self.connections:
            send(connection, Restart(self.run))
        self._begin()

    def fill(self, indices: Iterator) -> None:
        """Hand out tasks until each worker has as many as it may have, or there are no more."""
        while len(self.sent) < self.limit and self.hand_out(indices):
            pass

    def hand_out(self, indices: Iterator) -> bool:
        """Give the next task to the next worker in turn; False where there is no task or no worker left."""
        if all(self.ended):
            return False
        try:
            index = next(indices)
        except StopIteration:
            return False
        worker = self._whose_turn()
        try:
            send(self.connections[worker], Task(self.run, index))
        except (BrokenPipeError, ConnectionResetError):
            raise self._gone(worker) from None
        self.sent.append(worker)
        self.turn = (worker + 1) % len(self.processes)
        return True

    def _whose_turn(self) -> int:
        """The next worker in turn, or in free order the one with the fewest tasks."""
        count = len(self.processes)
        able = [w for w in ((self.turn + i) % count for i in range(count)) if not self.ended[w]]
        return able[0] if self.in_order else min(able, key=self.sent.count)

    def next(self, indices: Iterator):
        """The next result, raised if it is an exception; StopIteration after the last. Hands out a new task for it."""
        while self.sent:
            worker = self._pick()
            if self.ended[worker]:
                continue
            reply = self._reply_of(worker)
            if reply.kind is ReplyKind.END:
                self.ended[worker] = True
            self.hand_out(indices)
            if reply.kind is ReplyKind.FAILURE:
                raise reply.value.error()
            if reply.kind is ReplyKind.DATA:
                return reply.value
        raise StopIteration

    def _pick(self) -> int:
        """The worker to hear next; its task is taken off the list."""
        if self.in_order or self.ended[self.sent[0]]:
            return self.sent.popleft()
        of_connection = {self.connections[worker]: worker for worker in self.sent if not self.ended[worker]}
        sentinels = [self.processes[worker].sentinel for worker in of_connection.values()]
        ready = wait([*of_connection, *sentinels], self.timeout or None)
        if not ready:
            raise self._late()
        worker = next((w for c, w in of_connection.items() if c in ready or self.processes[w].sentinel in ready))
        self.sent.remove(worker)
        return worker

    def _reply_of(self, worker: int) -> Reply:
        """The worker's next reply of this run."""
        connection, process = self.connections[worker], self.processes[worker]
        while True:
            ready = wait([connection, process.sentinel], self.timeout or None)
            if not ready:
                raise self._late()
            if connection not in ready and not connection.poll():
                raise self._gone(worker)
            try:
                reply = receive(connection)
            except (EOFError, ConnectionResetError):
                raise self._gone(worker) from None
            if reply.run == self.run:
                return reply

    def _late(self) -> RuntimeError:
        return RuntimeError(f"DataLoader timed out after {self.timeout} seconds without a batch from its workers")

    def _gone(self, worker: int) -> RuntimeError:
        process = self.processes[worker]
        process.join(PATIENCE)
        code = process.exitcode
        if code is not None and code < 0:
            how = f"killed by signal {signal.Signals(-code).name}"
            if -code == signal.SIGKILL:
                how += "; the system does that when memory runs out"
        else:
            how = f"exit code {code}"
        return RuntimeError(f"DataLoader worker (pid(s) {process.pid}) exited unexpectedly: worker {worker}, {how}")


def _default_context():
    """Fork on Linux, where that is safe and fast, unless the program has chosen otherwise."""
    chosen = multiprocessing.get_start_method(allow_none=True)
    if chosen is None and sys.platform == "linux":
        return multiprocessing.get_context("fork")
    return multiprocessing.get_context(chosen)


def _end(processes: list, connections: list, owner: int) -> None:
    """End workers: closing the connection tells them; those that do not hear are terminated, then killed."""
    if os.getpid() != owner:  # a process forked from the owner has copies of these objects, not the workers
        return
    for connection in connections:
        try:
            send(connection, None)
        except OSError:
            pass  # gone already
        connection.close()
    for end in (None, "terminate", "kill"):
        deadline = monotonic() + PATIENCE
        for process in processes:
            if end and process.is_alive():
                getattr(process, end)()
        for process in processes:
            process.join(max(0.0, deadline - monotonic()))
        if not any(process.is_alive() for process in processes):
            break
    for process in processes:
        if not process.is_alive():
            process.close()
    processes.clear()
    connections.clear()
