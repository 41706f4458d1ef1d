"""`torch.fft`: the names of Fourier transforms; the operators are in `ops/`."""

from pellucid.autograd.registry import public_names

__all__, __getattr__ = public_names("fft", globals())
