"""Seeing the computation graph: as plain data, as text and pictures, with what it costs and what it keeps in memory."""

from pellucid.graph.chain import Chain, chain
from pellucid.graph.draw import draw_svg
from pellucid.graph.snapshot import Graph
from pellucid.graph.taking import backward_of, of, record

__all__ = ["Chain", "Graph", "backward_of", "chain", "draw_svg", "of", "record"]
