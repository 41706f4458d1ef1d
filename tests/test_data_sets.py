"""Datasets, samplers, and what collating makes of samples."""

import collections
import warnings

import numpy as np
import pytest

import pellucid
from pellucid.core.tensor import wrap
from pellucid.utils.data import (
    BatchSampler,
    ChainDataset,
    ConcatDataset,
    Dataset,
    DistributedSampler,
    IterableDataset,
    RandomSampler,
    Sampler,
    SequentialSampler,
    StackDataset,
    Subset,
    SubsetRandomSampler,
    TensorDataset,
    WeightedRandomSampler,
    default_collate,
    default_convert,
    random_split,
)


class Count(Dataset):
    def __init__(self, length, start=0):
        self.length, self.start = length, start

    def __len__(self):
        return self.length

    def __getitem__(self, index):
        if not 0 <= index < self.length:
            raise IndexError
        return self.start + index


class Stream(IterableDataset):
    def __init__(self, length):
        self.length = length

    def __iter__(self):
        return iter(range(self.length))

    def __len__(self):
        return self.length


def fails(action, kind, *phrases):
    with pytest.raises(kind) as caught:
        action()
    for phrase in phrases:
        assert phrase in str(caught.value)


# --- datasets --------------------------------------------------------------------------------------------------------


def test_tensor_dataset():
    data = TensorDataset(wrap(np.arange(6).reshape(3, 2)), wrap(np.array([7, 8, 9])))
    assert len(data) == 3
    first, second = data[1]
    assert (first.tolist(), second.item()) == ([2, 3], 8)


def test_concatenation():
    data = Count(2) + Count(0) + Count(3, 10)
    assert isinstance(data, ConcatDataset)
    assert [data[i] for i in range(len(data))] == [0, 1, 10, 11, 12]
    assert (data[-1], data[-5]) == (12, 0)
    assert ConcatDataset([Count(2), Count(3)]).cumulative_sizes == [2, 5]
    with pytest.warns(FutureWarning, match="renamed"):
        assert data.cummulative_sizes == data.cumulative_sizes


def test_chaining():
    data = Stream(2) + Stream(3)
    assert isinstance(data, ChainDataset)
    assert (list(data), len(data)) == ([0, 1, 0, 1, 2], 5)


def test_stacking():
    pairs, named = StackDataset(Count(3), Count(3, 10)), StackDataset(a=Count(3), b=Count(3, 10))
    assert (pairs[1], named[2], len(pairs)) == ((1, 11), {"a": 2, "b": 12}, 3)
    assert pairs.__getitems__([0, 2]) == [(0, 10), (2, 12)]
    assert named.__getitems__([1]) == [{"a": 1, "b": 11}]


class Batched(Count):
    def __getitems__(self, indices):
        return [100 + index for index in indices]


class TooFew(Count):
    def __getitems__(self, indices):
        return []


def test_subsets_pass_whole_batches_on():
    data = Subset(Batched(9), [4, 5, 6])
    assert (data[1], data.__getitems__([0, 2]), len(data)) == (5, [104, 106], 3)
    assert StackDataset(Batched(3), Count(3)).__getitems__([2]) == [(102, 2)]


def test_subset_takes_a_list_where_the_dataset_does():
    assert Subset(TensorDataset(wrap(np.arange(5))), [4, 3, 2])[[0, 1]][0].tolist() == [4, 3]


class HalfASubset(Subset):
    def __getitem__(self, index):
        return 0


REFUSED = {
    "no getitem": (lambda: Dataset()[0], NotImplementedError, "should implement __getitem__"),
    "sizes": (
        lambda: TensorDataset(wrap(np.ones(2)), wrap(np.ones(3))),
        AssertionError,
        "Size mismatch between tensors: their first dimensions are [2, 3]",
    ),
    "nothing to concatenate": (lambda: ConcatDataset([]), AssertionError, "should not be an empty iterable"),
    "stream to concatenate": (lambda: ConcatDataset([Stream(2)]), AssertionError, "does not support IterableDataset"),
    "index below": (lambda: ConcatDataset([Count(2)])[-3], ValueError, "should not exceed dataset length"),
    "index above": (lambda: ConcatDataset([Count(2)])[2], IndexError, "index 2 is out of range"),
    "map to chain": (lambda: list(ChainDataset([Count(2)])), AssertionError, "only supports IterableDataset"),
    "both kinds": (lambda: StackDataset(Count(1), a=Count(1)), ValueError, "both types are given"),
    "nothing to stack": (lambda: StackDataset(), ValueError, "At least one dataset should be passed"),
    "lengths": (lambda: StackDataset(Count(1), Count(2)), ValueError, "their lengths are [1, 2]"),
    "too few items": (lambda: StackDataset(TooFew(2)).__getitems__([0]), ValueError, "Expected 1, got 0"),
    "half a subset": (lambda: HalfASubset(Count(2), [0]), NotImplementedError, "must also override __getitems__"),
    "split lengths": (lambda: random_split(Count(5), [2, 2]), ValueError, "does not equal the length", "add up to 4"),
    "split fraction": (lambda: random_split(Count(5), [1.5, -0.5]), ValueError, "Fraction at index 0", "1.5"),
    "replacement": (lambda: RandomSampler(Count(3), replacement=1), TypeError, "replacement should be a boolean"),
    "empty": (lambda: RandomSampler(Count(0)), ValueError, "num_samples should be a positive integer value, but got"),
    "no samples": (lambda: RandomSampler(Count(3), num_samples=0), ValueError, "num_samples=0"),
    "weights": (lambda: WeightedRandomSampler(np.ones((2, 2)), 3), ValueError, "weights should be a 1d sequence"),
    "weighted samples": (lambda: WeightedRandomSampler([1.0], 0), ValueError, "num_samples=0"),
    "weighted replacement": (lambda: WeightedRandomSampler([1.0], 1, 1), ValueError, "replacement should be a bool"),
    "batch size": (lambda: BatchSampler(range(3), 0, False), ValueError, "batch_size should be a positive integer"),
    "drop last": (lambda: BatchSampler(range(3), 1, 0), ValueError, "drop_last should be a boolean value"),
    "rank": (lambda: DistributedSampler(Count(3), 2, 2), ValueError, "Invalid rank 2", "[0, 1]"),
    "no group": (lambda: DistributedSampler(Count(3)), RuntimeError, "Requires distributed package"),
    "no iter": (lambda: iter(Sampler()), NotImplementedError, "has to define __iter__()"),
    "strange sample": (lambda: default_collate([{1}]), TypeError, "numbers, dicts or lists; found <class 'set'>"),
    "text array": (lambda: default_collate([np.array("a")]), TypeError, "found <U1"),
    "lengths of samples": (lambda: default_collate([[1], [1, 2]]), RuntimeError, "of equal size", "[1, 2]"),
    "shapes": (
        lambda: default_collate([np.ones(3), np.ones(4)]),
        RuntimeError,
        "stack expects each tensor to be equal size, but got [3] at entry 0 and [4] at entry 1",
    ),
    "element type": (lambda: default_convert(np.ones(2, np.longdouble)), TypeError, "can't convert np.ndarray of type"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused(case):
    fails(*REFUSED[case])


# --- random order: PyTorch's numbers for the same seed ---------------------------------------------------------------


def test_random_split():
    pellucid.manual_seed(1234)
    parts = random_split(range(10), [6, 4])
    assert [list(part.indices) for part in parts] == [[5, 4, 8, 2, 6, 9], [1, 7, 0, 3]]
    assert [part[0] for part in parts] == [part.indices[0] for part in parts]


def test_random_split_by_fractions():
    generator = pellucid.Generator().manual_seed(0)
    parts = random_split(Count(10), [0.35, 0.35, 0.3], generator=generator)
    assert [len(part) for part in parts] == [4, 3, 3]
    assert sorted(i for part in parts for i in part.indices) == list(range(10))
    with pytest.warns(UserWarning, match="Length of split at index 1 is 0"):
        assert [len(part) for part in random_split(Count(1), [0.5, 0.5])] == [1, 0]


def test_random_sampler():
    pellucid.manual_seed(1234)
    assert list(RandomSampler(Count(8))) == [1, 0, 6, 3, 5, 2, 4, 7]
    assert list(RandomSampler(Count(5), replacement=True, num_samples=35))[-8:] == [1, 0, 4, 0, 4, 2, 0, 3]
    assert list(RandomSampler(Count(3), num_samples=7)) == [1, 0, 2, 1, 0, 2, 2]


def test_random_sampler_with_a_generator_leaves_the_default_alone():
    pellucid.manual_seed(1)
    expected = pellucid.rand(1).item()
    pellucid.manual_seed(1)
    order = list(RandomSampler(Count(8), generator=pellucid.Generator().manual_seed(3)))
    assert order == [2, 4, 3, 5, 1, 0, 6, 7]
    assert pellucid.rand(1).item() == expected


def test_endless_sampling_is_lazy():
    sampler = RandomSampler(Count(5), replacement=True, num_samples=int(1e10))
    assert len(sampler) == 10**10
    assert next(iter(sampler)) in range(5)


def test_subset_and_weighted_samplers():
    pellucid.manual_seed(1234)
    assert list(SubsetRandomSampler([10, 20, 30, 40])) == [40, 20, 30, 10]
    assert list(WeightedRandomSampler([0.1, 0.0, 0.9], 8)) == [2, 2, 2, 2, 2, 2, 2, 2]
    assert sorted(WeightedRandomSampler([1, 2, 3], 3, replacement=False)) == [0, 1, 2]
    assert len(WeightedRandomSampler(wrap(np.ones(3)), 5)) == 5


def test_sequences_and_batches():
    assert list(SequentialSampler("abc")) == [0, 1, 2]
    sampler = SequentialSampler(range(5))
    assert list(BatchSampler(sampler, 2, False)) == [[0, 1], [2, 3], [4]]
    assert list(BatchSampler(sampler, 2, True)) == [[0, 1], [2, 3]]
    assert (len(BatchSampler(sampler, 2, False)), len(BatchSampler(sampler, 2, True))) == (3, 2)


def test_distributed_sampler():
    shares = [list(DistributedSampler(Count(7), 3, rank)) for rank in range(3)]
    assert shares == [[4, 3, 1], [0, 2, 4], [5, 6, 0]]
    in_order = [list(DistributedSampler(Count(7), 3, rank, shuffle=False)) for rank in range(3)]
    assert in_order == [[0, 3, 6], [1, 4, 0], [2, 5, 1]]
    dropped = [list(DistributedSampler(Count(7), 3, rank, shuffle=False, drop_last=True)) for rank in range(3)]
    assert dropped == [[0, 3], [1, 4], [2, 5]]
    assert [list(DistributedSampler(Count(1), 3, r)) for r in range(3)] == [[0], [0], [0]]
    sampler = DistributedSampler(Count(7), 3, 0)
    sampler.set_epoch(1)
    assert list(sampler) != shares[0]
    assert len(sampler) == 3


# --- collating -------------------------------------------------------------------------------------------------------

Point = collections.namedtuple("Point", "x y")


class Frozen(collections.abc.Mapping):
    def __init__(self, items):
        self.items_ = dict(items)

    def __getitem__(self, key):
        return self.items_[key]

    def __iter__(self):
        return iter(self.items_)

    def __len__(self):
        return len(self.items_)


def kind(tensor):
    return str(tensor.dtype).partition(".")[2]


@pytest.mark.parametrize(
    ("batch", "values", "dtype"),
    [
        ([1, 2], [1, 2], "int64"),
        ([1.5, 2.0], [1.5, 2.0], "float64"),
        ([True, False], [True, False], "bool"),
        ([np.float32(1), np.float32(2)], [1, 2], "float32"),
        ([np.int16(1), np.int16(2)], [1, 2], "int16"),
        ([np.bool_(True)], [True], "bool"),
        ([np.ones(2, np.float32)], [[1, 1]], "float32"),
        ([np.array(3, np.uint8)], [3], "uint8"),
        ([wrap(np.ones(2)), wrap(np.zeros(2))], [[1, 1], [0, 0]], "float64"),
    ],
)
def test_collated_numbers(batch, values, dtype):
    made = default_collate(batch)
    assert made.tolist() == values
    assert kind(made) == dtype


def test_collated_structures():
    made = default_collate([{"a": 1, "b": ("x", [2.0])}, {"a": 3, "b": ("y", [4.0])}])
    assert made["a"].tolist() == [1, 3]
    assert made["b"][0] == ("x", "y")
    assert made["b"][1][0].tolist() == [2.0, 4.0]
    point = default_collate([Point(1, 2), Point(3, 4)])
    assert isinstance(point, Point)
    assert point.y.tolist() == [2, 4]
    assert isinstance(default_collate([Frozen({"a": 1})]), Frozen)
    ordered = default_collate([collections.OrderedDict(a=1)])
    assert isinstance(ordered, collections.OrderedDict)
    assert default_collate(["a", "b"]) == ["a", "b"]
    assert default_collate([b"a"]) == [b"a"]


def test_collating_keeps_the_graph_and_promotes():
    sample = pellucid.tensor([1.0, 2.0], requires_grad=True)
    default_collate([sample * 2, sample]).sum().backward()
    assert sample.grad.tolist() == [3.0, 3.0]
    assert kind(default_collate([wrap(np.ones(1, np.float32)), wrap(np.ones(1, np.int64))])) == "float32"


def test_converting():
    array = np.ones(2, np.float32)
    made = default_convert({"a": array, "b": (1, "x"), "c": Point(np.float64(2), 3), "d": [array], "e": np.array("t")})
    assert made["a"]._array is array
    assert made["b"] == [1, "x"]
    assert made["c"].x.item() == 2
    assert made["d"][0]._array is array
    assert made["e"].item() == "t"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert default_convert(3) == 3
