"""The graph as a picture that one can open, search and replay: one HTML file, and its static twin, an SVG."""

from pellucid.graph.page.document import document, notebook_frame, show_page, write_page
from pellucid.graph.page.svg import MOST_BOXES, static_svg

__all__ = ["MOST_BOXES", "document", "notebook_frame", "show_page", "static_svg", "write_page"]
