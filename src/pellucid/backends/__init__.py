"""`torch.backends`: switches that PyTorch programs set. They are kept, and all say "not here".

One is our own: `winograd.enabled = False` forbids the faster and less exact method for 3x3 convolutions of float32.
"""

from pellucid.backends import cuda, cudnn, mkl, mkldnn, mps, openmp
from pellucid.kernels.convolution import winograd

__all__ = ["cuda", "cudnn", "mkl", "mkldnn", "mps", "openmp", "winograd"]
