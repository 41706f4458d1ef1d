"""`torch.masked`: the names of reductions and normalisations under a mask; the functions are in `functions/`."""

from pellucid.autograd.registry import public_names

__all__, __getattr__ = public_names("masked", globals())
