"""DataLoader in this process: order, batches, options. Worker processes are in test_data_workers.py."""

import pickle
import warnings

import numpy as np
import pytest

import pellucid
from pellucid.core.tensor import wrap
from pellucid.utils.data import (
    BatchSampler,
    DataLoader,
    Dataset,
    IterableDataset,
    SequentialSampler,
    TensorDataset,
    get_worker_info,
)


class Stream(IterableDataset):
    def __init__(self, length):
        self.length = length

    def __iter__(self):
        return iter(range(self.length))

    def __len__(self):
        return 3


def lists(loader):
    return [batch.tolist() for batch in loader]


def test_batches_in_order():
    assert lists(DataLoader(range(5), batch_size=2)) == [[0, 1], [2, 3], [4]]
    assert lists(DataLoader(range(5), batch_size=2, drop_last=True)) == [[0, 1], [2, 3]]
    assert lists(DataLoader(range(2))) == [[0], [1]]


def test_samples_without_batches():
    assert list(DataLoader([1, "a"], batch_size=None)) == [1, "a"]
    (made,) = DataLoader([np.ones(2)], batch_size=None)
    assert made.tolist() == [1, 1]


def test_shuffled_batches_are_pytorchs():
    pellucid.manual_seed(1234)
    assert lists(DataLoader(range(10), batch_size=4, shuffle=True)) == [[2, 1, 3, 6], [7, 9, 5, 4], [8, 0]]
    assert lists(DataLoader(range(10), batch_size=4, shuffle=True)) == [[3, 0, 9, 5], [2, 6, 4, 7], [8, 1]]
    loader = DataLoader(range(10), batch_size=4, shuffle=True, generator=pellucid.Generator().manual_seed(7))
    assert lists(loader) == [[1, 3, 5, 7], [9, 4, 6, 2], [8, 0]]
    assert pellucid.rand(1).item() == pytest.approx(0.6738061308860779, abs=1e-7)


def test_an_iteration_in_order_draws_one_number_too():
    pellucid.manual_seed(3)
    lists(DataLoader(range(3)))
    after = pellucid.rand(1).item()
    pellucid.manual_seed(3)
    pellucid.empty((), dtype=pellucid.int64).random_()
    assert pellucid.rand(1).item() == after


def test_samplers_of_ones_own():
    assert lists(DataLoader(range(9), batch_size=2, sampler=[5, 3, 1])) == [[5, 3], [1]]
    assert lists(DataLoader(range(9), batch_sampler=[[1, 2], [3]])) == [[1, 2], [3]]
    pairs = BatchSampler(SequentialSampler(range(3)), 2, False)
    assert lists(DataLoader(range(9), batch_sampler=pairs)) == [[0, 1], [2]]


def test_collate_fn():
    assert list(DataLoader(range(3), batch_size=2, collate_fn=sum)) == [1, 2]


class Batched(Dataset):
    def __getitems__(self, indices):
        return [10 * index for index in indices]

    def __len__(self):
        return 3


def test_a_dataset_may_give_a_batch_at_once():
    assert lists(DataLoader(Batched(), batch_size=2)) == [[0, 10], [20]]


def test_tensor_datasets():
    data = TensorDataset(wrap(np.arange(6).reshape(3, 2)), wrap(np.array([7, 8, 9])))
    batches = [(x.tolist(), y.tolist()) for x, y in DataLoader(data, batch_size=2)]
    assert batches == [([[0, 1], [2, 3]], [7, 8]), ([[4, 5]], [9])]


def test_streams():
    assert lists(DataLoader(Stream(5), batch_size=2)) == [[0, 1], [2, 3], [4]]
    assert lists(DataLoader(Stream(5), batch_size=2, drop_last=True)) == [[0, 1], [2, 3]]
    assert list(DataLoader(Stream(2), batch_size=None)) == [0, 1]
    assert lists(DataLoader(Stream(0))) == []


def test_lengths():
    assert len(DataLoader(range(5), batch_size=2)) == 3
    assert len(DataLoader(range(5), batch_size=2, drop_last=True)) == 2
    assert len(DataLoader(range(5), batch_size=None)) == 5
    assert len(DataLoader(Stream(9), batch_size=2)) == 2
    assert len(iter(DataLoader(range(5), batch_size=2))) == 3


def test_a_stream_longer_than_announced():
    loader = DataLoader(Stream(4))
    assert len(loader) == 3
    with pytest.warns(UserWarning, match=r"was reported to be 3 .* but 4 samples have been fetched"):
        lists(loader)


def test_what_a_program_may_look_at():
    data = range(5)
    loader = DataLoader(data, batch_size=2, pin_memory=True)
    assert (loader.dataset, loader.batch_size, loader.drop_last, loader.num_workers) == (data, 2, False, 0)
    assert isinstance(loader.sampler, SequentialSampler)
    assert isinstance(loader.batch_sampler, BatchSampler)
    assert DataLoader(data, batch_sampler=[[0]]).batch_size is None
    assert get_worker_info() is None


def test_iterating_twice_and_at_once():
    loader = DataLoader(range(3))
    assert lists(loader) == lists(loader)
    assert [(a.item(), b.item()) for a, b in zip(loader, loader, strict=True)] == [(0, 0), (1, 1), (2, 2)]


def test_pinning_memory_is_not_warned_of():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        lists(DataLoader(range(2), pin_memory=True))


REFUSED = {
    "negative workers": ({"num_workers": -1}, ValueError, "num_workers option should be non-negative"),
    "negative timeout": ({"timeout": -1}, ValueError, "timeout option should be non-negative"),
    "prefetch": ({"prefetch_factor": 2}, ValueError, "prefetch_factor option could only be specified"),
    "no prefetch": ({"num_workers": 1, "prefetch_factor": 0}, ValueError, "prefetch_factor option should be"),
    "persistent": ({"persistent_workers": True}, ValueError, "persistent_workers option needs num_workers > 0"),
    "sampler and shuffle": ({"sampler": [0], "shuffle": True}, ValueError, "sampler option is mutually exclusive"),
    "batch sampler": ({"batch_sampler": [[0]], "batch_size": 2}, ValueError, "batch_sampler option is mutually"),
    "drop last": ({"batch_size": None, "drop_last": True}, ValueError, "batch_size=None option disables"),
    "context": ({"multiprocessing_context": "fork"}, ValueError, "can only be used with multi-process loading"),
    "context name": (
        {"multiprocessing_context": "thread", "num_workers": 1},
        ValueError,
        "should specify a valid start method",
    ),
    "context kind": ({"multiprocessing_context": 3, "num_workers": 1}, TypeError, "should be a valid context object"),
    "empty shuffled": ({"dataset": [], "shuffle": True}, ValueError, "num_samples=0"),
    "shuffled stream": ({"dataset": Stream(2), "shuffle": True}, ValueError, "expected unspecified shuffle option"),
    "stream and sampler": ({"dataset": Stream(2), "sampler": [0]}, ValueError, "expected unspecified sampler option"),
    "stream and batch sampler": (
        {"dataset": Stream(2), "batch_sampler": [[0]]},
        ValueError,
        "expected unspecified batch_sampler option",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused(case):
    options, kind, phrase = REFUSED[case]
    with pytest.raises(kind) as caught:
        DataLoader(**{"dataset": range(3), **options})
    assert phrase in str(caught.value)


def test_options_are_fixed():
    loader = DataLoader(range(3))
    with pytest.raises(ValueError, match="batch_size attribute should not be set after DataLoader is initialized"):
        loader.batch_size = 3
    loader.collate_fn = len
    assert list(loader) == [1, 1, 1]


def test_iterators_do_not_pickle():
    with pytest.raises(NotImplementedError, match="cannot be pickled"):
        pickle.dumps(iter(DataLoader(range(3))))


def test_more_workers_than_processors():
    with pytest.warns(UserWarning, match="will create 1000 worker processes in total"):
        DataLoader(range(3), num_workers=1000)
