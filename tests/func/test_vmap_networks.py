"""Functions of neural networks under vmap, against a loop over the examples; gradients of whole networks for each example.

Every choice of operands is batched; each function is taken with its gradient and its tangent as well.
"""

from __future__ import annotations

import pytest
from loops import SIZE, assert_is_a_loop, draw, pushed, slopes, whole

import pellucid as torch
from pellucid.autograd import batching
from pellucid.func import functional_call, grad, hessian, jacfwd, jvp, vmap

F = torch.nn.functional
image, wide = draw(2, 4, 6, 5), draw(2, 3, 4, 4, 4)
row, line = draw(4, 5), draw(2, 3, 9)
five, four = draw(5, seed=2), draw(4, seed=2)
shares = draw(4, 5, seed=4, low=0.1, high=0.9)
likely = draw(4, 5, seed=5, low=0.1, high=0.9)
classes, class_weights = whole(4, high=5), draw(5, seed=6, low=0.1)
spatial = draw(2, 3, 2, 2), whole(2, 2, 2, high=3), draw(3, seed=6, low=0.1)

CONVOLUTIONS = {
    "conv1d": (lambda x, w, b: F.conv1d(x, w, b, padding="same"), draw(4, 6), draw(3, 4, 3), draw(3)),
    "conv2d": (lambda x, w, b: F.conv2d(x, w, b, padding=(0, 1)), image, draw(6, 4, 3, 2), draw(6)),
    "conv2d in groups": (
        lambda x, w, b: F.conv2d(x, w, b, stride=(2, 1), padding=1, groups=2), image, draw(6, 2, 3, 2), draw(6)
    ),
    "conv3d": (F.conv3d, draw(1, 2, 3, 3, 3), draw(2, 2, 2, 2, 2), draw(2)),
    "conv_transpose1d": (F.conv_transpose1d, draw(4, 5), draw(4, 3, 2), draw(3)),
    "conv_transpose2d in groups": (
        lambda x, w, b: F.conv_transpose2d(x, w, b, stride=2, padding=1, output_padding=1, groups=2),
        image, draw(4, 3, 2, 3), draw(6),
    ),
    "layer_norm": (lambda x, w, b: F.layer_norm(x, (5,), w, b), row, five, five + 1),
    "batch_norm": (lambda x, w, b: F.batch_norm(x, None, None, w, b, training=True), image, four, four + 1),
    "batch_norm of rows": (lambda x, w, b: F.batch_norm(x, None, None, w, b, training=True), row, five, five + 1),
    "batch_norm in evaluation": (
        lambda x, w, b: F.batch_norm(x, four[0], four[1] ** 2 + 1, w, b), image, four, four + 1
    ),
    "instance_norm": (lambda x, w, b: F.instance_norm(x, None, None, w, b), image, four, four + 1),
    "group_norm": (lambda x, w, b: F.group_norm(x, 2, w, b), image, four, four + 1),
    "attention": (F.scaled_dot_product_attention, draw(2, 3, 4), draw(2, 5, 4), draw(2, 5, 6)),
}  # fmt: skip
IMAGES = {
    "max_pool1d": (lambda x: F.max_pool1d(x, 3, return_indices=True), line),
    "max_pool2d": (lambda x: F.max_pool2d(x, 3, 2, 1), image),
    "max_pool3d": (lambda x: F.max_pool3d(x, 2), wide),
    "avg_pool2d": (lambda x: F.avg_pool2d(x, 3, 2, 1, count_include_pad=False), image),
    "lp_pool2d": (lambda x: F.lp_pool2d(x, 3, 2), image),
    "adaptive_avg_pool2d": (lambda x: F.adaptive_avg_pool2d(x, (3, 2)), image),
    "adaptive_max_pool2d": (lambda x: F.adaptive_max_pool2d(x, (3, 2), return_indices=True), image),
    "fractional_max_pool2d": (
        lambda x: F.fractional_max_pool2d(
            x, 2, output_size=(3, 2), _random_samples=torch.tensor([[[0.3, 0.6]] * 4] * 2, dtype=torch.float64)
        ),
        image,
    ),
    "max_unpool2d": (lambda x: F.max_unpool2d(*F.max_pool2d(x, 2, return_indices=True), 2, output_size=(6, 5)), image),
    "unfold": (lambda x: F.unfold(x, (2, 3), padding=1), image),
    "fold": (lambda x: F.fold(x, (4, 5), (2, 2)), draw(2, 12, 12)),
    "pad with a reflection": (lambda x: F.pad(x, (1, 2, 2, 1), "reflect"), image),
    "pad with the edge": (lambda x: F.pad(x, (1, 2, 2, 1), "replicate"), image),
    "pad with the other end": (lambda x: F.pad(x, (1, 2, 2, 1), "circular"), image),
    "interpolate nearest": (lambda x: F.interpolate(x, scale_factor=1.5), wide),
    "interpolate linear": (lambda x: F.interpolate(x, size=5, mode="linear"), line),
    "interpolate bicubic": (lambda x: F.interpolate(x, size=(3, 7), mode="bicubic"), image),
    "interpolate smoothly": (lambda x: F.interpolate(x, size=(3, 3), mode="bilinear", antialias=True), image),
    "interpolate by areas": (lambda x: F.interpolate(x, size=(3, 3), mode="area"), image),
    "affine_grid": (lambda t: F.affine_grid(t, (2, 1, 3, 4), align_corners=False), draw(2, 2, 3)),
    "local_response_norm": (lambda x: F.local_response_norm(x, 2), image),
    "normalize": (F.normalize, row),
    "pdist": (F.pdist, row),
    "causal attention": (lambda x: F.scaled_dot_product_attention(x, x, x, is_causal=True), draw(2, 3, 4)),
}
PAIRS = {
    **{
        f"grid_sample {mode}": (
            lambda x, g, mode=mode: F.grid_sample(x, g, mode=mode, align_corners=True), image, draw(2, 3, 2, 2, seed=9)
        )
        for mode in ("bilinear", "bicubic")
    },
    "grid_sample of volumes": (lambda x, g: F.grid_sample(x, g, align_corners=False), wide, draw(2, 2, 2, 1, 3, seed=9)),
    "rms_norm": (lambda x, w: F.rms_norm(x, (5,), w), row, five),
    "cosine_similarity": (F.cosine_similarity, row, draw(4, 5, seed=7)),
    "cosine_embedding_loss": (lambda a, b: F.cosine_embedding_loss(a, b, torch.tensor([1, -1, 1, -1])), row, shares),
    "triplet_margin_loss": (lambda a, p: F.triplet_margin_loss(a, p, row[0]), row, shares),
    "pairwise_distance": (F.pairwise_distance, row, shares),
    "gaussian_nll_loss": (lambda x, v: F.gaussian_nll_loss(x, row[0] * 2, v), row, shares),
    **{
        f"{loss.__name__} {reduction}": (lambda x, t, loss=loss, reduction=reduction: loss(x, t, reduction=reduction), x, t)
        for reduction in ("none", "mean", "sum")
        for loss, x, t in (
            (F.mse_loss, row, shares), (F.l1_loss, row, shares), (F.smooth_l1_loss, row, shares), (F.huber_loss, row, shares),
            (F.binary_cross_entropy, likely, shares), (F.binary_cross_entropy_with_logits, row, shares),
            (F.soft_margin_loss, row, shares), (F.mse_loss, draw(seed=1), draw(seed=2)), (F.cross_entropy, row, shares),
        )
    },
}  # fmt: skip
WEIGHTED = {
    "bits with a weight": (
        lambda x, t, w: F.binary_cross_entropy_with_logits(x, t, w, pos_weight=w + 1), row, shares, class_weights
    ),
    "probabilities with a weight": (F.binary_cross_entropy, likely, shares, class_weights),
}
TABLES = ((CONVOLUTIONS, 3), (IMAGES, 1), (PAIRS, 2), (WEIGHTED, 2))
CLASSES = {
    f"{name}, {reduction}, {'one class ignored' if ignored >= 0 else 'all classes'}": (
        lambda x, t, w, loss=loss, o=({"reduction": reduction, "ignore_index": ignored}): loss(x, t, w, **o), *operands
    )
    for reduction in ("none", "mean", "sum")
    for ignored in (-100, 1)
    for name, loss, operands in (
        ("nll_loss", F.nll_loss, (row, classes, class_weights)),
        ("nll_loss of images", F.nll_loss, spatial),
        ("cross_entropy", F.cross_entropy, (row, classes, class_weights)),
        ("smoothed", lambda *a, **o: F.cross_entropy(*a, label_smoothing=0.1, **o), (row, classes, class_weights)),
        ("without weights", lambda x, t, w, **o: F.cross_entropy(x, t, **o), (row, classes, class_weights)),
    )
}
TABLES = (*TABLES, (CLASSES, 1))
LABELLED = {
    "nll_loss of one": (F.nll_loss, five, whole(high=5)),
    "multi_margin_loss": (F.multi_margin_loss, row, classes),
    "multi_margin_loss of one": (lambda x, t: F.multi_margin_loss(x, t, reduction="none"), five, whole(high=5)),
    "multilabel_margin_loss": (
        F.multilabel_margin_loss, draw(2, 3), torch.tensor([[[0, 2, -1], [1, -1, 0]], [[2, 0, 1], [-1, 0, 0]], [[1, 0, -1], [0, 1, 2]]])
    ),
    **{
        f"embedding{', padded' if padding is not None else ''}{', by frequency' if scale else ''}": (
            lambda w, i, o=({"padding_idx": padding, "scale_grad_by_freq": scale}): F.embedding(i, w, **o),
            draw(6, 3), whole(2, 4, high=6),
        )
        for padding in (None, 1)
        for scale in (False, True)
    },
    **{
        f"embedding_bag {mode}{', padded' if padding is not None else ''}": (
            lambda w, i, mode=mode, padding=padding: F.embedding_bag(i, w, mode=mode, padding_idx=padding),
            draw(6, 3), whole(2, 4, high=6),
        )
        for padding in (None, -2)
        for mode in ("sum", "mean", "max")
    },
}  # fmt: skip
TABLES = (*TABLES, (LABELLED, 1))
CASES = [pytest.param(f, operands, count, id=name) for table, count in TABLES for name, (f, *operands) in table.items()]


@pytest.fixture(autouse=True)
def _every_fallback_warns():
    batching._warned.clear()


@pytest.mark.parametrize(("f", "operands", "count"), CASES)
def test_values_gradients_and_tangents_are_those_of_a_loop(f, operands, count):
    assert_is_a_loop(f, *operands)
    every = [(True,) * len(operands)]
    assert_is_a_loop(slopes(f, count), *operands, choices=every)
    assert_is_a_loop(pushed(f, count), *operands, choices=every)


bags, offsets = whole(5, high=6), torch.tensor([[0, 2, 2], [0, 1, 3], [0, 0, 5]])
OTHERS = {
    "bags that start anywhere": (lambda w, i, o: F.embedding_bag(i, w, o, padding_idx=1), draw(6, 3), bags, offsets),
    "the largest of bags that start anywhere": (lambda w, i, o: F.embedding_bag(i, w, o, mode="max"), draw(6, 3), bags, offsets),
    "bags whose end is given": (
        lambda w, i: F.embedding_bag(i, w, torch.tensor([0, 2, 4]), include_last_offset=True), draw(6, 3), bags
    ),
    "one_hot": (lambda i: F.one_hot(i, 7), classes),
    "mean of integers in windows": (lambda x: F.avg_pool2d(x, 3, 2, 1), whole(2, 8, 6, high=9)),
    "attention with a mask": (
        lambda q, m: F.scaled_dot_product_attention(q, q, q, m), draw(2, 3, 4), draw(3, 3, seed=8) > -0.5
    ),
    "attention with numbers to add": (
        lambda q, m: F.scaled_dot_product_attention(q, q, q, m), draw(2, 3, 4), draw(3, 3, seed=8)
    ),
    "native_layer_norm": (lambda x, w: torch.native_layer_norm(x, (5,), w, None, 1e-5), row, five),
    "native_batch_norm": (lambda x: torch.native_batch_norm(x, None, None, None, None, True, 0.1, 1e-5), image),
}  # fmt: skip


@pytest.mark.parametrize("name", OTHERS)
def test_values_are_those_of_a_loop(name):
    f, *operands = OTHERS[name]
    assert_is_a_loop(f, *operands)


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("targets", [whole(2, 3, low=1, high=4), whole(4, low=1, high=4)], ids=["in rows", "in one row"])
def test_ctc_loss_is_that_of_a_loop(targets, reduction):
    times, lengths = torch.tensor([[6, 5], [5, 6], [4, 4]]), torch.tensor([[2, 2], [3, 1], [1, 3]])

    def loss(scores, targets, times, lengths):
        return F.ctc_loss(scores.log_softmax(-1), targets, times, lengths, reduction=reduction)

    operands = draw(6, 2, 4, seed=3), targets, times, lengths
    assert_is_a_loop(loss, *operands)
    every = [(True,) * 4]
    assert_is_a_loop(slopes(loss), *operands, choices=every)
    assert_is_a_loop(pushed(loss), *operands, choices=every)


def test_tangents_of_ctc_loss_are_its_gradients_taken_along():
    scores, step = draw(6, 2, 4, seed=3)[0], draw(6, 2, 4, seed=4)[0]

    def loss(scores):
        return F.ctc_loss(scores.log_softmax(-1), torch.tensor([[1, 2, 2], [3, 1, 1]]), (6, 5), (3, 1), reduction="sum")

    _, tangent = jvp(loss, (scores,), (step,))
    assert torch.allclose(tangent, (grad(loss)(scores) * step).sum(), rtol=1e-10)


def heads(x, weight, out, **options):
    return F.multi_head_attention_forward(
        x, x, x, 8, 2, weight, draw(24)[0], None, None, False, 0.0, out, draw(8)[0], **options
    )


def test_attention_of_several_heads_is_that_of_a_loop():
    x, weight, out = draw(5, 2, 8), draw(24, 8), draw(8, 8)
    assert_is_a_loop(heads, x, weight, out)
    padding, mask = draw(2, 5, seed=8) > 0.6, draw(5, 5, seed=8) > 0.6

    def masked(x, padding, mask):
        return heads(x, weight[0], out[0], key_padding_mask=padding, attn_mask=mask)

    assert_is_a_loop(masked, x, padding, mask)


# --- statistics that are written to ------------------------------------------------------------------------------------


def test_running_statistics_of_each_example_move():
    def f(x, mean, var):
        mean, var = mean.clone(), var.clone()
        return F.batch_norm(x, mean, var, training=True, momentum=0.3), mean, var

    assert_is_a_loop(f, image, four, four**2, choices=[(True, True, True), (False, True, True)])


def test_running_statistics_that_are_the_same_for_all_are_not_written_to():
    mean, var = torch.zeros(4, dtype=torch.float64), torch.ones(4, dtype=torch.float64)
    for f in (lambda x: F.batch_norm(x, mean, var, training=True), lambda x: F.instance_norm(x, mean, var)):
        with pytest.raises(RuntimeError, match="Batch norm got a batched tensor as input while the running_mean"):
            vmap(f)(image)
    assert mean.tolist() == [0.0] * 4


@pytest.mark.parametrize(
    ("f", "operands", "phrase"),
    [
        (lambda i: F.one_hot(i), (classes,), "explicit positive num_classes"),
        (lambda i, w: F.embedding(i, w, max_norm=1.0), (classes, draw(5, 2)), r"embedding_renorm_\(\) writes into the table"),
        (lambda x: F.fractional_max_pool2d(x, 2, output_size=2), (image,), "randomness"),
        (lambda i, w: F.embedding_bag(i, w, i * 0, include_last_offset=True), (classes, draw(5, 2)), "dynamic shape"),
        (F.conv2d, (image[:0], draw(3, 4, 2, 2)[:0]), "a convolution takes no empty batch of weights"),
    ],
)
def test_what_cannot_be_done_for_each_example_is_refused(f, operands, phrase):
    with pytest.raises(RuntimeError, match=phrase):
        vmap(f)(*operands)


@pytest.mark.parametrize(
    ("f", "operands", "shape"),
    [
        (lambda i, w: F.embedding(i, w), (classes, draw(5, 2)), (0, 4, 2)),
        (lambda w, i: slopes(lambda w: F.embedding(i, w))(w)[0], (draw(5, 2), classes), (0, 5, 2)),
        (lambda i, w: F.embedding_bag(i, w), (whole(2, 4, high=5), draw(5, 2)), (0, 2, 2)),
        (lambda x: F.conv2d(x, draw(3, 4, 2, 2)[0]), (image,), (0, 2, 3, 5, 4)),
        (lambda x: F.batch_norm(x, None, None, training=True), (image,), (0, 2, 4, 6, 5)),
        (F.cross_entropy, (row, classes), (0,)),
        (lambda x, i: x.index_select(1, i), (row, whole(3, high=5)), (0, 4, 3)),
        (lambda x, i, s: x.index_add(1, i, s), (row, whole(3, high=5), draw(4, 3)), (0, 4, 5)),
        (lambda x, i: x[:, i], (row, whole(3, high=5)), (0, 4, 3)),
    ],
)
def test_an_empty_batch_gives_an_empty_batch(f, operands, shape):
    assert vmap(f)(*[t[:0] for t in operands]).shape == shape


# --- networks ----------------------------------------------------------------------------------------------------------


def perceptron():
    return torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.Tanh(), torch.nn.LayerNorm(8), torch.nn.Linear(8, 3)), (6,)


def convolutional():
    return torch.nn.Sequential(
        torch.nn.Conv2d(2, 4, 3, padding=1), torch.nn.GroupNorm(2, 4), torch.nn.ReLU(), torch.nn.MaxPool2d(2),
        torch.nn.Conv2d(4, 4, 3, groups=2), torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(4, 3),
    ), (2, 8, 6)  # fmt: skip


def transformer():
    layer = torch.nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
    return torch.nn.Sequential(layer, torch.nn.Flatten(), torch.nn.Linear(5 * 8, 3)), (5, 8)


def recurrent():
    class Last(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.cells, self.head = torch.nn.GRU(4, 6, batch_first=True), torch.nn.Linear(6, 3)

        def forward(self, x):
            return self.head(self.cells(x)[0][:, -1])

    return Last(), (5, 4)


NETWORKS = [perceptron, convolutional, transformer, recurrent]


def prepared(make):
    """A network in double precision, its parameters, four inputs and their classes."""
    torch.manual_seed(5)
    network, shape = make()
    network = network.double()
    x = torch.randn(4, *shape, dtype=torch.float64)
    return network, {n: p.detach() for n, p in network.named_parameters()}, x, torch.tensor([0, 2, 1, 1])


@pytest.mark.parametrize("make", NETWORKS)
def test_gradients_of_each_example(make):
    network, weights, x, y = prepared(make)

    def loss(weights, x, y):
        return F.cross_entropy(functional_call(network, weights, (x.unsqueeze(0),)), y.unsqueeze(0))

    found = vmap(grad(loss), in_dims=(None, 0, 0))(weights, x, y)
    for i in range(4):
        network.zero_grad()
        F.cross_entropy(network(x[i : i + 1]), y[i : i + 1]).backward()
        for name, p in network.named_parameters():
            assert torch.allclose(found[name][i], p.grad, rtol=1e-9, atol=1e-12), name


@pytest.mark.parametrize("make", NETWORKS)
def test_an_ensemble_of_networks(make):
    networks = [prepared(make)[0] for _ in range(SIZE)]
    for k, network in enumerate(networks):
        for p in network.parameters():
            p.data.mul_(1 + 0.1 * k)
    x = prepared(make)[2]
    stacked = {n: torch.stack([dict(m.named_parameters())[n].detach() for m in networks]) for n in dict(networks[0].named_parameters())}
    found = vmap(lambda weights: functional_call(networks[0], weights, (x,)))(stacked)
    assert torch.allclose(found, torch.stack([m(x) for m in networks]), rtol=1e-9, atol=1e-12)


def test_derivatives_of_a_network_by_its_input():
    network, weights, x, _ = prepared(perceptron)
    f = lambda x: functional_call(network, weights, (x,))  # noqa: E731
    columns = vmap(jacfwd(f))(x)
    rows = torch.stack([torch.autograd.functional.jacobian(network, each) for each in x])
    assert torch.allclose(columns, rows, rtol=1e-9)
    second = vmap(hessian(lambda x: f(x).square().sum()))(x)
    expected = torch.stack([torch.autograd.functional.hessian(lambda x: network(x).square().sum(), each) for each in x])
    assert torch.allclose(second, expected, rtol=1e-9, atol=1e-12)
