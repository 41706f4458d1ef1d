"""Tables of calls, each with what it gives or how it is refused, as parameters of tests."""

from __future__ import annotations

import re

import numpy as np
import pytest

import pellucid as t


def rows(table) -> list:
    """The rows of a table as parameter sets, named by their number."""
    return [pytest.param(*row, id=str(number)) for number, row in enumerate(table)]


def assert_gives(result, dtype: str, expected) -> None:
    """The result is a tensor of that dtype, shape and, up to rounding, those values."""
    assert result.dtype is getattr(t, dtype)
    assert list(result.shape) == list(np.shape(expected))
    np.testing.assert_allclose(result.detach().numpy(), np.asarray(expected), rtol=2e-5, atol=2e-5)


def assert_refused(call, kind: type, phrase: str) -> None:
    """The call raises exactly that type of exception, with the phrase in its text."""
    with pytest.raises(kind, match=re.escape(phrase)) as caught:
        call()
    assert caught.type is kind
