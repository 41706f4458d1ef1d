"""`torch.signal`: the names of signal processing."""

from pellucid.signal import windows
