"""Threads: graphs, leaves and hooks that several threads use at once; modes belong to a thread."""

import threading
import traceback
from concurrent.futures import ThreadPoolExecutor

import pytest
from library import close, leaf, torch


def run_in_threads(function, count=5):
    """Run `function(number)` in several threads at once; the results in order, or the first error."""
    barrier = threading.Barrier(count)

    def start(number):
        barrier.wait()
        return function(number)

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(start, range(count)))


def test_independent_graphs():
    def differentiate(number):
        x = leaf([[float(number), 2.0], [3.0, 4.0]])
        y = (x + 3) * (x + 4) * 0.5
        y.sum().backward()
        return close(x.grad, x + 3.5)

    assert run_in_threads(differentiate) == [True] * 5


def test_a_shared_leaf_accumulates_every_gradient():
    x = leaf([1.0, 2.0])

    def differentiate(_):
        for _ in range(20):
            ((x + 3) * (x + 4) * 0.5).sum().backward()

    run_in_threads(differentiate)
    assert close(x.grad, 100 * (x + 3.5))


def test_grad_of_a_shared_leaf_is_independent():
    x = leaf([1.0, 2.0])

    def differentiate(_):
        return torch.autograd.grad(((x + 3) * (x + 4) * 0.5).sum(), x)[0]

    assert all(close(g, x + 3.5) for g in run_in_threads(differentiate))
    assert x.grad is None


def test_every_thread_reads_the_same_grad_object():
    x = leaf([1.0])
    (x * 2).backward()
    assert len({id(g) for g in run_in_threads(lambda _: x.grad, 8)}) == 1


def test_a_shared_part_of_a_graph_needs_retain_graph():
    x = leaf([1.0, 2.0])
    shared = (x * x).exp()

    def differentiate(retain, part):
        def run(_):
            part.sum().backward(retain_graph=retain)

        return run

    run_in_threads(differentiate(True, shared))
    assert close(x.grad, 5 * 2 * x * (x * x).exp())
    with pytest.raises(RuntimeError, match="Specify retain_graph=True"):
        run_in_threads(differentiate(False, shared))


def test_an_error_in_a_thread_is_raised_in_it():
    def fail(_):
        torch.ones(2, requires_grad=True).backward()

    with pytest.raises(RuntimeError, match="grad can be implicitly created only for scalar outputs"):
        run_in_threads(fail)


def test_the_traceback_of_a_failing_backward_is_kept():
    class Broken(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, g):
            raise ValueError("a line to be found")

    with pytest.raises(ValueError, match="a line to be found") as caught:
        Broken.apply(leaf([1.0])).backward()
    text = "".join(traceback.format_exception(caught.value))
    assert 'raise ValueError("a line to be found")' in text


@pytest.mark.parametrize("mode", ["all", "any"])
def test_a_hook_on_several_tensors_runs_once_for_each_backward(mode):
    tensors = [leaf([float(k)]) for k in range(3)]
    calls = []
    lock = threading.Lock()

    def hook(grads):
        with lock:
            calls.append(threading.get_ident())

    handle = torch.autograd.graph.register_multi_grad_hook(tensors, hook, mode=mode)
    product = tensors[0] * tensors[1] * tensors[2]
    run_in_threads(lambda _: product.sum().backward(retain_graph=True))
    handle.remove()
    product.sum().backward()
    assert len(calls) == 5


def test_a_failing_backward_does_not_spoil_a_hook_on_several_tensors():
    tensors = [leaf([float(k)]) for k in range(2)]
    calls = []
    torch.autograd.graph.register_multi_grad_hook(tensors, calls.append)

    class Broken(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, g):
            raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        (tensors[0] + Broken.apply(tensors[1])).backward()
    (tensors[0] + tensors[1]).backward()
    assert len(calls) == 1


def test_grad_modes_of_threads_are_their_own():
    def modes(number):
        before = torch.is_grad_enabled()
        with torch.set_grad_enabled(number % 2 == 0):
            inside = (leaf([1.0]) * 2).requires_grad
        return before, inside, torch.is_grad_enabled()

    with torch.no_grad():
        seen = run_in_threads(modes, 4)
    assert seen == [(True, number % 2 == 0, True) for number in range(4)]


def test_hooks_on_saved_tensors_belong_to_a_thread():
    packed = []

    def keep(t):
        packed.append(t)
        return t

    with torch.autograd.graph.saved_tensors_hooks(keep, keep):
        run_in_threads(lambda _: leaf([1.0]).exp())
    assert packed == []


def test_hooks_on_saved_tensors_inside_data_parallel():
    class Square(torch.nn.Module):
        def forward(self, x):
            return x * x

    packed = []

    def pack(t):
        packed.append(t)
        return t * 10

    x = leaf([2.0])
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
        y = torch.nn.DataParallel(Square())(x)
    y.backward()
    assert len(packed) == 2
    assert close(x.grad, [40.0])


def test_the_multithreading_switch():
    enabled = torch.autograd.is_multithreading_enabled
    assert enabled()
    with torch.autograd.set_multithreading_enabled(False):
        assert not enabled()
        with torch.autograd.set_multithreading_enabled(True):
            assert enabled()
        assert not enabled()
    assert enabled()
    torch.autograd.set_multithreading_enabled(False)
    assert not enabled()
    torch.autograd.set_multithreading_enabled(True)
    assert enabled()
