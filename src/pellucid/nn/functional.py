"""`pellucid.nn.functional`: the functions that modules are made of.

They are operators and compositions of operators, declared under `pellucid/ops` with this module as a public name; here
they only get their address. Nothing is computed in this file.
"""

from __future__ import annotations

import pellucid.ops  # noqa: F401 (announces the functions)
from pellucid.autograd.registry import public_names

__all__, __getattr__ = public_names("nn.functional", globals())
