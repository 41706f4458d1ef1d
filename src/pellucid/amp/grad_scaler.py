"""Scaling of losses, so that small gradients do not vanish in float16: `GradScaler`."""

from __future__ import annotations

import warnings
from collections import defaultdict
from collections.abc import Iterable
from enum import Enum

from pellucid.autograd.grad_mode import no_grad
from pellucid.core.dtype import float16, float32, int32
from pellucid.core.tensor import Tensor
from pellucid.functions.factories import full

__all__ = ["GradScaler", "OptState"]


class OptState(Enum):
    """How far an optimizer has come in this iteration."""

    READY = 0
    UNSCALED = 1
    STEPPED = 2


def _new_state() -> dict:
    return {"stage": OptState.READY, "found_inf_per_device": {}}


class GradScaler:
    """Scales losses up and gradients down again, skips steps whose gradients overflowed, and adapts the scale.

        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()

    Args:
        device: "cpu"; for "cuda" it warns and passes everything through, since there is no GPU.
        init_scale: the first scale.
        growth_factor: what the scale is multiplied by after `growth_interval` steps in a row without overflow.
        backoff_factor: what it is multiplied by after an overflow.
        growth_interval: see there.
        enabled: False passes everything through.

    Raises:
        AssertionError: a growth factor of at most 1, or a backoff factor of at least 1.
    """

    def __init__(self, device: str = "cuda", init_scale: float = 2.0**16, growth_factor: float = 2.0,
                 backoff_factor: float = 0.5, growth_interval: int = 2000, enabled: bool = True):  # fmt: skip
        self._device, self._enabled = device, enabled
        if enabled and device == "cuda":
            warnings.warn("torch.cuda.amp.GradScaler is enabled, but CUDA is not available.  Disabling.", stacklevel=2)
            self._enabled = False
        if not self._enabled:
            return
        if growth_factor <= 1.0:
            raise AssertionError(f"The growth factor must be > 1.0. Got {growth_factor}.")
        if backoff_factor >= 1.0:
            raise AssertionError(f"The backoff factor must be < 1.0. Got {backoff_factor}.")
        self._init_scale, self._init_growth_tracker = init_scale, 0
        self._growth_factor, self._backoff_factor, self._growth_interval = (
            growth_factor,
            backoff_factor,
            growth_interval,
        )
        self._scale: Tensor | None = None  # made by the first scale()
        self._growth_tracker: Tensor | None = None
        self._per_optimizer_states: dict[int, dict] = defaultdict(_new_state)

    # --- the three steps ---------------------------------------------------------------------------------------------

    def scale(self, outputs):
        """A tensor, or those in a list, tuple or other iterable, times the scale; ValueError for anything else."""
        if not self._enabled:
            return outputs
        if self._scale is None:
            self._scale = full((), self._init_scale, dtype=float32)
            self._growth_tracker = full((), self._init_growth_tracker, dtype=int32)
        return self._scaled(outputs)

    def _scaled(self, outputs):
        if isinstance(outputs, Tensor):
            return outputs * self._scale
        if not isinstance(outputs, Iterable):
            raise ValueError(f"outputs must be a Tensor or an iterable of Tensors, got {type(outputs).__name__}")
        scaled = map(self._scaled, outputs)
        return type(outputs)(scaled) if isinstance(outputs, (list, tuple)) else scaled

    def unscale_(self, optimizer) -> None:
        """Divide the gradients of an optimizer's parameters by the scale, before they are looked at or clipped.

        Raises:
            AssertionError: nothing was scaled.
            RuntimeError: it was done already, or the optimizer has stepped.
            ValueError: a gradient is of float16.
        """
        if not self._enabled:
            return
        scale, state = self._scale_for("unscale_"), self._per_optimizer_states[id(optimizer)]
        if state["stage"] is OptState.UNSCALED:
            raise RuntimeError("unscale_() has already been called on this optimizer since the last update().")
        if state["stage"] is OptState.STEPPED:
            raise RuntimeError("unscale_() is being called after step().")
        inverse = scale.double().reciprocal().float()
        state["found_inf_per_device"] = _unscaled(optimizer, inverse)
        state["stage"] = OptState.UNSCALED

    def step(self, optimizer, *args, **kwargs):
        """Unscale the gradients, unless that is done, and step the optimizer if all of them are finite.

        Returns:
            What `optimizer.step(*args, **kwargs)` returned; None if it was skipped.

        Raises:
            AssertionError: nothing was scaled, or no parameter has a gradient.
            RuntimeError: a closure was given, or the optimizer has stepped already.
        """
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if "closure" in kwargs:
            raise RuntimeError("Closure use is not currently supported if GradScaler is enabled.")
        self._scale_for("step")
        state = self._per_optimizer_states[id(optimizer)]
        if state["stage"] is OptState.STEPPED:
            raise RuntimeError("step() has already been called since the last update().")
        if state["stage"] is OptState.READY:
            self.unscale_(optimizer)
        found = state["found_inf_per_device"]
        if not found:
            raise AssertionError("No inf checks were recorded for this optimizer.")
        finite = not any([overflow.item() for overflow in found.values()])
        answer = optimizer.step(*args, **kwargs) if finite else None
        state["stage"] = OptState.STEPPED
        return answer

    def update(self, new_scale: float | Tensor | None = None) -> None:
        """Adapt the scale at the end of an iteration, or set it to `new_scale`.

        Raises:
            AssertionError: nothing was scaled, no optimizer has stepped, or the new scale is no number.
        """
        if not self._enabled:
            return
        scale = self._scale_for("update")
        if new_scale is None:
            self._adapt(scale)
        elif isinstance(new_scale, float):
            scale.fill_(new_scale)
        else:
            if new_scale.numel() != 1 or new_scale.requires_grad:
                raise AssertionError(
                    "new_scale should be a float or a 1-element torch.cuda.FloatTensor or torch.FloatTensor with "
                    "requires_grad=False."
                )
            scale.copy_(new_scale)
        self._per_optimizer_states = defaultdict(_new_state)

    def _adapt(self, scale: Tensor) -> None:
        found = [v for state in self._per_optimizer_states.values() for v in state["found_inf_per_device"].values()]
        if not found:
            raise AssertionError("No inf checks were recorded prior to update.")
        successes = self._growth_tracker.item() + 1
        if any([overflow.item() for overflow in found]):
            scale.mul_(self._backoff_factor)
            successes = 0
        elif successes == self._growth_interval:
            grown = scale * self._growth_factor
            if grown.isfinite():
                scale.copy_(grown)
            successes = 0
        self._growth_tracker.fill_(successes)

    def _scale_for(self, name: str) -> Tensor:
        if self._scale is None:
            raise AssertionError(
                f"Attempted {name} but _scale is None.  This may indicate your script did not use "
                "scaler.scale(loss or outputs) earlier in the iteration."
            )
        return self._scale

    # --- questions and settings --------------------------------------------------------------------------------------

    def is_enabled(self) -> bool:
        """Whether it does anything."""
        return self._enabled

    def get_scale(self) -> float:
        """The scale; 1.0 if disabled."""
        if not self._enabled:
            return 1.0
        return self._init_scale if self._scale is None else self._scale.item()

    def get_growth_factor(self) -> float:
        """What the scale grows by."""
        return self._growth_factor

    def set_growth_factor(self, new_factor: float) -> None:
        """Set what the scale grows by."""
        self._growth_factor = new_factor

    def get_backoff_factor(self) -> float:
        """What the scale shrinks by."""
        return self._backoff_factor

    def set_backoff_factor(self, new_factor: float) -> None:
        """Set what the scale shrinks by."""
        self._backoff_factor = new_factor

    def get_growth_interval(self) -> int:
        """After how many steps without overflow the scale grows."""
        return self._growth_interval

    def set_growth_interval(self, new_interval: int) -> None:
        """Set after how many steps without overflow the scale grows."""
        self._growth_interval = new_interval

    def _get_growth_tracker(self) -> int:
        if not self._enabled:
            return 0
        return self._init_growth_tracker if self._growth_tracker is None else self._growth_tracker.item()

    # --- state -------------------------------------------------------------------------------------------------------

    def state_dict(self) -> dict:
        """Scale, factors, interval and steps since the last change; empty if disabled."""
        if not self._enabled:
            return {}
        return {
            "scale": self.get_scale(),
            "growth_factor": self._growth_factor,
            "backoff_factor": self._backoff_factor,
            "growth_interval": self._growth_interval,
            "_growth_tracker": self._get_growth_tracker(),
        }

    def load_state_dict(self, state_dict: dict) -> None:
        """Take over a saved state; nothing if disabled. RuntimeError for the empty state of a disabled scaler."""
        if not self._enabled:
            return
        if not state_dict:
            raise RuntimeError(
                "The source state dict is empty, possibly because it was saved from a disabled instance of GradScaler."
            )
        self._init_scale, self._init_growth_tracker = state_dict["scale"], state_dict["_growth_tracker"]
        self._growth_factor, self._backoff_factor = state_dict["growth_factor"], state_dict["backoff_factor"]
        self._growth_interval = state_dict["growth_interval"]
        if self._scale is not None:
            self._scale.fill_(self._init_scale)
            self._growth_tracker.fill_(self._init_growth_tracker)

    def __getstate__(self) -> dict:
        state = dict(self.__dict__)
        if self._enabled:
            if self._per_optimizer_states:
                raise AssertionError(
                    "A GradScaler instance may only be pickled at the beginning of an iteration, or at the end after "
                    "scaler.update()."
                )
            state |= {"_init_scale": self.get_scale(), "_init_growth_tracker": self._get_growth_tracker()}
            state |= {"_scale": None, "_growth_tracker": None}
        return state


@no_grad()
def _unscaled(optimizer, inverse: Tensor) -> dict:
    """Multiply the gradients of an optimizer's parameters; by their device, 1 if some were not finite, else 0."""
    found = {}
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            grad = parameter.grad
            if grad is None:
                continue
            if grad.dtype is float16:
                raise ValueError("Attempting to unscale FP16 gradients.")
            overflow = found.setdefault(grad.device, full((), 0.0, dtype=float32))
            if not grad.isfinite().all():
                overflow.fill_(1.0)
            grad.mul_(inverse)
    return found
