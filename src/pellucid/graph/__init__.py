"""Seeing the computation graph: as plain data, as text and pictures, with what it costs and what it keeps in memory."""

from pellucid.autograd.why import Cause, Why, why
from pellucid.graph.chain import Chain, chain
from pellucid.graph.cost import cost
from pellucid.graph.cost_report import Cost
from pellucid.graph.draw import draw_svg
from pellucid.graph.live import GraphGrowthWarning, live
from pellucid.graph.memory import memory
from pellucid.graph.memory_report import Memory
from pellucid.graph.snapshot import Graph
from pellucid.graph.summary import Summary, summary
from pellucid.graph.taking import backward_of, of, record

__all__ = [
    "Cause",
    "Chain",
    "Cost",
    "Graph",
    "GraphGrowthWarning",
    "Memory",
    "Summary",
    "Why",
    "backward_of",
    "chain",
    "cost",
    "draw_svg",
    "live",
    "memory",
    "of",
    "record",
    "summary",
    "why",
]
