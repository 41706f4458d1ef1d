"""`torch.linalg`: the names of linear algebra; the operators are in `ops/`."""

from pellucid.autograd.registry import public_names

__all__, __getattr__ = public_names("linalg", globals())
