"""Grad modes: `no_grad`, `enable_grad`, `set_grad_enabled`, `inference_mode`. Per thread.

A decorated generator holds its own mode while it runs and leaves the caller's alone between its steps.
"""

from __future__ import annotations

import functools
import inspect
import warnings

from pellucid.core.modes import modes

__all__ = [
    "enable_grad",
    "inference_mode",
    "is_grad_enabled",
    "is_inference_mode_enabled",
    "no_grad",
    "set_grad_enabled",
]


def is_grad_enabled() -> bool:
    """Whether operations are recorded in this thread."""
    return modes.grad_enabled and not modes.inference


def is_inference_mode_enabled() -> bool:
    """Whether inference mode is on in this thread."""
    return modes.inference


class _Mode:
    """A context manager that is also a decorator, of functions and of generators."""

    def __call__(self, function):
        if inspect.isclass(function):
            warnings.warn(
                "Decorating classes is deprecated and will be disabled in future versions. You should only decorate "
                "functions or methods. To preserve the current behavior of class decoration, you can directly "
                "decorate the `__init__` method and nothing else.",
                FutureWarning,
                stacklevel=2,
            )
            setattr(function, "__init__", self(function.__init__))  # noqa: B010 (typed classes forbid it)
            return function
        if inspect.isgeneratorfunction(function):
            return _decorate_generator(self.clone, function)

        @functools.wraps(function)
        def wrapped(*args, **kwargs):
            with self.clone():
                return function(*args, **kwargs)

        return wrapped

    def clone(self):
        """A new context of the same kind."""
        return type(self)()

    def __enter__(self):
        self._before = (modes.grad_enabled, modes.inference)
        self._switch()
        modes.update()

    def __exit__(self, *exception) -> None:
        modes.grad_enabled, modes.inference = self._before
        modes.update()

    def _switch(self) -> None:
        raise NotImplementedError


def _decorate_generator(context, function):
    @functools.wraps(function)
    def wrapped(*args, **kwargs):
        generator = function(*args, **kwargs)
        try:
            with context():
                value = next(generator)
            while True:
                try:
                    sent = yield value
                except GeneratorExit:
                    with context():
                        generator.close()
                    raise
                except BaseException as error:
                    with context():
                        value = generator.throw(error)
                else:
                    with context():
                        value = generator.send(sent)
        except StopIteration as end:
            return end.value

    return wrapped


class _BareMode(_Mode):
    """A mode that may decorate without parentheses."""

    def __new__(cls, function=None):
        self = super().__new__(cls)
        return self if function is None else self(function)

    def __init__(self, function=None):
        pass


class no_grad(_BareMode):
    """Operations are not recorded: results do not require grad."""

    def _switch(self) -> None:
        modes.grad_enabled = False


class enable_grad(_BareMode):
    """Operations are recorded again, inside `no_grad`."""

    def _switch(self) -> None:
        modes.grad_enabled = True


class set_grad_enabled(_Mode):
    """Recording on or off: takes effect when called, and ends with the block if used as a context manager."""

    def __init__(self, mode: bool):
        self.mode = mode
        self._before = (modes.grad_enabled, modes.inference)
        self._switch()
        modes.update()

    def __call__(self, function):
        modes.grad_enabled, modes.inference = self._before
        modes.update()
        return super().__call__(function)

    def __enter__(self):
        self._switch()
        modes.update()

    def clone(self):
        """A new context of the same kind."""
        return set_grad_enabled(self.mode)

    def _switch(self) -> None:
        modes.grad_enabled = self.mode


class inference_mode(_Mode):
    """Operations are not recorded and results can never enter a recorded computation: the cheapest mode."""

    def __new__(cls, mode=True):
        self = super().__new__(cls)
        if isinstance(mode, bool):
            return self
        self.mode = True
        return self(mode)

    def __init__(self, mode: bool = True):
        self.mode = mode

    def clone(self):
        """A new context of the same kind."""
        return inference_mode(self.mode)

    def _switch(self) -> None:
        modes.inference = self.mode
        if self.mode:
            modes.grad_enabled = False
        elif self._before[1]:
            modes.grad_enabled = True


def is_multithreading_enabled() -> bool:
    """What `set_multithreading_enabled` was last given in this thread."""
    return modes.multithreading


class set_multithreading_enabled(set_grad_enabled):
    """PyTorch's switch for threads of the engine; kept, though backward runs in the calling thread either way."""

    def __init__(self, mode: bool):
        self.mode = mode
        self._before = modes.multithreading
        modes.multithreading = mode

    def __call__(self, function):
        modes.multithreading = self._before
        return _Mode.__call__(self, function)

    def __enter__(self):
        modes.multithreading = self.mode

    def __exit__(self, *exception) -> None:
        modes.multithreading = self._before

    def clone(self):
        """A new context of the same kind."""
        return set_multithreading_enabled(self.mode)
