"""The library under test, and a few short helpers.

The tests of this folder hold for every library with PyTorch's interface: `TEST_LIBRARY=torch` runs them on another one.
"""

import importlib
import os

import numpy as np
import pytest

torch = importlib.import_module(os.environ.get("TEST_LIBRARY", "pellucid"))
ON_PELLUCID = torch.__name__ == "pellucid"


def pellucid_only(reason):
    """Mark a test of something that is better than, or different from, PyTorch on purpose."""
    return pytest.mark.skipif(not ON_PELLUCID, reason=reason)


def leaf(values, dtype=torch.float64):
    """A tensor that requires grad."""
    return torch.tensor(values, dtype=dtype, requires_grad=True)


def const(values, dtype=torch.float64):
    """A tensor that does not require grad."""
    return torch.tensor(values, dtype=dtype)


def close(tensor, expected, tolerance=1e-9):
    """Whether a tensor holds the expected numbers."""
    if isinstance(expected, torch.Tensor):
        expected = expected.detach().numpy()
    array, expected = tensor.detach().numpy(), np.asarray(expected)
    same_shape = array.shape == expected.shape
    return same_shape and np.allclose(array, expected, rtol=tolerance, atol=tolerance, equal_nan=True)
