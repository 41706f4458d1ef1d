"""Attention: the scaled dot product of queries and keys, and the multi-head form with its projections.

Without dropout it is one operator, that of `ops/attention_tiles.py`. Otherwise both are composed of matrix products and a
softmax that knows rows without any key (`ops/attention.py`).
"""

from __future__ import annotations

import math

import numpy as np

from pellucid.autograd.operator import composite
from pellucid.autograd.operator import tensors as T
from pellucid.core.checks import c_name
from pellucid.core.tensor import Tensor, wrap
from pellucid.functions.dropout import functional_dropout as dropout
from pellucid.functions.padding import pad
from pellucid.ops.attention import barrier
from pellucid.ops.joining import cat
from pellucid.ops.products import linear

__all__ = ["multi_head_attention_forward", "scaled_dot_product_attention"]


# --- one head, or many side by side ----------------------------------------------------------------------------------


def _check_dot_product(query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None, is_causal: bool) -> None:
    arrays = query._array, key._array, value._array
    if len({a.dtype for a in arrays}) > 1:
        raise RuntimeError(
            "Expected query, key, and value to have the same dtype, but got query.dtype: {} key.dtype: {} and value.dtype: {} "
            "instead. Convert them with .to(dtype).".format(*map(c_name, arrays))
        )
    if min(a.ndim for a in arrays) < 2:
        raise RuntimeError(
            "Expected query, key, and value to all be  at least 2 dimensional, but got query.dim: {} key.dim: {} and value.dim: "
            "{} instead. They are [*, steps, features].".format(*[a.ndim for a in arrays])
        )
    if attn_mask is None:
        return
    if attn_mask._array.dtype not in (np.bool_, arrays[0].dtype, np.float32):
        raise RuntimeError("Expected attn_mask dtype to be bool or float or to match query dtype, but got attn_mask.dtype: "
                           f"{c_name(attn_mask._array)} and  query.dtype: {c_name(arrays[0])} instead.")
    if is_causal:
        raise RuntimeError("_scaled_dot_product_attention: Explicit attn_mask should not be set when is_causal=True: give one of the two")


def _repeat_heads(tensor: Tensor, heads: int) -> Tensor:
    """Heads of keys or values, each repeated for its group of queries: [*, H, S, E] to [*, heads, S, E]."""
    own = tensor.size(-3)
    if not own or heads % own:
        raise RuntimeError(f"Number of heads in key and value must divide the number of heads in query: got {own} and {heads}")
    if own == heads:
        return tensor
    shape = tuple(tensor.shape)
    repeated = tensor.unsqueeze(-3).expand((*shape[:-2], heads // own, *shape[-2:]))
    return repeated.reshape((*shape[:-3], heads, *shape[-2:]))


@composite(module="nn.functional")
def scaled_dot_product_attention(
    query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False
):
    """softmax(query @ key^T * scale + mask) @ value.

    Args:
        query: [*, L, E].
        key, value: [*, S, E] and [*, S, EV], of the dtype of `query`.
        attn_mask: broadcastable to [*, L, S]: booleans, True where a query may see a key, or numbers to add to the scores.
        dropout_p: the probability with which a weight is dropped.
        is_causal: whether query i sees the keys 0 to i alone; not together with `attn_mask`.
        scale: 1 / sqrt(E) by default.
        enable_gqa: whether keys and values may have fewer heads [*, H, S, E] than queries, one for each group of them.

    Returns:
        [*, L, EV]; zeros for a query that sees no key.

    Raises:
        RuntimeError: dtypes, shapes or masks that do not fit.

    Source: Vaswani and others, Attention is all you need, 2017.
    """
    _check_dot_product(query, key, value, attn_mask, is_causal)
    if not 0 <= dropout_p <= 1:
        raise RuntimeError(f"dropout probability has to be between 0 and 1, but got {dropout_p}")
    dtype = query._array.dtype
    if enable_gqa:
        heads = query.size(-3)
        key, value = _repeat_heads(key, heads), _repeat_heads(value, heads)
    if scale is None:
        scale = 1 / math.sqrt(query.size(-1)) if query.size(-1) else math.nan
    if not dropout_p and _is_for_tiles(query, key, value, attn_mask, scale):
        return _in_tiles(query, key, value, attn_mask, is_causal, scale)
    scores = (query * scale) @ key.transpose(-2, -1)
    if is_causal:
        attn_mask = wrap(np.tri(query.size(-2), key.size(-2), dtype=bool))
    if attn_mask is not None:
        mask = barrier(attn_mask, dtype) if attn_mask._array.dtype == np.bool_ else attn_mask.to(query.dtype)
        scores = scores + mask
    weights = T.safe_softmax(scores)
    return (dropout(weights, dropout_p) if dropout_p else weights) @ value


def _is_for_tiles(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, scale) -> bool:
    """Whether the fused operator takes these: float32 or float64, sizes that fit, and a mask that needs no derivative."""
    q, k, v = query._array.shape, key._array.shape, value._array.shape
    if query._array.dtype not in (np.float32, np.float64) or q[-1] != k[-1] or k[-2] != v[-2] or not isinstance(scale, (int, float)):
        return False
    lead = _leading_shape(query, key, value)
    if lead is None or mask is None:
        return lead is not None
    if mask._requires_grad or (mask._rare is not None and mask._rare.tangents):
        return False
    wanted, given = (*lead, q[-2], k[-2]), mask._array.shape
    return len(given) <= len(wanted) and all(n in (1, m) for n, m in zip(given[::-1], wanted[::-1], strict=False))


def _leading_shape(*operands: Tensor) -> tuple[int, ...] | None:
    """What leading dimensions broadcast to; None if they do not."""
    shapes = [t._array.shape[:-2] for t in operands]
    if shapes.count(shapes[0]) == len(shapes):
        return shapes[0]
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        return None


def _in_tiles(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, causal: bool, scale: float) -> Tensor:
    """The fused operator, for leading dimensions that broadcast."""
    lead = _leading_shape(query, key, value)
    query, key, value = [
        t if t._array.shape[:-2] == lead else t.expand((*lead, *t._array.shape[-2:])) for t in (query, key, value)
    ]
    if mask is not None:
        mask = mask if mask._array.dtype == np.bool_ else mask.to(query.dtype)
        rank = len(lead) + 2
        mask = mask if mask._array.ndim == rank else mask[(None,) * (rank - mask._array.ndim) + (...,)]
    return T.dot_product_attention(query, key, value, mask, causal, float(scale))[0]


# --- several heads with their projections ----------------------------------------------------------------------------


def _expect(truth: bool, message: str) -> None:
    if not truth:
        raise AssertionError(message)


def _is_batch(query, key, value, key_padding_mask, attn_mask, num_heads: int) -> bool:
    """Whether queries are a batch [L, N, E] and not one sequence [L, E]; AssertionError if the rest does not fit."""
    rank = query.dim()
    _expect(rank in (2, 3), f"query should be unbatched 2D or batched 3D tensor but received {rank}-D query tensor")
    kind = "batched (3-D)" if rank == 3 else "unbatched (2-D)"
    _expect(
        key.dim() == value.dim() == rank,
        f"For {kind} `query`, expected `key` and `value` to be {rank}-D but found {key.dim()}-D and {value.dim()}-D tensors respectively",
    )
    _expect(
        key_padding_mask is None or key_padding_mask.dim() == rank - 1,
        f"For {kind} `query`, expected `key_padding_mask` to be `None` or {rank - 1}-D but found another number of dimensions: "
        f"{key_padding_mask is not None and list(key_padding_mask.shape)}",
    )
    if attn_mask is None:
        return rank == 3
    _expect(
        attn_mask.dim() in (2, 3),
        f"For {kind} `query`, expected `attn_mask` to be `None`, 2-D or 3-D but found {attn_mask.dim()}-D tensor instead",
    )
    expected = (num_heads, query.shape[0], key.shape[0])
    _expect(
        rank == 3 or attn_mask.dim() == 2 or tuple(attn_mask.shape) == expected,
        f"Expected `attn_mask` shape to be {expected} but got {tuple(attn_mask.shape)}",
    )
    return rank == 3


def _as_batch(*sequences: Tensor) -> list[Tensor]:
    """Sequences [L, E] as batches of one [L, 1, E]; what was one tensor stays one."""
    made = {id(t): t.unsqueeze(1) for t in sequences}
    return [made[id(t)] for t in sequences]


def _addend(mask, name: str, dtype: np.dtype):
    """A mask as numbers to add to scores: booleans say which keys are not seen."""
    if mask is None:
        return None
    kind = mask._array.dtype
    _expect(kind.kind in "bfV", f"only bool and floating types of {name} are supported: got {kind}")
    return barrier(~mask, dtype) if kind == np.bool_ else mask


def _check_mask_shape(mask: Tensor, steps: int, keys: int, batch: int, heads: int) -> Tensor:
    """The mask as [1, 1, L, S] or [N, heads, L, S]."""
    expected = (steps, keys) if mask.dim() == 2 else (batch * heads, steps, keys)
    if tuple(mask.shape) != expected:
        raise RuntimeError(f"The shape of the {mask.dim()}D attn_mask is {tuple(mask.shape)}, but should be {expected}.")
    return mask.reshape(1, 1, steps, keys) if mask.dim() == 2 else mask.reshape(batch, heads, steps, keys)


def _project_packed(query, key, value, weight, bias) -> tuple:
    """Queries, keys and values with their weights on top of one another; what is one tensor is projected in one product."""
    shapes = tuple(key.shape), tuple(value.shape)
    _expect(shapes[0] == shapes[1], f"key shape {shapes[0]} does not match value shape {shapes[1]}")
    _expect(weight is not None, "use_separate_proj_weight is False but in_proj_weight is None")
    size = query.size(-1)
    if query is key and key is value:
        return _linear_as_it_lies(query, weight, bias).chunk(3, -1)
    if key is value:
        weights = weight.split([size, 2 * size])
        biases = (None, None) if bias is None else bias.split([size, 2 * size])
        return _linear_as_it_lies(query, weights[0], biases[0]), *_linear_as_it_lies(key, weights[1], biases[1]).chunk(2, -1)
    biases = (None,) * 3 if bias is None else bias.chunk(3)
    return tuple(_linear_as_it_lies(x, w, b) for x, w, b in zip((query, key, value), weight.chunk(3), biases, strict=True))


def _project_apart(query, key, value, weights, bias) -> tuple:
    """Queries, keys and values with a weight each."""
    steps = tuple(key.shape[:2]), tuple(value.shape[:2])
    _expect(steps[0] == steps[1], f"key's sequence and batch dims {steps[0]} do not match value's {steps[1]}")
    for name, weight in zip("qkv", weights, strict=True):
        _expect(weight is not None, f"use_separate_proj_weight is True but {name}_proj_weight is None")
    biases = (None,) * 3 if bias is None else bias.chunk(3)
    return tuple(_linear_as_it_lies(x, w, b) for x, w, b in zip((query, key, value), weights, biases, strict=True))


def _linear_as_it_lies(x: Tensor, weight, bias) -> Tensor:
    """`linear` of [L, N, E]; a batch that lies in memory with N first is not copied for it, and neither is the result."""
    if x._array.flags.c_contiguous or not x._array.swapaxes(0, 1).flags.c_contiguous:
        return linear(x, weight, bias)
    return linear(x.transpose(0, 1), weight, bias).transpose(0, 1)


def _heads_first(tensor: Tensor, heads: int, head_dim: int, static: Tensor | None, name: str) -> Tensor:
    """[S, N, E] as [N, heads, S, E / heads], or what was given in its place as [N * heads, S, E / heads]."""
    batch = tensor.size(1)
    if static is None:
        return tensor.reshape(tensor.size(0), batch, heads, head_dim).permute(1, 2, 0, 3)
    rows = batch * heads
    _expect(static.size(0) == rows, f"expecting {name}.size(0) of {rows}, but got {static.size(0)}")
    _expect(static.size(2) == head_dim, f"expecting {name}.size(2) of {head_dim}, but got {static.size(2)}")
    return static.reshape(batch, heads, static.size(1), head_dim)


def _one_more(mask: Tensor | None) -> Tensor | None:
    """A mask for one more key, which everybody sees."""
    return None if mask is None else pad(mask, (0, 1))


def _with_padding(attn_mask, key_padding_mask, batch: int, keys: int) -> Tensor | None:
    """Both masks together, as [N or 1, heads or 1, L or 1, S]."""
    if key_padding_mask is None:
        return attn_mask
    for axis, size in enumerate((batch, keys)):
        given = key_padding_mask.size(axis)
        _expect(given == size, f"Expected key_padded_mask.shape[{axis}] to be {size}, but got {given}")
    spread = key_padding_mask.reshape(batch, 1, 1, keys)
    return spread if attn_mask is None else attn_mask + spread


def _attend_with_weights(q, k, v, mask, dropout_p: float) -> tuple[Tensor, Tensor]:
    """[N, heads, L, E / heads] of results, and the weights [N, heads, L, S]."""
    scores = (q * math.sqrt(1 / q.size(-1))) @ k.transpose(-2, -1)
    weights = (scores if mask is None else scores + mask).softmax(-1)
    weights = dropout(weights, dropout_p) if dropout_p else weights
    return weights @ v, weights


@composite(module="nn.functional")
def multi_head_attention_forward(
    query, key, value, embed_dim_to_check, num_heads, in_proj_weight, in_proj_bias, bias_k, bias_v, add_zero_attn, dropout_p,
    out_proj_weight, out_proj_bias, training=True, key_padding_mask=None, need_weights=True, attn_mask=None,
    use_separate_proj_weight=False, q_proj_weight=None, k_proj_weight=None, v_proj_weight=None, static_k=None, static_v=None,
    average_attn_weights=True, is_causal=False,
):  # fmt: skip
    """Attention of queries to keys and values by several heads side by side; `nn.MultiheadAttention` holds the weights.

    Args:
        query: [L, N, E] or [L, E].
        key, value: [S, N, *] or [S, *].
        embed_dim_to_check: E.
        num_heads: how many heads, each with E / num_heads features.
        in_proj_weight, in_proj_bias: [3 * E, E] and [3 * E] or None, for queries, keys and values.
        bias_k, bias_v: [1, 1, E] or None: one more key and value.
        add_zero_attn: whether a key and value of zeros are added.
        dropout_p: the probability with which a weight is dropped, in training.
        out_proj_weight, out_proj_bias: [E, E] and [E] or None.
        key_padding_mask: [N, S] or [S]: True where a key is not seen, or numbers to add.
        need_weights: whether the weights are wanted too.
        attn_mask: [L, S] or [N * num_heads, L, S]: True where a query does not see a key, or numbers to add.
        use_separate_proj_weight: whether q_proj_weight, k_proj_weight and v_proj_weight stand for in_proj_weight.
        static_k, static_v: [N * num_heads, S, E / num_heads] in place of the projected ones.
        average_attn_weights: whether the weights are averaged over heads.
        is_causal: says that `attn_mask` is the causal one.

    Returns:
        [L, N, E] or [L, E]; and the weights [N, L, S], [N, num_heads, L, S], without N for one sequence, or None.

    Raises:
        AssertionError, RuntimeError: shapes and dtypes that do not fit.
    """
    batched = _is_batch(query, key, value, key_padding_mask, attn_mask, num_heads)
    if is_causal and attn_mask is None:
        raise RuntimeError("Need attn_mask if specifying the is_causal hint: is_causal says that attn_mask is the causal mask")
    if not batched:
        query, key, value = _as_batch(query, key, value)
        key_padding_mask = None if key_padding_mask is None else key_padding_mask.unsqueeze(0)
    steps, batch, embed_dim = query.shape
    dtype, head_dim = query._array.dtype, embed_dim // num_heads
    _expect(
        embed_dim == embed_dim_to_check,
        f"was expecting embedding dimension of {embed_dim_to_check}, but got {embed_dim}",
    )
    _expect(head_dim * num_heads == embed_dim, f"embed_dim {embed_dim} not divisible by num_heads {num_heads}")
    key_padding_mask = _addend(key_padding_mask, "key_padding_mask", dtype)
    causal = is_causal and key_padding_mask is None and not need_weights
    attn_mask = None if causal else _addend(attn_mask, "attn_mask", dtype)

    if use_separate_proj_weight:
        q, k, v = _project_apart(query, key, value, (q_proj_weight, k_proj_weight, v_proj_weight), in_proj_bias)
    else:
        q, k, v = _project_packed(query, key, value, in_proj_weight, in_proj_bias)
    if attn_mask is not None:
        attn_mask = _check_mask_shape(attn_mask, steps, key.size(0), batch, num_heads)

    _expect((bias_k is None) == (bias_v is None), "bias_k and bias_v: one is set but the other is None")
    if bias_k is not None:
        _expect(static_k is None, "bias cannot be added to static key.")
        _expect(static_v is None, "bias cannot be added to static value.")
        k, v = cat([k, bias_k.expand(1, batch, embed_dim)]), cat([v, bias_v.expand(1, batch, embed_dim)])
        attn_mask, key_padding_mask = _one_more(attn_mask), _one_more(key_padding_mask)
    q = _heads_first(q, num_heads, head_dim, None, "q")
    k = _heads_first(k, num_heads, head_dim, static_k, "static_k")
    v = _heads_first(v, num_heads, head_dim, static_v, "static_v")
    if add_zero_attn:
        k, v = pad(k, (0, 0, 0, 1)), pad(v, (0, 0, 0, 1))
        attn_mask, key_padding_mask = _one_more(attn_mask), _one_more(key_padding_mask)
    mask = _with_padding(attn_mask, key_padding_mask, batch, k.size(-2))

    dropout_p = dropout_p if training else 0.0
    weights = None
    if need_weights:
        output, weights = _attend_with_weights(q, k, v, mask, dropout_p)
        weights = weights.mean(1) if average_attn_weights else weights
        weights = weights if batched else weights.squeeze(0)
    else:
        output = scaled_dot_product_attention(q, k, v, mask, dropout_p, causal)
    output = _linear_as_it_lies(output.permute(2, 0, 1, 3).reshape(steps, batch, embed_dim), out_proj_weight, out_proj_bias)
    return output if batched else output.squeeze(1), weights
