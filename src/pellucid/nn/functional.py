"""`pellucid.nn.functional`: the functions that modules are made of.

They are operators, declared under `pellucid/ops`, and compositions of operators, written under `pellucid/functions`, with
this module as a public name; here they only get their address. Nothing is computed in this file.
"""

from __future__ import annotations

import pellucid.functions
import pellucid.ops  # noqa: F401 (both announce the functions)
from pellucid.autograd.registry import public_names

__all__, __getattr__ = public_names("nn.functional", globals())
