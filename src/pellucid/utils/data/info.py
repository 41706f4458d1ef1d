"""What a worker process knows of itself: for datasets that divide their work. Knows nothing of processes."""

from __future__ import annotations

from typing import NamedTuple

from pellucid.utils.data.dataset import Dataset

__all__ = ["WorkerInfo", "get_worker_info", "set_worker_info"]


class WorkerInfo(NamedTuple):
    """What a worker knows of itself; see `get_worker_info`.

    Attributes:
        id: number of the worker, from 0.
        num_workers: how many there are.
        seed: the seed of this worker's random numbers.
        dataset: this worker's copy of the dataset.
    """

    id: int
    num_workers: int
    seed: int
    dataset: Dataset


_info: WorkerInfo | None = None


def set_worker_info(info: WorkerInfo) -> None:
    """Say what this process is; called once, at the start of a worker."""
    global _info
    _info = info


def get_worker_info() -> WorkerInfo | None:
    """What the present worker process knows of itself; None in the main process."""
    return _info
