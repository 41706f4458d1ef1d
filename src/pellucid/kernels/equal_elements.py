"""Which of several equal elements comes first: the steps of C++'s sort, nth_element and partial_sort, and of quickselect.

PyTorch's `sort`, `topk` and `mode` stand on the first three and `kthvalue` on the last, so these algorithms decide where
equal elements end up (Musser, "Introspective sorting and selection algorithms", 1997; Hoare, "Algorithm 65: find", 1961).
Here all rows take a step together, one partition a pass. Elements come as ranks [rows, size]: integers, equal where the
elements are. What comes back are indices into the rows.

Where partitions make too little progress C++ goes on with a heap; here the rest is then sorted, equal elements in their order.
"""

from __future__ import annotations

import heapq

import numpy as np

__all__ = ["first_in_order", "kth_in_order", "order_of_sort"]

SHORT = 16  # up to this length C++ sorts by insertion, which keeps the order of equal elements
SHORT_SELECTION = 3
HEAP_SHARE = 64  # PyTorch takes up to this share of a row through a heap


class Rows:
    """Rows laid end to end: the ranks as they stand now, and where in its row each was at first."""

    def __init__(self, ranks: np.ndarray):
        self.shape = ranks.shape
        self.ranks = ranks.flatten()
        self.indices = np.tile(np.arange(ranks.shape[1]), ranks.shape[0])
        self.first = np.arange(ranks.shape[0]) * ranks.shape[1]
        self.last = self.first + ranks.shape[1]

    def put(self, places: np.ndarray, sources: np.ndarray) -> None:
        self.ranks[places], self.indices[places] = self.ranks[sources], self.indices[sources]

    def swap(self, one: np.ndarray, other: np.ndarray) -> None:
        self.put(np.concatenate([one, other]), np.concatenate([other, one]))

    def swap_where_greater(self, one: np.ndarray, other: np.ndarray) -> None:
        greater = self.ranks[one] > self.ranks[other]
        self.swap(one[greater], other[greater])

    def insertion_sort(self, first: np.ndarray, last: np.ndarray) -> None:
        """Sort the ranges [first, last)."""
        ranges, places = _places(first, last)
        self.put(places, places[np.lexsort((self.ranks[places], ranges))])

    def exchange(self, first: np.ndarray, last: np.ndarray, pivot: np.ndarray, past_meeting: bool):
        """In each range scan up for what is not below the pivot, down for what is not above it, and swap, until they meet.

        Returns where the scan up and the scan down stop: at an element that both have reached, or past it.
        """
        ranges, places = _places(first, last)
        above = self.ranks[places] - pivot[ranges]
        left, right = _pairs(np.flatnonzero(above >= 0), np.flatnonzero(above <= 0), ranges, len(first))
        passed = left <= right if past_meeting else left < right
        left, right = left[passed], right[passed]
        self.swap(places[left], places[right])
        above[left], above[right] = above[right], above[left]
        up, down = above >= 0, above <= 0
        up[left] = down[right] = False
        highest, lowest = last.copy(), first - 1
        np.minimum.at(highest, ranges[up], places[up])
        np.maximum.at(lowest, ranges[down], places[down])
        return highest, lowest


def _places(first: np.ndarray, last: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """All places of the ranges [first, last), and the number of the range of each."""
    lengths = last - first
    ranges = np.repeat(np.arange(len(first)), lengths)
    return ranges, np.arange(len(ranges)) + (first - np.cumsum(lengths) + lengths)[ranges]


def _pairs(up: np.ndarray, down: np.ndarray, ranges: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """In each range the first of `up` with the last of `down`, the second with the last but one, and so on."""
    up_counts, down_counts = (np.bincount(ranges[found], minlength=count) for found in (up, down))
    own = ranges[up]
    numbers = np.arange(len(up)) - (np.cumsum(up_counts) - up_counts)[own]
    paired = numbers < down_counts[own]
    return up[paired], down[(np.cumsum(down_counts)[own] - 1 - numbers)[paired]]


# --- introspective sort and selection --------------------------------------------------------------------------------


def _partition(rows: Rows, first: np.ndarray, last: np.ndarray) -> np.ndarray:
    """Split each range at the median of its second, middle and last element; returns where the upper parts begin."""
    a, b, c = first + 1, (first + last) // 2, last - 1
    x, y, z = rows.ranks[a], rows.ranks[b], rows.ranks[c]
    rising = np.where(y < z, b, np.where(x < z, c, a))
    falling = np.where(x < z, a, np.where(y < z, c, b))
    rows.swap(first, np.where(x < y, rising, falling))
    return rows.exchange(first + 1, last, rows.ranks[first], False)[0]


def _passes(size: int) -> range:
    """As many partitions as C++ allows: twice the binary logarithm."""
    return range(2 * (size.bit_length() - 1))


def order_of_sort(ranks: np.ndarray) -> np.ndarray:
    """The indices by which C++'s sort would sort each row, [rows, size]."""
    return _sorted(Rows(ranks)).indices.reshape(ranks.shape)


def _sorted(rows: Rows) -> Rows:
    first, last = rows.first, rows.last
    for _ in _passes(rows.shape[1]):
        long = last - first > SHORT
        first, last = first[long], last[long]
        if not len(first):
            break
        cut = _partition(rows, first, last)
        first, last = np.stack([first, cut], 1).ravel(), np.stack([cut, last], 1).ravel()
    rows.insertion_sort(rows.first, rows.last)
    return rows


def first_in_order(ranks: np.ndarray, count: int, in_order: bool) -> np.ndarray:
    """The indices of the `count` lowest elements of each row as PyTorch's `topk` lists them, [rows, count]."""
    if count * HEAP_SHARE <= ranks.shape[1]:
        return np.array([_heap_sorted(row, count) for row in ranks], np.int64).reshape(-1, count)
    rows = Rows(ranks)
    _select(rows, count - 1)
    ranks, indices = (values.reshape(rows.shape)[:, :count] for values in (rows.ranks, rows.indices))
    if in_order:
        order = order_of_sort(ranks[:, :-1])
        indices[:, :-1] = np.take_along_axis(indices[:, :-1], order, 1)
    return indices.copy()


def _select(rows: Rows, number: int) -> None:
    """Bring the element with that number in the order to its place, nothing greater before it."""
    first, last, wanted = rows.first.copy(), rows.last.copy(), rows.first + number
    for _ in _passes(rows.shape[1]):
        long = last - first > SHORT_SELECTION
        if not long.any():
            break
        cut = _partition(rows, first[long], last[long])
        upper = cut <= wanted[long]
        first[long], last[long] = np.where(upper, cut, first[long]), np.where(upper, last[long], cut)
    rows.insertion_sort(first, last)


class _Entry(int):
    """A rank with its sign turned, so that Python's heap of the smallest is C++'s heap of the greatest; and its index."""

    index: int


def _entries(ranks: np.ndarray, indices: np.ndarray) -> list[_Entry]:
    entries = [_Entry(-rank) for rank in ranks[indices].tolist()]
    for entry, index in zip(entries, indices.tolist(), strict=True):
        entry.index = index
    return entries


def _heap_sorted(ranks: np.ndarray, count: int) -> list[int]:
    """The indices of the lowest elements of one row, through a heap. Python's heap moves its elements as C++'s does."""
    heap = _entries(ranks, np.arange(count))
    heapq.heapify(heap)
    seen = count
    while seen < len(ranks):
        lower = np.flatnonzero(ranks[seen : 2 * seen] < -heap[0])
        for entry in _entries(ranks, seen + lower):
            if entry > heap[0]:
                heapq.heapreplace(heap, entry)
        seen *= 2
    return [heapq.heappop(heap).index for _ in range(count)][::-1]


# --- quickselect -----------------------------------------------------------------------------------------------------


def kth_in_order(ranks: np.ndarray, number: int) -> np.ndarray:
    """The index of the element of each row that quickselect brings to place `number`, [rows]."""
    rows = Rows(ranks)
    first, last, wanted = rows.first, rows.last - 1, rows.first + number
    while len(first):
        pair = last - first == 1
        rows.swap_where_greater(first[pair], last[pair])
        long = last - first > 1
        first, last, wanted = first[long], last[long], wanted[long]
        rows.swap((first + last) // 2, first + 1)
        for one, other in ((first + 1, last), (first, last), (first + 1, first)):
            rows.swap_where_greater(one, other)
        up, down = rows.exchange(first + 2, last, rows.ranks[first], True)
        rows.swap(first, down)
        first, last = np.where(down <= wanted, up, first), np.where(down >= wanted, down - 1, last)
    return rows.indices[rows.first + number]
