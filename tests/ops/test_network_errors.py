"""What dropout, embeddings, folding, bilinear maps and losses over pairs and alignments refuse; and dropout's random stream."""

from __future__ import annotations

import pytest

import pellucid as torch
from pellucid.nn import functional as F

X = torch.ones(4, 3)
TABLE = torch.ones(5, 3)
INDEX = torch.tensor([1, 2, 3])
IMAGE = torch.ones(2, 3, 6, 5)
COLUMNS = torch.ones(2, 27, 12)
SIGNS = torch.tensor([1, -1, 1, -1])
SCORES = torch.zeros(5, 2, 4)
LABELS = torch.tensor([[1, 2, 3], [2, 2, 1]])

REFUSED = [
    (lambda: F.dropout(X, 2.0), ValueError, "dropout probability has to be between 0 and 1"),
    (lambda: torch.dropout(X, 2.0, True), RuntimeError, "dropout probability has to be between 0 and 1"),
    (lambda: torch.dropout(X, "a", True), TypeError, "argument 'p'"),
    (lambda: torch.dropout(1, 0.5, True), TypeError, "argument 'input'"),
    (lambda: F.dropout(X.long()), RuntimeError, "result type Float can't be cast"),
    (lambda: F.dropout(X.to(torch.complex64)), NotImplementedError, "bernoulli_scalar_cpu_"),
    (lambda: torch.feature_dropout(X[0], 0.5, True), RuntimeError, "Feature dropout requires at least 2 dimensions"),
    (lambda: F.dropout1d(X[0]), RuntimeError, "dropout1d: Expected 2D or 3D input"),
    (lambda: F.embedding(X, TABLE), RuntimeError, "Expected tensor for argument #1 'indices'"),
    (lambda: F.embedding(INDEX + 2, TABLE), IndexError, "index out of range in self"),
    (lambda: F.embedding(INDEX, TABLE[0]), RuntimeError, "'weight' must be 2-D"),
    (lambda: F.embedding(INDEX, TABLE, padding_idx=5), AssertionError, "Padding_idx must be within num_embeddings"),
    (lambda: torch.embedding_renorm_(TABLE[0], INDEX, 1.0, 2.0), RuntimeError, "Expected 2-dimensional tensor"),
    (lambda: F.embedding_bag(INDEX, TABLE), ValueError, "offsets has to be a 1D Tensor but got None"),
    (lambda: F.embedding_bag(INDEX, TABLE, LABELS), ValueError, "offsets has to be a 1D Tensor"),
    (lambda: F.embedding_bag(LABELS, TABLE, INDEX), ValueError, "if input is 2D, then offsets has to be None"),
    (lambda: F.embedding_bag(LABELS[None], TABLE), ValueError, "input has to be 1D or 2D Tensor"),
    (lambda: F.embedding_bag(LABELS, TABLE[0]), ValueError, "weight has to be a 2D Tensor"),
    (lambda: F.embedding_bag(LABELS, TABLE, per_sample_weights=X), ValueError, "must have the same shape as the input"),
    (lambda: F.embedding_bag(INDEX, TABLE, INDEX), RuntimeError, "offsets\\[0\\] has to be 0"),
    (lambda: F.embedding_bag(INDEX, TABLE, torch.tensor([0, 9])), RuntimeError, "offsets\\[-1\\] can not be greater"),
    (lambda: F.embedding_bag(INDEX, TABLE, INDEX[:0], include_last_offset=True), RuntimeError, "at least 1"),
    (lambda: F.embedding_bag(LABELS + 3, TABLE), RuntimeError, "Index 1 of input takes value 5"),
    (lambda: F.embedding_bag(LABELS, TABLE, padding_idx=9), RuntimeError, "padding_idx must be within"),
    (lambda: F.embedding_bag(LABELS, TABLE, mode="x"), ValueError, "mode has to be one of sum, mean or max"),
    (lambda: F.embedding_bag(LABELS, TABLE, mode="max", scale_grad_by_freq=True), ValueError, "scaling the gradient"),
    (lambda: F.embedding_bag(LABELS, TABLE, mode="max", sparse=True), ValueError, "sparse weights"),
    (
        lambda: F.embedding_bag(LABELS, TABLE, per_sample_weights=torch.ones(2, 3)),
        NotImplementedError,
        "only supported for mode='sum'",
    ),
    (
        lambda: F.embedding_bag(LABELS, TABLE, per_sample_weights=torch.ones(2, 3).double(), mode="sum"),
        RuntimeError,
        "to have the same type",
    ),
    (lambda: F.one_hot(X), RuntimeError, "only applicable to index tensor of type LongTensor"),
    (lambda: F.one_hot(INDEX[:0]), RuntimeError, "Can not infer total number of classes"),
    (lambda: F.one_hot(-INDEX), RuntimeError, "Class values must be non-negative"),
    (lambda: F.one_hot(INDEX, 3), RuntimeError, "Class values must be smaller than num_classes"),
    (lambda: F.bilinear(X, X.double(), torch.ones(2, 3, 3)), RuntimeError, "All tensors must have the same dtype"),
    (lambda: F.bilinear(X, X[0], torch.ones(2, 3, 3)), RuntimeError, "input dimensions do not match"),
    (lambda: F.bilinear(X, X[:1], torch.ones(2, 3, 3)), RuntimeError, "input batch dimensions do not match at dim 0"),
    (lambda: F.bilinear(X, X, X), RuntimeError, "weight must be 3-D"),
    (lambda: F.bilinear(X, X, torch.ones(2, 4, 3)), RuntimeError, "input1 size does not match weight size"),
    (lambda: F.bilinear(X, X, torch.ones(2, 3, 3), torch.ones(3)), RuntimeError, "bias size does not match"),
    (lambda: F.unfold(IMAGE[0, 0], 3), IndexError, "Dimension out of range"),
    (lambda: F.unfold(IMAGE[:, :0], 3), RuntimeError, "Expected 3D or 4D"),
    (lambda: F.unfold(IMAGE, (3, 3, 3)), RuntimeError, "It is expected kernel_size equals to 2"),
    (lambda: F.unfold(IMAGE, 3.0), TypeError, "argument 'kernel_size' must be tuple of ints"),
    (lambda: F.unfold(IMAGE, 0), RuntimeError, "kernel size should be greater than zero"),
    (lambda: F.unfold(IMAGE, 3, stride=0), RuntimeError, "stride should be greater than zero"),
    (lambda: F.unfold(IMAGE, 3, dilation=0), RuntimeError, "dilation should be greater than zero"),
    (lambda: F.unfold(IMAGE, 3, padding=-1), RuntimeError, "padding should be non-negative"),
    (lambda: F.unfold(IMAGE, 9), RuntimeError, "its components must be at least one"),
    (lambda: F.unfold(IMAGE.long(), 3), NotImplementedError, "im2col_out_cpu"),
    (lambda: F.fold(COLUMNS[0, 0], (6, 5), 3), RuntimeError, "Expected 2D or 3D"),
    (lambda: F.fold(COLUMNS, (6, 5), (3, 2)), RuntimeError, "divisible by the product of kernel_size"),
    (lambda: F.fold(COLUMNS, (6, 6), 3), RuntimeError, "calculated number of sliding blocks 4 \\* 4 = 16"),
    (lambda: F.fold(COLUMNS.long(), (6, 5), 3), NotImplementedError, "col2im_out_cpu"),
    (lambda: F.cosine_embedding_loss(X, X, SIGNS[:, None]), RuntimeError, "multi-target not supported"),
    (lambda: F.cosine_embedding_loss(X, X, SIGNS[0]), RuntimeError, "0D target tensor expects 1D input tensors"),
    (lambda: F.margin_ranking_loss(X, X, SIGNS), RuntimeError, "should have same dimension but got sizes"),
    (lambda: F.soft_margin_loss(X.long(), X), RuntimeError, "result type Float can't be cast"),
    (lambda: F.triplet_margin_loss(X, X, X, margin=0), ValueError, "margin must be greater than 0"),
    (lambda: F.triplet_margin_loss(X[0], X, X), RuntimeError, "the same number of dimensions"),
    (lambda: F.hinge_embedding_loss(X, X, reduction="x"), ValueError, "not a valid value for reduction"),
    (lambda: F.gaussian_nll_loss(X, X, X[0]), ValueError, "var is of incorrect size"),
    (lambda: F.multi_margin_loss(X, SIGNS), RuntimeError, "target out of range"),
    (lambda: F.multi_margin_loss(X, SIGNS.float()), RuntimeError, "expected scalar type Long but found Float"),
    (lambda: F.ctc_loss(SCORES, LABELS, [5], [3, 2]), RuntimeError, "input_lengths must be of size batch_size"),
    (lambda: F.ctc_loss(SCORES, LABELS, [5, 5], [3]), RuntimeError, "target_lengths must be of size batch_size"),
    (lambda: F.ctc_loss(SCORES, LABELS, [5.0, 5], [3, 2]), RuntimeError, "input_lengths must be integral"),
    (lambda: F.ctc_loss(SCORES, LABELS, [6, 5], [3, 2]), RuntimeError, "to have value at most 5, but got value 6"),
    (lambda: F.ctc_loss(SCORES, LABELS, [5, 5], [3, -2]), RuntimeError, "to have value at least 0"),
    (lambda: F.ctc_loss(SCORES, LABELS, [5, 5], [4, 2]), RuntimeError, "to have size at least 4 at dimension 1"),
    (lambda: F.ctc_loss(SCORES, LABELS[:1], [5, 5], [3, 2]), RuntimeError, "to have size 2 at dimension 0"),
    (lambda: F.ctc_loss(SCORES, LABELS[0], [5, 5], [3, 2]), RuntimeError, "to have size 5 at dimension 0"),
    (lambda: F.ctc_loss(SCORES, LABELS[None], [5, 5], [3, 2]), RuntimeError, "ctc_loss takes targets"),
    (lambda: F.ctc_loss(SCORES, LABELS + 1, [5, 5], [3, 2]), RuntimeError, "targets must be classes 0 to 3"),
    (lambda: F.ctc_loss(SCORES, LABELS, [5, 5], [3, 2], blank=4), RuntimeError, "blank must be in label range"),
    (lambda: F.ctc_loss(SCORES[0, 0], LABELS, [5, 5], [3, 2]), RuntimeError, "Expected 3-dimensional tensor"),
    (lambda: F.ctc_loss(SCORES[:0], LABELS, [0, 0], [3, 2]), RuntimeError, "must not be empty"),
    (lambda: F.ctc_loss(SCORES.half(), LABELS, [5, 5], [3, 2]), NotImplementedError, "ctc_loss_cpu"),
]


@pytest.mark.parametrize(("call", "kind", "text"), REFUSED, ids=[text for _, _, text in REFUSED])
def test_bad_arguments_are_refused(call, kind, text):
    with pytest.raises(kind, match=text):
        call()


def test_ctc_loss_has_no_second_derivative():
    scores = SCORES.clone().requires_grad_()
    (grad,) = torch.autograd.grad(F.ctc_loss(scores, LABELS, [5, 5], [3, 2]), scores, create_graph=True)
    with pytest.raises(RuntimeError, match="_ctc_loss_backward is not implemented"):
        grad.sum().backward()


@pytest.mark.parametrize(
    ("name", "shape", "text"),
    [
        ("dropout2d", (4, 3), "Received a 2-D input"),
        ("dropout2d", (2, 4, 3), "assuming that channel-wise 1D dropout behavior is desired"),
        ("dropout3d", (2, 4, 3), "Received a 3-D input"),
    ],
)
def test_channel_dropout_warns_of_unusual_ranks(name, shape, text):
    with pytest.warns(UserWarning, match=text):
        getattr(F, name)(torch.ones(shape))


def test_swapped_arguments_of_embedding_bag_warn():
    with pytest.warns(UserWarning, match="Argument order of nn.functional.embedding_bag was changed"):
        assert F.embedding_bag(TABLE, LABELS).shape == (2, 3)


def test_dropout_takes_pytorch_s_numbers():
    torch.manual_seed(7)
    kept = (F.dropout(torch.ones(12), 0.4) > 0).tolist()
    assert kept == [bool(k) for k in [1, 1, 0, 0, 0, 0, 1, 1, 0, 0, 1, 1]]
    channels = (F.dropout1d(torch.ones(2, 4, 3), 0.5)[:, :, 0] > 0).tolist()
    assert channels == [[bool(k) for k in row] for row in [[1, 1, 1, 0], [1, 0, 1, 0]]]
    assert F.alpha_dropout(torch.ones(3), 0.5, True).tolist() == pytest.approx(
        [-0.7791939, -0.7791939, -0.7791939], rel=1e-6
    )


def test_ctc_loss_values():
    scores = torch.arange(24.0).reshape(3, 2, 4).sin().log_softmax(-1)
    loss = F.ctc_loss(scores, torch.tensor([[1, 2], [2, 2]]), [3, 3], [2, 1], reduction="none")
    assert loss.tolist() == pytest.approx([2.655773, 2.441176], rel=1e-5)


@pytest.mark.parametrize("name", ["running_mean", "running_var", "weight", "bias"])
def test_batch_norm_names_the_vector_that_does_not_fit(name):
    vectors = {"running_mean": torch.zeros(4), "running_var": torch.ones(4), "weight": torch.ones(4), "bias": torch.zeros(4)}
    vectors[name] = torch.ones(3)
    with pytest.raises(RuntimeError) as caught:
        F.batch_norm(torch.ones(2, 4, 6), **vectors)
    assert str(caught.value) == (
        f"{name} should contain 4 elements not 3: input has shape [2, 4, 6], {name} [3]; one number for each channel is expected"
    )
