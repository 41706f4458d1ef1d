"""Learning rates over time. Every schedule writes `lr` (some also momentum) into the groups of an optimizer."""

from pellucid.optim.lr_scheduler.base import EPOCH_DEPRECATION_WARNING, LRScheduler, _LRScheduler
from pellucid.optim.lr_scheduler.combine import ChainedScheduler, SequentialLR
from pellucid.optim.lr_scheduler.cycle import CosineAnnealingWarmRestarts, CyclicLR, OneCycleLR
from pellucid.optim.lr_scheduler.decay import (
    ConstantLR,
    CosineAnnealingLR,
    ExponentialLR,
    LambdaLR,
    LinearLR,
    MultiplicativeLR,
    MultiStepLR,
    PolynomialLR,
    StepLR,
)
from pellucid.optim.lr_scheduler.plateau import ReduceLROnPlateau
from pellucid.optim.lr_scheduler.warmup import WarmupLR, warmup

__all__ = [
    "EPOCH_DEPRECATION_WARNING",
    "ChainedScheduler",
    "ConstantLR",
    "CosineAnnealingLR",
    "CosineAnnealingWarmRestarts",
    "CyclicLR",
    "ExponentialLR",
    "LRScheduler",
    "LambdaLR",
    "LinearLR",
    "MultiStepLR",
    "MultiplicativeLR",
    "OneCycleLR",
    "PolynomialLR",
    "ReduceLROnPlateau",
    "SequentialLR",
    "StepLR",
    "WarmupLR",
    "_LRScheduler",
    "warmup",
]
