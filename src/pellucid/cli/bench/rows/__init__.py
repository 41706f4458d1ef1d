"""The rows of the benchmark, in the order of the table: a file for each kind of model."""

from . import cnn, gpt, limits, lstm, mlp, pinn, resnet, scalars

MODULES = (limits, scalars, mlp, cnn, resnet, gpt, lstm, pinn)
ROWS = {row.name: row for module in MODULES for row in module.ROWS}
