"""Nested tuples, lists and dictionaries of tensors, taken apart and put together again.

`flatten` gives the leaves in order and a `Shape` that `unflatten` needs; whatever is no container is a leaf.
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from typing import Any, NamedTuple

__all__ = ["Shape", "broadcast_prefix", "flatten", "tree_map", "unflatten"]


class Shape(NamedTuple):
    """How a container was nested: its class, what else it needs to be made again, and the shapes of its members."""

    kind: Any  # None for a leaf
    context: Any
    children: tuple

    @property
    def leaves(self) -> int:
        """How many leaves there are."""
        return 1 if self.kind is None else sum(child.leaves for child in self.children)


LEAF = Shape(None, None, ())


def _members(tree) -> tuple | None:
    """The members of a container with its class and context; None for a leaf."""
    if isinstance(tree, dict):
        kind = type(tree)
        factory = tree.default_factory if isinstance(tree, defaultdict) else None
        return kind, (tuple(tree), factory), tuple(tree.values())
    if isinstance(tree, (tuple, list)):
        return type(tree), None, tuple(tree)
    return None


def flatten(tree) -> tuple[list, Shape]:
    """The leaves of a nested structure, and its shape."""
    found = _members(tree)
    if found is None:
        return [tree], LEAF
    kind, context, members = found
    leaves, shapes = [], []
    for member in members:
        below, shape = flatten(member)
        leaves += below
        shapes.append(shape)
    return leaves, Shape(kind, context, tuple(shapes))


def unflatten(leaves, shape: Shape):
    """The structure of the given shape with these leaves."""
    remaining = iter(leaves)
    return _build(remaining, shape)


def _build(leaves, shape: Shape):
    if shape.kind is None:
        return next(leaves)
    members = [_build(leaves, child) for child in shape.children]
    if shape.context is not None:
        keys, factory = shape.context
        pairs = zip(keys, members, strict=True)
        if factory is not None:
            return defaultdict(factory, pairs)
        return OrderedDict(pairs) if shape.kind is OrderedDict else dict(pairs)
    if hasattr(shape.kind, "_fields"):
        return shape.kind(*members)
    return shape.kind(members)


def tree_map(function, tree):
    """The same structure with `function` applied to each leaf."""
    leaves, shape = flatten(tree)
    return unflatten([function(leaf) for leaf in leaves], shape)


def broadcast_prefix(prefix, tree) -> list | None:
    """For each leaf of `tree` the leaf of `prefix` that stands at or above it; None if the structures differ.

    `0` is a prefix of any tree; `(0, None)` of any tuple of two trees.
    """
    found, below = _members(prefix), _members(tree)
    if found is None:
        return [prefix] * flatten(tree)[1].leaves
    if below is None or len(found[2]) != len(below[2]) or (isinstance(prefix, dict) != isinstance(tree, dict)):
        return None
    if isinstance(prefix, dict):
        if set(prefix) != set(tree):
            return None
        pairs = [(prefix[key], tree[key]) for key in tree]
    else:
        pairs = list(zip(prefix, tree, strict=True))
    spread = []
    for each, part in pairs:
        one = broadcast_prefix(each, part)
        if one is None:
            return None
        spread += one
    return spread
