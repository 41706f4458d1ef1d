"""The names of things in a graph: found as `core/names.py` finds them, for error texts too."""

from pellucid.core.names import Names, local_names, names_here, names_in

__all__ = ["Names", "local_names", "names_here", "names_in"]
