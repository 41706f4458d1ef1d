"""`torch.signal.windows`: the names of windows; the functions are in `functions/`."""

from pellucid.autograd.registry import public_names

__all__, __getattr__ = public_names("signal.windows", globals())
