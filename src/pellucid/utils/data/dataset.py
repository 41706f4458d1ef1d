"""Datasets: what can be asked for a sample by index, or only be gone through, and combinations of them."""

from __future__ import annotations

import bisect
import itertools
import math
import warnings
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Generic, TypeVar

from pellucid.core import random
from pellucid.core.tensor import Tensor

__all__ = [
    "ChainDataset",
    "ConcatDataset",
    "Dataset",
    "IterableDataset",
    "StackDataset",
    "Subset",
    "TensorDataset",
    "random_split",
]

T = TypeVar("T", covariant=True)


class Dataset(Generic[T]):
    """A map from index to sample. A subclass gives `__getitem__`, and `__len__` for samplers that need it.

    A subclass may also give `__getitems__(indices)`, which returns the list of samples of a whole batch at once.
    `a + b` is one dataset after the other.
    """

    def __getitem__(self, index) -> T:
        raise NotImplementedError("Subclasses of Dataset should implement __getitem__.")

    def __add__(self, other: Dataset) -> ConcatDataset:
        return ConcatDataset([self, other])


class IterableDataset(Dataset[T], Iterable[T]):
    """Samples that come one after the other, such as lines of a stream. A subclass gives `__iter__`.

    With several workers each has its own copy: divide the work with `get_worker_info()`, or every sample comes once a
    worker.
    """

    def __add__(self, other: Dataset) -> ChainDataset:
        return ChainDataset([self, other])


class TensorDataset(Dataset[tuple]):
    """Sample i is the tuple of the tensors' rows i.

    Args:
        tensors: tensors of one size in their first dimension.

    Raises:
        AssertionError: sizes differ.
    """

    def __init__(self, *tensors: Tensor):
        sizes = [tensor.size(0) for tensor in tensors]
        if any(size != sizes[0] for size in sizes):
            raise AssertionError(f"Size mismatch between tensors: their first dimensions are {sizes}")
        self.tensors = tensors

    def __getitem__(self, index):
        return tuple(tensor[index] for tensor in self.tensors)

    def __len__(self) -> int:
        return self.tensors[0].size(0)


class StackDataset(Dataset):
    """Sample i is a tuple of the datasets' samples i, or a dict of them where datasets are given by name.

    Args:
        args: datasets of one length.
        kwargs: the same, by name; not together with `args`.

    Raises:
        ValueError: none given, both kinds given, or lengths that differ.
    """

    def __init__(self, *args: Dataset, **kwargs: Dataset):
        if args and kwargs:
            raise ValueError(
                "Supported either tuple-like (via args) or dict-like (via kwargs) input, but both types are given."
            )
        if not args and not kwargs:
            raise ValueError("At least one dataset should be passed")
        self.datasets: tuple | dict = args or kwargs
        lengths = [len(dataset) for dataset in self._each()]
        if any(length != lengths[0] for length in lengths):
            raise ValueError(f"Size mismatch between datasets: their lengths are {lengths}")
        self._length = lengths[0]

    def _each(self) -> tuple:
        return tuple(self.datasets.values()) if isinstance(self.datasets, dict) else self.datasets

    def _sample(self, values) -> Any:
        return dict(zip(self.datasets, values, strict=True)) if isinstance(self.datasets, dict) else tuple(values)

    def __getitem__(self, index):
        return self._sample([dataset[index] for dataset in self._each()])

    def __getitems__(self, indices: list) -> list:
        columns = []
        for dataset in self._each():
            columns.append(_items(dataset, indices))
            if len(columns[-1]) != len(indices):
                raise ValueError(
                    f"Nested dataset's output size mismatch. Expected {len(indices)}, got {len(columns[-1])}"
                )
        return [self._sample(values) for values in zip(*columns, strict=True)]

    def __len__(self) -> int:
        return self._length


def _items(dataset, indices: list) -> list:
    if callable(getattr(dataset, "__getitems__", None)):
        return dataset.__getitems__(indices)
    return [dataset[index] for index in indices]


class ConcatDataset(Dataset[T]):
    """Several datasets as one, in order.

    Args:
        datasets: datasets with a length.

    Raises:
        AssertionError: none given, or one that is an IterableDataset.
    """

    @staticmethod
    def cumsum(sequence: Iterable) -> list[int]:
        """Running sums of the lengths."""
        return list(itertools.accumulate(len(item) for item in sequence))

    def __init__(self, datasets: Iterable[Dataset]):
        self.datasets = list(datasets)
        if not self.datasets:
            raise AssertionError("datasets should not be an empty iterable")
        if any(isinstance(dataset, IterableDataset) for dataset in self.datasets):
            raise AssertionError("ConcatDataset does not support IterableDataset: use ChainDataset")
        self.cumulative_sizes = self.cumsum(self.datasets)

    def __len__(self) -> int:
        return self.cumulative_sizes[-1]

    def __getitem__(self, idx):
        if idx < 0:
            if -idx > len(self):
                raise ValueError(
                    f"absolute value of index should not exceed dataset length: index {idx}, length {len(self)}"
                )
            idx += len(self)
        number = bisect.bisect_right(self.cumulative_sizes, idx)
        if number == len(self.datasets):
            raise IndexError(f"index {idx} is out of range for a ConcatDataset of length {len(self)}")
        return self.datasets[number][idx - (self.cumulative_sizes[number - 1] if number else 0)]

    @property
    def cummulative_sizes(self) -> list[int]:
        """The old, misspelt name of `cumulative_sizes`."""
        warnings.warn(
            "`cummulative_sizes` attribute is renamed to `cumulative_sizes`", FutureWarning, stacklevel=2
        )
        return self.cumulative_sizes


class ChainDataset(IterableDataset):
    """Several IterableDatasets, one after the other.

    Args:
        datasets: the datasets.

    Raises:
        AssertionError: (in iteration) one that is not an IterableDataset.
    """

    def __init__(self, datasets: Iterable[Dataset]):
        self.datasets = datasets

    def _checked(self) -> Iterator:
        for dataset in self.datasets:
            if not isinstance(dataset, IterableDataset):
                raise AssertionError(
                    f"ChainDataset only supports IterableDataset, but got a {type(dataset).__name__}: use ConcatDataset"
                )
            yield dataset

    def __iter__(self):
        for dataset in self._checked():
            yield from dataset

    def __len__(self) -> int:
        return sum(len(dataset) for dataset in self._checked())


class Subset(Dataset[T]):
    """The samples of a dataset at some of its indices.

    Args:
        dataset: the whole.
        indices: which samples, in which order.

    Raises:
        NotImplementedError: a subclass overrides `__getitem__` and not `__getitems__`, which loaders call.
    """

    def __init__(self, dataset: Dataset[T], indices: Sequence[int]):
        self.dataset = dataset
        self.indices = indices
        kind = type(self)
        if kind.__getitem__ is not Subset.__getitem__ and kind.__getitems__ is Subset.__getitems__:
            raise NotImplementedError(
                f"{kind.__name__} overrides __getitem__ but not __getitems__. When subclassing Subset and overriding "
                "__getitem__, you must also override __getitems__, which DataLoader calls. A simple one:\n\n"
                "def __getitems__(self, indices):\n    return [self[index] for index in indices]"
            )

    def __getitem__(self, idx):
        if isinstance(idx, list):
            return self.dataset[[self.indices[i] for i in idx]]
        return self.dataset[self.indices[idx]]

    def __getitems__(self, indices: list[int]) -> list:
        return _items(self.dataset, [self.indices[i] for i in indices])

    def __len__(self) -> int:
        return len(self.indices)


def random_split(
    dataset: Dataset[T], lengths: Sequence[int | float], generator: random.Generator | None = None
) -> list[Subset[T]]:
    """Split a dataset at random into parts that share no sample.

    Args:
        dataset: what to split.
        lengths: the parts' lengths, which add up to the dataset's, or fractions that add up to 1; what rounding down
            leaves over goes to the first parts, one each.
        generator: where the random numbers come from; the default generator if None.

    Raises:
        ValueError: lengths that do not add up, or a fraction that is not between 0 and 1.
    """
    total = sum(lengths)
    if math.isclose(total, 1) and total <= 1:
        lengths = _whole_lengths(len(dataset), lengths)
    if sum(lengths) != len(dataset):
        raise ValueError(
            "Sum of input lengths does not equal the length of the input dataset! "
            f"The lengths {list(lengths)} add up to {sum(lengths)}, the dataset has {len(dataset)} samples."
        )
    indices = random.permutation(len(dataset), generator=generator).tolist()
    ends = itertools.accumulate(lengths)
    return [Subset(dataset, indices[end - length : end]) for end, length in zip(ends, lengths, strict=True)]


def _whole_lengths(total: int, fractions: Sequence[float]) -> list[int]:
    for i, fraction in enumerate(fractions):
        if fraction < 0 or fraction > 1:
            raise ValueError(f"Fraction at index {i} is not between 0 and 1: {fraction}")
    lengths = [math.floor(total * fraction) for fraction in fractions]
    for i in range(total - sum(lengths)):
        lengths[i % len(lengths)] += 1
    for i, length in enumerate(lengths):
        if length == 0:
            warnings.warn(
                f"Length of split at index {i} is 0. This might result in an empty dataset.", stacklevel=3
            )
    return lengths
