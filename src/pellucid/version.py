"""The version, in the places where PyTorch programs look for it."""

__version__ = "0.1.0"
cuda = None  # the CUDA version PyTorch would have been built with
hip = None
git_version = ""
