"""A sampler that gives each of several training processes its share of a dataset."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator

from pellucid.core import random
from pellucid.utils.data.dataset import Dataset
from pellucid.utils.data.sampler import Sampler

__all__ = ["DistributedSampler"]


class DistributedSampler(Sampler):
    """Every `num_replicas`-th index from `rank` on; all shares are of one length.

    Call `set_epoch(n)` before each epoch, or all epochs have the same order.

    Args:
        dataset: something with a length.
        num_replicas: how many processes share it; all of the process group if None.
        rank: which of them this is; this process's rank if None.
        shuffle: whether indices come in random order, the same in all processes.
        seed: of that order; the same in all processes.
        drop_last: whether samples that cannot be shared evenly are left out; else some come twice.

    Raises:
        ValueError: rank is not between 0 and num_replicas - 1.
        RuntimeError: num_replicas or rank is None, and there is no process group.
    """

    def __init__(
        self,
        dataset: Dataset,
        num_replicas: int | None = None,
        rank: int | None = None,
        shuffle: bool = True,
        seed: int = 0,
        drop_last: bool = False,
    ):
        num_replicas = _process_group().get_world_size() if num_replicas is None else num_replicas
        rank = _process_group().get_rank() if rank is None else rank
        if not 0 <= rank < num_replicas:
            raise ValueError(f"Invalid rank {rank}, rank should be in the interval [0, {num_replicas - 1}]")
        self.dataset = dataset
        self.num_replicas = num_replicas
        self.rank = rank
        self.epoch = 0
        self.drop_last = drop_last
        length = len(dataset)
        left_out = num_replicas if drop_last and length % num_replicas else 0
        self.num_samples = math.ceil((length - left_out) / num_replicas)
        self.total_size = self.num_samples * num_replicas
        self.shuffle = shuffle
        self.seed = seed

    def __iter__(self) -> Iterator[int]:
        length = len(self.dataset)
        if self.shuffle:
            generator = random.Generator().manual_seed(self.seed + self.epoch)
            indices = random.permutation(length, generator=generator).tolist()
        else:
            indices = list(range(length))
        if length:
            indices *= math.ceil(self.total_size / length)
        return iter(indices[: self.total_size][self.rank :: self.num_replicas])

    def __len__(self) -> int:
        return self.num_samples

    def set_epoch(self, epoch: int) -> None:
        """Choose the order of an epoch, when shuffling."""
        self.epoch = epoch


def _process_group():
    """The distributed package, if the program has loaded it: this folder does not know it otherwise."""
    module = sys.modules.get("pellucid.distributed")
    if module is None or not module.is_initialized():
        raise RuntimeError(
            "Requires distributed package to be available and its process group initialized: "
            "pass num_replicas and rank, or call pellucid.distributed.init_process_group first"
        )
    return module
