"""Samplers: in which order indices come, and how they are put together to batches.

Random ones draw the same numbers as PyTorch's, so a seed gives the same order. Nothing is drawn before it is asked for.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence, Sized
from typing import Generic, TypeVar

import numpy as np

from pellucid.core import random
from pellucid.core.tensor import Tensor, wrap

__all__ = [
    "BatchSampler",
    "RandomSampler",
    "Sampler",
    "SequentialSampler",
    "SubsetRandomSampler",
    "WeightedRandomSampler",
]

T = TypeVar("T", covariant=True)

DRAWN_AT_ONCE = 32  # how many indices a draw with replacement takes; fixed by the stream of numbers to be matched


class Sampler(Generic[T]):
    """The base of samplers: a subclass gives `__iter__`, and `__len__` where it knows."""

    def __init__(self, data_source=None):
        """`data_source` is accepted for programs written for old versions, and not kept."""

    def __iter__(self) -> Iterator[T]:
        raise NotImplementedError(f"{type(self).__name__} has to define __iter__()")


class SequentialSampler(Sampler[int]):
    """0, 1, 2, ... to the length of `data_source`."""

    def __init__(self, data_source: Sized):
        self.data_source = data_source

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self.data_source)))

    def __len__(self) -> int:
        return len(self.data_source)


class RandomSampler(Sampler[int]):
    """Indices at random.

    Args:
        data_source: something with a length.
        replacement: whether an index may come again before all others have come.
        num_samples: how many indices an iteration gives; as many as `data_source` has if None.
        generator: where the random numbers come from. If None, each iteration makes one from a seed that it draws from
            the default generator.

    Raises:
        TypeError: replacement is not a bool.
        ValueError: num_samples is not a positive integer.
    """

    def __init__(
        self,
        data_source: Sized,
        replacement: bool = False,
        num_samples: int | None = None,
        generator: random.Generator | None = None,
    ):
        self.data_source = data_source
        self.replacement = replacement
        self._num_samples = num_samples
        self.generator = generator
        if not isinstance(replacement, bool):
            raise TypeError(f"replacement should be a boolean value, but got replacement={replacement}")
        _check_positive("num_samples", self.num_samples)

    @property
    def num_samples(self) -> int:
        """How many indices an iteration gives."""
        return len(self.data_source) if self._num_samples is None else self._num_samples

    def __iter__(self) -> Iterator[int]:
        n, count = len(self.data_source), self.num_samples
        generator = self.generator
        if generator is None:
            generator = random.Generator().manual_seed(int(random.whole_range(())))
        if self.replacement:
            for _ in range(count // DRAWN_AT_ONCE):
                yield from random.integers((DRAWN_AT_ONCE,), 0, n, generator=generator).tolist()
            yield from random.integers((count % DRAWN_AT_ONCE,), 0, n, generator=generator).tolist()
        else:
            for _ in range(count // n):
                yield from random.permutation(n, generator=generator).tolist()
            yield from random.permutation(n, generator=generator).tolist()[: count % n]

    def __len__(self) -> int:
        return self.num_samples


class SubsetRandomSampler(Sampler[int]):
    """Some given indices, in a new random order each time.

    Args:
        indices: the indices.
        generator: where the random numbers come from; the default generator if None.
    """

    def __init__(self, indices: Sequence[int], generator: random.Generator | None = None):
        self.indices = indices
        self.generator = generator

    def __iter__(self) -> Iterator[int]:
        for i in random.permutation(len(self.indices), generator=self.generator).tolist():
            yield self.indices[i]

    def __len__(self) -> int:
        return len(self.indices)


class WeightedRandomSampler(Sampler[int]):
    """Indices 0 to len(weights) - 1, each as likely as its weight says.

    Args:
        weights: numbers of 0 or more, not all 0; their sum does not matter.
        num_samples: how many indices an iteration gives.
        replacement: whether an index may come more than once.
        generator: where the random numbers come from; the default generator if None.

    Raises:
        ValueError: num_samples is not a positive integer, replacement not a bool, or weights not one-dimensional.
    """

    def __init__(
        self,
        weights: Sequence[float],
        num_samples: int,
        replacement: bool = True,
        generator: random.Generator | None = None,
    ):
        _check_positive("num_samples", num_samples)
        if not isinstance(replacement, bool):
            raise ValueError(f"replacement should be a boolean value, but got replacement={replacement}")
        values = weights._array if isinstance(weights, Tensor) else np.array(weights)
        if values.ndim != 1:
            raise ValueError(f"weights should be a 1d sequence but given weights have shape {values.shape}")
        self.weights = wrap(values.astype(np.float64))
        self.num_samples = num_samples
        self.replacement = replacement
        self.generator = generator

    def __iter__(self) -> Iterator[int]:
        drawn = random.multinomial(self.weights._array, self.num_samples, self.replacement, generator=self.generator)
        yield from drawn.tolist()

    def __len__(self) -> int:
        return self.num_samples


class BatchSampler(Sampler[list[int]]):
    """Lists of `batch_size` indices of another sampler.

    Args:
        sampler: what gives the indices.
        batch_size: how many to a list.
        drop_last: whether a last list that is shorter is left out.

    Raises:
        ValueError: batch_size is not a positive integer, or drop_last not a bool.
    """

    def __init__(self, sampler: Sampler[int] | Iterable[int], batch_size: int, drop_last: bool):
        _check_positive("batch_size", batch_size)
        if not isinstance(drop_last, bool):
            raise ValueError(f"drop_last should be a boolean value, but got drop_last={drop_last}")
        self.sampler = sampler
        self.batch_size = batch_size
        self.drop_last = drop_last

    def __iter__(self) -> Iterator[list[int]]:
        indices = iter(self.sampler)
        while batch := list(itertools.islice(indices, self.batch_size)):
            if self.drop_last and len(batch) < self.batch_size:
                return
            yield batch

    def __len__(self) -> int:
        whole, rest = divmod(len(self.sampler), self.batch_size)
        return whole + (rest > 0 and not self.drop_last)


def _check_positive(name: str, value) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value <= 0:
        raise ValueError(f"{name} should be a positive integer value, but got {name}={value}")
