"""Helpers around modules: fused normalisation, orthogonal weights, stateless calls, memory layout, no initial values."""

from __future__ import annotations

import numpy as np
import pytest

import pellucid as torch
from pellucid import nn
from pellucid.nn import utils
from pellucid.nn.utils import parametrizations, parametrize, stateless

# --- fusion ----------------------------------------------------------------------------------------------------------


def normalisation(kind, features: int, affine: bool):
    """In evaluation mode, with statistics and parameters that are not the initial ones."""
    made = kind(features, affine=affine).eval()
    made.running_mean.copy_(torch.linspace(-1, 1, features))
    made.running_var.copy_(torch.linspace(0.5, 2, features))
    if affine:
        made.weight.data.copy_(torch.linspace(1, 3, features))
        made.bias.data.copy_(torch.linspace(0, -2, features))
    return made


@pytest.mark.parametrize("affine", [True, False])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("transpose", [True, False])
def test_a_fused_convolution_does_both(transpose, bias, affine):
    torch.manual_seed(0)
    conv = (nn.ConvTranspose2d if transpose else nn.Conv2d)(3, 4, 2, bias=bias).eval()
    bn = normalisation(nn.BatchNorm2d, 4, affine)
    fused = utils.fuse_conv_bn_eval(conv, bn, transpose)
    x = torch.randn(2, 3, 5, 5)
    np.testing.assert_allclose(fused(x).detach(), bn(conv(x)).detach(), atol=1e-5)
    assert isinstance(fused.weight, nn.Parameter)
    assert fused is not conv
    assert fused.bias.requires_grad is bias
    assert (conv.bias is not None) is bias


@pytest.mark.parametrize("bias", [True, False])
def test_a_fused_linear_layer_does_both(bias):
    linear, bn = nn.Linear(3, 4, bias=bias).eval(), normalisation(nn.BatchNorm1d, 4, True)
    x = torch.randn(2, 3)
    np.testing.assert_allclose(utils.fuse_linear_bn_eval(linear, bn)(x).detach(), bn(linear(x)).detach(), atol=1e-5)


def test_what_cannot_be_fused():
    with pytest.raises(AssertionError, match="Fusion only for eval!"):
        utils.fuse_conv_bn_eval(nn.Conv2d(1, 1, 1), nn.BatchNorm2d(1))
    with pytest.raises(AssertionError, match=r"got linear.out_features=3 and bn.num_features=2"):
        utils.fuse_linear_bn_eval(nn.Linear(2, 3).eval(), nn.BatchNorm1d(2).eval())
    with pytest.raises(AssertionError, match=r"running_mean and bn.running_var must not be None"):
        utils.fuse_conv_bn_eval(nn.Conv2d(1, 1, 1).eval(), nn.BatchNorm2d(1, track_running_stats=False).eval())


# --- orthogonal weights ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("orthogonal_map", "shape", "moved"),
    [
        ("matrix_exp", (3, 3), [[-0.884981, -0.348035, 0.309323], [-0.421112, 0.881699, -0.21277], [-0.198678, -0.318557, -0.926849]]),
        ("matrix_exp", (3, 2), [[-0.931334, 0.355754], [-0.078895, 0.011516], [-0.355518, -0.934509]]),
        ("matrix_exp", (2, 3), [[-0.599999, -0.637717, -0.48303], [0.188036, 0.474453, -0.859963]]),
        ("cayley", (3, 3), [[-0.889123, -0.379974, 0.255109], [-0.431063, 0.882553, -0.187845], [-0.153771, -0.276985, -0.94849]]),
        ("cayley", (3, 2), [[-0.932674, 0.35063], [-0.092923, -0.0066], [-0.348546, -0.936491]]),
        ("cayley", (2, 3), [[-0.604156, -0.635962, -0.480154], [0.177294, 0.480174, -0.859069]]),
        ("householder", (3, 3), [[-0.90662, 0.378796, 0.185885], [0.127914, 0.666546, -0.734408], [-0.402091, -0.642052, -0.652757]]),
        ("householder", (3, 2), [[-0.72468, 0.63844], [0.084767, 0.456024], [-0.683852, -0.62003]]),
        ("householder", (2, 3), [[-0.477931, -0.570725, -0.667724], [0.624915, 0.313294, -0.715072]]),
    ],
)  # fmt: skip
def test_orthogonal_weights(orthogonal_map, shape, moved):
    """The values are those of PyTorch for this seed, and the same move of what is trained."""
    torch.manual_seed(3)
    module = parametrizations.orthogonal(nn.Linear(shape[1], shape[0]), orthogonal_map=orthogonal_map)
    step = torch.arange(6.0 if 2 in shape else 9.0).reshape(shape) / 10
    if orthogonal_map == "householder":  # the diagonal holds signs
        step = step.triu(1) if shape == (2, 3) else step.tril(-1)
    module.parametrizations.weight.original.data += step
    np.testing.assert_allclose(module.weight.detach(), moved, atol=2e-6)
    gram = module.weight @ module.weight.mT if shape == (2, 3) else module.weight.mT @ module.weight
    np.testing.assert_allclose(gram.detach(), np.eye(min(shape)), atol=1e-5)


@pytest.mark.parametrize("orthogonal_map", ["matrix_exp", "cayley", "householder"])
@pytest.mark.parametrize("shape", [(4, 4), (5, 3), (3, 5)])
def test_assigning_and_training(shape, orthogonal_map):
    module = parametrizations.orthogonal(nn.Linear(shape[1], shape[0]), orthogonal_map=orthogonal_map)
    target = nn.init.orthogonal_(torch.empty(shape))
    module.weight = target
    np.testing.assert_allclose(module.weight.detach(), target, atol=1e-5)
    module.weight.square().sum().backward()
    np.testing.assert_allclose(module.parametrizations.weight.original.grad, 0, atol=1e-4)  # the length cannot change
    module.weight[0, 0].backward()
    assert module.parametrizations.weight.original.grad.abs().sum() > 1e-3


def test_without_trivialization():
    module = parametrizations.orthogonal(nn.Linear(3, 5), use_trivialization=False)
    assert list(module.state_dict()) == ["bias", "parametrizations.weight.original"]
    target = nn.init.orthogonal_(torch.empty(5, 3))
    module.weight = target
    np.testing.assert_allclose(module.weight.detach(), target, atol=1e-6)
    square = parametrizations.orthogonal(nn.Linear(3, 3), use_trivialization=False)
    with pytest.raises(NotImplementedError, match="not possible to assign to the matrix exponential"):
        square.weight = torch.eye(3)


def test_complex_weights_become_unitary():
    module = nn.Module()
    module.weight = nn.Parameter(torch.randn(3, 3, dtype=torch.complex64))
    parametrizations.orthogonal(module)
    weight = module.weight.detach()
    np.testing.assert_allclose((weight.mH @ weight).numpy(), np.eye(3), atol=1e-5)
    other = nn.Module()
    other.weight = nn.Parameter(torch.randn(3, 3, dtype=torch.complex64))
    with pytest.raises(ValueError, match="householder parametrization does not support complex tensors"):
        parametrizations.orthogonal(other, orthogonal_map="householder")


@pytest.mark.parametrize(
    ("options", "phrase"),
    [
        ({"orthogonal_map": "qr"}, 'has to be one of "matrix_exp", "cayley", "householder". Got: qr'),
        ({"name": "bias"}, "Expected a matrix or batch of matrices. Got a tensor of 1 dimensions"),
        ({"name": "other"}, "has no parameter or buffer with name 'other'"),
    ],
)
def test_refused_orthogonal_weights(options, phrase):
    with pytest.raises(ValueError, match=phrase):
        parametrizations.orthogonal(nn.Linear(2, 2), **options)
    module = parametrizations.orthogonal(nn.Linear(2, 2))
    with pytest.raises(ValueError, match=r"Expected a matrix or batch of matrices of shape torch.Size\(\[2, 2\]\)"):
        module.weight = torch.eye(3)


# --- parametrizations moved ------------------------------------------------------------------------------------------


class Symmetric(nn.Module):
    def forward(self, x):
        return x.triu() + x.triu(1).mT


def test_parametrizations_move_to_another_module():
    source, target = nn.Linear(3, 3), nn.Linear(3, 3)
    assert parametrize.transfer_parametrizations_and_params(source, target) is target
    assert not parametrize.is_parametrized(target)
    parametrize.register_parametrization(source, "weight", Symmetric())
    parametrize.transfer_parametrizations_and_params(source, target)
    assert target.parametrizations.weight.original is source.parametrizations.weight.original
    assert (target.weight == target.weight.mT).all()
    assert (target.weight == source.weight).all()
    weightless = nn.Module()
    parametrize.transfer_parametrizations_and_params(source, weightless, "weight")
    assert (weightless.weight == source.weight).all()


def test_weight_norm_moves_with_both_of_its_tensors():
    source, target = parametrizations.weight_norm(nn.Linear(3, 2)), nn.Linear(3, 2)
    parametrize.transfer_parametrizations_and_params(source, target)
    assert target.parametrizations.weight.original1 is source.parametrizations.weight.original1
    np.testing.assert_allclose(target.weight.detach(), source.weight.detach())


# --- stateless calls -------------------------------------------------------------------------------------------------

deprecated = pytest.mark.filterwarnings("ignore:`torch.nn.utils.stateless.functional_call` is deprecated")


def test_the_old_name_warns():
    with pytest.warns(FutureWarning, match="Please use `torch.func.functional_call` instead"):
        stateless.functional_call(nn.Linear(2, 2), {}, torch.ones(1, 2))


@deprecated
def test_a_call_with_other_tensors():
    module = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
    before = {name: value.clone() for name, value in module.state_dict().items()}
    given = {"0.weight": torch.ones(2, 2, requires_grad=True), "1.num_batches_tracked": torch.tensor(5)}
    made = stateless.functional_call(module, given, torch.arange(6.0).reshape(3, 2))
    (made * torch.arange(6.0).reshape(3, 2)).sum().backward()
    assert given["0.weight"].grad is not None
    assert module[0].weight.grad is None
    assert given["1.num_batches_tracked"].item() == 6
    for name in ("0.weight", "0.bias", "1.num_batches_tracked"):
        assert (module.state_dict()[name] == before[name]).all()


@deprecated
def test_tied_weights():
    module = nn.Sequential(nn.Linear(2, 2, bias=False), nn.Linear(2, 2, bias=False))
    module[1].weight = module[0].weight
    ones, x = torch.ones(2, 2), torch.ones(1, 2)
    assert stateless.functional_call(module, {"0.weight": ones}, x).tolist() == [[4, 4]]
    loose = stateless.functional_call(module, {"0.weight": ones, "1.weight": ones * 0}, x, tie_weights=False)
    assert loose.tolist() == [[0, 0]]
    with pytest.raises(ValueError, match=r"multiple values for keys \['0.weight', '1.weight'\], which are tied"):
        stateless.functional_call(module, {"0.weight": ones, "1.weight": ones * 0}, x)
    assert module[1].weight is module[0].weight


@deprecated
def test_names_under_strict():
    with pytest.raises(RuntimeError, match=r"for Linear:\n\tUnexpected key\(s\): 'foo'.\n\tMissing key\(s\): 'bias'."):
        stateless.functional_call(
            nn.Linear(2, 2), {"weight": torch.ones(2, 2), "foo": torch.ones(1)}, (torch.ones(1, 2),), strict=True
        )
    with pytest.raises(RuntimeError, match=r"can't be used with nn.DataParallel"):
        stateless.functional_call(nn.DataParallel(nn.Linear(2, 2)), {})


@deprecated
def test_the_tensors_come_back_after_an_error():
    module = nn.Linear(2, 2)
    weight = module.weight
    with pytest.raises(RuntimeError):
        stateless.functional_call(module, {"weight": torch.ones(5, 7), "extra": torch.ones(1)}, torch.ones(1, 2))
    assert module.weight is weight
    assert not hasattr(module, "extra")


# --- memory ----------------------------------------------------------------------------------------------------------


def test_weights_with_the_channels_last():
    net = nn.Sequential(nn.Conv2d(2, 3, 4), nn.Sequential(nn.ConvTranspose2d(2, 3, 4)), nn.Conv3d(2, 3, 4))
    before = net[0].weight.detach().clone()
    assert utils.convert_conv2d_weight_memory_format(net, torch.channels_last) is net
    assert net[0].weight.stride() == (32, 1, 8, 2)
    assert net[1][0].weight.stride() == (48, 1, 12, 3)
    assert net[2].weight.stride() == (128, 64, 16, 4, 1)
    assert (net[0].weight == before).all()
    assert isinstance(net[0].weight, nn.Parameter)
    utils.convert_conv3d_weight_memory_format(net, torch.channels_last_3d)
    assert net[2].weight.stride() == (128, 1, 32, 8, 2)


def test_modules_without_initial_values_draw_no_numbers():
    torch.manual_seed(0)
    module = utils.skip_init(nn.Linear, 3, 4)
    assert module.weight.shape == (4, 3)
    drawn = torch.rand(1)
    torch.manual_seed(0)
    assert drawn == torch.rand(1)
    with pytest.raises(RuntimeError, match="Expected a Module; got <class 'int'>"):
        utils.skip_init(int, 3)
    with pytest.raises(RuntimeError, match="must support a 'device' arg"):
        utils.skip_init(nn.ReLU)


def test_pytorchs_modules_of_old_hooks():
    from pellucid.nn.utils.spectral_norm import SpectralNorm
    from pellucid.nn.utils.weight_norm import WeightNorm

    assert (SpectralNorm.__name__, WeightNorm.__name__) == ("SpectralNorm", "WeightNorm")
    assert callable(utils.weight_norm)
    assert callable(utils.spectral_norm)
