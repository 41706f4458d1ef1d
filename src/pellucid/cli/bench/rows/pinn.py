"""B7: a physics-informed network, whose loss holds second derivatives, by two routes.

Burgers' equation u_t + u u_x - 0.01 u_xx = 0 at random points of [-1, 1] x [0, 1]; mean square of the residual; Adam.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..row import Cell, Row, Work, fill, training

VISCOSITY = 0.01


def by_reverse(lib: Any, model: Any, x: Any, t: Any) -> Any:
    """The residual; derivatives by reverse mode, twice."""
    u = model(lib.cat([x, t], 1))
    u_x, u_t = lib.autograd.grad(u.sum(), (x, t), create_graph=True)
    (u_xx,) = lib.autograd.grad(u_x.sum(), x, create_graph=True)
    return u_t + u * u_x - VISCOSITY * u_xx


def by_forward(lib: Any, model: Any, x: Any, t: Any) -> Any:
    """The residual; derivatives by forward mode within forward mode."""
    jvp, ones = lib.func.jvp, lib.ones_like(x)

    def along_x(x: Any) -> Any:
        return jvp(lambda x: model(lib.cat([x, t], 1)), (x,), (ones,))

    (u, u_x), (_, u_xx) = jvp(along_x, (x,), (ones,))
    _, u_t = jvp(lambda t: model(lib.cat([x, t], 1)), (t,), (ones,))
    return u_t + u * u_x - VISCOSITY * u_xx


def build(lib: Any, cell: Cell, points: int, width: int, forward: bool) -> Work:
    """Training of a network 2-width-width-width-1 with tanh."""
    nn, rng = lib.nn, np.random.default_rng(0)
    inner = [layer for _ in range(2) for layer in (nn.Linear(width, width), nn.Tanh())]
    model = fill(lib, nn.Sequential(nn.Linear(2, width), nn.Tanh(), *inner, nn.Linear(width, 1)), gain=1.7)
    x = lib.from_numpy(rng.uniform(-1, 1, (points, 1)).astype(np.float32))
    t = lib.from_numpy(rng.uniform(0, 1, (points, 1)).astype(np.float32))
    residual = by_forward if forward else by_reverse
    if not forward:
        x.requires_grad_()
        t.requires_grad_()
    return training(lib, cell, model, lambda: (residual(lib, model, x, t) ** 2).mean(), "adam")


ROWS = [
    Row(
        f"b7-{name}",
        f"PINN 2-64-64-64-1, 1,024 points, second derivatives {words}, Adam",
        0.75,
        build,
        {"points": 1024, "width": 64, "forward": name == "forward"},
        {"points": 8, "width": 4},
    )
    for name, words in (("reverse", "reverse over reverse"), ("forward", "forward over forward"))
]
