"""Embeddings: tables of vectors, looked up by integer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pellucid.autograd.grad_mode import no_grad
from pellucid.nn import functional as F
from pellucid.nn import init
from pellucid.nn.modules.module import Module
from pellucid.nn.parameter import Parameter, empty_parameter

if TYPE_CHECKING:
    from pellucid.core.tensor import Tensor

__all__ = ["Embedding", "EmbeddingBag"]


class _Table(Module):
    """A table of vectors [num_embeddings, embedding_dim]; the vector at `padding_idx` is zero and stays so."""

    def _make_table(self, padding_idx: int | None, weight: Tensor | None, frozen: bool, device, dtype) -> None:
        self.padding_idx = self._from_front(padding_idx)
        shape = (self.num_embeddings, self.embedding_dim)
        if weight is None:
            self.weight = empty_parameter(*shape, device=device, dtype=dtype)
            self.weight.requires_grad_(not frozen)
            self.reset_parameters()
        elif tuple(weight.shape) != shape:
            raise AssertionError(
                "Shape of weight does not match num_embeddings and embedding_dim: "
                f"got {tuple(weight.shape)}, expected {shape}"
            )
        else:
            self.weight = Parameter(weight, requires_grad=not frozen)

    def _from_front(self, padding_idx: int | None) -> int | None:
        """The index counted from the front; AssertionError if it is not in the table."""
        if padding_idx is None:
            return None
        if not -self.num_embeddings <= padding_idx < self.num_embeddings:
            raise AssertionError(
                f"Padding_idx must be within num_embeddings: got {padding_idx}, with {self.num_embeddings} embeddings"
            )
        return padding_idx % self.num_embeddings

    def reset_parameters(self) -> None:
        """Draw the vectors from the normal distribution."""
        init.normal_(self.weight)
        self._fill_padding_idx_with_zero()

    def _fill_padding_idx_with_zero(self) -> None:
        if self.padding_idx is not None:
            with no_grad():
                self.weight[self.padding_idx].fill_(0)

    def _shown_settings(self, names: tuple[str, ...], usual: dict) -> str:
        shown = [f"{self.num_embeddings}, {self.embedding_dim}"]
        shown += [f"{name}={getattr(self, name)!r}" for name in names if getattr(self, name) != usual[name]]
        return ", ".join(shown)


def _check_pretrained(embeddings: Tensor) -> tuple[int, int]:
    if embeddings.dim() != 2:
        raise AssertionError(f"Embeddings parameter is expected to be 2-dimensional, got {embeddings.dim()} dimensions")
    return tuple(embeddings.shape)


class Embedding(_Table):
    """Look vectors up by number: integers [*] to [*, embedding_dim].

    Args:
        num_embeddings: how many vectors there are.
        embedding_dim: their size.
        padding_idx: the number whose vector is zero and gets no gradient.
        max_norm: vectors that are looked up are shortened, in place, to this norm.
        norm_type: the norm meant by `max_norm`.
        scale_grad_by_freq: whether a gradient is divided by how often its number occurs in the batch.
        sparse: accepted, with no effect: gradients are dense here.
        device, dtype: of the weight.

    Raises:
        AssertionError: `padding_idx` is not in the table.
    """

    def __init__(
        self, num_embeddings: int, embedding_dim: int, padding_idx: int | None = None, max_norm: float | None = None,
        norm_type: float = 2.0, scale_grad_by_freq: bool = False, sparse: bool = False, _weight: Tensor | None = None,
        _freeze: bool = False, device=None, dtype=None,
    ):
        super().__init__()
        self.num_embeddings = num_embeddings
        self.embedding_dim = embedding_dim
        self.max_norm = max_norm
        self.norm_type = norm_type
        self.scale_grad_by_freq = scale_grad_by_freq
        self.sparse = sparse
        self._make_table(padding_idx, _weight, _freeze, device, dtype)

    def forward(self, input: Tensor) -> Tensor:
        """Look up."""
        return F.embedding(
            input, self.weight, self.padding_idx, self.max_norm, self.norm_type, self.scale_grad_by_freq, self.sparse
        )

    def extra_repr(self) -> str:
        """Sizes, and the settings that are not the usual ones."""
        names = ("padding_idx", "max_norm", "norm_type", "scale_grad_by_freq", "sparse")
        usual = {"padding_idx": None, "max_norm": None, "norm_type": 2, "scale_grad_by_freq": False, "sparse": False}
        return self._shown_settings(names, usual)

    @classmethod
    def from_pretrained(
        cls, embeddings: Tensor, freeze: bool = True, padding_idx: int | None = None, max_norm: float | None = None,
        norm_type: float = 2.0, scale_grad_by_freq: bool = False, sparse: bool = False,
    ) -> Embedding:
        """An embedding with the given vectors [num_embeddings, embedding_dim], not trained if `freeze`."""
        rows, columns = _check_pretrained(embeddings)
        return cls(
            rows, columns, padding_idx, max_norm, norm_type, scale_grad_by_freq, sparse, _weight=embeddings,
            _freeze=freeze,
        )


class EmbeddingBag(_Table):
    """Look vectors up and reduce them, bag by bag: [B, N], or [N] with `offsets` [B], to [B, embedding_dim].

    Args:
        num_embeddings, embedding_dim, max_norm, norm_type, scale_grad_by_freq, sparse, device, dtype: as for
        `Embedding`.
        mode: "sum", "mean" or "max".
        include_last_offset: whether `offsets` ends with the number of indices.
        padding_idx: the number that is left out of every bag.
    """

    def __init__(
        self, num_embeddings: int, embedding_dim: int, max_norm: float | None = None, norm_type: float = 2.0,
        scale_grad_by_freq: bool = False, mode: str = "mean", sparse: bool = False, _weight: Tensor | None = None,
        include_last_offset: bool = False, padding_idx: int | None = None, device=None, dtype=None,
    ):
        super().__init__()
        self.num_embeddings = num_embeddings
        self.embedding_dim = embedding_dim
        self.max_norm = max_norm
        self.norm_type = norm_type
        self.scale_grad_by_freq = scale_grad_by_freq
        self.mode = mode
        self.sparse = sparse
        self.include_last_offset = include_last_offset
        self._make_table(padding_idx, _weight, False, device, dtype)

    def forward(self, input: Tensor, offsets: Tensor | None = None, per_sample_weights: Tensor | None = None) -> Tensor:
        """Look up and reduce; `per_sample_weights` scale the vectors, in mode "sum"."""
        return F.embedding_bag(
            input, self.weight, offsets, self.max_norm, self.norm_type, self.scale_grad_by_freq, self.mode, self.sparse,
            per_sample_weights, self.include_last_offset, self.padding_idx,
        )

    def extra_repr(self) -> str:
        """Sizes, the mode, and the settings that are not the usual ones."""
        names = ("max_norm", "norm_type", "scale_grad_by_freq", "mode", "padding_idx")
        usual = {"max_norm": None, "norm_type": 2, "scale_grad_by_freq": False, "mode": "", "padding_idx": None}
        return self._shown_settings(names, usual)

    @classmethod
    def from_pretrained(
        cls, embeddings: Tensor, freeze: bool = True, max_norm: float | None = None, norm_type: float = 2.0,
        scale_grad_by_freq: bool = False, mode: str = "mean", sparse: bool = False, include_last_offset: bool = False,
        padding_idx: int | None = None,
    ) -> EmbeddingBag:
        """A bag over the given vectors [num_embeddings, embedding_dim], not trained if `freeze`."""
        rows, columns = _check_pretrained(embeddings)
        made = cls(
            rows, columns, max_norm, norm_type, scale_grad_by_freq, mode, sparse, _weight=embeddings,
            include_last_offset=include_last_offset, padding_idx=padding_idx,
        )
        made.weight.requires_grad = not freeze
        return made
