"""Sequences of different lengths in one batch: padded to a rectangle, or packed without padding.

A packed batch holds the steps of all sequences one after the other: the first step of each, then the second of each
that has one, and so on, the longest sequence first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pellucid.core.tensor import Tensor, wrap
from pellucid.functions.factories import full
from pellucid.ops.joining import cat, stack

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = [
    "PackedSequence", "invert_permutation", "pack_padded_sequence", "pack_sequence", "pad_packed_sequence",
    "pad_sequence", "unpack_sequence", "unpad_sequence",
]


class PackedSequence_(NamedTuple):
    """The fields of a packed batch."""

    data: Tensor
    batch_sizes: Tensor
    sorted_indices: Tensor | None
    unsorted_indices: Tensor | None


class PackedSequence(PackedSequence_):
    """A batch of sequences without padding; made by `pack_padded_sequence` and `pack_sequence`.

    data: [sum of lengths, *], the steps one after the other. batch_sizes: [longest length], how many sequences have
    such a step. sorted_indices: [batch], where each sequence of the packed batch was before; unsorted_indices: the
    inverse.
    """

    __slots__ = ()

    def __new__(
        cls, data: Any, batch_sizes: Tensor | None = None, sorted_indices: Tensor | None = None,
        unsorted_indices: Tensor | None = None,
    ):
        if batch_sizes is None:  # a pair, as older programs give it
            if not isinstance(data, (list, tuple)) or len(data) != 2:
                raise AssertionError("Expected data to be a list or tuple of length 2, or batch_sizes to be given")
            data, batch_sizes = data
        if unsorted_indices is None:
            unsorted_indices = invert_permutation(sorted_indices)
        return super().__new__(cls, data, batch_sizes, sorted_indices, unsorted_indices)

    def _with(self, convert: Callable[[Tensor], Tensor]) -> PackedSequence:
        """The same batch with other data; itself if nothing changes."""
        data = convert(self.data)
        if data is self.data:
            return self
        return type(self)(data, self.batch_sizes, self.sorted_indices, self.unsorted_indices)

    def to(self, *args, **kwargs) -> PackedSequence:
        """Convert the data, as `Tensor.to` does."""
        return self._with(lambda data: data.to(*args, **kwargs))

    def cpu(self) -> PackedSequence:
        """Itself: it is on the CPU."""
        return self

    def pin_memory(self) -> PackedSequence:
        """Itself: memory is not pinned on a CPU."""
        return self

    def cuda(self, *args, **kwargs) -> PackedSequence:
        """Raise the error that says why there is no GPU."""
        return self._with(lambda data: data.cuda(*args, **kwargs))

    def double(self) -> PackedSequence:
        """Convert the data to float64."""
        return self._with(lambda data: data.double())

    def float(self) -> PackedSequence:
        """Convert the data to float32."""
        return self._with(lambda data: data.float())

    def half(self) -> PackedSequence:
        """Convert the data to float16."""
        return self._with(lambda data: data.half())

    def long(self) -> PackedSequence:
        """Convert the data to int64."""
        return self._with(lambda data: data.long())

    def int(self) -> PackedSequence:
        """Convert the data to int32."""
        return self._with(lambda data: data.int())

    @property
    def is_cuda(self) -> bool:
        """False."""
        return self.data.is_cuda

    def is_pinned(self) -> bool:
        """False."""
        return False


def invert_permutation(permutation: Tensor | None) -> Tensor | None:
    """The permutation that undoes this one; None for None."""
    return None if permutation is None else wrap(np.argsort(permutation._array))


def _as_lengths(lengths: Tensor | Sequence[int]) -> np.ndarray:
    return np.asarray(lengths._array if isinstance(lengths, Tensor) else lengths, np.int64)


def _longest_first(lengths: np.ndarray) -> np.ndarray:
    """The order of sequences by falling length, equal ones as they stand."""
    return np.argsort(-lengths, kind="stable")


def _check_lengths(lengths: np.ndarray, batch: int, steps: int, enforce_sorted: bool) -> None:
    if lengths.shape != (batch,):
        raise RuntimeError(
            f"Expected `len(lengths)` to be equal to batch_size, but got {lengths.size} (batch_size={batch})"
        )
    if not lengths.size:
        raise RuntimeError("Cannot pack empty tensors.")
    if enforce_sorted and (np.diff(lengths) > 0).any():
        raise RuntimeError(
            "`lengths` array must be sorted in decreasing order when `enforce_sorted` is True. You can pass "
            "`enforce_sorted=False` to pack_padded_sequence and/or pack_sequence to sidestep this requirement: "
            f"got {lengths.tolist()}"
        )
    if lengths.min() <= 0:
        raise RuntimeError(
            f"Length of all samples has to be greater than 0, but found an element in 'lengths' that is <= 0: "
            f"{lengths.tolist()}"
        )
    if lengths.max() > steps:
        raise RuntimeError(f"Expected lengths of at most {steps}, the padded length, but got {lengths.max()}")


def pack_padded_sequence(
    input: Tensor, lengths: Tensor | Sequence[int], batch_first: bool = False, enforce_sorted: bool = True
) -> PackedSequence:
    """Pack a padded batch.

    Args:
        input: [longest, batch, *], or [batch, longest, *] with `batch_first`.
        lengths: the length of each sequence.
        batch_first: see `input`.
        enforce_sorted: whether the sequences must come longest first; if not they are sorted, and the order is kept.

    Raises:
        RuntimeError: lengths that are not positive, do not fit the input, or are not sorted though they must be.
    """
    counts = _as_lengths(lengths)
    batch, steps = (input.shape[:2]) if batch_first else (input.shape[1], input.shape[0])
    _check_lengths(counts, batch, steps, enforce_sorted)
    order = None
    if not enforce_sorted:
        sorting = _longest_first(counts)
        counts, order = counts[sorting], wrap(sorting)
        input = input.index_select(0 if batch_first else 1, order)
    if batch_first:
        input = input.transpose(0, 1)
    present = np.arange(counts[0])[:, None] < counts  # [longest, batch]
    rows = np.flatnonzero(present.ravel())
    flat = input[: int(counts[0])].reshape(present.size, *input.shape[2:])
    return PackedSequence(flat.index_select(0, wrap(rows)), wrap(present.sum(1)), order)


def pad_packed_sequence(
    sequence: PackedSequence, batch_first: bool = False, padding_value: float = 0.0, total_length: int | None = None
) -> tuple[Tensor, Tensor]:
    """Undo the packing.

    Args:
        sequence: the packed batch.
        batch_first: whether the batch comes before the steps in the result.
        padding_value: what stands where a sequence is over.
        total_length: the padded length, if it is to be longer than the longest sequence.

    Returns:
        The padded batch [steps, batch, *], and the length of each sequence [batch].

    Raises:
        ValueError: `total_length` is less than the longest sequence.
    """
    sizes = sequence.batch_sizes._array
    steps, batch = len(sizes), int(sizes[0])
    if total_length is not None and total_length < steps:
        raise ValueError(
            "Expected total_length to be at least the length of the longest sequence in input, but got "
            f"total_length={total_length} and max sequence length being {steps}"
        )
    present = np.arange(batch) < sizes[:, None]  # [steps, batch]
    padded = _scatter_rows(sequence.data, present, padding_value, total_length or steps)
    lengths = wrap(present.sum(0))
    if sequence.unsorted_indices is not None:
        padded = padded.index_select(1, sequence.unsorted_indices)
        lengths = lengths[sequence.unsorted_indices]
    return padded.transpose(0, 1) if batch_first else padded, lengths


def _scatter_rows(data: Tensor, present: np.ndarray, padding_value: float, steps: int) -> Tensor:
    """[steps, batch, *] with the rows of `data` where `present` holds, and padding elsewhere."""
    batch, features = present.shape[1], data.shape[1:]
    padding = full((1, *features), padding_value, dtype=data.dtype)
    where = np.full(steps * batch, len(data))  # the last row, which is the padding
    where[np.flatnonzero(present.ravel())] = np.arange(len(data))
    return cat([data, padding]).index_select(0, wrap(where)).reshape(steps, batch, *features)


def pad_sequence(
    sequences: Tensor | Sequence[Tensor], batch_first: bool = False, padding_value: float = 0.0,
    padding_side: str = "right",
) -> Tensor:
    """Stack sequences [length, *] of different lengths to [longest, batch, *], or [batch, longest, *].

    Raises:
        ValueError: `padding_side` is neither "left" nor "right".
        RuntimeError: there are no sequences.
    """
    if padding_side not in ("left", "right"):
        raise ValueError(f"padding_side must be 'left' or 'right', got {padding_side!r}")
    sequences = list(sequences)
    if not sequences:
        raise RuntimeError("received an empty list of sequences")
    longest = max(len(sequence) for sequence in sequences)
    padded = [_pad_one(sequence, longest, padding_value, padding_side) for sequence in sequences]
    return stack(padded, 0 if batch_first else 1)


def _pad_one(sequence: Tensor, longest: int, value: float, side: str) -> Tensor:
    missing = longest - len(sequence)
    if not missing:
        return sequence
    padding = full((missing, *sequence.shape[1:]), value, dtype=sequence.dtype)
    return cat([sequence, padding] if side == "right" else [padding, sequence])


def unpad_sequence(padded_sequences: Tensor, lengths: Tensor, batch_first: bool = False) -> list[Tensor]:
    """Take the sequences out of a padded batch."""
    if not batch_first:
        padded_sequences = padded_sequences.transpose(0, 1)
    counts = _as_lengths(lengths).tolist()
    return [sequence[:count] for sequence, count in zip(padded_sequences, counts, strict=True)]


def pack_sequence(sequences: Sequence[Tensor], enforce_sorted: bool = True) -> PackedSequence:
    """Pack sequences [length, *] of different lengths; see `pack_padded_sequence`."""
    lengths = [len(sequence) for sequence in sequences]
    return pack_padded_sequence(pad_sequence(sequences), lengths, enforce_sorted=enforce_sorted)


def unpack_sequence(packed_sequences: PackedSequence) -> list[Tensor]:
    """Take the sequences out of a packed batch, in the order they came in."""
    padded, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    return unpad_sequence(padded, lengths, batch_first=True)
