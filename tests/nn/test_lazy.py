"""Modules and parameters that learn their sizes from the first input."""

import copy
import pickle

import pytest

import pellucid
from pellucid import nn
from pellucid.nn.parameter import is_lazy

LAZY = {  # lazy class: arguments, input shape, ordinary class
    nn.LazyLinear: ((3,), (2, 4), nn.Linear),
    nn.LazyConv1d: ((3, 2), (2, 4, 5), nn.Conv1d),
    nn.LazyConv2d: ((3, 2), (2, 4, 5, 5), nn.Conv2d),
    nn.LazyConv3d: ((3, 2), (2, 4, 5, 5, 5), nn.Conv3d),
    nn.LazyConvTranspose1d: ((3, 2), (2, 4, 5), nn.ConvTranspose1d),
    nn.LazyConvTranspose2d: ((3, 2), (2, 4, 5, 5), nn.ConvTranspose2d),
    nn.LazyConvTranspose3d: ((3, 2), (2, 4, 5, 5, 5), nn.ConvTranspose3d),
    nn.LazyBatchNorm1d: ((), (2, 4), nn.BatchNorm1d),
    nn.LazyBatchNorm2d: ((), (2, 4, 5, 5), nn.BatchNorm2d),
    nn.LazyBatchNorm3d: ((), (2, 4, 5, 5, 5), nn.BatchNorm3d),
    nn.LazyInstanceNorm1d: ((), (2, 4, 5), nn.InstanceNorm1d),
    nn.LazyInstanceNorm2d: ((), (2, 4, 5, 5), nn.InstanceNorm2d),
    nn.LazyInstanceNorm3d: ((), (2, 4, 5, 5, 5), nn.InstanceNorm3d),
}


@pytest.mark.parametrize("kind", LAZY)
def test_the_first_call_makes_an_ordinary_module(kind):
    arguments, shape, ordinary = LAZY[kind]
    module = kind(*arguments)
    assert module.has_uninitialized_params()
    parameters = list(module.parameters())
    out = module(pellucid.ones(shape))
    assert type(module) is ordinary
    assert all(now is before for now, before in zip(module.parameters(), parameters, strict=True))
    assert not any(is_lazy(value) for value in module.state_dict().values())
    assert not module._hooked or not module._forward_pre_hooks
    assert module(pellucid.ones(shape)).shape == out.shape


@pytest.mark.parametrize("kind", [nn.LazyLinear, nn.LazyConv2d])
def test_a_seed_gives_the_weights_of_the_ordinary_module(kind):
    arguments, shape, ordinary = LAZY[kind]
    lazy = kind(*arguments)
    pellucid.manual_seed(3)
    lazy(pellucid.ones(shape))
    pellucid.manual_seed(3)
    assert lazy.weight.tolist() == ordinary(4, *arguments).weight.tolist()


def test_without_bias():
    assert nn.LazyLinear(2, bias=False).bias is None
    norm = nn.LazyBatchNorm1d(affine=False, track_running_stats=False)
    assert norm(pellucid.ones(2, 3)).shape == (2, 3)


def test_states_of_initialized_modules_can_be_loaded():
    source, lazy = nn.Linear(4, 2), nn.LazyLinear(2)
    lazy.load_state_dict(source.state_dict())
    assert not lazy.has_uninitialized_params()
    assert lazy.weight.tolist() == source.weight.tolist()
    assert lazy(pellucid.ones(1, 4)).tolist() == source(pellucid.ones(1, 4)).tolist()
    assert repr(lazy) == repr(source)


def test_states_of_uninitialized_modules():
    first, second = nn.LazyLinear(2), nn.LazyLinear(2)
    second.load_state_dict(first.state_dict())
    assert second.has_uninitialized_params()
    with pytest.raises(RuntimeError, match="Can't access the shape of an uninitialized parameter or buffer"):
        nn.Linear(1, 2).load_state_dict(first.state_dict())


def test_conversion_and_copies_before_the_first_call():
    module = nn.LazyLinear(2).double()
    other = copy.deepcopy(module)
    module(pellucid.ones(1, 3, dtype=pellucid.float64))
    assert module.weight.dtype == pellucid.float64
    assert other.has_uninitialized_params()
    other.float().half().bfloat16().to(pellucid.float32)
    for _ in range(2):
        assert other(pellucid.ones(1, 5)).shape == (1, 2)
    assert not other._hooked


def test_an_uninitialized_parameter_cannot_be_used():
    parameter = nn.UninitializedParameter(dtype=pellucid.float64)
    assert repr(parameter) == "<UninitializedParameter>"
    assert parameter.requires_grad
    assert parameter.dtype == pellucid.float64
    with pytest.raises(ValueError, match="Attempted to use an uninitialized parameter in a computation"):
        parameter + 1
    with pytest.raises(RuntimeError, match="Can't access the shape of an uninitialized parameter"):
        _ = parameter.shape
    with pytest.raises(RuntimeError, match="Can't share memory on an uninitialized parameter"):
        parameter.share_memory_()
    again = pickle.loads(pickle.dumps(parameter))
    assert is_lazy(again)
    parameter.materialize((2, 3))
    assert type(parameter) is nn.Parameter
    assert parameter.shape == (2, 3)


def test_an_uninitialized_buffer_becomes_a_tensor():
    buffer = nn.UninitializedBuffer(persistent=False)
    assert not buffer.persistent
    buffer.materialize((2,), dtype=pellucid.float64)
    assert type(buffer) is pellucid.Tensor
    assert buffer.dtype == pellucid.float64


def test_errors():
    class Unfinished(nn.modules.lazy.LazyModuleMixin, nn.Linear):
        pass

    with pytest.raises(NotImplementedError, match="initialize_parameters is not implemented for Unfinished"):
        Unfinished(1, 1)(pellucid.ones(1, 1))

    class Forgetful(nn.LazyLinear):
        def initialize_parameters(self, input):
            pass

    with pytest.raises(RuntimeError, match="module Forgetful has not been fully initialized"):
        Forgetful(1)(pellucid.ones(1, 1))
    with pytest.raises(RuntimeError, match="can't be used with `DataParallel`"):
        nn.LazyLinear(1)._replicate_for_data_parallel()
    with pytest.raises(RuntimeError, match=r"Expected 3D \(unbatched\) or 4D \(batched\) input to LazyConv2d"):
        nn.LazyConv2d(1, 1)(pellucid.ones(2, 2))
    with pytest.raises(ValueError, match="in_channels must be divisible by groups: got 3 and 2"):
        nn.LazyConv1d(2, 1, groups=2)(pellucid.ones(1, 3, 4))
