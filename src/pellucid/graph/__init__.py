"""Seeing the computation graph."""

from pellucid.graph.draw import draw_svg

__all__ = ["draw_svg"]
