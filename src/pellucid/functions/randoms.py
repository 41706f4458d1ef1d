"""Random tensors: factories and in-place methods; the same numbers as PyTorch for a seed.

The numbers come from `core/random`; here they become tensors. Inside vmap they are drawn for each example or once for all, as
its `randomness` says: `drawn` and `_fill` ask for it. Draws with given parameters are operators, in `ops/randoms.py`.
"""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np

from pellucid.autograd.batching import batch_level, batch_of
from pellucid.autograd.fresh import finished
from pellucid.autograd.operator import PUBLIC, composite
from pellucid.autograd.transforms import below
from pellucid.autograd.views import check_inplace, forget_history, written
from pellucid.core import random as draws
from pellucid.core.checks import no_tensor
from pellucid.core.dims import sizes_of
from pellucid.core.dtype import dtype_of, numpy_of
from pellucid.core.modes import modes
from pellucid.core.tensor import Tensor, wrap
from pellucid.functions.factories import sized
from pellucid.ops.randoms import bernoulli, normal_of

__all__ = ["drawn", "normal", "rand", "rand_like", "randint", "randint_like", "randn", "randn_like", "randperm"]


PUBLIC["torch"].update({n: getattr(draws, n) for n in ("Generator", "default_generator", "get_rng_state", "initial_seed",
                                                       "manual_seed", "seed", "set_rng_state")})  # fmt: skip


def drawn(draw, shape: tuple, into: np.ndarray | None = None) -> Tensor:
    """A tensor of random numbers: inside vmap one for each example, the same for all, or an error, as `randomness` says.

    draw: gives an array of numbers of a shape.
    shape: that of the result.
    into: an array of that shape to write to, in the order of its memory; inside vmap there is none.
    """
    level = batch_level()
    if level is None:
        if into is None:
            return wrap(draw(shape))
        draws.fill(into, draw)
        return wrap(into)
    apart = level.draws_apart()
    with below(level):
        return batch_of(drawn(draw, (level.size, *shape)), level) if apart else drawn(draw, shape)


# --- factories -------------------------------------------------------------------------------------------------------


def _sized(name: str, draw, doc: str):
    def make(shape, kind, generator=None):
        return drawn(lambda s: draw(s, kind, generator=generator), shape)

    return sized(name, make, f"{doc} Of a floating-point or complex dtype, else NotImplementedError.", "generator")


rand = _sized("rand", draws.uniform, "Numbers uniform in [0, 1).")


randn = _sized("randn", draws.normal, "Normal numbers of mean 0 and variance 1.")


def _drawn_like(input: Tensor, draw, dtype, requires_grad: bool, device) -> Tensor:
    """Numbers from `draw(shape, kind)` in the shape of a tensor, and of its type unless `dtype` says otherwise."""
    kind = input._array.dtype if dtype is None else numpy_of(dtype)
    made = drawn(lambda s: draw(s, kind), input._array.shape, np.empty_like(input._array, kind))
    return finished(made, requires_grad, device)


def _like(name: str, draw, doc: str):
    def factory(input, *, generator=None, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=False,
                memory_format=None):  # fmt: skip
        if not isinstance(input, Tensor):
            raise no_tensor(name, "input", input, 1)
        return _drawn_like(input, lambda s, kind: draw(s, kind, generator=generator), dtype, requires_grad, device)

    factory.__name__ = factory.__qualname__ = name
    factory.__doc__ = doc + " In the shape of `input`, and of its element type unless `dtype` says otherwise."
    return composite()(factory)


rand_like = _like("rand_like", draws.uniform, "Numbers uniform in [0, 1).")


randn_like = _like("randn_like", draws.normal, "Normal numbers of mean 0 and variance 1.")


def _range(args: tuple, low, high, name: str) -> tuple:
    """`(high, ...)` or `(low, high, ...)` as low, high and the rest."""
    args = list(args)
    if low is None and high is None and len(args) > 1 and not isinstance(args[1], (tuple, list)):
        low, high = args.pop(0), args.pop(0)
    elif high is None:
        if not args and low is not None:
            raise TypeError(f"{name}(): missing argument 'high'")
        high = args.pop(0)
    elif low is None and args and not isinstance(args[0], (tuple, list)):
        low = args.pop(0)
    return int(0 if low is None else low), int(high), args


@composite()
def randint(*args, low=None, high=None, size=None, generator=None, out=None, dtype=None, layout=None, device=None,
            requires_grad=False, pin_memory=False) -> Tensor:  # fmt: skip
    """Integers uniform in [low, high): `randint(high, size)` or `randint(low, high, size)`; int64 unless `dtype` says otherwise.

    RuntimeError for an empty range, or one that the type cannot hold; TypeError if `size` is no sequence.
    """
    if size is None and args and not isinstance(args[-1], (tuple, list)):
        raise TypeError(f"randint(): argument 'size' (position {len(args)}) must be tuple of ints, not {type(args[-1]).__name__}")
    low, high, rest = _range(args, low, high, "randint")
    shape = sizes_of((rest[0] if size is None else size,), "randint")
    kind = out._array.dtype if out is not None and dtype is None else numpy_of(dtype, np.dtype(np.int64))
    return finished(drawn(lambda s: draws.integers(s, low, high, kind, generator), shape), requires_grad, device, out)


@composite()
def randint_like(input: Tensor, *args, low=None, high=None, generator=None, dtype=None, layout=None, device=None,
                 requires_grad=False, memory_format=None, pin_memory=False) -> Tensor:  # fmt: skip
    """Integers uniform in [low, high), in the shape and type of `input`."""
    if args and high is None:
        low, high = (args[0], args[1]) if len(args) > 1 else (low, args[0])
    low, high = int(low or 0), int(high)
    return _drawn_like(
        input, lambda s, kind: draws.integers(s, low, high, kind, generator), dtype, requires_grad, device
    )


@composite()
def randperm(n: int, *, generator=None, out=None, dtype=None, layout=None, device=None, requires_grad=False,
             pin_memory=False) -> Tensor:  # fmt: skip
    """The integers 0 to n - 1 in random order, int64 unless `dtype` says otherwise."""
    kind = out._array.dtype if out is not None and dtype is None else numpy_of(dtype, np.dtype(np.int64))

    def draw(shape):
        rows = [draws.permutation(n, kind, generator) for _ in range(int(np.prod(shape[:-1])))]
        return np.asarray(rows, kind).reshape(shape)

    return finished(drawn(draw, (n,)), requires_grad, device, out)


# --- draws with parameters -------------------------------------------------------------------------------------------


@composite()
def normal(mean=0.0, std=1.0, size=None, *, generator=None, out=None, dtype=None, layout=None, device=None, requires_grad=False,
           pin_memory=False) -> Tensor:  # fmt: skip
    """Normal numbers with the given means and standard deviations: tensors, or numbers together with `size`.

    RuntimeError for a negative standard deviation, or shapes that do not broadcast.
    """
    if isinstance(mean, Tensor) or isinstance(std, Tensor):
        if size is not None:
            raise TypeError("normal() received an invalid combination of arguments: with tensors for mean or std, size is not given")
        kind = (mean if isinstance(mean, Tensor) else std)._array.dtype
        mean, std = [v if isinstance(v, Tensor) else wrap(np.asarray(v, kind)) for v in (mean, std)]
        return normal_of(mean, std, generator=generator, out=out)
    if size is None:
        raise TypeError("normal() received an invalid combination of arguments: with numbers for mean and std, size is needed")
    kind = out._array.dtype if out is not None and dtype is None else numpy_of(dtype)
    made = drawn(lambda s: draws.normal(s, kind, mean, std, generator), sizes_of((size,), "normal"))
    return finished(made, requires_grad, device, out)


# --- in-place methods ------------------------------------------------------------------------------------------------


def _fill(tensor: Tensor, name: str, draw) -> Tensor:
    """Overwrite a tensor with drawn numbers; gradients do not pass through. Inside of transforms it is a copy."""
    if modes.transforms:
        _check_target(tensor)
        return tensor.copy_(drawn(draw, tensor._array.shape))
    recorded = check_inplace(tensor, False)
    draws.fill(tensor._array, draw)
    written(tensor, name)
    if recorded:
        forget_history(SimpleNamespace(node_name=f"{name[:-1].title().replace('_', '')}Backward0"), tensor)
    return tensor


def _check_target(tensor: Tensor) -> None:
    """RuntimeError where vmap would write other numbers for each example into a tensor that all examples share."""
    level = batch_level()
    if level is not None and level.draws_apart() and not (tensor._wraps and tensor._level is level and tensor._batched):
        raise RuntimeError(
            "vmap: Cannot ask for different inplace randomness on an unbatched tensor. This will appear like same randomness: all "
            "examples share the tensor. Make it inside of vmap with zeros_like() of a tensor that differs between them."
        )


def uniform_(self: Tensor, from_: float = 0.0, to: float = 1.0, *, generator=None, **bounds) -> Tensor:
    """Overwrite with numbers uniform in [from, to)."""
    from_ = bounds.pop("from", from_)
    return _fill(self, "uniform_", lambda shape: draws.uniform(shape, self._array.dtype, from_, to, generator))


def normal_(self: Tensor, mean: float = 0.0, std: float = 1.0, *, generator=None) -> Tensor:
    """Overwrite with normal numbers."""
    whole = self._array.flags.c_contiguous
    mean, std = [v.item() if isinstance(v, Tensor) else v for v in (mean, std)]
    return _fill(
        self, "normal_", lambda shape: draws.normal(shape, self._array.dtype, mean, std, generator, contiguous=whole)
    )


def random_(self: Tensor, from_: int | None = None, to: int | None = None, *, generator=None, **bounds) -> Tensor:
    """Overwrite with integers: `random_()` over the type's range, `random_(to)` from 0 on, `random_(from, to)` in [from, to)."""
    from_ = bounds.pop("from", from_)
    kind = self._array.dtype
    if from_ is None and to is None:
        return _fill(self, "random_", lambda shape: draws.whole_range(shape, kind, generator))
    low, high = (0, from_) if to is None and not bounds and from_ is not None else (from_ or 0, to)
    return _fill(self, "random_", lambda shape: draws.integers(shape, low, high, kind, generator))


def bernoulli_(self: Tensor, p=0.5, *, generator=None) -> Tensor:
    """Overwrite with ones, with probability p (a number or a tensor), and zeros."""
    if isinstance(p, Tensor) and modes.transforms:
        _check_target(self)
        return self.copy_(bernoulli(p.expand(self._array.shape), generator=generator))
    given = p._array if isinstance(p, Tensor) else p
    return _fill(self, "bernoulli_", lambda shape: draws.bernoulli(given, shape, self._array.dtype, generator))


def _need_floating(self: Tensor, distribution: str) -> None:
    if self._array.dtype.kind in "iub":
        raise RuntimeError(
            f"{distribution} distribution is a continuous probability distribution. dtype must be a floating point but you "
            f"specified {dtype_of(self._array.dtype).name.replace('int64', 'Long')}"
        )


def exponential_(self: Tensor, lambd: float = 1.0, *, generator=None) -> Tensor:
    """Overwrite with exponentially distributed numbers of mean 1 / lambd."""
    _need_floating(self, "Exponential")
    return _fill(self, "exponential_", lambda shape: draws.exponential(shape, self._array.dtype, lambd, generator))


def cauchy_(self: Tensor, median: float = 0.0, sigma: float = 1.0, *, generator=None) -> Tensor:
    """Overwrite with Cauchy distributed numbers."""
    _need_floating(self, "Cauchy")
    return _fill(self, "cauchy_", lambda shape: draws.cauchy(shape, self._array.dtype, median, sigma, generator))


def geometric_(self: Tensor, p: float, *, generator=None) -> Tensor:
    """Overwrite with the numbers of trials up to the first success of probability p."""
    return _fill(self, "geometric_", lambda shape: draws.geometric(shape, self._array.dtype, p, generator))


def log_normal_(self: Tensor, mean: float = 1.0, std: float = 2.0, *, generator=None) -> Tensor:
    """Overwrite with numbers whose logarithms are normal."""
    return _fill(self, "log_normal_", lambda shape: draws.log_normal(shape, self._array.dtype, mean, std, generator))


for _method in (uniform_, normal_, random_, bernoulli_, exponential_, cauchy_, geometric_, log_normal_):
    setattr(Tensor, _method.__name__, _method)
