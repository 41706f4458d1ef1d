"""The library under test, and a few short helpers.

The tests of this folder hold for every library with PyTorch's interface: `TEST_LIBRARY=torch` runs them on another one.
"""

import contextlib
import importlib
import os

import numpy as np
import pytest

torch = importlib.import_module(os.environ.get("TEST_LIBRARY", "pellucid"))
ON_PELLUCID = torch.__name__ == "pellucid"
forward_ad = importlib.import_module(f"{torch.__name__}.autograd.forward_ad")


# What PyTorch keeps under `torch._C` and Pellucid offers in `autograd.graph`: questions to the running backward.
if ON_PELLUCID:
    graph = torch.autograd.graph
    task_id, keep_graph = graph.current_graph_task_id, graph.current_graph_task_keep_graph
    current_node, execution_order = graph.current_autograd_node, graph.current_graph_task_execution_order
    will_execute = graph.will_engine_execute_node
    hooks_enabled = graph.saved_tensors_hooks_is_enabled
    view_replay = contextlib.nullcontext  # it always repeats the operations of a view; PyTorch does so on request
    set_versions, make_saved_tensor = graph._unsafe_set_version_counter, graph.make_saved_tensor
else:
    private = torch._C
    task_id, keep_graph = private._current_graph_task_id, private._autograd._get_current_graph_task_keep_graph
    current_node, execution_order = private._current_autograd_node, private._current_graph_task_execution_order
    will_execute = private._will_engine_execute_node
    hooks_enabled = private._autograd._saved_tensors_hooks_is_enabled
    set_versions, make_saved_tensor = private._autograd._unsafe_set_version_counter, private._autograd._make_saved_tensor

    def view_replay():
        """A block in which views are brought up to date by their own operations."""
        return torch.autograd._force_original_view_tracking(True)


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


class Marker:
    """Something that can be watched."""
