"""Values of views, indexing, joining, scattering, conversions and factories; what shares memory and what does not."""

from __future__ import annotations

import numpy as np
import pytest

import pellucid as t


def x():
    return t.arange(12.0).reshape(3, 4)


NUMPY_INDICES = [
    (0,), (-1, 2), (slice(1, None),), (slice(None), slice(0, 4, 2)), (Ellipsis, 1), (None, 0), (slice(None), None, 1), (),
    ([0, 2],), (slice(None), [3, 0]), ([0, 2], [1, 1]), ([[0], [2]], [1, 3]), (True,), (np.array([True, False, True]),),
    (np.arange(12).reshape(3, 4) % 3 == 0,), (1, [0, 2]), ([0, 1], None, [1, 2]), (slice(1, 3), [0, 1]), (slice(2, 1),),
]  # fmt: skip


@pytest.mark.parametrize("index", [pytest.param(i, id=str(n)) for n, i in enumerate(NUMPY_INDICES)])
def test_reading_and_writing_as_numpy_does(index):
    array = np.arange(12.0).reshape(3, 4)
    tensor = t.from_numpy(array.copy())
    key = tuple([t.tensor(i) if isinstance(i, (list, np.ndarray)) else i for i in index])
    assert np.array_equal(tensor[key].numpy(), array[index])
    array[index] = -5.0
    tensor[key] = -5.0
    assert np.array_equal(tensor.numpy(), array)


@pytest.mark.parametrize("index", [pytest.param(i, id=str(n)) for n, i in enumerate(NUMPY_INDICES)])
def test_gradient_of_reading_counts_how_often_an_element_was_taken(index):
    tensor = x().requires_grad_()
    key = tuple([t.tensor(i) if isinstance(i, (list, np.ndarray)) else i for i in index])
    tensor[key].sum().backward()
    counts = np.zeros((3, 4))
    np.add.at(counts, index, 1)
    assert np.array_equal(tensor.grad.numpy(), counts)


def test_an_integer_before_an_index_tensor_selects_first():
    cube = t.arange(24).reshape(2, 3, 4)
    assert cube[0, :, t.tensor([1, 2])].shape == (3, 2)  # NumPy would give (2, 3)


def test_a_zero_dimensional_tensor_indexes_as_an_integer_does():
    tensor = x()
    row = tensor[t.tensor(1)]
    row.zero_()
    assert tensor[1].tolist() == [0, 0, 0, 0]


def test_repeated_indices_add_up_in_the_gradient():
    table = t.zeros(4, 2, requires_grad=True)
    (table[t.tensor([1, 3, 1, 1])] * t.tensor([[1.0], [2.0], [3.0], [4.0]])).sum().backward()
    assert table.grad.tolist() == [[0, 0], [8, 8], [0, 0], [2, 2]]


def test_writing_passes_gradients_to_what_was_written():
    base = t.zeros(3, requires_grad=True)
    value = t.tensor([5.0, 6.0], requires_grad=True)
    whole = base * 1
    whole[1:] = value
    (whole * t.tensor([1.0, 2.0, 3.0])).sum().backward()
    assert base.grad.tolist() == [1, 0, 0]
    assert value.grad.tolist() == [2, 3]


def test_a_value_of_another_type_is_cast_when_written():
    tensor = t.zeros(2, dtype=t.int64)
    tensor[0] = 2.7
    tensor[1] = t.tensor(3.9)
    assert tensor.tolist() == [2, 3]


def test_views_share_memory():
    tensor = x()
    for view in (tensor.view(-1), tensor.t(), tensor[1:], tensor.unsqueeze(0), tensor.diagonal(), tensor.unfold(1, 2, 1),
                 tensor.split(2)[1], tensor.expand(2, 3, 4), tensor.as_strided((2,), (1,), 3), tensor.detach()):  # fmt: skip
        assert np.shares_memory(view.numpy(), tensor.numpy())
    for copy in (
        tensor.clone(),
        tensor[[0]],
        tensor.flip(0),
        tensor.repeat(1, 1),
        tensor.t().reshape(12),
        tensor.double(),
    ):
        assert not np.shares_memory(copy.numpy(), tensor.numpy())


def test_reshape_of_a_transposed_tensor_copies():
    assert x().t().reshape(-1).tolist() == [0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11]


def test_numpy_and_tensor_see_each_others_writes():
    array = np.zeros(2)
    tensor = t.from_numpy(array)
    tensor[0] = 1
    array[1] = 2
    tensor.numpy()[0] += 5
    assert array.tolist() == tensor.tolist() == [6, 2]


def test_read_only_arrays_warn():
    array = np.zeros(2)
    array.flags.writeable = False
    with pytest.warns(UserWarning, match="not writable"):
        t.from_numpy(array)


@pytest.mark.parametrize(
    ("data", "dtype"),
    [(1, t.int64), (1.5, t.float32), (True, t.bool), (1j, t.complex64), ([1, 2.5], t.float32), ([True, 2], t.int64),
     ([], t.float32), (np.float64(1), t.float64), (np.arange(2, dtype=np.int16), t.int16), ([np.float32(1), 2.0], t.float32),
     (range(3), t.int64)],
)  # fmt: skip
def test_type_of_a_tensor_made_of_data(data, dtype):
    assert t.tensor(data).dtype is dtype


@pytest.mark.parametrize(
    ("made", "values"),
    [
        (lambda: t.arange(1, 2.5, 0.5), [1.0, 1.5, 2.0]),
        (lambda: t.arange(5, 0, -2), [5, 3, 1]),
        (lambda: t.linspace(0, 1, 5), [0.0, 0.25, 0.5, 0.75, 1.0]),
        (lambda: t.linspace(0, 1, 3, dtype=t.int64), [0, 0, 1]),
        (lambda: t.logspace(0, 2, 3), [1.0, 10.0, 100.0]),
        (lambda: t.eye(2, 3), [[1, 0, 0], [0, 1, 0]]),
        (lambda: t.full((2,), 7), [7, 7]),
        (lambda: t.tril_indices(2, 2), [[0, 1, 1], [0, 0, 1]]),
        (lambda: t.triu_indices(2, 3, 1), [[0, 0, 1], [1, 2, 2]]),
        (lambda: t.meshgrid(t.tensor([1, 2]), t.tensor([3, 4, 5]), indexing="xy")[0], [[1, 2], [1, 2], [1, 2]]),
        (lambda: t.cartesian_prod(t.tensor([1, 2]), t.tensor([3, 4])), [[1, 3], [1, 4], [2, 3], [2, 4]]),
        (lambda: t.combinations(t.tensor([1, 2, 3])), [[1, 2], [1, 3], [2, 3]]),
        (lambda: t.vander(t.tensor([1, 2, 3]), 3), [[1, 1, 1], [4, 2, 1], [9, 3, 1]]),
        (lambda: t.complex(t.tensor([1.0]), t.tensor([2.0])), [1 + 2j]),
        (lambda: t.block_diag(t.tensor([[1]]), t.tensor([2, 3])), [[1, 0, 0], [0, 2, 3]]),
        (lambda: t.tensor([1, 2]).repeat_interleave(t.tensor([2, 1])), [1, 1, 2]),
        (lambda: t.tensor([[1, 2]]).tile(2), [[1, 2, 1, 2]]),
        (lambda: t.arange(4).roll(1), [3, 0, 1, 2]),
        (lambda: t.arange(4).reshape(2, 2).rot90(), [[1, 3], [0, 2]]),
        (lambda: x().gather(1, t.tensor([[3], [0], [1]])), [[3.0], [4.0], [9.0]]),
        (lambda: t.zeros(3).scatter(0, t.tensor([2, 0]), t.tensor([5.0, 6.0])), [6.0, 0.0, 5.0]),
        (lambda: t.zeros(3).scatter_add(0, t.tensor([1, 1]), t.tensor([5.0, 6.0])), [0.0, 11.0, 0.0]),
        (lambda: t.ones(2).scatter_reduce(0, t.tensor([0, 0]), t.tensor([2.0, 3.0]), "prod"), [6.0, 1.0]),
        (lambda: t.ones(2).scatter_reduce(0, t.tensor([0, 0]), t.tensor([2.0, 4.0]), "mean", include_self=False), [3.0, 1.0]),
        (lambda: t.ones(2).index_reduce(0, t.tensor([1, 1]), t.tensor([2.0, 3.0]), "amax"), [1.0, 3.0]),
        (lambda: x().take(t.tensor([-1, 0])), [11.0, 0.0]),
        (lambda: x().masked_select(x() > 9), [10.0, 11.0]),
        (lambda: t.zeros(3).masked_scatter(t.tensor([True, False, True]), t.tensor([1.0, 2.0])), [1.0, 0.0, 2.0]),
        (lambda: t.nonzero_static(t.tensor([0, 3]), size=2), [[1], [-1]]),
        (lambda: t.unravel_index(t.tensor(5), (3, 4))[1], 1),
        (lambda: t.arange(5).tensor_split(3)[1], [2, 3]),
        (lambda: t.tensor([1.7, -1.7]).int(), [1, -1]),
        (lambda: t.LongTensor([1, 2]), [1, 2]),
        (lambda: t.zeros(2, 2).fill_diagonal_(3), [[3.0, 0.0], [0.0, 3.0]]),
    ],
)  # fmt: skip
def test_values(made, values):
    assert made().tolist() == values


def test_conversions_that_change_nothing_return_the_tensor_itself():
    tensor = x()
    assert tensor.float() is tensor
    assert tensor.to("cpu", t.float32) is tensor
    assert tensor.contiguous() is tensor
    assert tensor.type_as(tensor) is tensor
    assert tensor.to(t.float32, copy=True) is not tensor


def test_in_place_geometry_changes_the_tensor_itself():
    tensor = x()
    assert tensor.t_() is tensor
    assert tensor.shape == (4, 3)
    assert tensor.unsqueeze_(0).squeeze_().transpose_(0, 1).tolist() == x().tolist()


def test_channels_last_keeps_the_values():
    tensor = t.arange(24.0).reshape(1, 2, 3, 4)
    other = tensor.to(memory_format=t.channels_last)
    assert other.stride() == (24, 1, 8, 2)
    assert other.is_contiguous(memory_format=t.channels_last)
    assert other.tolist() == tensor.tolist()


def test_storages_tell_what_shares_memory():
    tensor = x()
    assert tensor[1:].untyped_storage().data_ptr() == tensor.untyped_storage().data_ptr()
    assert tensor.untyped_storage().nbytes() == 48
    assert tensor[1].storage().tolist() == tensor.reshape(-1).tolist()


def test_iterating_gives_rows_and_membership_asks_for_elements():
    assert [row.tolist() for row in t.tensor([[1, 2], [3, 4]])] == [[1, 2], [3, 4]]
    assert 3 in t.tensor([1, 3])
    assert 5 not in t.tensor([1, 3])


def test_old_ways_of_changing_a_tensor():
    tensor = t.tensor([1.0, 2.0])
    assert tensor.apply_(lambda v: v + 1).map_(t.tensor([1.0, 5.0]), max).tolist() == [2, 5]
    assert tensor.new([3]).dtype is t.float32
    assert tensor.is_set_to(tensor.detach())
    assert tensor.type() == "torch.FloatTensor"
    assert tensor.type(t.LongTensor).dtype is t.int64
    assert isinstance(tensor, t.FloatTensor)
    assert tensor.resize_(1, 2).shape == (1, 2)
    assert t.zeros(2, 3).t().dim_order() == (1, 0)


@pytest.mark.parametrize("change", [lambda v: v.apply_(abs), lambda v: v.map_(v, max)], ids=["apply_", "map_"])
def test_python_functions_are_not_applied_to_what_requires_grad(change):
    with pytest.raises(RuntimeError, match="on Variable that requires grad"):
        change(t.zeros(1, requires_grad=True))
