"""A physics-informed network, whose loss contains second derivatives, beside PyTorch.

    python benchmarks/b7_pinn.py [--rounds N] [--threads N] [--json FILE]

Burgers' equation u_t + u u_x - 0.01 u_xx = 0 at 1,024 points; network 2-64-64-64-1 with tanh; mean square of the residual;
Adam. Two routes to the derivatives:

reverse  over reverse: autograd.grad(..., create_graph=True), twice
forward  over forward: func.jvp within func.jvp, then one backward

Both libraries start from the same weights and take turns in one process; their losses must agree over 50 steps.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import statistics
import sys
import time

import numpy as np

POINTS, SIZES, VISCOSITY = 1024, (2, 64, 64, 64, 1), 0.01


def network(lib):
    """The network with weights that are the same in both libraries."""
    rng = np.random.default_rng(1)
    layers = []
    for a, b in itertools.pairwise(SIZES):
        layer, scale = lib.nn.Linear(a, b), np.sqrt(6 / (a + b))
        with lib.no_grad():
            layer.weight.copy_(lib.from_numpy(rng.uniform(-scale, scale, (b, a)).astype(np.float32)))
            layer.bias.copy_(lib.from_numpy(rng.uniform(-0.1, 0.1, b).astype(np.float32)))
        layers += [layer, lib.nn.Tanh()]
    return lib.nn.Sequential(*layers[:-1])


def reverse(lib, model, x, t):
    """The residual by reverse over reverse."""
    u = model(lib.cat([x, t], 1))
    ux, ut = lib.autograd.grad(u.sum(), (x, t), create_graph=True)
    (uxx,) = lib.autograd.grad(ux.sum(), x, create_graph=True)
    return ut + u * ux - VISCOSITY * uxx


def forward(lib, model, x, t):
    """The residual by forward over forward."""
    ones = lib.ones_like(x)

    def along_x(x):
        return lib.func.jvp(lambda x: model(lib.cat([x, t], 1)), (x,), (ones,))

    (u, ux), (_, uxx) = lib.func.jvp(along_x, (x,), (ones,))
    _, ut = lib.func.jvp(lambda t: model(lib.cat([x, t], 1)), (t,), (ones,))
    return ut + u * ux - VISCOSITY * uxx


def training(lib, residual):
    """A function that takes one step and returns the loss."""
    rng = np.random.default_rng(0)
    x = lib.from_numpy(rng.uniform(-1, 1, (POINTS, 1)).astype(np.float32))
    t = lib.from_numpy(rng.uniform(0, 1, (POINTS, 1)).astype(np.float32))
    model = network(lib)
    if residual is reverse:
        x.requires_grad_()
        t.requires_grad_()
    fastest = {"fused": True} if lib.__name__ == "torch" else {}
    optimizer = lib.optim.Adam(model.parameters(), lr=1e-3, **fastest)

    def step() -> float:
        optimizer.zero_grad(set_to_none=True)
        loss = (residual(lib, model, x, t) ** 2).mean()
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


def seconds(step, count: int) -> float:
    """Time of one call, averaged over `count` calls."""
    start = time.perf_counter()
    for _ in range(count):
        step()
    return (time.perf_counter() - start) / count


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--json")
    options = parser.parse_args()
    import pellucid

    libraries = [pellucid]
    try:
        import torch

        torch.set_num_threads(options.threads)
        libraries.append(torch)
    except ImportError:
        print("PyTorch is not installed: only our own times", file=sys.stderr)
    pellucid.set_num_threads(options.threads)
    results = {}
    for residual in (reverse, forward):
        steps = [training(lib, residual) for lib in libraries]
        losses = [[step() for _ in range(50)] for step in steps]
        if len(libraries) > 1:
            np.testing.assert_allclose(losses[0], losses[1], rtol=1e-3)
        rounds = [[seconds(step, 10) for step in steps] for _ in range(options.rounds)]
        times = [statistics.median(column) * 1e3 for column in zip(*rounds, strict=True)]
        ratio = statistics.median(r[0] / r[-1] for r in rounds)
        results[residual.__name__] = {"ms": times, "ratio": ratio}
        print(f"{residual.__name__:8} {'  '.join(f'{t:8.2f} ms' for t in times)}   ratio {ratio:.3f}")
    if options.json:
        with open(options.json, "w") as file:
            json.dump(results, file, indent=1)


if __name__ == "__main__":
    main()
