"""Layers: construction, printing, errors of constructors, and what is particular to a family. Values of the functions
they call are tested with the functions; LAYERS maps a constructor call to how the module prints (None: as the call)."""

import inspect
import re

import pytest

import pellucid
from pellucid import nn

LAYERS = {
    "MaxPool1d(2)": "MaxPool1d(kernel_size=2, stride=2, padding=0, dilation=1, ceil_mode=False)",
    "MaxPool2d((2, 3), stride=1, ceil_mode=True, return_indices=True)": (
        "MaxPool2d(kernel_size=(2, 3), stride=1, padding=0, dilation=1, ceil_mode=True)"
    ),
    "AvgPool1d(2)": "AvgPool1d(kernel_size=(2,), stride=(2,), padding=(0,))",
    "AvgPool2d(2)": "AvgPool2d(kernel_size=2, stride=2, padding=0)",
    "AvgPool3d(2, stride=3)": "AvgPool3d(kernel_size=2, stride=3, padding=0)",
    "LPPool1d(2, 3)": "LPPool1d(norm_type=2, kernel_size=3, stride=None, ceil_mode=False)",
    "LPPool2d(2, 3, stride=1)": "LPPool2d(norm_type=2, kernel_size=3, stride=1, ceil_mode=False)",
    "AdaptiveAvgPool2d((2, None))": "AdaptiveAvgPool2d(output_size=(2, None))",
    "AdaptiveMaxPool1d(3)": "AdaptiveMaxPool1d(output_size=3)",
    "FractionalMaxPool2d(2, output_size=3)": "FractionalMaxPool2d()",
    "FractionalMaxPool3d(2, output_ratio=0.5)": "FractionalMaxPool3d()",
    "MaxUnpool1d(2)": "MaxUnpool1d(kernel_size=(2,), stride=(2,), padding=(0,))",
    "MaxUnpool2d(2, stride=(1, 2))": "MaxUnpool2d(kernel_size=(2, 2), stride=(1, 2), padding=(0, 0))",
    "MaxUnpool3d(2)": "MaxUnpool3d(kernel_size=(2, 2, 2), stride=(2, 2, 2), padding=(0, 0, 0))",
    "ConstantPad1d(2, 3.5)": "ConstantPad1d(padding=(2, 2), value=3.5)",
    "ConstantPad2d((1, 2, 3, 4), 0)": "ConstantPad2d(padding=(1, 2, 3, 4), value=0)",
    "ZeroPad1d(1)": "ZeroPad1d((1, 1))",
    "ZeroPad3d(2)": "ZeroPad3d((2, 2, 2, 2, 2, 2))",
    "ReflectionPad2d(2)": "ReflectionPad2d((2, 2, 2, 2))",
    "ReplicationPad3d(2)": "ReplicationPad3d((2, 2, 2, 2, 2, 2))",
    "CircularPad1d((1, 2))": None,
    "Dropout2d(0.3)": "Dropout2d(p=0.3, inplace=False)",
    "AlphaDropout()": "AlphaDropout(p=0.5, inplace=False)",
    "PixelShuffle(2)": "PixelShuffle(upscale_factor=2)",
    "PixelUnshuffle(2)": "PixelUnshuffle(downscale_factor=2)",
    "ChannelShuffle(2)": "ChannelShuffle(groups=2)",
    "Upsample(scale_factor=2)": "Upsample(scale_factor=2.0, mode='nearest')",
    "Upsample(size=(3, 4), mode='bilinear', align_corners=True)": "Upsample(size=(3, 4), mode='bilinear')",
    "UpsamplingNearest2d(scale_factor=2)": "UpsamplingNearest2d(scale_factor=2.0, mode='nearest')",
    "UpsamplingBilinear2d(size=3)": "UpsamplingBilinear2d(size=3, mode='bilinear')",
    "Flatten()": "Flatten(start_dim=1, end_dim=-1)",
    "Unflatten(1, (2, 3))": "Unflatten(dim=1, unflattened_size=(2, 3))",
    "CosineSimilarity()": None,
    "PairwiseDistance()": None,
    "Unfold(2)": "Unfold(kernel_size=2, dilation=1, padding=0, stride=1)",
    "Fold(4, 2)": "Fold(output_size=4, kernel_size=2, dilation=1, padding=0, stride=1)",
    "LocalResponseNorm(2)": "LocalResponseNorm(2, alpha=0.0001, beta=0.75, k=1.0)",
    "CrossMapLRN2d(2)": "CrossMapLRN2d(2, alpha=0.0001, beta=0.75, k=1)",
    "GroupNorm(2, 4)": "GroupNorm(2, 4, eps=1e-05, affine=True, bias=True)",
    "LayerNorm(3)": "LayerNorm((3,), eps=1e-05, elementwise_affine=True, bias=True)",
    "LayerNorm((3, 4), elementwise_affine=False, bias=False)": (
        "LayerNorm((3, 4), eps=1e-05, elementwise_affine=False, bias=False)"
    ),
    "RMSNorm(3)": "RMSNorm((3,), eps=None, elementwise_affine=True)",
    "BatchNorm1d(3)": "BatchNorm1d(3, eps=1e-05, momentum=0.1, affine=True, bias=True, track_running_stats=True)",
    "BatchNorm2d(3, bias=False)": (
        "BatchNorm2d(3, eps=1e-05, momentum=0.1, affine=True, bias=False, track_running_stats=True)"
    ),
    "InstanceNorm1d(3)": (
        "InstanceNorm1d(3, eps=1e-05, momentum=0.1, affine=False, bias=False, track_running_stats=False)"
    ),
    "InstanceNorm3d(3, affine=True, bias=False)": (
        "InstanceNorm3d(3, eps=1e-05, momentum=0.1, affine=True, bias=False, track_running_stats=False)"
    ),
    "Embedding(3, 4)": None,
    "Embedding(3, 4, padding_idx=-1, max_norm=1, norm_type=1, scale_grad_by_freq=True, sparse=True)": (
        "Embedding(3, 4, padding_idx=2, max_norm=1, norm_type=1, scale_grad_by_freq=True, sparse=True)"
    ),
    "EmbeddingBag(3, 4)": "EmbeddingBag(3, 4, mode='mean')",
    "EmbeddingBag(3, 4, mode='sum', max_norm=1.0, padding_idx=1)": (
        "EmbeddingBag(3, 4, max_norm=1.0, mode='sum', padding_idx=1)"
    ),
    "Linear(2, 3, bias=False)": "Linear(in_features=2, out_features=3, bias=False)",
    "Bilinear(1, 2, 3)": "Bilinear(in1_features=1, in2_features=2, out_features=3, bias=True)",
    "Identity(3, a=2)": "Identity()",
    "RNN(2, 3)": None,
    "LSTM(2, 4, 2, bias=False, batch_first=True, dropout=0.1, bidirectional=True, proj_size=3)": (
        "LSTM(2, 4, proj_size=3, num_layers=2, bias=False, batch_first=True, dropout=0.1, bidirectional=True)"
    ),
    "GRUCell(2, 3)": None,
    "RNNCell(2, 3, bias=False, nonlinearity='relu')": "RNNCell(2, 3, bias=False, nonlinearity=relu)",
    "Conv2d(2, 4, 3)": "Conv2d(2, 4, kernel_size=(3, 3), stride=(1, 1))",
    "Conv1d(2, 4, 3, 2, 1, 2, 2, False, 'circular')": (
        "Conv1d(2, 4, kernel_size=(3,), stride=(2,), padding=(1,), dilation=(2,), groups=2, bias=False, "
        "padding_mode=circular)"
    ),
    "Conv2d(2, 4, (3, 3), padding='same')": "Conv2d(2, 4, kernel_size=(3, 3), stride=(1, 1), padding=same)",
    "ConvTranspose2d(2, 4, 3, output_padding=1, stride=2, dilation=3)": (
        "ConvTranspose2d(2, 4, kernel_size=(3, 3), stride=(2, 2), dilation=(3, 3), output_padding=(1, 1))"
    ),
    "PReLU()": "PReLU(num_parameters=1)",
    "Hardtanh()": "Hardtanh(min_val=-1.0, max_val=1.0)",
    "ReLU6()": None,
    "ReLU6(True)": "ReLU6(inplace=True)",
    "Hardswish(True)": "Hardswish()",
    "Hardsigmoid(True)": "Hardsigmoid()",
    "Softmax2d()": None,
    "GLU()": "GLU(dim=-1)",
    "RReLU()": "RReLU(lower=0.125, upper=0.3333333333333333)",
    "SELU(True)": "SELU(inplace=True)",
    "Threshold(1, 2)": "Threshold(threshold=1, value=2)",
    "LazyLinear(3)": "LazyLinear(in_features=0, out_features=3, bias=True)",
    "LazyConv2d(2, 3)": "LazyConv2d(0, 2, kernel_size=(3, 3), stride=(1, 1))",
    "LazyBatchNorm1d()": (
        "LazyBatchNorm1d(0, eps=1e-05, momentum=0.1, affine=True, bias=True, track_running_stats=True)"
    ),
    "SyncBatchNorm(3)": "SyncBatchNorm(3, eps=1e-05, momentum=0.1, affine=True, bias=True, track_running_stats=True)",
    "ELU()": "ELU(alpha=1.0)",
    "Hardshrink()": "Hardshrink(0.5)",
    "Softplus()": "Softplus(beta=1.0, threshold=20.0)",
    "GELU()": "GELU(approximate='none')",
    "CELU()": "CELU(alpha=1.0)",
    "LeakyReLU(inplace=True)": "LeakyReLU(negative_slope=0.01, inplace=True)",
    "Softmax(1)": "Softmax(dim=1)",
    "LogSoftmax()": "LogSoftmax(dim=None)",
    "CrossEntropyLoss()": None,
    "MSELoss()": None,
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("call", LAYERS)
def test_printing(call):
    module = eval(f"nn.{call}", {"nn": nn})
    assert repr(module) == (LAYERS[call] or call)


# --- declared settings -----------------------------------------------------------------------------------------------


def test_settings_are_arguments_and_attributes():
    pool = nn.MaxPool2d(3, padding=1)
    assert (pool.kernel_size, pool.stride, pool.padding, pool.ceil_mode) == (3, 3, 1, False)
    assert list(inspect.signature(nn.MaxPool2d).parameters) == [
        "kernel_size", "stride", "padding", "dilation", "return_indices", "ceil_mode",
    ]
    assert inspect.signature(nn.ELU).parameters["alpha"].default == 1.0


def test_a_subclass_may_have_a_constructor_of_its_own():
    class Half(nn.Dropout):
        note: str = "not a setting"

        def __init__(self, note):
            super().__init__(0.25)
            self.note = note

    assert list(inspect.signature(Half).parameters) == ["note"]
    assert (Half("a").p, Half("a").inplace) == (0.25, False)


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: nn.ELU(1, False, 3), "ELU.__init__() takes 3 positional arguments but 4 were given"),
        (lambda: nn.ELU(beta=1), "ELU.__init__() got an unexpected keyword argument 'beta'"),
        (lambda: nn.ELU(1, alpha=1), "ELU.__init__() got multiple values for argument 'alpha'"),
        (lambda: nn.Threshold(), "Threshold.__init__() missing required arguments: 'threshold', 'value'"),
    ],
)
def test_wrong_arguments(make, text):
    with pytest.raises(TypeError, match=re.escape(text)):
        make()


# --- errors of constructors ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (lambda: nn.Dropout(1.5), ValueError, "dropout probability has to be between 0 and 1, but got 1.5"),
        (lambda: nn.Hardtanh(1, 0), ValueError, "max_val must be greater than min_val, got min_val=1 and max_val=0"),
        (lambda: nn.Bilinear(0, 1, 1), ValueError, "in1_features must be > 0, but got 0"),
        (lambda: nn.Conv2d(3, 4, 3, groups=0), ValueError, "groups must be a positive integer, got 0"),
        (lambda: nn.Conv2d(3, 4, 3, groups=2), ValueError, "in_channels must be divisible by groups"),
        (lambda: nn.Conv2d(4, 3, 3, groups=2), ValueError, "out_channels must be divisible by groups"),
        (lambda: nn.Conv2d(1, 1, 3, padding="some"), ValueError, "Invalid padding string 'some', should be one of"),
        (lambda: nn.Conv2d(1, 1, 3, 2, "same"), ValueError, "padding='same' is not supported for strided convolutions"),
        (lambda: nn.Conv2d(1, 1, 3, padding_mode="x"), ValueError, "padding_mode must be one of"),
        (lambda: nn.ConvTranspose1d(1, 1, 3, padding_mode="reflect"), ValueError, 'Only "zeros" padding mode'),
        (lambda: nn.GroupNorm(2, 3), ValueError, "num_channels (3) must be divisible by num_groups (2)"),
        (lambda: nn.Embedding(3, 2, 3), AssertionError, "Padding_idx must be within num_embeddings: got 3"),
        (lambda: nn.Embedding(3, 2, _weight=pellucid.zeros(2, 2)), AssertionError, "Shape of weight does not match"),
        (lambda: nn.Embedding.from_pretrained(pellucid.zeros(2)), AssertionError, "is expected to be 2-dimensional"),
        (lambda: nn.FractionalMaxPool2d(2), ValueError, "requires specifying either an output size"),
        (lambda: nn.FractionalMaxPool2d(2, 1, 0.5), ValueError, "only one of output_size and output_ratio may be"),
        (lambda: nn.FractionalMaxPool3d(2, output_ratio=2.0), ValueError, "output_ratio must be between 0 and 1"),
        (lambda: nn.MultiMarginLoss(p=3), ValueError, "only p == 1 and p == 2 supported, got p=3"),
        (lambda: nn.MultiMarginLoss(weight=pellucid.ones(1, 1)), ValueError, "expected weight to be None or 1D tensor"),
        (lambda: nn.TripletMarginLoss(-1.0), ValueError, "expected margin to be greater than 0, got -1.0"),
        (lambda: nn.TripletMarginWithDistanceLoss(margin=0), ValueError, "expected margin to be greater than 0, got 0"),
        (lambda: nn.Unflatten(0, 3), TypeError, "unflattened_size must be a tuple of ints, but found type int"),
        (lambda: nn.Unflatten(0, (1, "a")), TypeError, "but found element of type str at pos 1"),
        (lambda: nn.MultiheadAttention(0, 1), ValueError, "embed_dim and num_heads must be greater than 0"),
        (lambda: nn.MultiheadAttention(3, 2), AssertionError, "embed_dim must be divisible by num_heads, got 3 and 2"),
        (lambda: nn.TransformerEncoderLayer(4, 2, activation="elu"), RuntimeError, "should be relu/gelu, not elu"),
        (lambda: nn.AdaptiveLogSoftmaxWithLoss(2, 5, []), ValueError, "a sequence of length larger than 0"),
        (lambda: nn.AdaptiveLogSoftmaxWithLoss(2, 5, [3, 2]), ValueError, "a sequence of unique, positive integers"),
    ],
)
def test_constructor_errors(make, error, text):
    with pytest.raises(error, match=re.escape(text)):
        make()


@pytest.mark.parametrize(
    ("module", "dims", "text"),
    [
        (nn.BatchNorm1d(2), 4, "expected 2D or 3D input (got 4D input)"),
        (nn.BatchNorm2d(2), 3, "expected 4D input (got 3D input)"),
        (nn.InstanceNorm2d(2), 2, "expected 3D or 4D input (got 2D input)"),
        (nn.SyncBatchNorm(2), 1, "expected at least 2D input (got 1D input)"),
        (nn.CircularPad2d(1), 2, "expected 3D or 4D input (got 2D input)"),
        (nn.Softmax2d(), 2, "Softmax2d: expected input to be 3D or 4D, got 2D instead"),
        (nn.InstanceNorm1d(3, affine=True), 3, "expected input's size at dim=1 to match num_features (3), but got: 2"),
    ],
)
def test_input_errors(module, dims, text):
    with pytest.raises(ValueError, match=re.escape(text)):
        module(pellucid.zeros((2,) * dims))


def test_old_names_of_hardtanh():
    with pytest.warns(FutureWarning, match="keyword argument `min_value` is deprecated and rename to `min_val`"):
        assert nn.Hardtanh(min_value=-2.0).min_val == -2.0


@pytest.mark.parametrize(
    ("arguments", "reduction"),
    [({"reduce": False}, "none"), ({"size_average": False}, "sum"), ({"size_average": True}, "mean")],
)
def test_old_reductions(arguments, reduction):
    with pytest.warns(UserWarning, match="size_average and reduce args will be deprecated"):
        assert nn.MSELoss(**arguments).reduction == reduction


def test_weights_of_losses_are_buffers():
    loss = nn.CrossEntropyLoss(weight=pellucid.ones(3))
    assert list(loss.state_dict()) == ["weight"]
    assert list(nn.BCEWithLogitsLoss(pos_weight=pellucid.ones(1)).state_dict()) == ["pos_weight"]
    assert loss.double().weight.dtype == pellucid.float64


# --- what is particular ----------------------------------------------------------------------------------------------


def test_linear():
    layer = nn.Linear(2, 1)
    layer.load_state_dict({"weight": pellucid.tensor([[2.0, 3.0]]), "bias": pellucid.tensor([1.0])})
    assert layer(pellucid.tensor([[1.0, 10.0]])).tolist() == [[33.0]]
    assert nn.Linear(2, 1, dtype=pellucid.float64).weight.dtype == pellucid.float64


def test_weights_that_are_kept_elsewhere():
    layer = nn.Linear(1, 1, bias=False)
    del layer.weight
    layer.weight = pellucid.tensor([[5.0]])
    assert layer(pellucid.ones(1, 1)).item() == 5


def test_convolution_weights():
    assert nn.Conv2d(4, 6, (1, 2), groups=2).weight.shape == (6, 2, 1, 2)
    assert nn.ConvTranspose2d(4, 6, (1, 2), groups=2).weight.shape == (4, 3, 1, 2)
    assert nn.Conv3d(1, 1, 3, padding="same", dilation=2)._reversed_padding_repeated_twice == (2,) * 6


def test_output_size_of_transposed_convolutions():
    layer = nn.ConvTranspose1d(1, 1, 3, stride=2)
    x = pellucid.zeros(1, 1, 4)
    assert layer._output_padding(x, [10]) == [1]
    assert layer._output_padding(x, [1, 1, 9]) == [0]
    with pytest.raises(ValueError, match="requested an output size of \\[11\\], but valid sizes range from \\[9\\] to"):
        layer._output_padding(x, [11])
    with pytest.raises(ValueError, match="ConvTranspose1D: for 3D input, output_size must have 1 or 3 elements"):
        layer._output_padding(x, [9, 9])


def test_batch_norm_without_momentum_averages_all_batches():
    norm = nn.BatchNorm1d(1, momentum=None)
    for value in (1.0, 2.0, 6.0):
        norm(pellucid.tensor([[value - 1], [value + 1]]))
    assert norm.num_batches_tracked.item() == 3
    assert norm.running_mean.item() == pytest.approx(3)


def test_batch_norm_without_statistics():
    norm = nn.BatchNorm1d(1, track_running_stats=False).eval()
    assert list(norm.state_dict()) == ["weight", "bias"]
    assert norm(pellucid.tensor([[0.0], [2.0]]))[:, 0].tolist() == pytest.approx([-1, 1], abs=1e-4)


def test_converting_to_sync_batch_norm():
    net = nn.Sequential(nn.BatchNorm1d(2), nn.Sequential(nn.BatchNorm2d(1)))
    weight = net[0].weight
    net = nn.SyncBatchNorm.convert_sync_batchnorm(net)
    assert [type(m).__name__ for m in (net[0], net[1][0])] == ["SyncBatchNorm", "SyncBatchNorm"]
    assert net[0].weight is weight


def test_instance_norm_that_does_not_use_its_channels_warns():
    with pytest.warns(UserWarning, match="input's size at dim=1 does not match num_features \\(3\\)"):
        nn.InstanceNorm1d(3)(pellucid.zeros(1, 2, 4))


def test_embedding_padding():
    table = nn.Embedding(3, 2, padding_idx=-1)
    assert table.padding_idx == 2
    assert table.weight[2].tolist() == [0, 0]
    frozen = nn.Embedding.from_pretrained(pellucid.ones(2, 2))
    assert not frozen.weight.requires_grad
    assert nn.EmbeddingBag.from_pretrained(pellucid.ones(2, 2), freeze=False).weight.requires_grad


def test_causal_mask():
    mask = nn.Transformer.generate_square_subsequent_mask(2)
    assert mask.tolist() == [[0, float("-inf")], [0, 0]]
    assert nn.Transformer.generate_square_subsequent_mask(2, dtype=pellucid.float64).dtype == pellucid.float64


def test_transformer_checks_sizes():
    model = nn.Transformer(4, 2, 1, 1, 8)
    with pytest.raises(RuntimeError, match="the batch number of src and tgt must be equal: got 2 and 3"):
        model(pellucid.zeros(5, 2, 4), pellucid.zeros(5, 3, 4))
    with pytest.raises(RuntimeError, match="the feature number of src and tgt must be equal to d_model: got 3 and 4"):
        model(pellucid.zeros(5, 2, 3), pellucid.zeros(5, 2, 4))


def test_encoder_blocks_may_be_overridden():
    class Plain(nn.TransformerEncoderLayer):
        def _sa_block(self, x, attn_mask, key_padding_mask, is_causal=False):
            return x * 0

        def _ff_block(self, x):
            return x * 0

    x = pellucid.tensor([[[1.0, -1.0]]])
    assert Plain(2, 1, 2)(x).tolist() == [[[pytest.approx(1, abs=1e-4), pytest.approx(-1, abs=1e-4)]]]


def test_encoder_leaves_out_padding_in_evaluation():
    layer = nn.TransformerEncoderLayer(4, 2, 8, batch_first=True)
    encoder = nn.TransformerEncoder(layer, 1).eval()
    padding = pellucid.tensor([[False, False, True]])
    with pellucid.no_grad():
        out = encoder(pellucid.ones(1, 3, 4), src_key_padding_mask=padding)
    assert out[0, 2].tolist() == [0] * 4
    assert out[0, 1].tolist() != [0] * 4


def test_adaptive_log_softmax():
    pellucid.manual_seed(0)
    loss = nn.AdaptiveLogSoftmaxWithLoss(16, 10, [2, 5])
    x, target = pellucid.randn(6, 16), pellucid.tensor([0, 1, 3, 4, 7, 9])
    output, mean = loss(x, target)
    full = loss.log_prob(x)
    assert full.exp().sum(1).tolist() == pytest.approx([1] * 6, abs=1e-5)
    assert output.tolist() == pytest.approx([full[i, c].item() for i, c in enumerate(target.tolist())], abs=1e-5)
    assert mean.item() == pytest.approx(-output.mean().item(), abs=1e-6)
    assert loss.predict(x).tolist() == full.argmax(1).tolist()
    single, _ = loss(x[0], target[0])
    assert single.item() == pytest.approx(output[0].item(), abs=1e-6)
    loss.reset_parameters()


@pytest.mark.parametrize(
    ("shape", "target", "text"),
    [
        ((2, 4), [1, 10], r"Target values should be in \[0, 9\], but values in range \[1, 10\] were found"),
        ((2, 4), [[1]], "0D or 1D target tensor expected, multi-target not supported: got 2D"),
        ((4,), [1], "1D target tensor expects 2D input tensors, but found inputs with size"),
        ((3, 4), [1, 2], "Input and target should have the same size in the batch dimension: got 3 and 2"),
    ],
)
def test_adaptive_log_softmax_errors(shape, target, text):
    with pytest.raises(RuntimeError, match=text):
        nn.AdaptiveLogSoftmaxWithLoss(4, 10, [2])(pellucid.zeros(shape), pellucid.tensor(target))


def test_data_parallel_calls_the_module():
    net = nn.DataParallel(nn.Linear(1, 1), device_ids=[0])
    assert list(net.state_dict()) == ["module.weight", "module.bias"]
    x = pellucid.ones(2, 1)
    assert net(x).tolist() == net.module(x).tolist() == nn.parallel.data_parallel(net.module, (x,)).tolist()
