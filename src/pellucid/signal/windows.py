"""`torch.signal.windows`: the names of windows; the functions are in `ops/`."""

from pellucid.autograd.operator import PUBLIC

globals().update(PUBLIC.get("signal.windows", {}))
