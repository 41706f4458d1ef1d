"""Where branches meet again: for each vertex of a DAG the nearest one that every path to a source passes through."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["meeting_points"]


class _Tree:
    """A tree that grows leaf by leaf and finds lowest common ancestors in logarithmic time, by jump pointers (Myers)."""

    def __init__(self):
        self.parent, self.jump, self.depth = [0], [0], [0]

    def add(self, parent: int) -> None:
        """Hang a new vertex under `parent`; vertex 0 is the root."""
        far = self.jump[parent]
        equal = self.depth[parent] - self.depth[far] == self.depth[far] - self.depth[self.jump[far]]
        self.parent.append(parent)
        self.jump.append(self.jump[far] if equal else parent)
        self.depth.append(self.depth[parent] + 1)

    def meet(self, a: int, b: int) -> int:
        """The lowest common ancestor."""
        if self.depth[a] < self.depth[b]:
            a, b = b, a
        while self.depth[a] > self.depth[b]:
            a = self.jump[a] if self.depth[self.jump[a]] >= self.depth[b] else self.parent[a]
        while a != b:
            if self.jump[a] != self.jump[b]:
                a, b = self.jump[a], self.jump[b]
            else:
                a, b = self.parent[a], self.parent[b]
        return a


def meeting_points(sources: Sequence[Sequence[int]]) -> list[int | None]:
    """For each vertex the first one at which all paths back to the sources meet; None if they never do.

    sources: for each vertex the vertices that lead into it; all of them come before it.
    """
    tree = _Tree()
    for before in sources:
        meet = 0
        for position, vertex in enumerate(before):
            meet = vertex + 1 if not position else tree.meet(meet, vertex + 1)
        tree.add(meet)
    return [parent - 1 if parent else None for parent in tree.parent[1:]]
