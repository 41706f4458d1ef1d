"""`torch.masked`: the names of reductions and normalisations under a mask; the functions are in `ops/`."""

from pellucid.autograd.operator import PUBLIC

globals().update(PUBLIC.get("masked", {}))
