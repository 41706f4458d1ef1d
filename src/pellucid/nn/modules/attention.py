"""Multi-head attention. The arithmetic is `nn.functional.multi_head_attention_forward`; here are the weights."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pellucid.nn import functional as F
from pellucid.nn import init
from pellucid.nn.modules.linear import NonDynamicallyQuantizableLinear
from pellucid.nn.modules.module import Module
from pellucid.nn.parameter import empty_parameter

if TYPE_CHECKING:
    from pellucid.core.tensor import Tensor

__all__ = ["MultiheadAttention"]


class MultiheadAttention(Module):
    """Attention of queries to keys and values, by several heads side by side.

    Args:
        embed_dim: size of queries and outputs; each head has embed_dim / num_heads of it.
        num_heads: how many heads.
        dropout: probability with which attention weights are dropped, in training.
        bias: whether the projections have one.
        add_bias_kv: whether a learnt key and value are added to each sequence.
        add_zero_attn: whether a zero key and value are added to each sequence.
        kdim, vdim: sizes of keys and values, `embed_dim` if None.
        batch_first: whether the batch comes before the steps in inputs and outputs.
        device, dtype: of the weights.

    The weights are in_proj_weight [3 * embed_dim, embed_dim] for queries, keys and values, or q_proj_weight,
    k_proj_weight, v_proj_weight if their sizes differ; in_proj_bias [3 * embed_dim]; out_proj.

    Raises:
        ValueError: a size is not positive.
        AssertionError: `embed_dim` cannot be divided by `num_heads`.

    Source: Vaswani and others, Attention is all you need, 2017.
    """

    def __init__(
        self, embed_dim: int, num_heads: int, dropout: float = 0.0, bias: bool = True, add_bias_kv: bool = False,
        add_zero_attn: bool = False, kdim: int | None = None, vdim: int | None = None, batch_first: bool = False,
        device=None, dtype=None,
    ):
        if embed_dim <= 0 or num_heads <= 0:
            raise ValueError(
                "embed_dim and num_heads must be greater than 0, "
                f"got embed_dim={embed_dim} and num_heads={num_heads} instead"
            )
        if embed_dim % num_heads:
            raise AssertionError(f"embed_dim must be divisible by num_heads, got {embed_dim} and {num_heads}")
        super().__init__()
        self.embed_dim = embed_dim
        self.kdim = embed_dim if kdim is None else kdim
        self.vdim = embed_dim if vdim is None else vdim
        self._qkv_same_embed_dim = self.kdim == embed_dim and self.vdim == embed_dim
        self.num_heads = num_heads
        self.dropout = dropout
        self.batch_first = batch_first
        self.head_dim = embed_dim // num_heads
        self._add_projections(bias, device, dtype)
        if add_bias_kv:
            self.bias_k = empty_parameter(1, 1, embed_dim, device=device, dtype=dtype)
            self.bias_v = empty_parameter(1, 1, embed_dim, device=device, dtype=dtype)
        else:
            self.bias_k = self.bias_v = None
        self.add_zero_attn = add_zero_attn
        self._reset_parameters()

    def _add_projections(self, bias: bool, device, dtype) -> None:
        embed_dim, together = self.embed_dim, self._qkv_same_embed_dim
        shapes = {
            "q_proj_weight": None if together else (embed_dim, embed_dim),
            "k_proj_weight": None if together else (embed_dim, self.kdim),
            "v_proj_weight": None if together else (embed_dim, self.vdim),
            "in_proj_weight": (3 * embed_dim, embed_dim) if together else None,
            "in_proj_bias": (3 * embed_dim,) if bias else None,
        }
        if together:  # the order in which a state dict lists what is there
            shapes = {"in_proj_weight": shapes.pop("in_proj_weight"), **shapes}
        for name, shape in shapes.items():
            value = None if shape is None else empty_parameter(*shape, device=device, dtype=dtype)
            self.register_parameter(name, value)
        self.out_proj = NonDynamicallyQuantizableLinear(embed_dim, embed_dim, bias=bias, device=device, dtype=dtype)

    def _reset_parameters(self) -> None:
        """Draw the projections after Glorot and Bengio; biases are 0."""
        for name in ("in_proj_weight", "q_proj_weight", "k_proj_weight", "v_proj_weight"):
            if (weight := getattr(self, name)) is not None:
                init.xavier_uniform_(weight)
        if self.in_proj_bias is not None:
            init.zeros_(self.in_proj_bias)
            init.zeros_(self.out_proj.bias)
        for bias in (self.bias_k, self.bias_v):
            if bias is not None:
                init.xavier_normal_(bias)

    def forward(
        self, query: Tensor, key: Tensor, value: Tensor, key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None, average_attn_weights: bool = True, is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """Attend.

        Args:
            query: [L, N, E], with `batch_first` [N, L, E], or [L, E].
            key, value: the same with S steps, of sizes `kdim` and `vdim`.
            key_padding_mask: [N, S] or [S], True where a key is to be ignored, or numbers to add.
            need_weights: whether the attention weights are wanted; without them it is faster.
            attn_mask: [L, S] or [N * heads, L, S], True where a query may not attend, or numbers to add.
            average_attn_weights: whether the weights are averaged over heads.
            is_causal: a hint that `attn_mask` is the causal one.

        Returns:
            The output, laid out as `query`, and the weights [N, L, S] or [N, heads, L, S], or None.
        """
        swap = self.batch_first and query.dim() == 3
        if swap:
            query, key, value = _steps_first(query, key, value)
        output, weights = F.multi_head_attention_forward(
            query, key, value, self.embed_dim, self.num_heads, self.in_proj_weight, self.in_proj_bias, self.bias_k,
            self.bias_v, self.add_zero_attn, self.dropout, self.out_proj.weight, self.out_proj.bias,
            training=self.training, key_padding_mask=key_padding_mask, need_weights=need_weights, attn_mask=attn_mask,
            use_separate_proj_weight=not self._qkv_same_embed_dim, q_proj_weight=self.q_proj_weight,
            k_proj_weight=self.k_proj_weight, v_proj_weight=self.v_proj_weight,
            average_attn_weights=average_attn_weights, is_causal=is_causal,
        )
        return output.transpose(1, 0) if swap else output, weights


def _steps_first(query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The three with steps before the batch; what was one tensor stays one, so that it is projected in one product."""
    swapped: dict[int, Tensor] = {}
    for tensor in (query, key, value):
        if id(tensor) not in swapped:
            swapped[id(tensor)] = tensor.transpose(1, 0)
    return swapped[id(query)], swapped[id(key)], swapped[id(value)]
