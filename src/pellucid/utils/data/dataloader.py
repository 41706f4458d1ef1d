"""DataLoader: goes through a dataset in batches, in this process or with workers.

Options and their checks live here, and the two iterators. What workers do is in `worker.py` and `workers.py`, how a
batch is made in `fetch.py` and `collate.py`.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from pellucid.core import random
from pellucid.utils.data.collate import default_collate, default_convert
from pellucid.utils.data.dataset import Dataset, IterableDataset
from pellucid.utils.data.fetch import fetcher
from pellucid.utils.data.info import get_worker_info
from pellucid.utils.data.sampler import BatchSampler, RandomSampler, Sampler, SequentialSampler

if TYPE_CHECKING:
    from multiprocessing.context import BaseContext

__all__ = ["DataLoader", "default_collate", "default_convert", "get_worker_info"]

T = TypeVar("T", covariant=True)

FIXED = ("batch_size", "batch_sampler", "sampler", "drop_last", "dataset", "persistent_workers")


class _DatasetKind:
    """Whether a dataset is asked by index or gone through."""

    Map = 0
    Iterable = 1


class _InfiniteConstantSampler(Sampler):
    """None for ever: what an IterableDataset gets in place of indices."""

    def __iter__(self) -> Iterator[None]:
        while True:
            yield None


class DataLoader(Generic[T]):
    """Goes through a dataset in batches: `for batch in loader`.

    Each iteration draws one seed (from `generator`, or the default one) for workers, and one more for the order if
    `shuffle` is on and there is no `generator`, as PyTorch does: the same seed gives the same batches.

    Args:
        dataset: a Dataset, an IterableDataset, or anything with `__getitem__` and `__len__`.
        batch_size: samples to a batch; None for single samples, or where `dataset` makes batches itself.
        shuffle: whether samples come in random order, a new one each time.
        sampler: gives the indices, instead of `shuffle`.
        batch_sampler: gives lists of indices, instead of batch_size, shuffle, sampler and drop_last.
        num_workers: how many processes load; 0 for this one.
        collate_fn: makes a batch of a list of samples; `default_collate` if None (without batches: `default_convert`).
        pin_memory: accepted, without effect.
        drop_last: whether a last batch that is shorter is left out.
        timeout: seconds to wait for a worker's batch; 0 for no limit.
        worker_init_fn: called in each worker with its number, after seeding.
        multiprocessing_context: how processes are started: a name such as "spawn", or a context. None: fork on Linux.
        generator: where the random numbers come from; the default generator if None.
        prefetch_factor: batches that each worker prepares ahead, 2 if None.
        persistent_workers: whether workers stay for the next iteration.
        pin_memory_device: accepted, without effect.
        in_order: whether batches come in order; if not, as workers finish them.

    Raises:
        ValueError: options that do not go together, or are out of their range.
        RuntimeError: (in iteration) a worker died, or took longer than `timeout`. Other exceptions of a worker come
            with its traceback in their text.
    """

    _fixed = False

    def __init__(
        self,
        dataset: Dataset[T],
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Sampler | Iterable | None = None,
        batch_sampler: Sampler[list] | Iterable[list] | None = None,
        num_workers: int = 0,
        collate_fn: Callable[[list], Any] | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Callable[[int], None] | None = None,
        multiprocessing_context=None,
        generator: random.Generator | None = None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
        pin_memory_device: str = "",
        in_order: bool = True,
    ):
        _check_workers(num_workers, timeout, prefetch_factor, persistent_workers)
        streamed = isinstance(dataset, IterableDataset)
        if streamed:
            _check_streamed(shuffle, sampler, batch_sampler)
        _check_batching(batch_size, shuffle, sampler, batch_sampler, drop_last)
        self.dataset = dataset
        self.num_workers = num_workers
        self.prefetch_factor = 2 if num_workers and prefetch_factor is None else prefetch_factor
        self.pin_memory = pin_memory
        self.pin_memory_device = pin_memory_device
        self.timeout = timeout
        self.worker_init_fn = worker_init_fn
        self.multiprocessing_context = multiprocessing_context
        self.in_order = in_order
        self.generator = generator
        self.persistent_workers = persistent_workers
        self._dataset_kind = _DatasetKind.Iterable if streamed else _DatasetKind.Map
        if sampler is None:
            sampler = _default_sampler(dataset, bool(shuffle), generator)
        if batch_sampler is not None:
            batch_size = None
        elif batch_size is not None:
            batch_sampler = BatchSampler(sampler, batch_size, drop_last)
        self.batch_size = batch_size
        self.drop_last = drop_last
        self.sampler = sampler
        self.batch_sampler = batch_sampler
        self.collate_fn = collate_fn or (default_collate if self._auto_collation else default_convert)
        self._announced_length: int | None = None  # what len() said, for an IterableDataset
        self._iterator: _WorkerIterator | None = None
        self._fixed = True
        self.check_worker_number_rationality()

    def __setattr__(self, name: str, value) -> None:
        if self._fixed and name in FIXED:
            raise ValueError(
                f"{name} attribute should not be set after {type(self).__name__} is initialized: make a new one"
            )
        super().__setattr__(name, value)

    @property
    def multiprocessing_context(self) -> BaseContext | None:
        """How worker processes are started; None for the platform's way."""
        return self._context

    @multiprocessing_context.setter
    def multiprocessing_context(self, context) -> None:
        self._context = None if context is None else _checked_context(context, self.num_workers)

    @property
    def _auto_collation(self) -> bool:
        return self.batch_sampler is not None

    @property
    def _index_sampler(self):
        return self.batch_sampler if self._auto_collation else self.sampler

    def __iter__(self) -> Iterator[Any]:
        if not self.num_workers:
            return _LocalIterator(self)
        if not self.persistent_workers:
            return _WorkerIterator(self)
        if self._iterator is None or self._iterator.workers.closed:
            self._iterator = _WorkerIterator(self)
        else:
            self._iterator.restart()
        return self._iterator

    def __len__(self) -> int:
        """The number of batches. For an IterableDataset: what its `__len__` implies."""
        if self._dataset_kind == _DatasetKind.Map:
            return len(self._index_sampler)
        length = self._announced_length = len(self.dataset)
        if self.batch_size is None:
            return length
        return length // self.batch_size if self.drop_last else -(-length // self.batch_size)

    def check_worker_number_rationality(self) -> None:
        """Warn where there are more workers than processors."""
        available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
        if self.num_workers and available is not None and self.num_workers > available:
            warnings.warn(
                f"This DataLoader will create {self.num_workers} worker processes in total. Our suggested max number "
                f"of worker in current system is {available}, which is smaller than what this DataLoader is going to "
                "create. Please be aware that excessive worker creation might get DataLoader running slow.",
                stacklevel=3,
            )


class _Iterator:
    """What both iterators share: the sampler's run, the seed, and the check of an announced length."""

    def __init__(self, loader: DataLoader):
        self.loader = loader
        self.indices = iter(loader._index_sampler)
        self.base_seed = int(random.whole_range((), generator=loader.generator))
        self.yielded = 0

    def __iter__(self):
        return self

    def __len__(self) -> int:
        return len(self.loader._index_sampler)

    def __reduce__(self):
        raise NotImplementedError(f"{type(self).__name__} cannot be pickled: make a new one with iter(loader)")

    def __next__(self):
        batch = self.fetch()
        self.yielded += 1
        announced = self.loader._announced_length
        if announced is not None and self.yielded > announced:
            self._warn_of_length(announced)
        return batch

    def fetch(self):
        """The next batch; StopIteration after the last."""
        raise NotImplementedError

    def _warn_of_length(self, announced: int) -> None:
        text = (
            f"Length of IterableDataset {self.loader.dataset} was reported to be {announced} (when accessing "
            f"len(dataloader)), but {self.yielded} samples have been fetched. "
        )
        if self.loader.num_workers:
            text += (
                "For multiprocessing data-loading, this could be caused by not properly configuring the "
                "IterableDataset replica at each worker: divide the samples with get_worker_info()."
            )
        warnings.warn(text, stacklevel=3)


class _LocalIterator(_Iterator):
    """Loads in this process, when a batch is asked for."""

    def __init__(self, loader: DataLoader):
        super().__init__(loader)
        self._make = fetcher(loader.dataset, loader._auto_collation, loader.collate_fn, loader.drop_last)

    def fetch(self):
        return self._make(next(self.indices))


class _WorkerIterator(_Iterator):
    """Loads with worker processes, ahead of what is asked for."""

    def __init__(self, loader: DataLoader):
        from pellucid.utils.data.workers import Job, Workers  # only here: loading without workers needs no processes

        super().__init__(loader)
        jobs = [
            Job(
                loader.dataset,
                loader._auto_collation,
                loader.collate_fn,
                loader.drop_last,
                self.base_seed,
                loader.worker_init_fn,
                number,
                loader.num_workers,
            )
            for number in range(loader.num_workers)
        ]
        self.workers = Workers(
            jobs, loader.multiprocessing_context, loader.prefetch_factor, loader.timeout, loader.in_order
        )
        self._guarded(self.workers.fill, self.indices)

    def restart(self) -> None:
        """Go through the data again with the same processes."""
        self.indices = iter(self.loader._index_sampler)
        self.yielded = 0
        self._guarded(self.workers.restart)
        self._guarded(self.workers.fill, self.indices)

    def fetch(self):
        if self.workers.closed:
            raise StopIteration
        try:
            return self._guarded(self.workers.next, self.indices)
        except StopIteration:
            if not self.loader.persistent_workers:
                self.workers.close()
            raise

    def _guarded(self, action: Callable, *args):
        """Do something with the workers; end them where it is broken off in the middle of a message."""
        try:
            return action(*args)
        except Exception:
            raise
        except BaseException:
            self.workers.close()
            raise


def _default_sampler(dataset, shuffle: bool, generator) -> Sampler:
    if isinstance(dataset, IterableDataset):
        return _InfiniteConstantSampler()
    return RandomSampler(dataset, generator=generator) if shuffle else SequentialSampler(dataset)


def _check_workers(num_workers: int, timeout: float, prefetch_factor: int | None, persistent: bool) -> None:
    if num_workers < 0:
        raise ValueError(
            f"num_workers option should be non-negative, but got {num_workers}; use num_workers=0 to disable "
            "multiprocessing."
        )
    if timeout < 0:
        raise ValueError(f"timeout option should be non-negative, but got {timeout}")
    if not num_workers and prefetch_factor is not None:
        raise ValueError(
            "prefetch_factor option could only be specified in multiprocessing. Let num_workers > 0 to enable "
            "multiprocessing, otherwise set prefetch_factor to None."
        )
    if prefetch_factor is not None and prefetch_factor <= 0:
        raise ValueError(f"prefetch_factor option should be non-negative and not 0, but got {prefetch_factor}")
    if persistent and not num_workers:
        raise ValueError("persistent_workers option needs num_workers > 0")


def _check_streamed(shuffle, sampler, batch_sampler) -> None:
    given = {"shuffle": shuffle or None, "sampler": sampler, "batch_sampler": batch_sampler}
    for name, value in given.items():
        if value is not None:
            raise ValueError(
                f"DataLoader with IterableDataset: expected unspecified {name} option, but got {name}={value}. "
                "The dataset decides itself in which order its samples come."
            )


def _check_batching(batch_size, shuffle, sampler, batch_sampler, drop_last) -> None:
    if sampler is not None and shuffle:
        raise ValueError("sampler option is mutually exclusive with shuffle")
    if batch_sampler is not None and (batch_size != 1 or shuffle or sampler is not None or drop_last):
        raise ValueError(
            "batch_sampler option is mutually exclusive with batch_size, shuffle, sampler, and drop_last"
        )
    if batch_sampler is None and batch_size is None and drop_last:
        raise ValueError("batch_size=None option disables auto-batching and is mutually exclusive with drop_last")


def _checked_context(context, num_workers: int) -> BaseContext:
    import multiprocessing  # only here: as above

    if not num_workers:
        raise ValueError(
            "multiprocessing_context can only be used with multi-process loading (num_workers > 0), but got "
            f"num_workers={num_workers}"
        )
    if isinstance(context, str):
        methods = multiprocessing.get_all_start_methods()
        if context not in methods:
            raise ValueError(
                f"multiprocessing_context option should specify a valid start method in {methods!r}, but got "
                f"multiprocessing_context={context!r}"
            )
        context = multiprocessing.get_context(context)
    if not isinstance(context, multiprocessing.context.BaseContext):
        raise TypeError(
            "multiprocessing_context option should be a valid context object or a string specifying the start method, "
            f"but got multiprocessing_context={context}"
        )
    return context
