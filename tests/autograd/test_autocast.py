"""Autocast on the CPU: in which type each function runs, casts of weights that are kept, nesting, and custom functions."""

import importlib
import threading
import warnings

import pytest
from library import close, const, leaf, pellucid_only, torch

F = torch.nn.functional
bf16, f16, f32, f64 = torch.bfloat16, torch.float16, torch.float32, torch.float64


def block(dtype=bf16, **options):
    return torch.autocast("cpu", dtype, **options)


def ramp(*shape, dtype=f32):
    count = 1
    for size in shape:
        count *= size
    return torch.linspace(-1, 1, count).reshape(shape).to(dtype)


def definite(dtype):
    square = ramp(3, 3)
    return (square @ square.mT + 3 * torch.eye(3)).to(dtype)


LABELS = torch.tensor([0, 2])
SIGNS = torch.tensor([1.0, -1.0])

# name -> call, given a function that makes tensors of a shape
LOW = {
    "mm": lambda t: torch.mm(t(2, 3), t(3, 4)),
    "@": lambda t: t(2, 3) @ t(3, 4),
    "matmul of vectors": lambda t: torch.matmul(t(3), t(3)),
    "matmul by a vector": lambda t: torch.matmul(t(2, 3), t(3)),
    "bmm": lambda t: torch.bmm(t(2, 2, 3), t(2, 3, 2)),
    "addmm": lambda t: torch.addmm(t(2, 4), t(2, 3), t(3, 4)),
    "addbmm": lambda t: torch.addbmm(t(2, 2), t(2, 2, 3), t(2, 3, 2)),
    "baddbmm": lambda t: torch.baddbmm(t(2, 2, 2), t(2, 2, 3), t(2, 3, 2)),
    "linear": lambda t: F.linear(t(2, 3), t(4, 3), t(4)),
    "einsum": lambda t: torch.einsum("ij,jk->ik", t(2, 3), t(3, 4)),
    "inner": lambda t: torch.inner(t(2, 3), t(2, 3)),
    "tensordot": lambda t: torch.tensordot(t(2, 3), t(3, 4), 1),
    "multi_dot": lambda t: torch.linalg.multi_dot([t(2, 3), t(3, 4), t(4, 2)]),
    "matrix_power": lambda t: torch.matrix_power(t(3, 3), 2),
    "vecdot": lambda t: torch.linalg.vecdot(t(2, 3), t(2, 3)),
    "conv1d": lambda t: F.conv1d(t(1, 2, 5), t(3, 2, 2)),
    "conv2d": lambda t: F.conv2d(t(1, 2, 5, 5), t(3, 2, 2, 2), t(3)),
    "conv3d": lambda t: F.conv3d(t(1, 2, 3, 3, 3), t(3, 2, 2, 2, 2)),
    "conv_transpose2d": lambda t: F.conv_transpose2d(t(1, 2, 3, 3), t(2, 3, 2, 2)),
    "conv_tbc": lambda t: torch.conv_tbc(t(5, 1, 2), t(2, 2, 3), t(3)),
    "prelu": lambda t: F.prelu(t(2, 3), t(1)),
    "attention": lambda t: F.scaled_dot_product_attention(t(1, 2, 3), t(1, 2, 3), t(1, 2, 3)),
}
FULL = {
    "prod": lambda t: t(2, 3).prod(),
    "prod of rows": lambda t: torch.prod(t(2, 3), 1),
    "trace": lambda t: torch.trace(t(3, 3)),
    "cdist": lambda t: torch.cdist(t(2, 3), t(4, 3)),
    "quantile": lambda t: torch.quantile(t(5), 0.3),
    "polar": lambda t: torch.polar(t(3), t(3)).abs(),
    "stft": lambda t: torch.stft(t(16), 8, window=t(8).abs() + 1, return_complex=True).abs(),
    "fft": lambda t: torch.fft.fft(t(8)).abs(),
    "irfft": lambda t: torch.fft.irfft(torch.fft.rfft(t(8))),
    "grid_sample": lambda t: F.grid_sample(t(1, 1, 3, 3), t(1, 2, 2, 2), align_corners=False),
    "max_pool3d": lambda t: F.max_pool3d(t(1, 1, 4, 4, 4), 2),
    "avg_pool3d": lambda t: F.avg_pool3d(t(1, 1, 4, 4, 4), 2),
    "adaptive_avg_pool3d": lambda t: F.adaptive_avg_pool3d(t(1, 1, 4, 4, 4), 2),
    "reflection": lambda t: F.pad(t(1, 1, 4), (1, 1), "reflect"),
    "replication": lambda t: F.pad(t(1, 1, 4, 4), (1, 1, 1, 1), "replicate"),
    "cross_entropy": lambda t: F.cross_entropy(t(2, 3), LABELS),
    "nll_loss": lambda t: F.nll_loss(t(2, 3), LABELS),
    "mse_loss": lambda t: F.mse_loss(t(2, 3), t(2, 3) + 1),
    "l1_loss": lambda t: F.l1_loss(t(2, 3), t(2, 3) + 1),
    "smooth_l1_loss": lambda t: F.smooth_l1_loss(t(2, 3), t(2, 3) + 1),
    "huber_loss": lambda t: F.huber_loss(t(2, 3), t(2, 3) + 1),
    "kl_div": lambda t: F.kl_div(t(2, 3), t(2, 3).abs(), reduction="sum"),
    "binary_cross_entropy": lambda t: F.binary_cross_entropy(t(3).sigmoid(), t(3).abs()),
    "with_logits": lambda t: F.binary_cross_entropy_with_logits(t(3), t(3).abs()),
    "poisson_nll_loss": lambda t: F.poisson_nll_loss(t(3), t(3).abs()),
    "soft_margin_loss": lambda t: F.soft_margin_loss(t(4), t(4).sign()),
    "hinge_embedding_loss": lambda t: F.hinge_embedding_loss(t(2), SIGNS),
    "cosine_embedding_loss": lambda t: F.cosine_embedding_loss(t(2, 3), t(2, 3) + 1, SIGNS),
    "triplet_margin_loss": lambda t: F.triplet_margin_loss(t(2, 3), t(2, 3) + 1, t(2, 3) - 1),
    "multi_margin_loss": lambda t: F.multi_margin_loss(t(2, 3), LABELS),
    "multilabel_margin_loss": lambda t: F.multilabel_margin_loss(t(2, 3), torch.tensor([[0, -1, -1], [1, 2, -1]])),
    "ctc_loss": lambda t: F.ctc_loss(
        t(4, 1, 3).log_softmax(-1), torch.tensor([[1, 2]]), torch.tensor([4]), torch.tensor([2])
    ),
    "inverse": lambda t: definite(t(1).dtype).inverse(),
    "linalg.inv": lambda t: torch.linalg.inv(definite(t(1).dtype)),
    "cholesky": lambda t: torch.linalg.cholesky(definite(t(1).dtype)),
    "solve": lambda t: torch.linalg.solve(definite(t(1).dtype), t(3, 2)),
    "eigvalsh": lambda t: torch.linalg.eigvalsh(definite(t(1).dtype)),
    "svdvals": lambda t: torch.linalg.svdvals(t(3, 2)),
    "qr": lambda t: torch.linalg.qr(definite(t(1).dtype))[1].abs(),
}
GIVEN = {
    "add": lambda t: t(3) + t(3),
    "mul": lambda t: t(3) * 2,
    "exp": lambda t: t(3).exp(),
    "sum": lambda t: t(3).sum(),
    "mv": lambda t: torch.mv(t(2, 3), t(3)),
    "dot": lambda t: torch.dot(t(3), t(3)),
    "softmax": lambda t: t(3).softmax(0),
    "log_softmax": lambda t: t(3).log_softmax(0),
    "layer_norm": lambda t: F.layer_norm(t(2, 3), (3,)),
    "batch_norm": lambda t: F.batch_norm(t(4, 2), None, None, training=True),
    "gelu": lambda t: F.gelu(t(3)),
    "cumsum": lambda t: t(3).cumsum(0),
    "avg_pool2d": lambda t: F.avg_pool2d(t(1, 1, 4, 4), 2),
    "max_pool2d": lambda t: F.max_pool2d(t(1, 1, 4, 4), 2),
    "max_pool3d with indices": lambda t: F.max_pool3d(t(1, 1, 4, 4, 4), 2, return_indices=True)[0],
    "constant padding": lambda t: F.pad(t(3), (1, 1)),
    "interpolate": lambda t: F.interpolate(t(1, 1, 2, 2), scale_factor=2, mode="bilinear"),
    "embedding": lambda t: F.embedding(LABELS, t(3, 2)),
    "det": lambda t: torch.linalg.vector_norm(t(3)),
}


def maker(dtype):
    return lambda *shape: ramp(*shape, dtype=dtype)


@pytest.mark.parametrize("low", [bf16, f16])
@pytest.mark.parametrize("name", LOW)
def test_products_run_in_the_low_type(name, low):
    with block(low):
        found = LOW[name](maker(f32))
    assert found.dtype is low
    expected = LOW[name](maker(low))
    assert close(found.float(), expected.float(), 1e-3 if low is f16 else 1e-2)
    with block(low):
        assert LOW[name](maker(low)).dtype is low
        assert LOW[name](maker(f64)).dtype is f64


@pytest.mark.parametrize("name", FULL)
def test_losses_and_factorisations_run_in_float32(name):
    with block():
        found = FULL[name](maker(bf16))
    assert found.dtype is f32
    assert close(found, FULL[name](lambda *shape: ramp(*shape, dtype=bf16).float()), 2e-2)
    with block():
        assert FULL[name](maker(f32)).dtype is f32
        assert FULL[name](maker(f64)).dtype is f64


def test_a_loss_is_computed_in_float32_and_not_only_of_that_type():
    logits = ramp(2, 3, dtype=bf16) * 3
    with block():
        found = F.cross_entropy(logits, LABELS)
    assert close(found, F.cross_entropy(logits.float(), LABELS), 1e-6)
    assert not close(found, F.cross_entropy(logits, LABELS).float(), 1e-4)


@pytest.mark.parametrize("name", GIVEN)
def test_everything_else_runs_in_the_types_it_is_given(name):
    for dtype in (f32, bf16, f64):
        with block():
            found = GIVEN[name](maker(dtype))
        assert found.dtype is dtype
        assert close(found.double(), GIVEN[name](maker(dtype)).double())


@pytest.mark.parametrize(
    "join", [lambda a, b: torch.cat([a, b]), lambda a, b: torch.stack((a, b)), torch.hstack, torch.vstack]
)
def test_joined_tensors_get_the_widest_type(join):
    if join in (torch.hstack, torch.vstack):
        together = join

        def join(a, b):
            return together([a, b])

    with block():
        assert join(ramp(3, dtype=bf16), ramp(3, dtype=bf16)).dtype is bf16
        assert join(ramp(3, dtype=bf16), ramp(3)).dtype is f32
        assert join(ramp(3), ramp(3)).dtype is f32


def test_joining_another_low_type_is_refused():
    with block(), pytest.raises(RuntimeError, match="Unexpected floating ScalarType in at::autocast::prioritize"):
        torch.cat([ramp(3, dtype=f16), ramp(3)])


def test_operands_of_several_types_meet():
    with block():
        assert torch.mm(ramp(2, 3), ramp(3, 2, dtype=bf16)).dtype is bf16
        assert F.mse_loss(ramp(3, dtype=bf16), ramp(3)).dtype is f32
        with pytest.raises(RuntimeError, match="dtype"):
            torch.mm(ramp(2, 3), ramp(3, 2, dtype=f64))


def test_out_and_in_place_forms_are_left_alone():
    out, written = torch.empty(2, 2), torch.zeros(2, 2)
    with block():
        torch.mm(ramp(2, 3), ramp(3, 2), out=out)
        written.addmm_(ramp(2, 3), ramp(3, 2))
    for found in (out, written):
        assert found.dtype is f32
        assert close(found, ramp(2, 3) @ ramp(3, 2), 1e-6)


def test_integers_and_masks_are_left_alone():
    with block():
        assert torch.cat([torch.tensor([1]), torch.tensor([2])]).dtype is torch.int64
        assert torch.tensor([2, 3]).prod().dtype is torch.int64
        assert F.linear(ramp(1, 3), ramp(2, 3)).gt(0).dtype is torch.bool


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
        F.cross_entropy(ramp(2, 3), LABELS)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert F.cross_entropy(ramp(2, 3, dtype=bf16), LABELS).dtype is bf16
    with pytest.raises(TypeError):
        F.cross_entropy(ramp(2, 3), LABELS, no_such_argument=1)


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
