"""Dual tensors for tests of forward mode."""

from library import const, forward_ad

dual_level, make_dual, unpack_dual = forward_ad.dual_level, forward_ad.make_dual, forward_ad.unpack_dual


def tangent(tensor):
    """The tangent of a tensor, None if it has none."""
    return unpack_dual(tensor).tangent


def dual(values=(1.0, 2.0, 3.0), direction=(10.0, 20.0, 30.0)):
    """A dual tensor."""
    return make_dual(const(list(values)), const(list(direction)))
