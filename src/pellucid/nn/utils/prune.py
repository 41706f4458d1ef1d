"""Pruning: some elements of a parameter are kept at 0 by a mask.

`l1_unstructured(layer, "weight", 0.3)` moves `layer.weight` to the parameter `weight_orig`, registers the buffer
`weight_mask`, and computes `layer.weight` as their product before each call of the layer. Pruning the same parameter
again prunes what is left of it. `remove` makes the product the parameter again.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from numbers import Integral, Real
from typing import TYPE_CHECKING

from pellucid.functions.factories import ones_like, zeros_like
from pellucid.functions.norms import norm
from pellucid.functions.randoms import rand, rand_like
from pellucid.nn.utils.convert_parameters import parameters_to_vector
from pellucid.ops.sorting import kthvalue, topk

if TYPE_CHECKING:
    from pellucid.core.tensor import Tensor
    from pellucid.nn.modules.module import Module

__all__ = [
    "BasePruningMethod",
    "CustomFromMask",
    "Identity",
    "L1Unstructured",
    "LnStructured",
    "PruningContainer",
    "RandomStructured",
    "RandomUnstructured",
    "custom_from_mask",
    "global_unstructured",
    "identity",
    "is_pruned",
    "l1_unstructured",
    "ln_structured",
    "random_structured",
    "random_unstructured",
    "remove",
]


# --- the base --------------------------------------------------------------------------------------------------------


class BasePruningMethod(ABC):
    """A way to choose what is pruned; also the hook that computes the pruned parameter.

    A subclass says in `PRUNING_TYPE` whether it chooses elements ("unstructured"), whole channels along `self.dim`
    ("structured") or is given the mask ("global"), and computes the mask in `compute_mask`.
    """

    PRUNING_TYPE: str
    _tensor_name: str

    def __call__(self, module: Module, inputs) -> None:
        setattr(module, self._tensor_name, self.apply_mask(module))

    @abstractmethod
    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The mask, 0 for what is pruned, by the importance of each element, on top of an earlier mask; both [*S]."""

    def apply_mask(self, module: Module) -> Tensor:
        """The pruned parameter."""
        original = getattr(module, f"{self._tensor_name}_orig")
        return getattr(module, f"{self._tensor_name}_mask").to(dtype=original.dtype) * original

    @classmethod
    def apply(cls, module: Module, name: str, *args, importance_scores: Tensor | None = None, **kwargs):
        """Prune a parameter by a new instance of this class, and return the hook that is in force.

        Args:
            module: the module that has the parameter.
            name: its name.
            importance_scores: what to judge the elements by, of its shape; their own values if None.
            *args, **kwargs: for the constructor.

        Raises:
            AssertionError: the scores have another shape.
        """
        tensor = getattr(module, name)
        if importance_scores is not None and importance_scores.shape != tensor.shape:
            raise AssertionError(
                f"importance_scores should have the same shape as parameter {name} of {module}, got "
                f"{importance_scores.shape} vs {tensor.shape}"
            )
        method = cls(*args, **kwargs)
        method._tensor_name = name
        scores = tensor if importance_scores is None else importance_scores
        before = _hooks_on(module, name)
        if before:
            method = _joined(module, before, method)
            mask = method.compute_mask(scores, default_mask=getattr(module, f"{name}_mask").detach().clone())
        else:
            mask = method.compute_mask(scores, default_mask=ones_like(tensor))
            del module._parameters[name]
            module.register_parameter(f"{name}_orig", tensor)
        module.register_buffer(f"{name}_mask", mask)
        setattr(module, name, method.apply_mask(module))
        for key in before:
            del module._forward_pre_hooks[key]
        module.register_forward_pre_hook(method)
        return method

    def prune(self, t: Tensor, default_mask: Tensor | None = None, importance_scores: Tensor | None = None) -> Tensor:
        """A tensor with the chosen elements at 0; no module is changed.

        Raises:
            AssertionError: the scores have another shape.
        """
        if importance_scores is not None and importance_scores.shape != t.shape:
            raise AssertionError(
                f"importance_scores should have the same shape as tensor t, got {importance_scores.shape} vs {t.shape}"
            )
        scores = t if importance_scores is None else importance_scores
        return t * self.compute_mask(scores, default_mask=ones_like(t) if default_mask is None else default_mask)

    def remove(self, module: Module) -> None:
        """Make the pruned values the parameter; the pruning itself stays done."""
        name = self._tensor_name
        values = self.apply_mask(module).data
        delattr(module, name)
        original = module._parameters.pop(f"{name}_orig")
        del module._buffers[f"{name}_mask"]
        original.data = values
        setattr(module, name, original)


def _hooks_on(module: Module, name: str) -> dict:
    """The pruning hooks on a parameter, by the keys under which the module has them."""
    hooks = module._forward_pre_hooks.items()
    return {k: hook for k, hook in hooks if isinstance(hook, BasePruningMethod) and hook._tensor_name == name}


def _joined(module: Module, before: dict, method: BasePruningMethod) -> PruningContainer:
    """The method after those that pruned the parameter before."""
    if len(before) > 1:
        raise AssertionError(
            f"Avoid adding multiple pruning hooks to the same tensor {method._tensor_name} of module {module}. Use a "
            "PruningContainer."
        )
    (earlier,) = before.values()
    container = PruningContainer(*(earlier if isinstance(earlier, PruningContainer) else (earlier,)))
    container._tensor_name = method._tensor_name
    container.add_pruning_method(method)
    return container


class PruningContainer(BasePruningMethod):
    """Several methods that prune one parameter, the last of them what the others have left.

    Args:
        *args: the methods; the first says which parameter.
    """

    PRUNING_TYPE = "global"

    def __init__(self, *args: BasePruningMethod):
        self._pruning_methods: tuple[BasePruningMethod, ...] = ()
        if args:
            self._tensor_name = args[0]._tensor_name
        for method in args:
            self.add_pruning_method(method)

    def add_pruning_method(self, method: BasePruningMethod) -> None:
        """Add a method.

        Raises:
            TypeError: it is none.
            ValueError: it is for another parameter.
        """
        if not isinstance(method, BasePruningMethod):
            raise TypeError(f"{type(method)} is not a BasePruningMethod subclass")
        if self._tensor_name != method._tensor_name:
            raise ValueError(
                f"Can only add pruning methods acting on the parameter named '{self._tensor_name}' to PruningContainer "
                f"{self}. Found '{method._tensor_name}'"
            )
        self._pruning_methods += (method,)

    def __len__(self) -> int:
        return len(self._pruning_methods)

    def __iter__(self):
        return iter(self._pruning_methods)

    def __getitem__(self, index):
        return self._pruning_methods[index]

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The mask of the last method, asked about what is not pruned yet."""
        method = self._pruning_methods[-1]
        mask = default_mask.to(dtype=t.dtype).clone()
        left = _left(method, default_mask)
        mask[left] = method.compute_mask(t[left], default_mask=default_mask[left]).to(dtype=mask.dtype)
        return mask


def _left(method: BasePruningMethod, mask: Tensor):
    """An index of what a method is asked about: elements, or channels, that are not pruned yet."""
    if method.PRUNING_TYPE == "unstructured":
        return mask == 1
    if method.PRUNING_TYPE == "global":
        return (slice(None),) * mask.dim()
    if method.PRUNING_TYPE != "structured":
        raise ValueError(
            f"Unrecognized PRUNING_TYPE {method.PRUNING_TYPE}: expected 'unstructured', 'structured' or 'global'"
        )
    if not hasattr(method, "dim"):
        raise AttributeError('Pruning methods of PRUNING_TYPE "structured" need to have the attribute `dim` defined.')
    dims, dim = mask.dim(), method.dim
    if dim < -dims:
        raise IndexError(f"Index is out of bounds for tensor with dimensions {dims}: got dim {dim}")
    alive = mask.sum([d for d in range(dims) if d != dim % dims]) != 0
    return (slice(None),) * (dim % dims) + (alive,)


# --- ways to choose --------------------------------------------------------------------------------------------------


class Identity(BasePruningMethod):
    """Prunes nothing; makes mask and original, though."""

    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The earlier mask."""
        return default_mask


class _ByAmount(BasePruningMethod):
    """Prunes a given amount: a number of elements or channels, or the part of them from 0.0 to 1.0.

    Raises:
        TypeError: the amount is no number.
        ValueError: it is negative, or a part above 1.
    """

    def __init__(self, amount: int | float):
        if not isinstance(amount, Real):
            raise TypeError(f"Invalid type for amount: {amount}. Must be int or float.")
        if amount < 0 or (not isinstance(amount, Integral) and amount > 1):
            raise ValueError(f"amount={amount} should either be a float in the range [0, 1] or a non-negative integer")
        self.amount = amount

    def _count(self, size: int) -> int:
        """How many of `size` to prune; ValueError if there are not so many."""
        if not isinstance(self.amount, Integral):
            return round(self.amount * size)
        if self.amount > size:
            raise ValueError(f"amount={self.amount} should be smaller than the number of parameters to prune={size}")
        return int(self.amount)


class _Elements(_ByAmount):
    """Prunes single elements: those that come first in the order of `_chosen`."""

    PRUNING_TYPE = "unstructured"

    def _chosen(self, t: Tensor, count: int) -> Tensor:
        """The places, in the flattened tensor, of `count` elements to prune."""
        raise NotImplementedError

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The earlier mask with `amount` more zeros."""
        count = self._count(t.numel())
        mask = default_mask.clone().contiguous()
        if count:
            mask.view(-1)[self._chosen(t, count)] = 0
        return mask


class RandomUnstructured(_Elements):
    """Prunes elements at random."""

    def _chosen(self, t: Tensor, count: int) -> Tensor:
        return topk(rand_like(t).reshape(-1), count).indices

    @classmethod
    def apply(cls, module: Module, name: str, amount):
        """Prune a parameter; see `random_unstructured`."""
        return super().apply(module, name, amount=amount)


class L1Unstructured(_Elements):
    """Prunes the elements of least magnitude."""

    def _chosen(self, t: Tensor, count: int) -> Tensor:
        return topk(t.abs().reshape(-1), count, largest=False).indices

    @classmethod
    def apply(cls, module: Module, name: str, amount, importance_scores: Tensor | None = None):
        """Prune a parameter; see `l1_unstructured`."""
        return super().apply(module, name, amount=amount, importance_scores=importance_scores)


class _Channels(_ByAmount):
    """Prunes whole channels along `dim`: all but those of `_kept`."""

    PRUNING_TYPE = "structured"

    def __init__(self, amount: int | float, dim: int = -1):
        super().__init__(amount)
        self.dim = dim

    def _kept(self, t: Tensor, count: int) -> Tensor:
        """An index of the channels that are left when `count` are pruned."""
        raise NotImplementedError

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The earlier mask, 0 in `amount` more channels.

        Raises:
            ValueError: the tensor has one dimension only.
            IndexError: there is no dimension `dim`.
        """
        dims = t.dim()
        if dims <= 1:
            raise ValueError(
                "Structured pruning can only be applied to multidimensional tensors. Found tensor of shape "
                f"{t.shape} with {dims} dims"
            )
        if not -dims <= self.dim < dims:
            raise IndexError(f"Invalid index {self.dim} for tensor of size {t.shape}")
        count = self._count(t.shape[self.dim])
        if not count:
            return default_mask
        mask = zeros_like(t)
        mask[(slice(None),) * (self.dim % dims) + (self._kept(t, count),)] = 1
        return mask * default_mask.to(dtype=mask.dtype)


class RandomStructured(_Channels):
    """Prunes channels along `dim` at random."""

    def _kept(self, t: Tensor, count: int) -> Tensor:
        drawn = rand(t.shape[self.dim])
        return drawn > kthvalue(drawn, count).values

    @classmethod
    def apply(cls, module: Module, name: str, amount, dim: int = -1):
        """Prune a parameter; see `random_structured`."""
        return super().apply(module, name, amount=amount, dim=dim)


class LnStructured(_Channels):
    """Prunes the channels along `dim` of least n-norm."""

    def __init__(self, amount: int | float, n, dim: int = -1):
        super().__init__(amount, dim)
        self.n = n

    def _kept(self, t: Tensor, count: int) -> Tensor:
        others = [d for d in range(t.dim()) if d != self.dim % t.dim()]
        return topk(norm(t, p=self.n, dim=others), t.shape[self.dim] - count).indices

    @classmethod
    def apply(cls, module: Module, name: str, amount, n, dim: int, importance_scores: Tensor | None = None):
        """Prune a parameter; see `ln_structured`."""
        return super().apply(module, name, amount=amount, n=n, dim=dim, importance_scores=importance_scores)


class CustomFromMask(BasePruningMethod):
    """Prunes what a given mask says."""

    PRUNING_TYPE = "global"

    def __init__(self, mask: Tensor):
        self.mask = mask

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The product of both masks; AssertionError if their shapes differ."""
        if default_mask.shape != self.mask.shape:
            raise AssertionError(
                f"default_mask shape {default_mask.shape} must match self.mask shape {self.mask.shape}"
            )
        return default_mask * self.mask.to(dtype=default_mask.dtype)

    @classmethod
    def apply(cls, module: Module, name: str, mask: Tensor):
        """Prune a parameter; see `custom_from_mask`."""
        return super().apply(module, name, mask=mask)


# --- functions -------------------------------------------------------------------------------------------------------


def identity(module: Module, name: str) -> Module:
    """Put mask and original of a parameter in place without pruning it, and return the module."""
    Identity.apply(module, name)
    return module


def random_unstructured(module: Module, name: str, amount: int | float) -> Module:
    """Prune elements of a parameter at random, and return the module.

    Args:
        module: the module that has the parameter.
        name: its name.
        amount: how many elements, or the part of those left from 0.0 to 1.0.
    """
    RandomUnstructured.apply(module, name, amount)
    return module


def l1_unstructured(module: Module, name: str, amount: int | float, importance_scores: Tensor | None = None) -> Module:
    """Prune the elements of a parameter of least magnitude, and return the module.

    Args:
        module: the module that has the parameter.
        name: its name.
        amount: how many elements, or the part of those left from 0.0 to 1.0.
        importance_scores: take their magnitudes instead, of the parameter's shape.
    """
    L1Unstructured.apply(module, name, amount=amount, importance_scores=importance_scores)
    return module


def random_structured(module: Module, name: str, amount: int | float, dim: int) -> Module:
    """Prune channels of a parameter at random, and return the module.

    Args:
        module: the module that has the parameter.
        name: its name.
        amount: how many channels, or the part of those left from 0.0 to 1.0.
        dim: the dimension along which the channels lie.
    """
    RandomStructured.apply(module, name, amount, dim)
    return module


def ln_structured(
    module: Module, name: str, amount: int | float, n, dim: int, importance_scores: Tensor | None = None
) -> Module:
    """Prune the channels of a parameter of least n-norm, and return the module.

    Args:
        module: the module that has the parameter.
        name: its name.
        amount: how many channels, or the part of those left from 0.0 to 1.0.
        n: the p of the norm, as for `pellucid.norm`.
        dim: the dimension along which the channels lie.
        importance_scores: take their norms instead, of the parameter's shape.
    """
    LnStructured.apply(module, name, amount, n, dim, importance_scores=importance_scores)
    return module


def custom_from_mask(module: Module, name: str, mask: Tensor) -> Module:
    """Prune what a mask, of the parameter's shape, has as 0, and return the module."""
    CustomFromMask.apply(module, name, mask)
    return module


def global_unstructured(parameters, pruning_method: type, importance_scores: dict | None = None, **kwargs) -> None:
    """Prune elements of several parameters, judged together.

    Args:
        parameters: pairs of a module and the name of a parameter.
        pruning_method: a class of unstructured pruning; `kwargs` are for its constructor.
        importance_scores: by such pairs, what to judge their elements by instead of their values.

    Raises:
        TypeError: no pairs, no dictionary, or a method that is not unstructured.
    """
    if not isinstance(parameters, Iterable):
        raise TypeError("global_unstructured(): parameters is not an Iterable")
    if not isinstance(importance_scores, dict | None):
        raise TypeError("global_unstructured(): importance_scores must be of type dict")
    pairs, scores = list(parameters), importance_scores or {}
    tensors = [getattr(module, name) for module, name in pairs]
    method = pruning_method(**kwargs)
    if method.PRUNING_TYPE != "unstructured":
        raise TypeError(
            f'Only "unstructured" PRUNING_TYPE supported for the `pruning_method`. Found method {pruning_method} of type '
            f"{method.PRUNING_TYPE}"
        )
    method._tensor_name = "all"
    masks = [getattr(m, f"{name}_mask", ones_like(t)) for (m, name), t in zip(pairs, tensors, strict=True)]
    mask = PruningContainer(method).compute_mask(
        parameters_to_vector([scores.get(pair, t) for pair, t in zip(pairs, tensors, strict=True)]),
        parameters_to_vector(masks),
    )
    pieces = mask.split([t.numel() for t in tensors])
    for (module, name), tensor, piece in zip(pairs, tensors, pieces, strict=True):
        custom_from_mask(module, name, mask=piece.view_as(tensor))


def remove(module: Module, name: str) -> Module:
    """Make the pruned values the parameter, without mask and hook, and return the module; ValueError if it is not pruned."""
    for key, hook in _hooks_on(module, name).items():
        hook.remove(module)
        del module._forward_pre_hooks[key]
        return module
    raise ValueError(f"Parameter '{name}' of module {module} has to be pruned before pruning can be removed")


def is_pruned(module: Module) -> bool:
    """Whether a parameter of the module, or of one inside it, is pruned."""
    hooks = [hook for each in module.modules() for hook in each._forward_pre_hooks.values()]
    return any(isinstance(hook, BasePruningMethod) for hook in hooks)
