"""Shuffling channels between groups."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pellucid.nn import functional as F
from pellucid.nn.modules.declared import Declared, declared

if TYPE_CHECKING:
    from pellucid.core.tensor import Tensor

__all__ = ["ChannelShuffle"]


@declared
class ChannelShuffle(Declared):
    """Deal the channels of [N, C, *] out to `groups`, in turn."""

    groups: int
    _shown = ("groups",)

    def forward(self, input: Tensor) -> Tensor:
        """Rearrange."""
        return F.channel_shuffle(input, self.groups)
