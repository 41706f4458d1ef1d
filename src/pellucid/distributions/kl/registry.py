"""Which function computes the divergence of two distributions: by the most specific pair of classes registered."""

from __future__ import annotations

import warnings

from pellucid.core.tensor import Tensor
from pellucid.distributions.distribution import Distribution

__all__ = ["kl_divergence", "register_kl"]

_REGISTRY: dict[tuple[type, type], object] = {}
_FOUND: dict[tuple[type, type], object] = {}  # by the classes that were asked for


def register_kl(type_p: type, type_q: type):
    """A decorator that registers a function of (p, q) as the divergence of two classes and those derived from them.

    Raises:
        TypeError: a class is no distribution.
    """
    for name, cls in (("type_p", type_p), ("type_q", type_q)):
        if not (isinstance(cls, type) and issubclass(cls, Distribution)):
            raise TypeError(f"Expected {name} to be a Distribution subclass but got {cls}")

    def declare(function):
        _REGISTRY[type_p, type_q] = function
        _FOUND.clear()
        return function

    return declare


def kl_divergence(p: Distribution, q: Distribution) -> Tensor:
    """The Kullback-Leibler divergence from q to p: the mean under p of log(p / q), batch_shape.

    Raises:
        NotImplementedError: none is registered for the pair.
    """
    pair = type(p), type(q)
    if pair not in _FOUND:
        _FOUND[pair] = _find(*pair)
    function = _FOUND[pair]
    if function is None:
        raise NotImplementedError(
            f"No KL(p || q) is implemented for p type {type(p).__name__} and q type {type(q).__name__}"
        )
    return function(p, q)


def _find(type_p: type, type_q: type):
    """The function of the nearest pair: nearest in p, and among those in q; a warning if it matters which comes first."""
    fitting = [pair for pair in _REGISTRY if issubclass(type_p, pair[0]) and issubclass(type_q, pair[1])]
    if not fitting:
        return None
    by_p = min(fitting, key=lambda pair: (type_p.__mro__.index(pair[0]), type_q.__mro__.index(pair[1])))
    by_q = min(fitting, key=lambda pair: (type_q.__mro__.index(pair[1]), type_p.__mro__.index(pair[0])))
    if _REGISTRY[by_p] is not _REGISTRY[by_q]:
        warnings.warn(
            f"Ambiguous kl_divergence({type_p.__name__}, {type_q.__name__}). Please register_kl({by_p[0].__name__}, "
            f"{by_q[1].__name__})",
            RuntimeWarning,
            stacklevel=3,
        )
    return _REGISTRY[by_p]
