"""`torch.backends`: switches that PyTorch programs set. They are kept, and all say "not here"."""

from pellucid.backends import cuda, cudnn, mkl, mkldnn, mps, openmp

__all__ = ["cuda", "cudnn", "mkl", "mkldnn", "mps", "openmp"]
