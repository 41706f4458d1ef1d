"""The rows of `pellucid bench`: each takes a few small steps and comes to the value that PyTorch 2.13 comes to."""

from __future__ import annotations

import pytest

import pellucid
from pellucid.cli.bench.row import DEFAULT, OURS
from pellucid.cli.bench.rows import ROWS

STEPS = 4
AFTER_THEM = {  # what PyTorch's default cell gives after so many steps of the quick sizes
    "limit-product": 6.302759,
    "limit-copy": 1,
    "b1a": 6,
    "b1b": 1.105184,
    "b2-64-sgd": 2.05555,
    "b2-64-adam": 1.121575,
    "b2-512-sgd": 2.05555,
    "b2-512-adam": 1.121575,
    "b3": 0.03147535,
    "b4": 1.437293,
    "eval": 0.8114794,
    "b5": 4.026307,
    "b6": 3.909832,
    "b7-reverse": 0.005365325,
    "b7-forward": 0.005365326,
    "embedding-sgd": 2.298138,
    "embedding-adam": 2.275157,
    "encoder": 6.574878,
    "attention": 1.339692,
    "conv3d": 2.37765,
    "depthwise": 2.187411,
    "loader": -0.02490037,
}


@pytest.mark.parametrize("name", ROWS)
def test_a_row_comes_to_the_value_that_pytorch_comes_to(name):
    row = ROWS[name]
    work = row.make(pellucid, row.cells[0], quick=True)
    values = [work.value(work.step()) for _ in range(STEPS)]
    assert values[-1] == pytest.approx(AFTER_THEM[name], rel=1e-5)


@pytest.mark.parametrize("name", ROWS)
def test_a_row_is_well_formed(name):
    row = ROWS[name]
    assert row.name == name
    assert [cell.library == OURS for cell in row.cells] == [True] + [False] * (len(row.cells) - 1)
    assert len({cell.name for cell in row.cells}) == len(row.cells)
    assert set(row.quick) <= set(row.sizes)
    assert row.cells[0] == DEFAULT, "ours runs with its default settings"


def test_training_rows_learn():
    row = ROWS["b2-64-adam"]
    work = row.make(pellucid, row.cells[0], quick=True)
    losses = [work.value(work.step()) for _ in range(20)]
    assert losses[-1] < 0.1 * losses[0]
