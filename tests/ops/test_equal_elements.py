"""Which of several equal elements sort, topk, kthvalue and mode name: PyTorch's choice, that of C++'s algorithms."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pellucid as t
from pellucid.kernels import equal_elements

nan = float("nan")
REPEATED = [(7 * i * i + 3 * i) % 5 for i in range(40)]
LONG = [(11 * i * i + i) % 7 for i in range(200)]
ROWS = [[(3 * i * i + i * r + r) % 4 for i in range(20)] for r in range(3)]
WITH_NAN = [nan if i % 6 == 1 else float((i * i) % 3) for i in range(24)]


def x():
    return t.tensor(REPEATED)


UP = [1, 36, 35, 31, 30, 26, 25, 21, 20, 16, 15, 11, 10, 5, 0, 6, 8, 28, 3, 23, 33, 18, 38, 13, 34, 39, 2, 32, 37, 4, 29, 27,
      24, 22, 7, 19, 17, 9, 14, 12]  # fmt: skip
DOWN = [39, 27, 29, 24, 22, 32, 19, 17, 34, 14, 12, 2, 9, 7, 4, 37, 38, 28, 3, 23, 18, 33, 8, 13, 35, 31, 30, 20, 36, 26, 25,
        21, 0, 16, 15, 11, 10, 6, 5, 1]  # fmt: skip
STABLE = [0, 1, 5, 6, 10, 11, 15, 16, 20, 21, 25, 26, 30, 31, 35, 36, 3, 8, 13, 18, 23, 28, 33, 38, 2, 4, 7, 9, 12, 14, 17, 19,
          22, 24, 27, 29, 32, 34, 37, 39]  # fmt: skip

CHOICES = {
    "sort": (lambda: x().sort()[1], UP),
    "argsort": (lambda: x().argsort(), UP),
    "sort of float16": (lambda: x().half().sort()[1], UP),
    "sort descending": (lambda: x().sort(descending=True)[1], DOWN),
    "sort stable": (lambda: x().sort(stable=True)[1], STABLE),
    "sort of up to 16": (lambda: x()[:16].sort()[1], [i for i in STABLE if i < 16]),
    "sort of NaN": (lambda: t.tensor(WITH_NAN).sort()[1],
                    [0, 3, 21, 6, 18, 9, 15, 12, 23, 22, 20, 17, 16, 14, 11, 10, 8, 5, 4, 2, 13, 7, 19, 1]),
    "sort of rows": (lambda: t.tensor(ROWS).sort(1)[1], [
        [0, 2, 18, 4, 6, 16, 8, 10, 14, 12, 19, 17, 15, 13, 11, 9, 7, 5, 3, 1],
        [1, 0, 4, 5, 17, 16, 8, 9, 12, 13, 19, 18, 15, 14, 11, 10, 7, 6, 3, 2],
        [0, 2, 18, 4, 6, 16, 8, 10, 14, 12, 19, 17, 15, 13, 11, 9, 7, 5, 3, 1],
    ]),
    "sort of columns": (lambda: t.tensor(ROWS).t().sort(0, descending=True)[1].t(), [
        [1, 19, 17, 15, 13, 11, 9, 7, 5, 3, 8, 6, 10, 12, 4, 14, 16, 2, 18, 0],
        [10, 19, 18, 15, 14, 11, 7, 6, 3, 2, 8, 9, 0, 5, 12, 13, 4, 16, 17, 1],
        [1, 19, 17, 15, 13, 11, 9, 7, 5, 3, 8, 6, 10, 12, 4, 14, 16, 2, 18, 0],
    ]),
    "topk": (lambda: x().topk(9)[1], [32, 12, 14, 34, 17, 19, 24, 27, 29]),
    "topk of the smallest": (lambda: x().topk(9, largest=False)[1], [26, 15, 16, 20, 21, 25, 31, 36, 35]),
    "topk of NaN": (lambda: t.tensor(WITH_NAN).topk(5)[1], [13, 7, 19, 1, 14]),
    "topk of rows": (lambda: t.tensor(ROWS).topk(4, 1)[1], [
        [11, 13, 15, 9],
        [11, 14, 15, 7],
        [11, 13, 15, 9],
    ]),
    "topk of few": (lambda: t.tensor(LONG).topk(3)[1], [8, 1, 4]),
    "topk of few of the smallest": (lambda: t.tensor(LONG).topk(3, largest=False)[1], [7, 0, 5]),
    "kthvalue": (lambda: t.stack([x().kthvalue(k)[1] for k in (1, 8, 20, 40)]), [15, 11, 8, 39]),
    "kthvalue of rows": (lambda: t.tensor(ROWS).kthvalue(5, 1)[1], [16, 17, 16]),
    "mode": (lambda: x().mode()[1], 6),
    "mode of many": (lambda: t.tensor(LONG).mode()[1], 101),
    "mode of rows": (lambda: t.tensor(ROWS).mode(1)[1], [12, 13, 12]),
}  # fmt: skip


@pytest.mark.parametrize("name", CHOICES)
def test_the_index_is_that_of_pytorch(name):
    compute, expected = CHOICES[name]
    assert compute().tolist() == expected


def test_topk_out_of_order_gives_the_order_in_which_selection_leaves_it():
    values = [(17 * i) % 31 for i in range(31)]
    assert t.tensor(values).topk(6, sorted=False)[0].tolist() == [29, 30, 27, 28, 26, 25]


# --- the algorithms one step at a time -------------------------------------------------------------------------------


def partition(row: list, first: int, last: int) -> int:
    """One partition as the C++ library takes it: at the median of the second, middle and last element."""
    a, b, c = first + 1, (first + last) // 2, last - 1
    middle = sorted([row[a][0], row[b][0], row[c][0]])[1]
    x, y, z = row[a][0], row[b][0], row[c][0]
    chosen = (b if y < z else c if x < z else a) if x < y else (a if x < z else c if y < z else b)
    assert row[chosen][0] == middle
    row[first], row[chosen] = row[chosen], row[first]
    pivot, low, high = row[first][0], first + 1, last
    while True:
        while row[low][0] < pivot:
            low += 1
        high -= 1
        while pivot < row[high][0]:
            high -= 1
        if low >= high:
            return low
        row[low], row[high] = row[high], row[low]
        low += 1


def sort_in_steps(ranks) -> list:
    row = [(rank, i) for i, rank in enumerate(ranks)]
    open_ranges = [(0, len(row))]
    while open_ranges:
        first, last = open_ranges.pop()
        if last - first > 16:
            cut = partition(row, first, last)
            open_ranges += [(first, cut), (cut, last)]
    return [i for _, i in sorted(row, key=lambda entry: entry[0])]


def select_in_steps(ranks, number: int) -> list:
    row = [(rank, i) for i, rank in enumerate(ranks)]
    first, last = 0, len(row)
    while last - first > 3:
        cut = partition(row, first, last)
        first, last = (cut, last) if cut <= number else (first, cut)
    row[first:last] = sorted(row[first:last], key=lambda entry: entry[0])
    return [i for _, i in row[: number + 1]]


rows_of_ranks = st.integers(1, 60).flatmap(
    lambda size: st.lists(st.lists(st.integers(0, 6), min_size=size, max_size=size), min_size=1, max_size=4)
)


@settings(deadline=None)
@given(rows_of_ranks)
def test_all_rows_together_sort_as_each_step_by_step(rows):
    found = equal_elements.order_of_sort(np.array(rows))
    assert found.tolist() == [sort_in_steps(row) for row in rows]


@settings(deadline=None)
@given(rows_of_ranks, st.data())
def test_all_rows_together_select_as_each_step_by_step(rows, data):
    count = data.draw(st.integers(1, len(rows[0])))
    found = equal_elements.first_in_order(np.array(rows), count, False)
    if 64 * count > len(rows[0]):
        assert found.tolist() == [select_in_steps(row, count - 1) for row in rows]


@settings(deadline=None)
@given(rows_of_ranks, st.data())
def test_what_is_named_holds_the_value(rows, data):
    ranks, number = np.array(rows), data.draw(st.integers(0, len(rows[0]) - 1))
    ordered = np.sort(ranks, 1)
    chosen = equal_elements.kth_in_order(ranks, number)
    assert ranks[np.arange(len(rows)), chosen].tolist() == ordered[:, number].tolist()
    leading = equal_elements.first_in_order(ranks, number + 1, True)
    assert np.take_along_axis(ranks, leading, 1).tolist() == ordered[:, : number + 1].tolist()


def test_an_unfortunate_row_is_sorted_all_the_same():
    """Partitions that split off little end after a while; the rest is sorted without them."""
    size = 2000
    row = np.arange(size)
    row[::2] = np.arange(size // 2)[::-1]
    for ranks in (row, np.arange(size), np.arange(size)[::-1], np.zeros(size, np.int64)):
        found = equal_elements.order_of_sort(ranks[None])
        assert (np.diff(ranks[found[0]]) >= 0).all()
