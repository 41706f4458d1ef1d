"""`torch.masked`: the names of reductions and normalisations under a mask; the functions are in `ops/`."""

from pellucid.autograd.registry import public_names

__all__, __getattr__ = public_names("masked", globals())
