"""The rows of the benchmark, in the order of the table: a file for each kind of model."""

from . import attention, cnn, convolutions, embeddings, gpt, limits, loading, lstm, mlp, pinn, resnet, scalars

MODULES = (limits, scalars, mlp, cnn, resnet, gpt, lstm, pinn, embeddings, attention, convolutions, loading)
ROWS = {row.name: row for module in MODULES for row in module.ROWS}
