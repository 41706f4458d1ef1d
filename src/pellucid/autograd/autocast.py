"""Autocast: blocks in which matrix products and convolutions run in a 16-bit type, and losses in float32.

The state is one object a thread; while a block is open for the CPU, `modes.autocast` casts the operands of operators,
and of functions composed of them, by the lists in `cast_policy.py`. Public names are in `pellucid.amp` and `pellucid`.
"""

from __future__ import annotations

import functools
import threading
import warnings
from typing import Any

from pellucid.autograd.cast_policy import OPERATORS, Policy, guard_functions
from pellucid.autograd.grad_mode import set_grad_enabled
from pellucid.core.device import device
from pellucid.core.dtype import bfloat16, float16, float32
from pellucid.core.dtype import dtype as DType
from pellucid.core.modes import modes
from pellucid.core.tensor import Tensor

__all__ = [
    "autocast",
    "autocast_as_now",
    "autocast_decrement_nesting",
    "autocast_increment_nesting",
    "clear_autocast_cache",
    "get_autocast_dtype",
    "is_autocast_available",
    "is_autocast_cache_enabled",
    "is_autocast_enabled",
    "set_autocast_cache_enabled",
    "set_autocast_dtype",
    "set_autocast_enabled",
]

_CASTABLE = (float32, bfloat16, float16)
_LOW = (bfloat16, float16)
_WITHOUT = ("meta", "mkldnn")  # device types that know no autocast


class _State(threading.local):
    """What is switched on in this thread; the dictionaries hold what differs from the defaults."""

    def __init__(self):
        self.enabled: dict[str, bool] = {}
        self.dtypes: dict[str, DType] = {}
        self.cache_enabled = True
        self.nesting = 0
        # casts of leaves that require grad: while it is here a leaf stays, so that its id stays its own
        self.cache: dict[tuple[int, DType], tuple[Tensor, Tensor]] = {}


_state = _State()


# --- casting ---------------------------------------------------------------------------------------------------------


class _Caster:
    """Casts operands while a block is open in this thread. `dtype`: the block's type."""

    def __init__(self, dtype: DType):
        self.dtype = dtype

    def __call__(self, op, values):
        """The operands of an operator in the types of its policy."""
        policy = OPERATORS.get(op.name)
        return values if policy is None else self.cast(tuple(values), self.target(policy, values))

    def low(self, function, *args):
        """Call a function that a list names as a whole in the block's type: all of it runs in that."""
        return self.call(Policy.LOW, function, *args)

    def lowered(self, value: Any) -> Any:
        """A tensor in the block's type."""
        return self.cast(value, self.dtype)

    def call(self, policy: Policy, function, /, *args, **kwargs):
        """Call a function composed of operators with operands in the types of its policy, which its operators keep."""
        if policy is not Policy.GIVEN:
            dtype = self.target(policy, (args, tuple(kwargs.values())))
            args, kwargs = self.cast(args, dtype), {name: self.cast(value, dtype) for name, value in kwargs.items()}
        modes.autocast = None
        try:
            return function(*args, **kwargs)
        finally:
            modes.autocast = self

    def target(self, policy: Policy, values) -> DType:
        """The type to cast to."""
        if policy is not Policy.WIDEST:
            return float32 if policy is Policy.FULL else self.dtype
        widest = self.dtype
        for tensor in _tensors(values):
            if tensor.dtype in _CASTABLE and widest is not float32 and tensor.dtype is not self.dtype:
                if tensor.dtype is not float32:
                    raise RuntimeError(
                        f"Unexpected floating ScalarType in at::autocast::prioritize: a block of {self.dtype} joins tensors "
                        f"of that type and of torch.float32, got {tensor.dtype}"
                    )
                widest = float32
        return widest

    def cast(self, value: Any, dtype: DType) -> Any:
        """A tensor in a type, and the same inside of lists and tuples; float64 and all else as it is."""
        if isinstance(value, Tensor):
            if value.dtype is dtype or value.dtype not in _CASTABLE:
                return value
            return self._kept(value, dtype) if dtype is self.dtype else value.to(dtype)
        if value.__class__ is list or value.__class__ is tuple:
            return value.__class__([self.cast(v, dtype) for v in value])
        return value

    def _kept(self, tensor: Tensor, dtype: DType) -> Tensor:
        """The cast of a weight is made once a block, so that its gradients are summed in the low type and cast once."""
        weight = tensor.dtype is float32 and tensor.is_leaf and tensor.requires_grad and not tensor._is_view()
        if not (weight and _state.cache_enabled) or modes.inference:
            return tensor.to(dtype)
        key = id(tensor), dtype
        if key not in _state.cache:
            with set_grad_enabled(True):
                _state.cache[key] = tensor, tensor.to(dtype)
        return _state.cache[key][1]


def _tensors(values):
    for value in values:
        if isinstance(value, Tensor):
            yield value
        elif value.__class__ is list or value.__class__ is tuple:
            yield from _tensors(value)


def _update() -> None:
    """Let `modes` know whether operands are to be cast."""
    if _state.enabled.get("cpu", False):
        guard_functions()
        modes.autocast = _Caster(get_autocast_dtype("cpu"))
    else:
        modes.autocast = None
    modes.update()


# --- the state -------------------------------------------------------------------------------------------------------


def is_autocast_available(device_type: str) -> bool:
    """Whether a device type knows autocast; RuntimeError for what is no device type."""
    return device(device_type).type not in _WITHOUT


def is_autocast_enabled(device_type: str = "cuda") -> bool:
    """Whether an autocast block is open in this thread, by default for GPUs; RuntimeError for what is no device type."""
    return _state.enabled.get(device(device_type).type, False)


def set_autocast_enabled(device_type, enabled: bool | None = None) -> None:
    """Switch autocast on or off for a device type, in this thread; with one argument, for GPUs.

    Raises:
        TypeError: `enabled` is not a bool.
    """
    if enabled is None and isinstance(device_type, bool):
        device_type, enabled = "cuda", device_type
    if not isinstance(enabled, bool):
        raise TypeError(
            f"set_autocast_enabled(): argument 'enabled' (position 2) must be bool, not {type(enabled).__name__}"
        )
    _state.enabled[device(device_type).type] = enabled
    _update()


def get_autocast_dtype(device_type: str) -> DType:
    """The low type of a device type in this thread: bfloat16 on the CPU, float16 on a GPU unless it was set.

    Raises:
        RuntimeError: no device type, or one without autocast.
    """
    kind = device(device_type).type
    if kind in _WITHOUT:
        raise RuntimeError(f"unsupported scalarType: device type {kind!r} has no autocast")
    return _state.dtypes.get(kind, float16 if kind in ("cuda", "mps", "hip") else bfloat16)


def set_autocast_dtype(device_type: str, dtype: DType) -> None:
    """Set the low type of a device type in this thread; TypeError for what is no type."""
    if not isinstance(dtype, DType):
        raise TypeError(
            f"set_autocast_dtype(): argument 'dtype' (position 2) must be torch.dtype, not {type(dtype).__name__}"
        )
    _state.dtypes[device(device_type).type] = dtype
    _update()


def is_autocast_cache_enabled() -> bool:
    """Whether casts of weights are kept until the end of the outermost block."""
    return _state.cache_enabled


def set_autocast_cache_enabled(enabled: bool) -> None:
    """Say whether casts of weights are kept."""
    _state.cache_enabled = enabled


def clear_autocast_cache() -> None:
    """Forget the casts of weights."""
    _state.cache.clear()


def autocast_increment_nesting() -> int:
    """Note that a block was entered; how many are open."""
    _state.nesting += 1
    return _state.nesting


def autocast_decrement_nesting() -> int:
    """Note that a block was left; how many are open."""
    _state.nesting -= 1
    return _state.nesting


# --- the block -------------------------------------------------------------------------------------------------------


class autocast:
    """A block, or with `@` a function, in which chosen operators run in a 16-bit type.

    Matrix products, convolutions and attention run in `dtype`; losses, factorisations and Fourier transforms in float32;
    joined tensors get the widest of their types; everything else runs in the types it is given. float64 is never cast.
    A weight is cast once a block: what is written to it inside the block is seen by the next block.

    Args:
        device_type: "cpu"; for "cuda" it warns and does nothing, since there is no GPU.
        dtype: bfloat16 or float16; that of `get_autocast_dtype` if None.
        enabled: whether to do anything; False switches an outer block off.
        cache_enabled: whether casts of weights are kept until the outermost block ends; as before if None.

    Raises:
        ValueError: `device_type` is not a str.
        RuntimeError: no device type, or one without autocast.
    """

    def __init__(
        self, device_type: str, dtype: DType | None = None, enabled: bool = True, cache_enabled: bool | None = None
    ):
        if not isinstance(device_type, str):
            raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
        self.device = device_type
        self.fast_dtype = get_autocast_dtype(device_type) if dtype is None else dtype
        if not is_autocast_available(device_type):
            raise RuntimeError(f"User specified an unsupported autocast device_type '{device_type}'")
        self._cache_enabled = is_autocast_cache_enabled() if cache_enabled is None else cache_enabled
        self._enabled = enabled and self._can_be_enabled()

    def _can_be_enabled(self) -> bool:
        """Whether there is something to enable; a warning if not."""
        if self.device == "cuda":
            warnings.warn("CUDA is not available or torch_xla is imported. Disabling autocast.", stacklevel=3)
            return False
        if self.fast_dtype in _LOW:
            return True
        name = self.device.upper()
        warnings.warn(
            f"In {name} autocast, but the target dtype is not supported. Disabling autocast.\n{name} Autocast only "
            f"supports dtypes of {', '.join(map(str, _LOW))} currently.",
            stacklevel=3,
        )
        return False

    def __enter__(self):
        self.prev = is_autocast_enabled(self.device)
        self.prev_fastdtype = get_autocast_dtype(self.device)
        self.prev_cache_enabled = is_autocast_cache_enabled()
        set_autocast_dtype(self.device, self.fast_dtype)
        set_autocast_enabled(self.device, self._enabled)
        set_autocast_cache_enabled(self._cache_enabled)
        autocast_increment_nesting()
        return self

    def __exit__(self, *exception) -> bool:
        if autocast_decrement_nesting() == 0:
            clear_autocast_cache()
        set_autocast_enabled(self.device, self.prev)
        set_autocast_dtype(self.device, self.prev_fastdtype)
        set_autocast_cache_enabled(self.prev_cache_enabled)
        return False

    def __call__(self, func):
        """A function that runs inside of this block.

        Raises:
            TypeError: nothing that can be called.
        """
        if not callable(func):
            raise TypeError(
                f"autocast()(func) requires a callable, but got {type(func).__name__}. Did you mean to use autocast as a "
                "context manager? For example:\n    with torch.autocast(device_type=...):\n        output = model(input)"
            )

        @functools.wraps(func)
        def inside(*args, **kwargs):
            with self:
                return func(*args, **kwargs)

        return inside


def autocast_as_now() -> autocast:
    """A block under which the CPU's autocast is as it is now: for what is computed again later."""
    return autocast("cpu", get_autocast_dtype("cpu"), is_autocast_enabled("cpu"))
