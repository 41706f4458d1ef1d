"""`torch.special`: the names of special functions; the operators are in `ops/`."""

from pellucid.autograd.operator import PUBLIC

globals().update(PUBLIC.get("special", {}))
