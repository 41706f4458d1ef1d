"""One tensor as several pieces, views or copies, each by a basic index. `split`, `chunk` and their relatives are in
`functions/splitting.py`.
"""

from __future__ import annotations

from pellucid.autograd.operator import Array, operator


class _Pieces:
    """The pieces that basic indices select, one after another.

    input: [*S]; keys: one basic index for each piece. Returns views.
    """

    def forward(xp, input: Array, keys: tuple): return [input[key] for key in keys]

    def vjp_input(F, grad, input_shape, keys):
        have = [(g, k) for g, k in zip(grad, keys, strict=True) if g is not None]
        return F.assemble([g for g, _ in have], input_shape, tuple([k for _, k in have]))

    def samples(make): yield (make(3, 4), ((0, ...), (slice(1, 3),))), {}


class _Copies(_Pieces):
    """`_Pieces`, copied: they may be written to."""

    def forward(xp, input: Array, keys: tuple): return [input[key].copy() for key in keys]


def _family(pieces, name: str, node: str):
    options = {"multi_view": pieces is _Pieces, "linear": True, "outputs": None, "module": None, "holomorphic": False}
    return operator(name=name, node=f"{node}Backward0", **options)(pieces)


split_ = _family(_Pieces, "split", "Split")
split_with_sizes_ = _family(_Pieces, "split_with_sizes", "SplitWithSizes")
unbind_ = _family(_Pieces, "unbind", "Unbind")
unsafe_split_ = _family(_Copies, "unsafe_split", "UnsafeSplit")
unsafe_split_with_sizes_ = _family(_Copies, "unsafe_split_with_sizes", "UnsafeSplitWithSizes")
