"""`torch.fft`: the names of Fourier transforms; the operators are in `ops/`."""

from pellucid.autograd.operator import PUBLIC

globals().update(PUBLIC.get("fft", {}))
