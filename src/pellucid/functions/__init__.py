"""Functions composed of operators: they have no formula of their own, their derivatives come from what they call.

One family a file, imported when one of its names is first used; `index.py` has the names. Operators, which declare their
derivatives, are in `ops/`.
"""

from pellucid.autograd.registry import announce_families
from pellucid.functions.index import FAMILIES

announce_families(__name__, FAMILIES)
