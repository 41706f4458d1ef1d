"""How a batch is taken out of a dataset, the same in this process and in a worker."""

from __future__ import annotations

from collections.abc import Callable

from pellucid.utils.data.dataset import Dataset, IterableDataset

__all__ = ["fetcher"]


def fetcher(dataset: Dataset, batched: bool, collate: Callable, drop_last: bool) -> Callable:
    """A function from what the sampler gave (an index, or a list of them) to what the loader returns.

    It raises StopIteration where an IterableDataset ends.
    """
    if isinstance(dataset, IterableDataset):
        return _stream_fetcher(dataset, batched, collate, drop_last)
    if not batched:
        return lambda index: collate(dataset[index])
    if callable(getattr(dataset, "__getitems__", None)):
        return lambda indices: collate(dataset.__getitems__(indices))
    return lambda indices: collate([dataset[index] for index in indices])


def _stream_fetcher(dataset: IterableDataset, batched: bool, collate: Callable, drop_last: bool) -> Callable:
    samples = iter(dataset)

    def one(_):
        return collate(next(samples))

    def several(places):
        """`places` holds one entry for each sample that is wanted."""
        nonlocal ended
        if ended:
            raise StopIteration
        batch = []
        for _ in places:
            try:
                batch.append(next(samples))
            except StopIteration:
                ended = True
                break
        if not batch or (drop_last and len(batch) < len(places)):
            raise StopIteration
        return collate(batch)

    ended = False
    return several if batched else one
