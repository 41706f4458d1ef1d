"""Autocast on the CPU: casts of weights that are kept, nesting, switches, custom functions, modules."""

import importlib
import threading
import warnings

import pytest
from autocast_blocks import bf16, block, f16, f32, f64, ramp
from library import close, const, leaf, pellucid_only, torch

F = torch.nn.functional


# --- weights ---------------------------------------------------------------------------------------------------------


def weight(dtype=f32):
    return leaf([[1.0, 2.0], [3.0, 4.0]], dtype)


def cast_of(result, position=1):
    """The node that cast an operand."""
    return result.grad_fn.next_functions[position][0]


def test_gradients_come_back_in_the_weights_type():
    w, x = weight(), const([[1.0, 0.5]], f32)
    with block():
        out = x @ w
    out.sum().backward()
    assert w.grad.dtype is f32
    assert close(w.grad, [[1.0, 1.0], [0.5, 0.5]])
    assert cast_of(out).name() == "ToCopyBackward0"


def test_a_weight_is_cast_once_a_block():
    w, x = weight(), const([[1.0, 0.5]], f32)
    with block():
        first, second = x @ w, x @ w
        with block():
            inner = x @ w
    with block():
        later = x @ w
    assert cast_of(first) is cast_of(second)
    assert cast_of(first) is cast_of(inner)
    assert cast_of(first) is not cast_of(later)
    (first + second).sum().backward()
    assert close(w.grad, [[2.0, 2.0], [1.0, 1.0]])


def test_casts_need_not_be_kept():
    w, x = weight(), const([[1.0, 0.5]], f32)
    with block(cache_enabled=False):
        assert not torch.is_autocast_cache_enabled()
        first, second = x @ w, x @ w
    assert cast_of(first) is not cast_of(second)
    assert torch.is_autocast_cache_enabled()
    with block():
        first = x @ w
        torch.clear_autocast_cache()
        assert cast_of(first) is not cast_of(x @ w)


def test_only_leaves_that_require_grad_are_kept():
    w, x = weight(), const([[1.0, 0.5]], f32)
    with block():
        twice = w * 2
        assert cast_of(x @ twice) is not cast_of(x @ twice)


def test_what_is_written_to_a_weight_is_seen_by_the_next_block():
    w, x = weight(), const([[1.0, 0.0]], f32)
    with block():
        before = x @ w
        with torch.no_grad():
            w.mul_(3)
        assert close((x @ w).float(), before.float())
    with block():
        assert close((x @ w).float(), 3 * before.float())


def test_a_cast_first_made_without_grad_mode_has_a_gradient():
    w, x = weight(), const([[1.0, 0.5]], f32)
    with block():
        with torch.no_grad():
            assert not (x @ w).requires_grad
        out = x @ w
    out.sum().backward()
    assert close(w.grad, [[1.0, 1.0], [0.5, 0.5]])


@pellucid_only("PyTorch takes the cast of the outer block and fails")
def test_a_block_of_another_type_inside_has_its_own_casts():
    w, x = weight(), const([[1.0, 0.5]], f32)
    with block():
        assert (x @ w).dtype is bf16
        with block(f16):
            assert (x @ w).dtype is f16
        assert (x @ w).dtype is bf16


def test_second_derivatives():
    w, x = weight(), const([[1.0, 0.5]], f32)
    with block():
        loss = (x @ w).float().pow(3).sum()
        (slope,) = torch.autograd.grad(loss, w, create_graph=True)
    slope.sum().backward()
    out = (x @ w).detach()
    assert close(w.grad, x.mT @ (6 * out * x.sum()), 2e-2)


# --- blocks ----------------------------------------------------------------------------------------------------------


def product():
    return (ramp(2, 2) @ ramp(2, 2)).dtype


def test_blocks_nest_and_end():
    assert product() is f32
    with block():
        assert product() is bf16
        with block(enabled=False):
            assert product() is f32
            with block(f16):
                assert product() is f16
            assert product() is f32
        assert product() is bf16
    assert product() is f32


def test_a_block_ends_with_an_exception():
    with pytest.raises(KeyError), block(f16, cache_enabled=False):
        raise KeyError("inside")
    assert product() is f32
    assert not torch.is_autocast_enabled("cpu")
    assert torch.get_autocast_dtype("cpu") is bf16
    assert torch.is_autocast_cache_enabled()


def test_the_type_is_bfloat16_unless_said_otherwise():
    with torch.autocast("cpu"):
        assert product() is bf16
    with torch.amp.autocast(device_type="cpu", dtype=f16):
        assert product() is f16
        assert torch.get_autocast_dtype("cpu") is f16
    assert torch.get_autocast_dtype("cuda") is f16


def test_as_a_decorator():
    @block(f16)
    def inside():
        """Words."""
        return product()

    assert inside() is f16
    assert inside.__doc__ == "Words."
    assert product() is f32
    with pytest.raises(TypeError, match=r"autocast\(\)\(func\) requires a callable, but got int"):
        block()(3)


def test_an_instance_can_be_entered_again():
    again = block()
    for _ in range(2):
        with again:
            assert product() is bf16
    assert product() is f32


def test_each_thread_has_its_own():
    seen = []
    with block():
        thread = threading.Thread(target=lambda: seen.append(product()))
        thread.start()
        thread.join()
        assert product() is bf16
    assert seen == [f32]


def test_switches():
    assert not torch.is_autocast_enabled("cpu")
    torch.set_autocast_enabled("cpu", True)
    try:
        assert torch.is_autocast_enabled("cpu")
        assert product() is bf16
        torch.set_autocast_dtype("cpu", f16)
        assert product() is f16
        with block():
            assert product() is bf16
        assert product() is f16
    finally:
        torch.set_autocast_dtype("cpu", bf16)
        torch.set_autocast_enabled("cpu", False)
        torch.clear_autocast_cache()
    assert product() is f32
    assert not torch.is_autocast_enabled()
    assert torch.autocast_increment_nesting() == 1
    assert torch.autocast_decrement_nesting() == 0
    torch.set_autocast_cache_enabled(False)
    assert not torch.is_autocast_cache_enabled()
    torch.set_autocast_cache_enabled(True)
    assert torch.amp.is_autocast_available("cpu")
    assert torch.amp.is_autocast_available("cuda")


def test_older_switches():
    with pytest.warns(DeprecationWarning, match=r"torch.is_autocast_cpu_enabled\(\) is deprecated"):
        assert not torch.is_autocast_cpu_enabled()
    with pytest.warns(DeprecationWarning, match=r"torch.get_autocast_cpu_dtype\(\) is deprecated"):
        assert torch.get_autocast_cpu_dtype() is bf16
    with pytest.warns(DeprecationWarning, match=r"torch.set_autocast_cpu_enabled\(enabled\) is deprecated"):
        torch.set_autocast_cpu_enabled(False)
    with pytest.warns(DeprecationWarning, match=r"torch.set_autocast_cpu_dtype\(dtype\) is deprecated"):
        torch.set_autocast_cpu_dtype(bf16)
    with pytest.warns(DeprecationWarning, match=r"torch.get_autocast_gpu_dtype\(\) is deprecated"):
        assert torch.get_autocast_gpu_dtype() is f16
    with pytest.warns(DeprecationWarning, match=r"torch.set_autocast_gpu_dtype\(dtype\) is deprecated"):
        torch.set_autocast_gpu_dtype(f16)


def test_older_blocks():
    with pytest.warns(FutureWarning, match=r"`torch.cpu.amp.autocast\(args...\)` is deprecated"):
        old = torch.cpu.amp.autocast()
    with old:
        assert product() is bf16
    with pytest.warns(FutureWarning, match=r"`torch.cuda.amp.autocast\(args...\)` is deprecated"):
        old = torch.cuda.amp.autocast(enabled=False)
    with old:
        assert product() is f32


def test_there_is_nothing_to_enable_for_a_gpu():
    with pytest.warns(UserWarning, match="CUDA is not available"):
        gpu = torch.autocast("cuda")
    with gpu:
        assert product() is f32
        assert not torch.is_autocast_enabled("cuda")


def test_a_type_that_is_not_low_disables():
    with pytest.warns(UserWarning, match="In CPU autocast, but the target dtype is not supported. Disabling autocast"):
        wide = block(f32)
    with wide:
        assert product() is f32


@pytest.mark.parametrize(
    ("call", "kind", "phrase"),
    [
        (lambda: torch.autocast(3), ValueError, "Expected `device_type` of type `str`, got: `<class 'int'>`"),
        (lambda: torch.autocast("gpu"), RuntimeError, "Expected one of cpu, cuda"),
        (lambda: torch.autocast("meta"), RuntimeError, "unsupported scalarType"),
        (lambda: torch.autocast("meta", bf16), RuntimeError, "unsupported autocast device_type 'meta'"),
        (lambda: torch.get_autocast_dtype("gpu"), RuntimeError, "Expected one of cpu, cuda"),
        (
            lambda: torch.set_autocast_enabled("cpu", 1),
            TypeError,
            "argument 'enabled' .position 2. must be bool, not int",
        ),
        (
            lambda: torch.set_autocast_dtype("cpu", 1),
            TypeError,
            "argument 'dtype' .position 2. must be torch.dtype, not int",
        ),
        (lambda: torch.amp.custom_fwd(device_type=3), ValueError, "Expected `device_type` of type `str`"),
        (lambda: torch.amp.custom_bwd(device_type=3), ValueError, "Expected `device_type` of type `str`"),
    ],
)
def test_refused(call, kind, phrase):
    with pytest.raises(kind, match=phrase):
        call()


# --- custom functions ------------------------------------------------------------------------------------------------


def square(seen, **options):
    """A function that notes under what it ran."""

    class Square(torch.autograd.Function):
        @staticmethod
        @torch.amp.custom_fwd(device_type="cpu", **options)
        def forward(ctx, a, more):
            seen.append((torch.is_autocast_enabled("cpu"), a.dtype, more["b"].dtype, more["n"]))
            ctx.save_for_backward(a)
            return a @ a

        @staticmethod
        @torch.amp.custom_bwd(device_type="cpu")
        def backward(ctx, grad):
            seen.append((torch.is_autocast_enabled("cpu"), grad.dtype))
            (a,) = ctx.saved_tensors
            return (grad @ a.mT + a.mT @ grad).to(a.dtype), None

    return lambda a: Square.apply(a, {"b": ramp(2), "n": "name"})


def test_backward_of_a_custom_function_runs_as_its_forward():
    seen, w = [], weight()
    with block():
        out = square(seen)(w)
    assert out.dtype is bf16
    out.sum().backward()
    assert seen == [(True, f32, f32, "name"), (True, bf16)]
    assert close(w.grad, [[7.0, 11.0], [9.0, 13.0]], 1e-2)
    square(seen)(w).sum().backward()
    assert seen[2:] == [(False, f32, f32, "name"), (False, f32)]


def test_inputs_of_a_custom_function_can_be_cast():
    seen, w = [], weight()
    with block():
        out = square(seen, cast_inputs=f32)(w.bfloat16())
        assert torch.is_autocast_enabled("cpu")
    assert out.dtype is f32
    out.sum().backward()
    assert seen == [(False, f32, f32, "name"), (False, f32)]
    del seen[:]
    square(seen, cast_inputs=f32)(weight(f64)).sum().backward()
    with block():
        square(seen, cast_inputs=f32)(weight(f64))
    assert [entry[1] for entry in seen] == [f64, f64, f64]


# --- modules ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "shape", "dtype"),
    [
        (lambda nn: nn.Sequential(nn.Linear(4, 8), nn.LayerNorm(8), nn.ReLU(), nn.Linear(8, 3)), (5, 4), bf16),
        (lambda nn: nn.Sequential(nn.Conv2d(2, 4, 3), nn.BatchNorm2d(4), nn.MaxPool2d(2)), (3, 2, 8, 8), bf16),
        (lambda nn: nn.Sequential(nn.Conv1d(2, 4, 3), nn.GroupNorm(2, 4), nn.GELU()), (3, 2, 8), bf16),
        (lambda nn: nn.Sequential(nn.Linear(4, 3), nn.RMSNorm(3)), (5, 4), bf16),
        (lambda nn: nn.Sequential(nn.Conv3d(1, 2, 2), nn.MaxPool3d(2)), (1, 1, 5, 5, 5), f32),
        (lambda nn: nn.LSTM(3, 4, 2, bidirectional=True), (5, 2, 3), bf16),
        (lambda nn: nn.GRU(3, 4), (5, 2, 3), f32),
        (lambda nn: nn.RNN(3, 4), (5, 2, 3), bf16),
        (lambda nn: nn.LSTMCell(3, 4), (2, 3), f32),
        (lambda nn: nn.TransformerEncoderLayer(4, 2, 8, 0.0, batch_first=True), (2, 5, 4), f32),
    ],
)
@pytest.mark.filterwarnings("ignore:Mismatch dtype between input and weight")  # PyTorch says that it is slow
def test_modules(make, shape, dtype):
    torch.manual_seed(0)
    module, x = make(torch.nn).eval(), ramp(*shape)
    with block():
        found = module(x)
    expected = module(x)
    while isinstance(found, tuple):
        found, expected = found[0], expected[0]
    assert found.dtype is dtype
    assert close(found.float(), expected, 5e-2)
    found.float().pow(2).sum().backward()
    assert all(p.grad is not None and p.grad.dtype is f32 for p in module.parameters())


def test_a_model_trains():
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(2, 16), torch.nn.Tanh(), torch.nn.Linear(16, 2))
    optimizer = torch.optim.SGD(model.parameters(), 0.5)
    inputs = torch.randn(64, 2)
    labels = (inputs[:, 0] > inputs[:, 1]).long()
    losses = []
    for _ in range(40):
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=bf16):
            loss = F.cross_entropy(model(inputs), labels)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.3 * losses[0]
    assert all(p.dtype is f32 for p in model.parameters())


def test_outside_of_blocks_nothing_is_noticed():
    with block():
        F.cross_entropy(ramp(2, 3), torch.tensor([0, 2]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert F.cross_entropy(ramp(2, 3, dtype=bf16), torch.tensor([0, 2])).dtype is bf16
    with pytest.raises(TypeError):
        F.cross_entropy(ramp(2, 3), torch.tensor([0, 2]), no_such_argument=1)


# --- with other machinery --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("reentrant", [True, False])
def test_checkpoints_recompute_under_the_same_autocast(reentrant):
    checkpoint = importlib.import_module(f"{torch.__name__}.utils.checkpoint").checkpoint

    w, x, seen = weight(), leaf([[1.0, 0.5]], f32), []

    def layer(x):
        seen.append(torch.get_autocast_dtype("cpu"))
        return x @ w

    with block(f16):
        out = checkpoint(layer, x, use_reentrant=reentrant)
    assert out.dtype is f16
    out.sum().backward()
    assert seen == [f16, f16]
    assert close(w.grad, [[1.0, 1.0], [0.5, 0.5]])
    assert not torch.is_autocast_enabled("cpu")


def test_hooks_see_what_is_saved_in_the_low_type():
    w, x, seen = weight(), const([[1.0, 0.5]], f32), []

    def pack(tensor):
        seen.append(tensor.dtype)
        return tensor.float()

    with block(), torch.autograd.graph.saved_tensors_hooks(pack, lambda kept: kept.bfloat16()):
        out = x @ w
    out.sum().backward()
    assert bf16 in seen
    assert close(w.grad, [[1.0, 1.0], [0.5, 0.5]])


def test_examples_of_a_batch_are_cast():
    w = ramp(3, 3)
    with block():
        found = torch.func.vmap(lambda v: w @ v)(ramp(2, 3))
        slope = torch.func.grad(lambda w: (ramp(2, 3) @ w).float().sum())(w)
    assert found.dtype is bf16
    assert close(found.float(), ramp(2, 3) @ w.mT, 1e-2)
    assert slope.dtype is f32


@pellucid_only("signatures and lines of Python functions")
def test_functions_keep_their_signature_and_the_line_of_their_call():
    import inspect

    with block():
        loss = F.cross_entropy(leaf([[1.0, 2.0]], f32), torch.tensor([0]))
    assert "label_smoothing" in inspect.signature(F.cross_entropy).parameters
    assert loss.grad_fn.site.file.endswith("test_autocast.py")
