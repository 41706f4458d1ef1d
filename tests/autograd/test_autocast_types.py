"""In which type each function runs under autocast on the CPU: the low one, float32, the widest, or the one it is given."""

import pytest
from autocast_blocks import bf16, block, f16, f32, f64, ramp
from library import close, torch

F = torch.nn.functional


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


@pytest.mark.parametrize("low", [bf16, f16])
@pytest.mark.parametrize("name", [name for name in LOW if name not in ("prelu", "matrix_power")])
def test_products_of_low_tensors_have_gradients_without_autocast_too(name, low):
    def gradients(dtype):
        leaves = []

        def make(*shape):
            leaves.append(ramp(*shape, dtype=low).to(dtype).requires_grad_())
            return leaves[-1]

        LOW[name](make).double().pow(2).sum().backward()
        return [t.grad for t in leaves]

    for found, expected in zip(gradients(low), gradients(f64), strict=True):
        assert found.dtype is low
        assert close(found.double(), expected, 5e-2)
