"""Graphs that the tests of the pictures look at: small ones with known numbers, models, and one that fails."""

from __future__ import annotations

import pellucid
import pellucid.nn.functional as F
from pellucid import graph, nn


def textbook():
    """y = (w + x) * (w + 1) at w = 1, x = 2: y = 6, ∂y/∂w = 5, ∂y/∂x = 2."""
    w = pellucid.tensor(1.0, requires_grad=True)
    x = pellucid.tensor(2.0, requires_grad=True)
    with graph.record(values=True) as g:
        a = w + x
        b = w + 1
        y = a * b
        y.backward()
    return g


def shared():
    """b is used twice: z = (3a + a²) · 3a at a = 2 is 60, and dz/da = 18a + 9a² = 72."""
    with graph.record(values=True) as g:
        a = pellucid.tensor(2.0, requires_grad=True)
        b = a * 3
        c = a**2
        d = b + c
        z = d * b
        z.backward()
    return g


def cut():
    with graph.record(values=True) as g:
        t = pellucid.tensor(3.0, requires_grad=True)
        a = t * 2
        b = a.detach() * t
        z = b + a
        z.backward()
    return g


def vectors():
    weight = pellucid.tensor([[1.0, 2.0], [3.0, 4.0], [0.5, -1.0]], requires_grad=True)
    bias = pellucid.tensor([0.1, 0.2, 0.3], requires_grad=True)
    x = pellucid.tensor([1.0, -1.0])
    with graph.record(values=True) as g:
        h = (weight @ x + bias).tanh()
        loss = (h * h).sum()
        loss.backward()
    return g


def bad():
    """The square root's derivative at 0 is infinite, and 0 times infinity is no number."""
    x = pellucid.tensor([0.0, 1.0, 4.0], requires_grad=True)
    with graph.record(values=True) as g:
        root = x.sqrt()
        loss = (root * pellucid.tensor([0.0, 1.0, 1.0])).sum()
        loss.backward()
    return g


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up = nn.Linear(width, 2 * width)
        self.down = nn.Linear(2 * width, width)

    def forward(self, x):
        return x + self.down(F.relu(self.up(self.norm(x))))


class Net(nn.Module):
    """Blocks that are equal, one after another, and a weight that is used at both ends."""

    def __init__(self, blocks=4):
        super().__init__()
        self.embedding = nn.Embedding(7, 8)
        self.blocks = nn.ModuleList(Block(8) for _ in range(blocks))
        self.head = nn.Linear(8, 7, bias=False)
        self.head.weight = self.embedding.weight

    def forward(self, tokens):
        x = self.embedding(tokens)
        for block in self.blocks:
            x = block(x)
        return self.head(x)


def model(blocks=4):
    net = Net(blocks)
    tokens = pellucid.tensor([[0, 1, 2], [3, 4, 5]])
    with graph.record() as g:
        logits = net(tokens)
        loss = F.cross_entropy(logits.view(-1, 7), tokens.view(-1))
        loss.backward()
    return g


def failing():
    net = nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(5, 2))
    try:
        with graph.record() as g:
            net(pellucid.ones(2, 4))
    except RuntimeError:
        pass
    return g


def loop(times=50):
    """A recurrence without modules: three operations again and again."""
    w = pellucid.ones(3, requires_grad=True)
    h = pellucid.zeros(3)
    with graph.record() as g:
        for _ in range(times):
            h = (h * w + 1).tanh()
        loss = h.sum()
        loss.backward()
    return g


def irregular(operations=5000):
    """Many operations without a pattern that could be folded."""
    state = 1
    values = [pellucid.ones(3, requires_grad=True) for _ in range(4)]
    two = (pellucid.add, pellucid.mul, pellucid.maximum, pellucid.minimum)
    one = (pellucid.tanh, pellucid.sin, pellucid.cos, pellucid.relu)
    with graph.record() as g:
        for _ in range(operations):
            state = state * 1103515245 + 12345 & 0x7FFFFFFF
            choice, back = state >> 8 & 3, state >> 16 & 3
            made = two[choice](values[-1], values[-1 - back]) if state >> 12 & 1 else one[choice](values[-1 - back])
            values.append(made)
        loss = values[-1].sum()
        loss.backward()
    return g


def hostile():
    """A name that would end a script element."""
    table = {"</script><b a='\"&\u2028": pellucid.ones(2, requires_grad=True)}
    y = (table["</script><b a='\"&\u2028"] * 2).sum()
    return graph.of(y)


def alone():
    return graph.of(pellucid.ones(2, requires_grad=True))


class Cube(pellucid.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x * x * pellucid.ones(2)

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return 3 * x * x * grad


def function():
    """What ran in a custom Function's forward is part of it."""
    x = pellucid.tensor([1.0, 2.0], requires_grad=True)
    with graph.record() as g:
        y = Cube.apply(x).sum()
        y.backward()
    return g


def interleaved():
    """A module that is left and entered again within one call, so that closed it both feeds and needs what lies between."""
    g = loop(2)
    g.calls = [graph.snapshot.ModuleCall(0, "net", "Net", None)]
    for node in (g.operations[0], g.operations[2], g.operations[4]):
        node.call = 0
    return g


def second_order():
    x = pellucid.tensor([1.0, 2.0], requires_grad=True)
    with graph.record() as g:
        y = (x**3).sum()
        (first,) = pellucid.autograd.grad(y, x, create_graph=True)
        z = (first**2).sum()
        z.backward()
    return g


ALL = {
    made.__name__: made
    for made in (
        textbook, shared, cut, vectors, bad, model, failing, loop, hostile, alone, function, interleaved, second_order,
    )
}  # fmt: skip
