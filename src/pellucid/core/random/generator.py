"""Random generators: who owns a stream, how it is seeded, saved and shared. What is drawn from it is in `random.py`."""

from __future__ import annotations

import operator
import os
import threading
from collections.abc import Callable

import numpy as np

from ..device import check_device
from .mersenne import MersenneTwister, pack_state, unpack_state

__all__ = [
    "Generator",
    "default_generator",
    "get_rng_state",
    "initial_seed",
    "manual_seed",
    "or_default",
    "seed",
    "set_rng_state",
]

_DEFAULT_SEED = 67280421310721


def _as_tensor(state: np.ndarray) -> object:
    from pellucid.core.tensor import wrap  # only here: drawing needs no tensor

    return wrap(state)


class Generator:
    """A stream of random numbers of its own.

    The numbers are PyTorch's CPU numbers: the same seed gives the same stream, and a saved state travels both ways.
    A new generator starts at one fixed seed, as PyTorch's does; call `seed()` for one that differs in each run.

    Attributes:
        engine: the stream of words; draw from it only while holding `lock`.
        cached_normal: the second number of the last Box-Muller pair, if only the first was used.

    Raises:
        RuntimeError: `device` is not the CPU.
    """

    __slots__ = ("__weakref__", "cached_normal", "device", "engine", "lock")

    #: What `get_state` makes of its bytes.
    wrap_state: Callable[[np.ndarray], object] = staticmethod(_as_tensor)

    def __init__(self, device="cpu"):
        self.device = check_device(device)
        self.engine = MersenneTwister(_DEFAULT_SEED)
        self.cached_normal: float | None = None
        self.lock = threading.Lock()

    def manual_seed(self, seed: int) -> Generator:
        """Start the stream of `seed` anew and return the generator. A negative seed counts as `seed + 2**64`.

        Raises:
            RuntimeError: `seed` is not an integer.
            ValueError: `seed` is outside [-2**63, 2**64 - 1].
        """
        if isinstance(seed, bool | float | str) or not hasattr(seed, "__index__"):
            raise RuntimeError(
                f"manual_seed expected a long, but got {type(seed).__name__}. Pass an int, such as int({seed!r})."
            )
        self._restart(_to_unsigned(operator.index(seed)))
        return self

    def seed(self) -> int:
        """Start at a seed taken from the operating system's randomness, and return it."""
        fresh = int.from_bytes(os.urandom(8), "little")
        self._restart(fresh)
        return fresh

    def initial_seed(self) -> int:
        """The seed that the stream began at."""
        return self.engine.seed

    def get_state(self):
        """Where the stream stands, uint8 [5056], for `set_state`."""
        with self.lock:
            state = pack_state(self.engine.snapshot(), self.cached_normal)
        return type(self).wrap_state(state)

    def set_state(self, new_state) -> None:
        """Continue where `new_state` was taken.

        Raises:
            TypeError: not bytes (uint8).
            RuntimeError: bytes that are not a state.
        """
        snapshot, cached = unpack_state(_bytes_of(new_state))
        with self.lock:
            self.engine.restore(snapshot)
            self.cached_normal = cached

    def clone_state(self) -> Generator:
        """A new generator that stands where this one stands."""
        return _from_bytes(self._packed())

    def words(self, count: int) -> np.ndarray:
        """The next `count` 32-bit words, uint64 [count]."""
        with self.lock:
            return self.engine.words(count)

    def long_words(self, count: int) -> np.ndarray:
        """The next `count` 64-bit words, uint64 [count]."""
        with self.lock:
            return self.engine.long_words(count)

    def uniforms(self, count: int, dtype: np.dtype) -> np.ndarray:
        """The next `count` numbers in [0, 1): float64 of 53 bits, or float32 of 24; [count]."""
        with self.lock:
            return self.engine.doubles(count) if dtype == np.float64 else self.engine.floats(count)

    def marks(self, count: int, p: float, value: np.floating) -> np.ndarray:
        """`value` where the next of `count` float64 numbers is below p, else 0; [count] of the value's dtype."""
        with self.lock:
            return self.engine.marks(count, p, value)

    def _restart(self, seed: int) -> None:
        with self.lock:
            self.engine.reseed(seed)
            self.cached_normal = None

    def _packed(self) -> bytes:
        with self.lock:
            return pack_state(self.engine.snapshot(), self.cached_normal).tobytes()

    def __reduce__(self):
        return (_from_bytes, (self._packed(),))


def _from_bytes(state: bytes) -> Generator:
    generator = Generator()
    generator.set_state(np.frombuffer(state, dtype=np.uint8))
    return generator


def _to_unsigned(seed: int) -> int:
    if not -(2**63) <= seed < 2**64:
        raise ValueError(
            f"Overflow when unpacking long long: a seed must be in [-2**63, 2**64 - 1], but got {seed}. "
            f"Take it modulo 2**64."
        )
    return seed % 2**64


def _bytes_of(state) -> np.ndarray:
    """The uint8 array of a state that may be an array or a tensor around one."""
    array = getattr(state, "_array", state)
    if not isinstance(array, np.ndarray):
        raise TypeError(f"expected a torch.ByteTensor, but got {type(state).__name__}. Pass what get_state() returned.")
    if array.dtype != np.uint8:
        raise TypeError(
            f"RNG state must be a torch.ByteTensor (uint8), but got {array.dtype}. Pass what get_state() returned."
        )
    return array


#: The generator of every draw that names none. It starts at a seed that differs in each run.
default_generator = Generator()
default_generator.seed()


def or_default(generator: Generator | None) -> Generator:
    """The generator to draw from where a caller named this one, or none.

    Raises:
        TypeError: something else than a generator.
    """
    if generator is None:
        return default_generator
    if not isinstance(generator, Generator):
        raise TypeError(
            f"generator must be a Generator, but got {type(generator).__name__}. Use Generator().manual_seed(0)."
        )
    return generator


def manual_seed(seed) -> Generator:
    """Start the default generator at `seed`, which may be anything `int()` accepts, and return the generator.

    Raises:
        ValueError: `seed` is outside [-2**63, 2**64 - 1].
    """
    return default_generator.manual_seed(int(seed))


def seed() -> int:
    """Start the default generator at a seed that differs in each run, and return that seed."""
    return default_generator.seed()


def initial_seed() -> int:
    """The seed that the default generator's stream began at."""
    return default_generator.initial_seed()


def get_rng_state():
    """Where the default generator stands, uint8 [5056]."""
    return default_generator.get_state()


def set_rng_state(new_state) -> None:
    """Let the default generator continue where `new_state` was taken.

    Raises:
        TypeError, RuntimeError: as `Generator.set_state`.
    """
    default_generator.set_state(new_state)
