"""Elementwise functions, reductions, scans, sorting, conversion, random numbers: none is looped over or transposed."""

from __future__ import annotations

import pytest

import pellucid
from pellucid.autograd.batching import rule_name
from pellucid.autograd.declaration import OPERATORS

FAMILIES = """
    activations arithmetic bitwise choosing comparison complex conversion counting dropout extrema factories families histograms
    masking norms pointwise polynomials powers random_gammas randoms rectifiers reductions scans selection softmax sorting special
    statistics trigonometry
""".split()
# their results have no derivative, and shapes that depend on values
WITHOUT_RULES = {"_unique2", "unique_dim", "unique_consecutive"}


def of_families(name: str) -> bool:
    return OPERATORS[name].declaration.__module__.rpartition(".")[2] in FAMILIES and name not in WITHOUT_RULES


NAMES = sorted(filter(of_families, OPERATORS))


@pytest.mark.parametrize("name", NAMES)
def test_batches_are_not_looped_over(name):
    assert rule_name(OPERATORS[name]) != "loop"


@pytest.mark.parametrize("name", [name for name in NAMES if OPERATORS[name].differentiable])
def test_tangents_need_no_transposition(name):
    op = OPERATORS[name]
    formulas = op.jvp is not None or {p.name for p in op.inputs} == set(op.jvp_formulas)
    assert formulas or op.linear or (op.elementwise and op.holomorphic)


def test_the_families_are_here():
    assert pellucid.sin.operator.name in NAMES
    assert len(NAMES) > 250
