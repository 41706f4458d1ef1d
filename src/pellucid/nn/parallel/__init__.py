"""Data parallelism by PyTorch's names. Here one process computes on the CPU, so these call the module as it is."""

from pellucid.nn.parallel.data_parallel import DataParallel, data_parallel

__all__ = ["DataParallel", "data_parallel"]
