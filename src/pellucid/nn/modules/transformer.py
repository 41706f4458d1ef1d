"""The transformer: encoder, decoder, their layers, and the two together.

Sequences are [steps, batch, d_model], with `batch_first` [batch, steps, d_model], or [steps, d_model]. In masks True
means "do not look there"; masks of numbers are added to the scores.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING

import numpy as np

from pellucid.core.dtype import get_default_dtype
from pellucid.core.modes import modes
from pellucid.core.tensor import wrap
from pellucid.nn import functional as F
from pellucid.nn import init
from pellucid.nn.modules.activation import GELU, ReLU
from pellucid.nn.modules.attention import MultiheadAttention
from pellucid.nn.modules.container import ModuleList
from pellucid.nn.modules.dropout import Dropout
from pellucid.nn.modules.linear import Linear
from pellucid.nn.modules.module import Module
from pellucid.nn.modules.normalization import LayerNorm

if TYPE_CHECKING:
    from collections.abc import Callable

    from pellucid.core.dtype import dtype as DType
    from pellucid.core.tensor import Tensor

    Activation = str | Callable[[Tensor], Tensor]

__all__ = [
    "Transformer", "TransformerDecoder", "TransformerDecoderLayer", "TransformerEncoder", "TransformerEncoderLayer",
]


def _activation(activation: Activation) -> Callable[[Tensor], Tensor]:
    """The function that a name stands for; a function stands for itself."""
    if not isinstance(activation, str):
        return activation
    if activation not in ("relu", "gelu"):
        raise RuntimeError(f"activation should be relu/gelu, not {activation}")
    return F.relu if activation == "relu" else F.gelu


def _generate_square_subsequent_mask(sz: int, device=None, dtype: DType | None = None) -> Tensor:
    """[sz, sz] with -inf above the diagonal and 0 elsewhere: each step sees itself and those before."""
    return wrap(np.triu(np.full((sz, sz), -np.inf, (dtype or get_default_dtype()).numpy), 1))


def _is_causal(mask: Tensor | None, is_causal: bool | None) -> bool:
    """Whether this is the causal mask: what the caller says, or what the mask shows."""
    if is_causal is not None or mask is None:
        return bool(is_causal)
    values = mask._array
    if values.ndim != 2 or values.shape[0] != values.shape[1]:
        return False
    later = np.triu(np.ones(values.shape, bool), 1)
    return bool((values == (later if values.dtype == bool else np.where(later, -np.inf, 0))).all())


class _Layer(Module):
    """What the layers of encoder and decoder share: self-attention, then a network of two linear maps for each step.

    `norm_first` normalises what goes into each block, not what comes out.
    """

    _blocks = 2

    def _add_feed_forward(
        self, d_model: int, dim_feedforward: int, dropout: float, activation: Activation, norm_first: bool,
        settings: dict
    ) -> None:
        """Register the feed-forward network, and a norm and a dropout for each block."""
        factory = {"device": settings["device"], "dtype": settings["dtype"]}
        bias = settings["bias"]
        self.linear1 = Linear(d_model, dim_feedforward, bias=bias, **factory)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias=bias, **factory)
        self.norm_first = norm_first
        for number in range(1, self._blocks + 1):
            setattr(self, f"norm{number}", LayerNorm(d_model, eps=settings["eps"], bias=bias, **factory))
        for number in range(1, self._blocks + 1):
            setattr(self, f"dropout{number}", Dropout(dropout))
        self.activation = _activation(activation)

    def _residual(self, number: int, x: Tensor, block: Callable[[Tensor], Tensor]) -> Tensor:
        """x + block(x), normalised before or after."""
        norm = getattr(self, f"norm{number}")
        return x + block(norm(x)) if self.norm_first else norm(x + block(x))

    def _sa_block(self, x: Tensor, attn_mask, key_padding_mask, is_causal: bool = False) -> Tensor:
        """Self-attention and dropout."""
        return self.dropout1(_attend(self.self_attn, x, x, attn_mask, key_padding_mask, is_causal))

    def _ff_block(self, x: Tensor) -> Tensor:
        """The feed-forward network and dropout, the last block of the layer."""
        dropout = getattr(self, f"dropout{self._blocks}")
        return dropout(self.linear2(self.dropout(self.activation(self.linear1(x)))))


class TransformerEncoderLayer(_Layer):
    """Self-attention and a feed-forward network.

    Args:
        d_model: size of each step.
        nhead: heads of attention.
        dim_feedforward: size between the two linear maps.
        dropout: probability of dropout, in training.
        activation: between the two linear maps: "relu", "gelu" or a function.
        layer_norm_eps: `eps` of the normalisations.
        batch_first: whether the batch comes before the steps.
        norm_first: whether blocks are normalised before, not after.
        bias: whether linear maps and normalisations have one.
        device, dtype: of the weights.
    """

    def __init__(
        self, d_model: int, nhead: int, dim_feedforward: int = 2048, dropout: float = 0.1,
        activation: Activation = "relu",
        layer_norm_eps: float = 1e-5, batch_first: bool = False, norm_first: bool = False, bias: bool = True,
        device=None,
        dtype=None,
    ):
        super().__init__()
        settings = {"eps": layer_norm_eps, "bias": bias, "device": device, "dtype": dtype}
        self.self_attn = MultiheadAttention(
            d_model, nhead, dropout=dropout, bias=bias, batch_first=batch_first, device=device, dtype=dtype
        )
        self._add_feed_forward(d_model, dim_feedforward, dropout, activation, norm_first, settings)
        self.activation_relu_or_gelu = _known_activation(self.activation)

    def forward(
        self, src: Tensor, src_mask: Tensor | None = None, src_key_padding_mask: Tensor | None = None,
        is_causal: bool = False,
    ) -> Tensor:
        """Encode; `is_causal` is a hint that `src_mask` is the causal one."""
        x = self._residual(1, src, lambda x: self._sa_block(x, src_mask, src_key_padding_mask, is_causal))
        return self._residual(2, x, self._ff_block)


def _attend(attention: Module, x: Tensor, memory: Tensor, mask, padding_mask, is_causal: bool) -> Tensor:
    """Attention of x to memory, without the weights."""
    output, _ = attention(
        x, memory, memory, attn_mask=mask, key_padding_mask=padding_mask, is_causal=is_causal, need_weights=False
    )
    return output


def _known_activation(activation: Callable) -> int:
    """1 for relu, 2 for gelu, 0 for another function."""
    if activation is F.relu or isinstance(activation, ReLU):
        return 1
    return 2 if activation is F.gelu or isinstance(activation, GELU) else 0


class TransformerDecoderLayer(_Layer):
    """Self-attention, attention to the encoder's output, and a feed-forward network.

    Arguments as for `TransformerEncoderLayer`.
    """

    _blocks = 3

    def __init__(
        self, d_model: int, nhead: int, dim_feedforward: int = 2048, dropout: float = 0.1,
        activation: Activation = "relu",
        layer_norm_eps: float = 1e-5, batch_first: bool = False, norm_first: bool = False, bias: bool = True,
        device=None,
        dtype=None,
    ):
        super().__init__()
        settings = {"eps": layer_norm_eps, "bias": bias, "device": device, "dtype": dtype}
        for name in ("self_attn", "multihead_attn"):
            attention = MultiheadAttention(
                d_model, nhead, dropout=dropout, bias=bias, batch_first=batch_first, device=device, dtype=dtype
            )
            setattr(self, name, attention)
        self._add_feed_forward(d_model, dim_feedforward, dropout, activation, norm_first, settings)

    def forward(
        self, tgt: Tensor, memory: Tensor, tgt_mask: Tensor | None = None, memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None, memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool = False, memory_is_causal: bool = False,
    ) -> Tensor:
        """Decode `tgt`, looking at `memory`, the encoder's output."""
        x = self._residual(1, tgt, lambda x: self._sa_block(x, tgt_mask, tgt_key_padding_mask, tgt_is_causal))
        x = self._residual(
            2, x, lambda x: self._mha_block(x, memory, memory_mask, memory_key_padding_mask, memory_is_causal)
        )
        return self._residual(3, x, self._ff_block)

    def _mha_block(self, x: Tensor, mem: Tensor, attn_mask, key_padding_mask, is_causal: bool = False) -> Tensor:
        """Attention to the encoder's output, and dropout."""
        return self.dropout2(_attend(self.multihead_attn, x, mem, attn_mask, key_padding_mask, is_causal))


def _clones(module: Module, count: int) -> ModuleList:
    return ModuleList([copy.deepcopy(module) for _ in range(count)])


class TransformerEncoder(Module):
    """Encoder layers, one after the other.

    Args:
        encoder_layer: the layer of which each is a copy.
        num_layers: how many.
        norm: a normalisation at the end, or None.
        enable_nested_tensor: whether evaluation without gradients may leave out padded steps, whose output is then zero
            before `norm`.
        mask_check: whether that is only done where the padding is all at the end.
    """

    def __init__(
        self, encoder_layer: TransformerEncoderLayer, num_layers: int, norm: Module | None = None,
        enable_nested_tensor: bool = True, mask_check: bool = True,
    ):
        super().__init__()
        self.layers = _clones(encoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm
        self.enable_nested_tensor = enable_nested_tensor
        self.use_nested_tensor = enable_nested_tensor and _can_leave_out_padding(encoder_layer)
        self.mask_check = mask_check

    def forward(
        self, src: Tensor, mask: Tensor | None = None, src_key_padding_mask: Tensor | None = None,
        is_causal: bool | None = None,
    ) -> Tensor:
        """Encode; with `is_causal=None` a causal mask is recognised."""
        is_causal = _is_causal(mask, is_causal)
        output = src
        for layer in self.layers:
            output = layer(output, src_mask=mask, is_causal=is_causal, src_key_padding_mask=src_key_padding_mask)
        if self._leaves_out_padding(src, mask, src_key_padding_mask):
            output = output.masked_fill(_ignored(src_key_padding_mask).unsqueeze(-1), 0.0)
        return output if self.norm is None else self.norm(output)

    def _leaves_out_padding(self, src: Tensor, mask: Tensor | None, padding: Tensor | None) -> bool:
        """Whether PyTorch would compute without the padded steps, so that they come out as zeros."""
        if not self.use_nested_tensor or self.layers[0].training:
            return False
        if src.dim() != 3 or padding is None or mask is not None:
            return False
        if modes.grad_enabled and (src.requires_grad or any(p.requires_grad for p in self.layers[0].parameters())):
            return False
        ignored = _ignored(padding)._array
        return not self.mask_check or bool((np.diff(ignored.astype(np.int8), axis=1) >= 0).all())


def _ignored(padding: Tensor) -> Tensor:
    """A padding mask as True and False."""
    return padding if padding._array.dtype == bool else padding != 0


def _can_leave_out_padding(layer: Module) -> bool:
    """Whether this is the kind of layer for which PyTorch leaves out padded steps."""
    if not isinstance(layer, TransformerEncoderLayer) or layer.norm_first:
        return False
    attention = layer.self_attn
    return bool(
        attention.batch_first and attention._qkv_same_embed_dim and attention.in_proj_bias is not None
        and layer.activation_relu_or_gelu and layer.norm1.eps == layer.norm2.eps and attention.num_heads % 2 == 0
    )


class TransformerDecoder(Module):
    """Decoder layers, one after the other.

    Args:
        decoder_layer: the layer of which each is a copy.
        num_layers: how many.
        norm: a normalisation at the end, or None.
    """

    def __init__(self, decoder_layer: TransformerDecoderLayer, num_layers: int, norm: Module | None = None):
        super().__init__()
        self.layers = _clones(decoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm

    def forward(
        self, tgt: Tensor, memory: Tensor, tgt_mask: Tensor | None = None, memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None, memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool | None = None, memory_is_causal: bool = False,
    ) -> Tensor:
        """Decode `tgt`, looking at `memory`; with `tgt_is_causal=None` a causal mask is recognised."""
        tgt_is_causal = _is_causal(tgt_mask, tgt_is_causal)
        output = tgt
        for layer in self.layers:
            output = layer(
                output, memory, tgt_mask=tgt_mask, memory_mask=memory_mask, tgt_key_padding_mask=tgt_key_padding_mask,
                memory_key_padding_mask=memory_key_padding_mask, tgt_is_causal=tgt_is_causal,
                memory_is_causal=memory_is_causal,
            )
        return output if self.norm is None else self.norm(output)


class Transformer(Module):
    """Encoder and decoder.

    Args:
        d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first, bias, device,
        dtype:
            as for `TransformerEncoderLayer`.
        num_encoder_layers, num_decoder_layers: how many of each.
        custom_encoder, custom_decoder: modules to be used instead.

    Source: Vaswani and others, Attention is all you need, 2017.
    """

    def __init__(
        self, d_model: int = 512, nhead: int = 8, num_encoder_layers: int = 6, num_decoder_layers: int = 6,
        dim_feedforward: int = 2048, dropout: float = 0.1, activation: Activation = "relu",
        custom_encoder: Module | None = None, custom_decoder: Module | None = None, layer_norm_eps: float = 1e-5,
        batch_first: bool = False, norm_first: bool = False, bias: bool = True, device=None, dtype=None,
    ):
        super().__init__()
        shared = (d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first, bias)
        factory = {"device": device, "dtype": dtype}
        if custom_encoder is None:
            layer = TransformerEncoderLayer(*shared, **factory)
            norm = LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **factory)
            custom_encoder = TransformerEncoder(layer, num_encoder_layers, norm)
        self.encoder = custom_encoder
        if custom_decoder is None:
            layer = TransformerDecoderLayer(*shared, **factory)
            norm = LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **factory)
            custom_decoder = TransformerDecoder(layer, num_decoder_layers, norm)
        self.decoder = custom_decoder
        self._reset_parameters()
        self.d_model = d_model
        self.nhead = nhead
        self.batch_first = batch_first

    def _reset_parameters(self) -> None:
        """Draw all matrices after Glorot and Bengio."""
        for parameter in self.parameters():
            if parameter.dim() > 1:
                init.xavier_uniform_(parameter)

    def forward(
        self, src: Tensor, tgt: Tensor, src_mask: Tensor | None = None, tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None, src_key_padding_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None, memory_key_padding_mask: Tensor | None = None,
        src_is_causal: bool | None = None, tgt_is_causal: bool | None = None, memory_is_causal: bool = False,
    ) -> Tensor:
        """Encode `src`, then decode `tgt`; RuntimeError if batch sizes differ or a size is not d_model."""
        batch_dim = 0 if self.batch_first else 1
        if src.dim() == 3 and src.size(batch_dim) != tgt.size(batch_dim):
            raise RuntimeError(
                "the batch number of src and tgt must be equal: "
                f"got {src.size(batch_dim)} and {tgt.size(batch_dim)} (batch_first={self.batch_first})"
            )
        if src.size(-1) != self.d_model or tgt.size(-1) != self.d_model:
            raise RuntimeError(
                "the feature number of src and tgt must be equal to d_model: "
                f"got {src.size(-1)} and {tgt.size(-1)}, d_model={self.d_model}"
            )
        memory = self.encoder(
            src, mask=src_mask, src_key_padding_mask=src_key_padding_mask, is_causal=src_is_causal
        )
        return self.decoder(
            tgt, memory, tgt_mask=tgt_mask, memory_mask=memory_mask, tgt_key_padding_mask=tgt_key_padding_mask,
            memory_key_padding_mask=memory_key_padding_mask, tgt_is_causal=tgt_is_causal,
            memory_is_causal=memory_is_causal,
        )

    @staticmethod
    def generate_square_subsequent_mask(sz: int, device=None, dtype: DType | None = None) -> Tensor:
        """The causal mask: [sz, sz] with -inf above the diagonal and 0 elsewhere."""
        return _generate_square_subsequent_mask(sz, device, dtype)
