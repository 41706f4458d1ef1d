"""Optimizers, and learning rates over time (`lr_scheduler`)."""

from pellucid.optim import lr_scheduler
from pellucid.optim._adafactor import Adafactor
from pellucid.optim._muon import Muon
from pellucid.optim.adadelta import Adadelta
from pellucid.optim.adagrad import Adagrad
from pellucid.optim.adam import Adam
from pellucid.optim.adamax import Adamax
from pellucid.optim.adamw import AdamW
from pellucid.optim.asgd import ASGD
from pellucid.optim.lbfgs import LBFGS
from pellucid.optim.nadam import NAdam
from pellucid.optim.optimizer import Optimizer
from pellucid.optim.radam import RAdam
from pellucid.optim.rmsprop import RMSprop
from pellucid.optim.rprop import Rprop
from pellucid.optim.sgd import SGD

__all__ = [
    "ASGD",
    "LBFGS",
    "SGD",
    "Adadelta",
    "Adafactor",
    "Adagrad",
    "Adam",
    "AdamW",
    "Adamax",
    "Muon",
    "NAdam",
    "Optimizer",
    "RAdam",
    "RMSprop",
    "Rprop",
    "lr_scheduler",
]
