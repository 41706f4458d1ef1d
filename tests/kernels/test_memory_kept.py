"""Memory stays with the process: a training step in its steady state takes hardly any fresh page from the system."""

import os
import subprocess
import sys

import pytest

from pellucid.kernels import memory

pytestmark = pytest.mark.skipif(not memory._is_glibc(), reason="only glibc has these limits")

PROGRAM = """
import resource
import sys
import numpy as np
from pellucid.kernels import memory

if sys.argv[1] == "keep":
    assert memory.keep_pages()

def step():
    arrays = [np.ones(1 << 20) for _ in range(10)]  # 80 MiB: more than the system's limits would keep
    return sum(a[0] for a in arrays)

def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

step()
step()
before = faults()
for _ in range(5):
    step()
print((faults() - before) / 5)
"""


def faults(how: str) -> float:
    """Pages taken a step, in a process of its own."""
    environment = {name: value for name, value in os.environ.items() if name not in memory.OWN_SETTINGS}
    environment.pop("PELLUCID_MEMORY", None)
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, how], capture_output=True, text=True, check=True, env=environment, timeout=120
    )
    return float(done.stdout)


def test_pages_are_used_again():
    kept, returned = faults("keep"), faults("system")
    assert kept <= 20
    assert kept < returned / 5


def test_a_training_step_takes_no_fresh_pages():
    program = """
import resource
import pellucid
from pellucid import nn
from pellucid.kernels import memory

assert memory.keep_pages()
net = nn.Sequential(nn.Linear(512, 2048), nn.ReLU(), nn.Linear(2048, 512))
optimizer, x = pellucid.optim.Adam(net.parameters()), pellucid.randn(1024, 512)

def step():
    optimizer.zero_grad()
    net(x).square().mean().backward()
    optimizer.step()

for _ in range(4):
    step()
def taken():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    step()
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

print(min(taken() for _ in range(5)))
"""
    environment = {name: value for name, value in os.environ.items() if name not in memory.OWN_SETTINGS}
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, env=environment, timeout=300
    )
    pages = 1024 * 2048 * 4 / 4096  # of the largest array of the step
    assert float(done.stdout) < pages / 10


@pytest.mark.parametrize("name", memory.OWN_SETTINGS)
def test_settings_of_ones_own_are_respected(monkeypatch, name):
    monkeypatch.setenv(name, "1")
    assert not memory.keep_pages()


def test_a_switch_leaves_malloc_alone(monkeypatch):
    monkeypatch.setenv("PELLUCID_MEMORY", "system")
    assert not memory.keep_pages()


def test_other_systems_are_left_alone(monkeypatch):
    for name in (*memory.OWN_SETTINGS, "PELLUCID_MEMORY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(memory, "_is_glibc", lambda: False)
    assert not memory.keep_pages()
