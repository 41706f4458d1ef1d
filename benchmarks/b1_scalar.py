"""What one small operation costs, beside PyTorch on one thread.

    python benchmarks/b1_scalar.py [--rounds N] [--json FILE]

a  y = (w + x) * (w + 1); y.backward() on 1-element tensors
b      a chain of 1,000 multiplications, forward and backward, per operation

Both libraries take turns in short rounds of one process, so that a noisy machine disturbs both alike; the ratio is the
median over the rounds. PyTorch is optional: without it only our own times are printed.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time

import pellucid


def small_graph(lib):
    """One forward and backward of y = (w + x) * (w + 1)."""
    w, x = lib.tensor([1.5], requires_grad=True), lib.tensor([2.0], requires_grad=True)

    def step():
        w.grad = None
        x.grad = None
        ((w + x) * (w + 1)).backward()
        return w.grad

    assert abs(step().item() - 6.0) < 1e-6
    return step


def chain(lib, length: int = 1000):
    """One forward and backward of a chain of multiplications."""
    w = lib.tensor([1.0], requires_grad=True)

    def step():
        w.grad = None
        z = w
        for _ in range(length):
            z = z * 1.0001
        z.backward()
        return w.grad

    assert abs(step().item() / 1.0001**length - 1) < 1e-3
    return step


def seconds(step, count: int) -> float:
    """Time of one call, averaged over `count` calls."""
    start = time.perf_counter()
    for _ in range(count):
        step()
    return (time.perf_counter() - start) / count


def compare(ours, theirs, count: int, rounds: int) -> dict:
    """Alternate the two programs; medians, and the median of the rounds' ratios."""
    pairs = [(seconds(ours, count), seconds(theirs, count)) for _ in range(rounds)]
    return {
        "ours_us": statistics.median(p[0] for p in pairs) * 1e6,
        "theirs_us": statistics.median(p[1] for p in pairs) * 1e6,
        "ratio": statistics.median(p[0] / p[1] for p in pairs),
    }


def main() -> int:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--json", help="write the figures to this file")
    options = parser.parse_args()
    try:
        import torch
    except ImportError:
        print("PyTorch is not installed: nothing to compare with")
        print(f"a  {seconds(small_graph(pellucid), 2000) * 1e6:8.2f} us")
        print(f"b  {seconds(chain(pellucid), 5) * 1e3:8.2f} us per operation")
        return 0
    torch.set_num_threads(1)
    rows = {
        "a  small graph, us": compare(small_graph(pellucid), small_graph(torch), 300, options.rounds),
        "b  chain of 1000, ms": compare(chain(pellucid), chain(torch), 1, options.rounds),
    }
    print(f"{'row':22s} {'pellucid':>10s} {'torch ' + torch.__version__:>18s} {'ratio':>7s}")
    for name, row in rows.items():
        scale = 1e-3 if "ms" in name else 1
        print(f"{name:22s} {row['ours_us'] * scale:10.2f} {row['theirs_us'] * scale:18.2f} {row['ratio']:7.3f}")
    if options.json:
        with open(options.json, "w") as file:
            json.dump(rows, file, indent=1)
    return 0


if __name__ == "__main__":
    sys.exit(main())
