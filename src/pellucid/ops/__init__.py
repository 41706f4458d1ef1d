"""The operators, one family a file, imported when one of their names is first used; `index.py` has the names.

What is composed of operators and declares no derivative is in `functions/`.
"""

from pellucid.autograd.registry import announce_families
from pellucid.ops.index import FAMILIES

announce_families(__name__, FAMILIES)
