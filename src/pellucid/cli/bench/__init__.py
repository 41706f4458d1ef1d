"""`pellucid bench`: Pellucid's speed and memory beside PyTorch's."""

from pellucid.cli.bench.command import DESCRIPTION, add_arguments, run
