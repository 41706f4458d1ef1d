"""B1: what one small operation costs, forward and backward, on tensors of one element."""

from __future__ import annotations

from typing import Any

from ..row import PLAINLY, Cell, Row, Work

LENGTH = 1000


def small_graph(lib: Any, cell: Cell) -> Work:
    """y = (w + x) * (w + 1) and its gradients."""
    w, x = lib.tensor([1.5], requires_grad=True), lib.tensor([2.0], requires_grad=True)

    def step() -> Any:
        w.grad = None
        x.grad = None
        ((w + x) * (w + 1)).backward()
        return w.grad

    return Work(step)


def chain(lib: Any, cell: Cell, length: int) -> Work:
    """A product of `length` factors, one after the other, and its gradient."""
    w = lib.tensor([1.5], requires_grad=True)

    def step() -> Any:
        w.grad = None
        z = w
        for _ in range(length):
            z = z * 1.0001
        z.backward()
        return w.grad

    return Work(step)


ROWS = [
    Row("b1a", "y = (w + x) * (w + 1), backward, one element", 0.35, small_graph, cells=PLAINLY),
    Row(
        "b1b",
        "chain of 1,000 multiplications, backward; one of them",
        0.40,
        chain,
        {"length": LENGTH},
        cells=PLAINLY,
        per=LENGTH,
    ),
]
