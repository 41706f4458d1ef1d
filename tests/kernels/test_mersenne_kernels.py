"""Marks from the compiled MT19937 stream are those of NumPy's generator, and leave the stream where it would stand."""

from __future__ import annotations

import numpy as np
import pytest

from pellucid.core.random import dropout_mask
from pellucid.core.random.mersenne import MersenneTwister
from pellucid.kernels import choice

pytest.importorskip("numba")


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("before", [0, 1, 623, 624, 1000])
@pytest.mark.parametrize("count", [1, 311, 5000])
def test_marks_and_the_words_after_them(dtype, before, count):
    found = []
    for chosen in (choice.always(), choice.never()):
        engine = MersenneTwister(11)
        engine.words(before)
        with chosen:
            found.append((engine.marks(count, 0.3, dtype(2.5)), engine.words(5)))
    (fast, after), (plain, wanted) = found
    assert fast.dtype == dtype
    np.testing.assert_array_equal(fast, plain)
    np.testing.assert_array_equal(after, wanted)


def test_a_fresh_stream():
    """The first draw of a seed may be the compiled one."""
    masks = []
    for chosen in (choice.always(), choice.never()):
        with chosen:
            masks.append(MersenneTwister(7).marks(2000, 0.5, np.float32(2)))
    np.testing.assert_array_equal(*masks)
    assert set(masks[0]) == {0, 2}


def test_the_share_that_is_kept():
    with choice.always():
        mask = dropout_mask((100_000,), np.float32, 0.1)
    assert abs((mask > 0).mean() - 0.9) < 0.005
    assert mask.max() == np.float32(1) / np.float32(0.9)
