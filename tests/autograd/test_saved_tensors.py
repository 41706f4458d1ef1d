"""What is saved for backward: hooks that pack and unpack it, copies on the CPU, freeing.

Attributes of nodes that give what was saved are in `test_saved_attributes.py`, overwriting it in `test_allowed_mutation.py`.
"""

import importlib

import pytest
from library import close, const, hooks_enabled, leaf, torch

graph = torch.autograd.graph
hooks = graph.saved_tensors_hooks


class Log:
    """Hooks that note what they get and pass it on unchanged."""

    def __init__(self):
        self.packed, self.unpacked = [], []

    def pack(self, t):
        self.packed.append(t)
        return t

    def unpack(self, t):
        self.unpacked.append(t)
        return t

    def counts(self):
        return len(self.packed), len(self.unpacked)

    def hooks(self):
        return hooks(self.pack, self.unpack)


# --- hooks -----------------------------------------------------------------------------------------------------------


def test_unpack_decides_what_backward_sees():
    x = leaf([2.0])
    with hooks(lambda t: t * 10, lambda t: t * 5):
        y = x * x
    y.backward()
    assert close(x.grad, [200.0])


def test_hooks_reach_saved_results():
    x = leaf([1.0])
    with hooks(lambda t: t * 10, lambda t: t * 5):
        y = x.exp()
    y.backward()
    assert close(x.grad, 50 * x.exp())


def test_hooks_act_in_their_block_only():
    x = leaf([2.0])
    log = Log()
    before = x * x
    with log.hooks():
        pass
    after = x * x
    (before + after).backward()
    assert log.counts() == (0, 0)


def test_pack_is_called_in_forward_and_unpack_in_backward():
    x = leaf([2.0])
    log = Log()
    with log.hooks():
        y = x * x
        assert log.counts() == (2, 0)
    y.backward()
    assert log.counts() == (2, 2)


COUNTS = {
    # computation of x and a constant c, how many values it saves
    "x * c": (lambda x, c: x * c, 1),
    "x * x": (lambda x, c: x * x, 2),
    "x + c": (lambda x, c: x + c, 0),
    "x * 3": (lambda x, c: x * 3, 0),
    "exp": (lambda x, c: x.exp(), 1),
    "sum": (lambda x, c: x.sum(), 0),
    "x / c": (lambda x, c: x / c, 1),
    "x ** 3": (lambda x, c: x**3, 1),
    "matmul": (lambda x, c: x.view(1, 2) @ c.view(2, 1), 1),
}


@pytest.mark.parametrize("name", COUNTS)
def test_only_what_the_derivative_needs_is_packed(name):
    compute, count = COUNTS[name]
    log = Log()
    with log.hooks():
        y = compute(leaf([1.0, 2.0]), const([3.0, 4.0]))
    y.sum().backward()
    assert log.counts() == (count, count)


def test_a_number_is_not_packed():
    log = Log()
    x = leaf([2.0])
    with log.hooks():
        y = x * 3
    y.backward()
    assert log.packed == []
    assert close(x.grad, [3.0])


def test_the_values_given_to_pack():
    log = Log()
    x, y = leaf([2.0]), leaf([5.0])
    with log.hooks():
        (x * y).exp()
    assert sorted(t.item() for t in log.packed)[:2] == [2.0, 5.0]
    assert len(log.packed) == 3


def test_pack_may_return_anything():
    store = {}

    def pack(t):
        store[len(store)] = t.detach().clone()
        return f"key {len(store) - 1}"

    x = leaf([2.0])
    with hooks(pack, lambda key: store[int(key.removeprefix("key "))]):
        y = x * x
    y.backward()
    assert close(x.grad, [4.0])


def test_saved_values_may_be_kept_in_a_file(tmp_path):
    def pack(t):
        name = tmp_path / str(len(list(tmp_path.iterdir())))
        torch.save(t.detach(), name)
        return name

    x = leaf([2.0, 3.0])
    with hooks(pack, torch.load):
        y = (x * x).exp()
    y.sum().backward()
    assert close(x.grad, 2 * x * (x * x).exp())


def test_the_innermost_hooks_win():
    x = leaf([2.0])
    with hooks(lambda t: t * 100, lambda t: t * 100), hooks(lambda t: t, lambda t: t * 5):
        y = x * x
    y.backward()
    assert close(x.grad, [20.0])


def test_outer_hooks_are_in_force_again_after_inner_ones():
    x = leaf([2.0])
    with hooks(lambda t: t, lambda t: t * 3):
        with hooks(lambda t: t, lambda t: t * 5):
            pass
        y = x * x
    y.backward()
    assert close(x.grad, [12.0])


def test_hooks_are_undone_after_an_exception():
    log = Log()
    with pytest.raises(ZeroDivisionError), log.hooks():
        raise ZeroDivisionError
    leaf([2.0]).exp()
    assert log.counts() == (0, 0)


def test_hooks_reach_the_double_backward():
    x = leaf([2.0])
    log = Log()
    with log.hooks():
        y = x**3
        (first,) = torch.autograd.grad(y, x, create_graph=True)
    assert len(log.packed) > 1
    (second,) = torch.autograd.grad(first, x)
    assert close(second, [12.0])


DOUBLE = {
    # where the hooks are in force, the factors of what x ** 3 gives at 2: 12 and 12
    "forward": (True, False, 4, 2),
    "backward": (False, True, 1, 4),
    "both": (True, True, 4, 8),
}


@pytest.mark.parametrize("where", DOUBLE)
def test_factors_of_packing_in_a_double_backward(where):
    in_forward, in_backward, first_factor, second_factor = DOUBLE[where]

    def doubling(on):
        return hooks(lambda t: 2 * t if on else t, lambda t: t)

    x = leaf([2.0])
    with doubling(in_forward):
        y = x**3
    with doubling(in_backward):
        (first,) = torch.autograd.grad(y, x, create_graph=True)
    (second,) = torch.autograd.grad(first, x)
    assert close(first, [first_factor * 12.0])
    assert close(second, [second_factor * 12.0])


def test_hooks_reach_custom_functions():
    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x, x.detach() * 1)
            return x * x

        @staticmethod
        def backward(ctx, g):
            x, other = ctx.saved_tensors
            return g * (x + other)

    x = leaf([2.0])
    log = Log()
    with log.hooks():
        y = Square.apply(x)
    y.backward()
    assert log.counts() == (2, 2)
    assert close(x.grad, [4.0])


def test_an_unpacked_tensor_has_a_version_of_its_own():
    x = leaf([2.0])
    unpacked = []

    def unpack(t):
        unpacked.append(t)
        return t

    with hooks(lambda t: t.detach().clone(), unpack):
        y = x.exp()
    y.add_(1)
    y.backward()
    assert unpacked[0]._version == 0
    assert close(x.grad, x.exp())


@pytest.mark.parametrize("side", ["pack", "unpack"])
def test_an_exception_in_a_hook_surfaces_as_it_is(side):
    def fail(t):
        raise KeyError("special")

    def keep(t):
        return t

    x = leaf([2.0])
    if side == "pack":
        with pytest.raises(KeyError, match="special"), hooks(fail, keep):
            x * x
    else:
        with hooks(keep, fail):
            y = x * x
        with pytest.raises(KeyError, match="special"):
            y.backward()
    (x * x).backward()
    assert close(x.grad, [4.0])


def test_unpack_must_return_a_tensor():
    x = leaf([2.0])
    with hooks(lambda t: t, lambda t: 7):
        y = x * x
    with pytest.raises(TypeError, match="unpack_hook expected to be a Tensor"):
        y.backward()


def test_pack_must_not_write_to_what_it_gets():
    x = leaf([2.0]) * 1
    with pytest.raises(RuntimeError, match="A saved tensor pack hook is modifying its input in place"):
        with hooks(lambda t: t.mul_(2), lambda t: t):
            x.exp()


def test_leaving_the_block_from_inside_unpack_does_no_harm():
    x = leaf([2.0])
    block = hooks(lambda t: t, lambda t: t)

    def unpack(t):
        block.__exit__(None, None, None)
        return t

    y = x.exp()
    y.grad_fn._raw_saved_result.register_hooks(lambda t: t, unpack)
    with block:
        y.backward()
    assert close(x.grad, x.exp())


def test_entering_a_block_from_inside_unpack_does_not_last():
    x = leaf([2.0])
    log = Log()

    def unpack(t):
        log.hooks().__enter__()
        return t

    with hooks(lambda t: t, unpack):
        y = x.exp()
    y.backward()
    x.exp()
    assert log.counts() == (0, 0)


def test_a_class_of_hooks_may_be_made():
    class Tenfold(hooks):
        def __init__(self):
            super().__init__(lambda t: t, lambda t: t * 10)

    x = leaf([2.0])
    with Tenfold():
        y = x * x
    y.backward()
    assert close(x.grad, [40.0])


# --- forbidding hooks ------------------------------------------------------------------------------------------------


def test_hooks_can_be_forbidden():
    with pytest.raises(RuntimeError, match="not here"), graph.disable_saved_tensors_hooks("not here"):
        with hooks(lambda t: t, lambda t: t):
            pass
    with pytest.raises(RuntimeError, match="not here"), hooks(lambda t: t, lambda t: t):
        with graph.disable_saved_tensors_hooks("not here"):
            pass
    with hooks(lambda t: t, lambda t: t):
        pass


def test_the_innermost_text_is_given():
    with graph.disable_saved_tensors_hooks("outer"):
        with graph.disable_saved_tensors_hooks("inner"):
            with pytest.raises(RuntimeError, match="inner"), hooks(lambda t: t, lambda t: t):
                pass
        with pytest.raises(RuntimeError, match="outer"), hooks(lambda t: t, lambda t: t):
            pass


def test_whether_hooks_are_allowed_can_be_asked():
    assert hooks_enabled()
    with graph.disable_saved_tensors_hooks("outer"):
        assert not hooks_enabled()
        with graph.disable_saved_tensors_hooks("inner"):
            assert not hooks_enabled()
        assert not hooks_enabled()
    assert hooks_enabled()


# --- save_on_cpu -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_save_on_cpu_changes_no_value(dtype):
    x = leaf([1.0, 2.0], dtype=dtype)
    with graph.save_on_cpu():
        y = (x * x).exp()
    y.sum().backward()
    assert x.grad.dtype is dtype
    assert close(x.grad, 2 * x * (x * x).exp(), tolerance=1e-6)


# --- detach_ of what was saved ---------------------------------------------------------------------------------------


def test_detaching_a_saved_operand_in_place_raises_in_backward():
    x = leaf([2.0])
    y = x * 1
    out = y * y
    y.detach_()
    with pytest.raises(RuntimeError, match="Trying to use a saved tensor that has been detached in-place"):
        torch.autograd.grad(out, x, create_graph=True)


def test_detaching_a_saved_result_in_place_is_fine():
    x = leaf([1.0])
    y = x.exp()
    out = y * 3
    y.detach_()
    out.backward()
    assert close(x.grad, 3 * x.exp())


def test_what_save_on_cpu_saved_can_be_read():
    x = leaf([1.0, 2.0])
    with graph.save_on_cpu(pin_memory=False):
        y = x.exp()
        z = x * x
    assert close(y.grad_fn._saved_result, y)
    assert close(z.grad_fn._saved_self, x)
    assert z.grad_fn._saved_self.requires_grad


@pytest.mark.parametrize("outside", ["save_on_cpu", "checkpoint"])
def test_save_on_cpu_and_a_checkpoint_in_each_other(outside):
    checkpoint = importlib.import_module(f"{torch.__name__}.utils.checkpoint").checkpoint

    def wave(x):
        return (x.sin() * x).exp()

    def on_cpu(x):
        with graph.save_on_cpu():
            return wave(x)

    x = leaf([0.5, 1.0])
    if outside == "checkpoint":
        y = checkpoint(on_cpu, x, use_reentrant=False)
    else:
        with graph.save_on_cpu():
            y = checkpoint(wave, x, use_reentrant=False)
    y.sum().backward()
    v = x.detach()
    assert close(x.grad, wave(v) * (v.cos() * v + v.sin()))


# --- freeing on access -----------------------------------------------------------------------------------------------


def test_saved_tensors_may_be_freed_when_they_are_read():
    class Square(torch.autograd.Function):
        clear_saved_tensors_on_access = True

        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            with pytest.raises(RuntimeError, match="can only be accessed once"):
                assert ctx.saved_tensors
            return 2 * g * x

    x = leaf([3.0])
    Square.apply(x).backward()
    assert close(x.grad, [6.0])
