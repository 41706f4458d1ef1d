"""Makes the helper module `library` importable from wherever the tests are started; a fixture about lifetimes."""

import contextlib
import gc
import sys
import weakref
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))


def pytest_configure(config):
    # Another library may warn of its own affairs: PyTorch does when forward mode is first used.
    config.addinivalue_line("filterwarnings", "ignore:.*torch.jit:DeprecationWarning")
    config.addinivalue_line("filterwarnings", "ignore:Attempted to insert a get_attr Node:UserWarning")


@pytest.fixture
def freed_by_reference_count():
    """A context whose watched objects must be gone at its end, without the garbage collector's help."""

    @contextlib.contextmanager
    def check():
        watched = []
        gc.collect()
        gc.disable()
        try:
            yield lambda thing: watched.append(weakref.ref(thing))
            assert watched
            assert [reference() for reference in watched] == [None] * len(watched)
        finally:
            gc.enable()

    return check


@pytest.fixture
def level():
    """An open level of forward mode."""
    from duals import dual_level  # found only now that this folder is on the path

    with dual_level():
        yield
