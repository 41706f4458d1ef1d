"""From which size on the compiled form of a kernel is faster than the plain one: measures what `kernels/choice.py` states.

    python benchmarks/crossovers.py [KEY ...] [--threads N]

For each key of the table and each size, a power of two, the two forms take turns; their times are the smallest of all turns.
Printed are the ratios, compiled over plain, and the smallest size from which on none is above 1, beside the one in the table.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable

os.environ.setdefault("PELLUCID_KERNELS", "wait")

import numpy as np

import pellucid as torch
from pellucid.kernels import choice, elementwise
from pellucid.nn import functional as F

TURNS, TURN = 9, 0.004  # turns of each form, and seconds that one lasts


def _images(n: int, side: int = 8) -> torch.Tensor:
    return torch.randn(max(1, n // (4 * side * side)), 4, side, side)


def _square(n: int) -> tuple[torch.Tensor, torch.Tensor]:
    side = max(1, round(n ** (1 / 3)))
    return torch.randn(side, side), torch.randn(side, side)


def _step(n: int) -> Callable:
    p = torch.nn.Parameter(torch.randn(n))
    p.grad = torch.randn(n)
    return torch.optim.Adam([p]).step


def _clip(n: int) -> Callable:
    p = torch.nn.Parameter(torch.randn(n))
    p.grad = torch.randn(n)
    return lambda: torch.nn.utils.clip_grad_norm_([p], 1e9)


def _call(function: Callable, *arguments) -> Callable:
    return lambda: function(*arguments)


def _attention(n: int) -> Callable:
    length = max(1, round((n / 16) ** 0.5))
    return _call(F.scaled_dot_product_attention, *[torch.randn(1, 1, length, 16)] * 3)


def _recurrent(n: int) -> Callable:
    hidden = max(4, round((n / 8 / 4) ** 0.5))
    return _call(torch.nn.LSTM(hidden, hidden), torch.randn(4, 8, hidden))


# For a size as the table counts it: a call that does so much.
WORK: dict[str, Callable[[int], Callable]] = {
    "accumulation": lambda n: _call(torch.index_add, torch.zeros(64, 16), 0, torch.randint(64, (max(1, n // 16),)),
                                    torch.randn(max(1, n // 16), 16)),
    "activations": lambda n: _call(F.gelu, torch.randn(n)),
    "activations.long": lambda n: _call(F.mish, torch.randn(n)),
    "attention": _attention,
    "clipping": _clip,
    "convolution": lambda n: _call(F.conv2d, torch.randn(max(1, n // (16 * 16 * 9 * 36)), 16, 8, 8), torch.randn(16, 16, 3, 3)),
    "elementwise": lambda n: _call(elementwise.apply_to_two, np.add, *np.ones((2, n), np.float32)),
    "mersenne": lambda n: _call(torch.empty(n).bernoulli_, 0.5),
    "normalisation": lambda n: _call(F.layer_norm, torch.randn(max(1, n // 32), 32), (32,)),
    "normalisation.fixed": lambda n: _call(F.batch_norm, _images(n), torch.zeros(4), torch.ones(4)),
    "pooling": lambda n: _call(F.max_pool2d, _images(n), 2),
    "products": lambda n: _call(torch.mm, *_square(n)),
    "products.batch": lambda n: _call(torch.bmm, torch.randn(max(1, n // 16**3), 16, 16), torch.randn(max(1, n // 16**3), 16, 16)),
    "products.outer": lambda n: _call(torch.mm, torch.randn(max(1, n // 64), 1), torch.randn(1, 64)),
    "rectifiers": lambda n: _call(F.relu, torch.randn(n)),
    "rectifiers.gate": lambda n: _gradient(n),
    "recurrent": _recurrent,
    "softmax": lambda n: _call(F.softmax, torch.randn(max(1, n // 32), 32), 1),
    "sums": lambda n: _call(torch.Tensor.sum_to_size, torch.randn(max(1, n // 32), 32), 32),
    "sums.rows": lambda n: _call(torch.sum, torch.randn(max(1, n // 64), 64), 1),
    "updates": _step,
}  # fmt: skip


def _gradient(n: int) -> Callable:
    x = torch.randn(n).requires_grad_()
    y, ones = F.relu(x), torch.ones(n)
    return lambda: torch.autograd.grad(y, x, ones, retain_graph=True)


def _time(call: Callable, form: Callable, repeats: int) -> float:
    with form(), torch.no_grad():
        start = time.perf_counter()
        for _ in range(repeats):
            call()
        return (time.perf_counter() - start) / repeats


def ratio(call: Callable) -> float:
    """The time of the compiled form over that of the plain one."""
    for form in (choice.always, choice.never):
        _time(call, form, 2)
    repeats = max(1, round(TURN / max(_time(call, choice.never, 1), 1e-7)))
    times = [(_time(call, choice.always, repeats), _time(call, choice.never, repeats)) for _ in range(TURNS)]
    return min(a for a, _ in times) / min(b for _, b in times)


def main() -> None:
    """Measure the keys that were named, or all."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("keys", nargs="*", metavar="KEY", help="keys of the table; all by default")
    parser.add_argument("--threads", type=int, help="threads of compiled kernels")
    options = parser.parse_args()
    if options.threads:
        torch.set_num_threads(options.threads)
    for key in options.keys or choice.CROSSOVERS:
        stated = choice.CROSSOVERS[key]
        exponents = range(max(2, stated.bit_length() - 6), stated.bit_length() + 4)
        ratios = {1 << e: ratio(WORK[key](1 << e)) for e in exponents}
        wins = [size for size in ratios if all(r <= 1 for other, r in ratios.items() if other >= size)]
        shown = "  ".join(f"2^{size.bit_length() - 1} {value:.2f}" for size, value in ratios.items())
        found = f"2^{wins[0].bit_length() - 1}" if wins else "none"
        print(f"{key:20} table 2^{stated.bit_length() - 1}, measured {found:5}  {shown}", flush=True)


if __name__ == "__main__":
    main()
