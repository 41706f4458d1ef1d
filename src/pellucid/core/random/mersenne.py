"""The MT19937 engine: a stream of 32-bit words, the plain numbers read off it, and its serialised state.

The stream, the way words pair up into larger numbers, and the 5056 bytes of a saved state are PyTorch's, so a
state saved by either library continues in the other. Distributions are made of these numbers in `random.py`.
Nothing here takes a lock: `random.Generator` owns an engine and guards it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pellucid.kernels.choice import compiled

__all__ = ["STATE_SIZE", "MersenneTwister", "Snapshot", "pack_state", "unpack_state"]

_WORDS = 624
_MASK_24 = np.uint64(2**24 - 1)
_MASK_53 = np.uint64(2**53 - 1)
_HALF_WORD = np.uint64(32)

# Offsets of PyTorch's C structure. `left` and `next` both say where the stream stands; `normal_x` and `normal_rho`
# are unused today but still take their place.
_STATE = np.dtype(
    {
        "names": [
            "seed",
            "left",
            "seeded",
            "next",
            "key",
            "double_normal",
            "double_valid",
            "float_normal",
            "float_valid",
        ],
        "formats": ["<u8", "<i4", "<i4", "<u8", ("<u8", _WORDS), "<f8", "<i4", "<f4", "?"],
        "offsets": [0, 8, 12, 16, 24, 5024, 5040, 5048, 5052],
        "itemsize": 5056,
    }
)
STATE_SIZE = _STATE.itemsize


class Snapshot(NamedTuple):
    """Where an engine stands: its seed, its 624 words, how many of them are used, and whether any was ever drawn."""

    seed: int
    key: np.ndarray
    position: int
    untouched: bool


class MersenneTwister:
    """The MT19937 stream that begins at a 64-bit seed (of which the algorithm uses the lower 32 bits)."""

    __slots__ = ("_bits", "_untouched", "seed")

    def __init__(self, seed: int):
        self.reseed(seed)

    def reseed(self, seed: int) -> None:
        """Start the stream of `seed` anew. The 624 words are computed at the first draw."""
        self.seed = seed
        self._bits = None
        self._untouched = True

    def words(self, count: int) -> np.ndarray:
        """The next `count` 32-bit words, as uint64 [count]."""
        bits = self._bits or self._load(_expand_seed(self.seed), _WORDS)
        self._untouched = False
        return bits.random_raw(count)

    def long_words(self, count: int) -> np.ndarray:
        """The next `count` 64-bit numbers, uint64 [count]: of each two words the first is the upper half."""
        words = self.words(2 * count)
        high = words[0::2] << _HALF_WORD
        high |= words[1::2]
        return high

    def floats(self, count: int) -> np.ndarray:
        """The next `count` multiples of 2**-24 in [0, 1), float32 [count], one word each."""
        words = self.words(count)
        words &= _MASK_24
        # Signed integers convert several times faster than unsigned ones, and 24 bits fit either.
        values = words.view(np.int64).astype(np.float32)
        values *= np.float32(2.0**-24)
        return values

    def doubles(self, count: int) -> np.ndarray:
        """The next `count` multiples of 2**-53 in [0, 1), float64 [count], two words each."""
        words = self.long_words(count)
        words &= _MASK_53
        values = words.view(np.int64).astype(np.float64)
        values *= 2.0**-53
        return values

    def marks(self, count: int, p: float, value: np.floating) -> np.ndarray:
        """`value` where the next of `count` doubles is below p, else 0: array [count] of the value's dtype."""
        fast = compiled("mersenne", count, np.asarray(value))
        if fast is None:
            made = (self.doubles(count) < p).astype(value.dtype)
            made *= value
            return made
        _, key, position, _ = self.snapshot()
        key, made = np.array(key, np.uint32), np.empty(count, value.dtype)
        self._load(key, fast.marks(key, int(position), float(p), value, made))
        self._untouched = False
        return made

    def snapshot(self) -> Snapshot:
        """Where the stream stands; `restore` brings an engine there."""
        if self._bits is None:
            return Snapshot(self.seed, _expand_seed(self.seed), _WORDS, True)
        state = self._bits.state["state"]
        return Snapshot(self.seed, state["key"], state["pos"], self._untouched)

    def restore(self, snapshot: Snapshot) -> None:
        """Continue where `snapshot` was taken."""
        self.seed = snapshot.seed
        self._load(snapshot.key, snapshot.position)
        self._untouched = snapshot.untouched

    def _load(self, key: np.ndarray, position: int):
        """The bit generator, made if there is none, at the given words."""
        # numpy.random costs 15 ms to import; a program that draws nothing does not pay for it.
        from numpy.random import MT19937

        self._bits = self._bits or MT19937(0)
        self._bits.state = {"bit_generator": "MT19937", "state": {"key": key, "pos": position}}
        return self._bits


def _expand_seed(seed: int) -> np.ndarray:
    """The 624 words that a seed stands for (Matsumoto and Nishimura's `init_genrand` of 2002), uint32 [624]."""
    word = seed & 0xFFFFFFFF
    key = [word]
    for index in range(1, _WORDS):
        word = (1812433253 * (word ^ (word >> 30)) + index) & 0xFFFFFFFF
        key.append(word)
    return np.array(key, dtype=np.uint32)


def pack_state(snapshot: Snapshot, cached_normal: float | None) -> np.ndarray:
    """A saved state, uint8 [5056], of an engine and of the normal number its generator holds back."""
    state = np.zeros((), dtype=_STATE)
    state["seed"] = snapshot.seed
    state["left"] = _WORDS + 1 - snapshot.position
    state["seeded"] = 1
    state["next"] = 0 if snapshot.untouched else snapshot.position
    state["key"] = snapshot.key
    if cached_normal is not None:
        state["double_valid"] = 1
        state["double_normal"] = cached_normal
    return np.frombuffer(state.tobytes(), dtype=np.uint8).copy()


def unpack_state(data: np.ndarray) -> tuple[Snapshot, float | None]:
    """What `pack_state` packed.

    Raises:
        RuntimeError: not a state: the wrong size, or positions outside the 624 words.
    """
    if data.size != STATE_SIZE:
        raise RuntimeError(
            f"Expected a CPUGeneratorImplState of size {STATE_SIZE} but found the input RNG state size to be "
            f"{data.size}. Pass what get_state() or get_rng_state() returned."
        )
    state = np.frombuffer(data.tobytes(), dtype=_STATE)[0]
    left, following = int(state["left"]), int(state["next"])
    if not (state["seeded"] and 0 < left <= _WORDS and following <= _WORDS):
        raise RuntimeError(
            f"Invalid mt19937 state: expected a seeded generator at a word in 0..{_WORDS}, but found seeded="
            f"{int(state['seeded'])}, left={left}, next={following}. Pass what get_state() or get_rng_state() returned."
        )
    snapshot = Snapshot(int(state["seed"]), state["key"].astype(np.uint32), _WORDS + 1 - left, following == 0)
    cached = float(state["double_normal"]) if state["double_valid"] else None
    return snapshot, cached
