"""`torch.linalg`: the names of linear algebra; the operators are in `ops/`."""

from pellucid.autograd.operator import PUBLIC

globals().update(PUBLIC.get("linalg", {}))
