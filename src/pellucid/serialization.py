"""`torch.serialization`: reading and writing files, and which classes a file may bring."""

from pellucid.io.serialization import *  # noqa: F403 (the whole of it)
from pellucid.io.serialization import __all__  # noqa: F401
