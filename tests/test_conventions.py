"""Each row of docs/conventions.md is evaluated: values and gradients at kinks, ties, poles and ends of domains."""

from __future__ import annotations

import math
import re
import warnings
from pathlib import Path

import numpy as np
import pytest

import pellucid

PAGE = Path(__file__).parent.parent / "docs" / "conventions.md"
ROW = re.compile(r"^\| `(?P<expression>.+)` \| (?P<at>\[.*?\]) \| (?P<value>.+?) \| (?P<gradient>.+?) \|$")
NAMES = {"torch": pellucid, "F": pellucid.nn.functional, "inf": math.inf, "nan": math.nan}


def rows() -> list:
    found = [ROW.match(line) for line in PAGE.read_text().splitlines() if line.startswith("| `")]
    assert all(found), "a row that cannot be read"
    return [pytest.param(*m.groups(), id=f"{m['expression']} at {m['at']}") for m in found if m]


def test_the_page_has_its_rows():
    assert len(rows()) > 140


@pytest.mark.parametrize(("expression", "at", "value", "gradient"), rows())
def test_a_row_holds(expression, at, value, gradient):
    x = pellucid.tensor(eval(at, dict(NAMES)), dtype=pellucid.float32, requires_grad=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = eval(expression, {**NAMES, "x": x})
        if result.requires_grad:
            result.sum().backward()
    np.testing.assert_allclose(result.detach().numpy(), eval(value, dict(NAMES)), rtol=1e-5, atol=1e-6)
    if gradient == "none":
        assert x.grad is None
    else:
        np.testing.assert_allclose(x.grad.numpy(), eval(gradient, dict(NAMES)), rtol=1e-5, atol=1e-6)
