"""`torch.special`: the names of special functions; the operators are in `ops/`, what is composed of them in `functions/`."""

from pellucid.autograd.registry import public_names

__all__, __getattr__ = public_names("special", globals())
