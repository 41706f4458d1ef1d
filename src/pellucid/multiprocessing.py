"""`torch.multiprocessing`: Python's own, with `spawn`. Tensors travel between processes as copies."""

from __future__ import annotations

from multiprocessing import *  # noqa: F403 (the whole of it, as PyTorch does)
from multiprocessing import get_context


def spawn(fn, args: tuple = (), nprocs: int = 1, join: bool = True, daemon: bool = False, start_method: str = "spawn"):
    """Run `fn(i, *args)` in `nprocs` processes; RuntimeError if one of them fails.

    Args:
        join: wait for all of them; otherwise the list of processes is returned.
    """
    context = get_context(start_method)
    processes = [context.Process(target=fn, args=(i, *args), daemon=daemon) for i in range(nprocs)]
    for process in processes:
        process.start()
    if not join:
        return processes
    for index, process in enumerate(processes):
        process.join()
        if process.exitcode:
            raise RuntimeError(f"process {index} terminated with exit code {process.exitcode}")
    return None
