"""`pellucid.nn.functional`: the functions that modules are made of.

They are operators and compositions of operators, declared under `pellucid/ops` with this module as a public name; here
they only get their address. Nothing is computed in this file.
"""

from __future__ import annotations

import pellucid.ops  # noqa: F401 (registers the functions)
from pellucid.autograd.operator import PUBLIC

globals().update(PUBLIC["nn.functional"])

__all__ = sorted(PUBLIC["nn.functional"])


def __getattr__(name: str):
    raise AttributeError(f"module 'torch.nn.functional' has no attribute {name!r}")
