"""`torch.backends`: switches that PyTorch programs set. They are kept, and all say "not here".

Two are our own: `winograd.enabled = False` forbids the faster and less exact method for 3x3 convolutions of float32, and
`matrix_unit.enabled = False` forbids products of float32 by the processor's matrix unit, which are as exact as others.
"""

from pellucid.backends import cuda, cudnn, mkl, mkldnn, mps, openmp
from pellucid.kernels.convolution import winograd
from pellucid.kernels.products import matrix_unit

__all__ = ["cuda", "cudnn", "matrix_unit", "mkl", "mkldnn", "mps", "openmp", "winograd"]
