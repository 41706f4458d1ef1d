"""Initial values: what the functions fill in, and that a seed gives PyTorch's numbers. Those of layers are here too."""

import math

import pytest

import pellucid
from pellucid import nn
from pellucid.nn import init


def values(tensor):
    return [round(value, 6) for value in tensor.detach().reshape(-1).tolist()]


SEEDED = {  # function, arguments, shape: the numbers after manual_seed(0)
    ("uniform_", (-1.0, 3.0), (2, 2)): [0.98502636, 2.0728872, -0.64609027, -0.47187805],
    ("normal_", (1.0, 2.0), (2, 2)): [4.081992, 0.41314217, -3.3575788, 2.1368625],
    ("trunc_normal_", (), (2, 3)): [1.5409961, -0.2934289, -0.7192576, 0.56843126, -1.0845224, -1.3985955],
    ("trunc_normal_", (0.0, 1.0, 1.5, 3.0), (2, 3)): [
        1.5334886, 1.7532884, 1.6327162, 1.6980457, 1.9611342, 2.060126,
    ],
    ("xavier_uniform_", (), (2, 3)): [-0.0082014, 0.5876445, -0.9016008, -0.80618083, -0.42191547, 0.2937517],
    ("xavier_normal_", (2.0,), (2, 3)): [1.949223, -0.37116146, -2.7559748, 0.719015, -1.3718243, -1.7690988],
    ("kaiming_uniform_", (0.3, "fan_out"), (2, 3)): [
        -0.01242066, 0.8899619, -1.365435, -1.2209256, -0.6389725, 0.44487408,
    ],
    ("kaiming_normal_", (), (2, 3)): [1.258218, -0.2395837, -1.778974, 0.4641222, -0.8855088, -1.1419483],
    ("orthogonal_", (), (2, 3)): [0.5739809, -0.10929461, -0.81154215, -0.34541512, -0.9308827, -0.11893554],
    ("sparse_", (0.4,), (4, 2)): [0, -0.00293429, 0, 0, -0.01084522, -0.01398595, 0.00403347, 0],
}


@pytest.mark.parametrize(("name", "arguments", "shape"), SEEDED)
def test_a_seed_gives_the_numbers_of_pytorch(name, arguments, shape):
    pellucid.manual_seed(0)
    tensor = pellucid.empty(*shape)
    assert getattr(init, name)(tensor, *arguments) is tensor
    assert values(tensor) == pytest.approx(SEEDED[name, arguments, shape], abs=2e-6)


LAYERS = {
    "Linear(3, 2)": {
        "weight": [-0.00432252, 0.30971584, -0.47518533, -0.4248946, -0.22236897, 0.15482073],
        "bias": [-0.01143914, 0.45777494],
    },
    "Conv2d(1, 2, 2)": {
        "weight": [-0.00374341, 0.2682218, -0.41152257, -0.3679695, -0.19257718, 0.13407868, -0.00990659, 0.39644474],
        "bias": [-0.04437202, 0.13230628],
    },
    "Embedding(3, 2)": {"weight": [1.5409961, -0.2934289, -2.1787894, 0.56843126, -1.0845224, -1.3985955]},
    "LSTM(1, 1)": {
        "weight_ih_l0": [-0.00748682, 0.5364436, -0.82304513, -0.735939],
        "weight_hh_l0": [-0.38515437, 0.26815736, -0.01981318, 0.7928895],
        "bias_ih_l0": [-0.08874404, 0.26461256, -0.30221307, -0.19656539],
        "bias_hh_l0": [-0.9553485, -0.6622821, -0.4122231, 0.03704357],
    },
    "MultiheadAttention(2, 1)": {
        "in_proj_weight": [
            -0.01715872, 0.68666244, -0.07685459, 0.22916119, -0.2617242, -0.17023061, -0.82735604, -0.57355314,
            -0.35699567, 0.03208067, 0.34237033, 0.51963496,
        ],
        "in_proj_bias": [0.0] * 6,
        "out_proj.weight": [-0.00529398, 0.3793229, -0.58198076, -0.5203875],
        "out_proj.bias": [0.0, 0.0],
    },
}


@pytest.mark.parametrize("call", LAYERS)
def test_initial_weights_of_layers(call):
    pellucid.manual_seed(0)
    layer = eval(f"nn.{call}", {"nn": nn})
    assert [name for name, _ in layer.named_parameters()] == list(LAYERS[call])
    for name, parameter in layer.named_parameters():
        assert values(parameter) == pytest.approx(LAYERS[call][name], abs=2e-6)


def test_fixed_values():
    assert init.constant_(pellucid.empty(2), 3).tolist() == [3, 3]
    assert init.ones_(pellucid.empty(2)).tolist() == [1, 1]
    assert init.zeros_(pellucid.empty(2)).tolist() == [0, 0]
    assert init.eye_(pellucid.empty(2, 3)).tolist() == [[1, 0, 0], [0, 1, 0]]
    assert init.dirac_(pellucid.empty(4, 1, 3), groups=2).reshape(4, 3).tolist() == [
        [0, 1, 0], [0, 0, 0], [0, 1, 0], [0, 0, 0],
    ]


def test_parameters_are_filled_outside_the_graph():
    parameter = nn.Parameter(pellucid.empty(2, 2))
    for fill in (init.normal_, init.ones_, init.eye_, init.orthogonal_, init.trunc_normal_, init.xavier_uniform_):
        fill(parameter)
        assert parameter.is_leaf
        assert parameter.requires_grad


def test_a_write_is_counted():
    tensor = pellucid.empty(2, 2)
    init.eye_(tensor)
    assert tensor._version == 1


def test_draws_come_from_the_generator():
    first, second = (
        init.kaiming_normal_(pellucid.empty(3, 3), generator=pellucid.Generator().manual_seed(5)) for _ in range(2)
    )
    assert first.tolist() == second.tolist()


def test_orthogonal_matrices_are_orthogonal():
    for shape in ((3, 5), (5, 3), (4, 2, 3)):
        matrix = init.orthogonal_(pellucid.empty(*shape, dtype=pellucid.float64), gain=2.0).reshape(shape[0], -1)
        small = matrix if matrix.shape[0] <= matrix.shape[1] else matrix.T
        assert (small @ small.T).tolist() == [
            pytest.approx([4.0 if i == j else 0.0 for j in range(len(small))], abs=1e-12) for i in range(len(small))
        ]


def test_truncated_normal_is_truncated():
    tensor = init.trunc_normal_(pellucid.empty(1000), 0.0, 1.0, -0.5, 0.5)
    assert -0.5 <= tensor.min().item() <= tensor.max().item() <= 0.5
    with pytest.warns(UserWarning, match="mean is more than 2 std from"):
        init.trunc_normal_(pellucid.empty(4), 5.0, 1.0, -1.0, 1.0)


def test_gains():
    assert [init.calculate_gain(name) for name in ("linear", "conv2d", "sigmoid")] == [1, 1, 1]
    assert init.calculate_gain("tanh") == 5 / 3
    assert init.calculate_gain("relu") == math.sqrt(2)
    assert init.calculate_gain("selu") == 0.75
    assert init.calculate_gain("leaky_relu", 0.2) == math.sqrt(2 / 1.04)
    with pytest.raises(ValueError, match="negative_slope True not a valid number"):
        init.calculate_gain("leaky_relu", True)
    with pytest.raises(ValueError, match="Unsupported nonlinearity swish: expected one of linear"):
        init.calculate_gain("swish")


@pytest.mark.parametrize(
    ("fill", "shape", "text"),
    [
        (init.eye_, (2,), "Only tensors with 2 dimensions are supported"),
        (init.sparse_, (2,), "Only tensors with 2 dimensions are supported"),
        (init.dirac_, (2, 2), "Only tensors with 3, 4, or 5 dimensions are supported"),
        (init.orthogonal_, (2,), "Only tensors with 2 or more dimensions are supported"),
        (init.xavier_normal_, (2,), "Fan in and fan out can not be computed for tensor with fewer than 2 dimensions"),
    ],
)
def test_wrong_shapes(fill, shape, text):
    with pytest.raises(ValueError, match=text):
        fill(pellucid.empty(*shape), *((0.5,) if fill is init.sparse_ else ()))


def test_other_errors_and_warnings():
    with pytest.raises(ValueError, match="dim 0 must be divisible by groups: got size 3 and groups=2"):
        init.dirac_(pellucid.empty(3, 1, 1), 2)
    with pytest.raises(ValueError, match="Mode fan not supported, please use one of"):
        init.kaiming_normal_(pellucid.empty(2, 2), mode="fan")
    for fill in (init.kaiming_normal_, init.kaiming_uniform_):
        with pytest.warns(UserWarning, match="Initializing zero-element tensors is a no-op"):
            fill(pellucid.empty(0, 2))
    with pytest.warns(FutureWarning, match=r"`nn.init.normal` is now deprecated in favor of `nn.init.normal_`"):
        init.normal(pellucid.empty(2))
