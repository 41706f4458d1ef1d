"""Weights of convolutions laid out with the channels last in memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pellucid.nn.modules.conv import Conv2d, Conv3d, ConvTranspose2d, ConvTranspose3d

if TYPE_CHECKING:
    from pellucid.nn.modules.module import Module

__all__ = ["convert_conv2d_weight_memory_format", "convert_conv3d_weight_memory_format"]


def convert_conv2d_weight_memory_format(module: Module, memory_format) -> Module:
    """Lay out the weights of all `Conv2d` and `ConvTranspose2d` in a module anew, and return it; values stay."""
    return _converted(module, memory_format, (Conv2d, ConvTranspose2d))


def convert_conv3d_weight_memory_format(module: Module, memory_format) -> Module:
    """Lay out the weights of all `Conv3d` and `ConvTranspose3d` in a module anew, and return it; values stay."""
    return _converted(module, memory_format, (Conv3d, ConvTranspose3d))


def _converted(module: Module, memory_format, kinds: tuple) -> Module:
    for each in module.modules():
        if isinstance(each, kinds):
            each.weight.data = each.weight.detach().clone(memory_format=memory_format)
    return module
