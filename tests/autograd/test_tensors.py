"""Tensors beside the graph: text, pickling, copying, conversion to Python and NumPy, attributes."""

import copy
import math
import pickle
import warnings

import numpy as np
import pytest
from library import close, const, leaf, torch

# --- text ------------------------------------------------------------------------------------------------------------


class Func(torch.autograd.Function):
    """The identity."""

    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, g):
        return g


TEXTS = [
    (lambda: torch.ones(1), "tensor([1.])"),
    (lambda: torch.ones(1, requires_grad=True), "tensor([1.], requires_grad=True)"),
    (lambda: torch.ones(1, requires_grad=True).clone(), "tensor([1.], grad_fn=<CloneBackward0>)"),
    (lambda: torch.ones(1, requires_grad=True) * 2, "tensor([2.], grad_fn=<MulBackward0>)"),
    (lambda: Func.apply(torch.ones(1, requires_grad=True)), "tensor([1.], grad_fn=<FuncBackward>)"),
    (lambda: torch.ones(1, requires_grad=True).detach(), "tensor([1.])"),
    (lambda: const([1.5]), "tensor([1.5000], dtype=torch.float64)"),
    (lambda: leaf([1.5]).sum(), "tensor(1.5000, dtype=torch.float64, grad_fn=<SumBackward0>)"),
    (lambda: torch.nn.Parameter(torch.ones(1)), "Parameter containing:\ntensor([1.], requires_grad=True)"),
]


@pytest.mark.parametrize(("make", "text"), TEXTS, ids=[t[1].replace("\n", " ") for t in TEXTS])
def test_the_text_tells_where_a_tensor_comes_from(make, text):
    tensor = make()
    assert repr(tensor) == text
    assert str(tensor) == text


def test_the_text_of_a_view_whose_history_is_forbidden():
    base = torch.ones(2, 1, requires_grad=True).clone()
    with torch.no_grad():
        view = base.unbind()[0]
    base.mul_(2)
    assert repr(view) == "tensor([2.], grad_fn=<Invalid>)"


# --- pickle and deepcopy ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize("requires_grad", [False, True])
def test_pickle_keeps_values_and_requires_grad(protocol, requires_grad):
    x = torch.tensor([[1.0, 2.0], [3.0, 4.0]], dtype=torch.float64, requires_grad=requires_grad)
    made = pickle.loads(pickle.dumps(x, protocol))
    assert close(made, x)
    assert made.dtype is x.dtype
    assert made.requires_grad is requires_grad
    assert made.is_leaf


def test_pickle_drops_the_gradient_of_a_leaf():
    x = leaf([1.0])
    (x * 2).backward()
    assert pickle.loads(pickle.dumps(x)).grad is None


def test_a_pickled_parameter_is_a_parameter():
    made = pickle.loads(pickle.dumps(torch.nn.Parameter(torch.ones(2))))
    assert isinstance(made, torch.nn.Parameter)
    assert made.requires_grad


def test_deepcopy_copies_values_and_gradient():
    x = leaf([1.0, 2.0])
    (x * 3).sum().backward()
    made = copy.deepcopy(x)
    assert made.requires_grad
    assert made.is_leaf
    assert close(made.grad, [3.0, 3.0])
    assert made.grad is not x.grad
    made.grad.zero_()
    assert close(x.grad, [3.0, 3.0])


def test_deepcopy_of_one_tensor_twice_is_one_tensor():
    x = leaf([1.0])
    first, second = copy.deepcopy([x, x])
    assert first is second
    assert first is not x


def test_deepcopy_keeps_shared_memory_shared():
    x = const([1.0, 2.0])
    base, view = copy.deepcopy([x, x[1:]])
    base.zero_()
    assert close(view, [0.0])


def test_deepcopy_of_a_non_leaf_raises():
    with pytest.raises(RuntimeError, match="Only Tensors created explicitly by the user"):
        copy.deepcopy(leaf([1.0]) * 2)


def test_attributes_survive_pickle_and_deepcopy():
    x = leaf([1.0])
    x.note = "mine"
    assert pickle.loads(pickle.dumps(x)).note == "mine"
    assert copy.deepcopy(x).note == "mine"


# --- conversion ------------------------------------------------------------------------------------------------------


def test_numpy_refuses_a_tensor_that_requires_grad():
    x = leaf([1.0, 2.0])
    message = r"Can't call numpy\(\) on Tensor that requires grad. Use tensor.detach\(\).numpy\(\) instead"
    with pytest.raises(RuntimeError, match=message):
        x.numpy()
    with pytest.raises(RuntimeError, match=message):
        (x * 2).numpy()
    assert x.detach().numpy().tolist() == [1.0, 2.0]
    assert x.numpy(force=True).tolist() == [1.0, 2.0]


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode], ids=["no_grad", "inference_mode"])
@pytest.mark.parametrize("make", [lambda x: x, lambda x: x * 1], ids=["leaf", "non-leaf"])
def test_numpy_gives_the_values_where_nothing_is_recorded(make, mode):
    x = make(leaf([1.0, 2.0]))
    with mode():
        assert x.numpy().tolist() == [1.0, 2.0]
        assert np.asarray(x).tolist() == [1.0, 2.0]


def test_numpy_shares_memory():
    x = const([1.0, 2.0])
    x.numpy()[0] = 9.0
    assert close(x, [9.0, 2.0])


@pytest.mark.parametrize("value", [0, 1, -3, 7.5, math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("shape", [(), (1,), (1, 1)], ids=str)
def test_one_element_converts_to_python_numbers(shape, value):
    x = torch.full(shape, value, dtype=torch.float64)
    assert float(x) == value or math.isnan(value)
    assert bool(x) == bool(value)
    assert x.item() == value or math.isnan(value)
    if math.isfinite(value):
        assert int(x) == int(value)
    elif math.isnan(value):
        with pytest.raises(ValueError, match="cannot convert float NaN to integer"):
            int(x)
    else:
        with pytest.raises(OverflowError, match="cannot convert float infinity to integer"):
            int(x)


@pytest.mark.parametrize("convert", [int, float, bool, lambda x: x.item()], ids=["int", "float", "bool", "item"])
def test_several_elements_do_not_convert(convert):
    with pytest.raises((RuntimeError, ValueError), match=r"cannot be converted to|is ambiguous|can be converted to"):
        convert(torch.ones(2))


def test_a_tensor_that_requires_grad_converts_with_a_warning_at_most():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert float(leaf(2.5)) == 2.5
    assert leaf(2.5).item() == 2.5


def test_conversion_between_dtypes_is_differentiable():
    x = leaf([1.0, 2.0], dtype=torch.float32)
    for name in ("half", "bfloat16", "float", "double"):
        made = getattr(x, name)()
        assert made.requires_grad
        (g,) = torch.autograd.grad(made.sum(), x)
        assert g.dtype is torch.float32
    assert x.float() is x
    assert not x.int().requires_grad


def test_conversion_to_complex_is_differentiable():
    x = leaf([1.0, 2.0])
    z = x.to(torch.complex128)
    z.backward(const([1 + 2j, 3j], dtype=torch.complex128))
    assert close(x.grad, [1.0, 0.0])


def test_conversion_to_the_type_of_another():
    x = leaf([1.0], dtype=torch.float32)
    assert x.type_as(const([1.0])).dtype is torch.float64
    assert x.type_as(leaf([1.0], dtype=torch.float32)) is x
    assert x.to(const([1.0])).dtype is torch.float64


LEGACY = {
    "FloatTensor": "float32",
    "DoubleTensor": "float64",
    "HalfTensor": "float16",
    "BFloat16Tensor": "bfloat16",
    "LongTensor": "int64",
    "IntTensor": "int32",
    "ShortTensor": "int16",
    "CharTensor": "int8",
    "ByteTensor": "uint8",
    "BoolTensor": "bool",
}


@pytest.mark.parametrize("name", LEGACY)
def test_the_old_names_of_tensor_types(name):
    legacy, dtype = getattr(torch, name), getattr(torch, LEGACY[name])
    x = const([0.0, 1.0])
    for made in (x.type(legacy), x.type(f"torch.{name}"), x.type(dtype)):
        assert made.dtype is dtype
        assert isinstance(made, legacy)
        assert made.type() == f"torch.{name}"
    assert isinstance(x, legacy) is (name == "DoubleTensor")
    assert x.type(x.dtype) is x


@pytest.mark.parametrize("name", ["FloatTensor", "DoubleTensor", "HalfTensor"])
def test_a_conversion_by_an_old_name_is_differentiable(name):
    x = leaf([1.0, 2.0], dtype=torch.float32)
    y = x.type(getattr(torch, name))
    (y * 3).sum().backward()
    assert x.grad.dtype is torch.float32
    assert close(x.grad, [3.0, 3.0])
    assert (y is x) is (name == "FloatTensor")


# --- attributes ------------------------------------------------------------------------------------------------------


def test_the_gradient_may_be_deleted():
    x = leaf([1.0])
    (x * 2).backward()
    del x.grad
    assert x.grad is None


@pytest.mark.parametrize("name", ["data", "requires_grad", "_backward_hooks", "_grad_fn"])
def test_other_attributes_of_the_graph_cannot_be_deleted(name):
    x = leaf([1.0])
    with pytest.raises(RuntimeError):
        delattr(x, name)


def test_volatile_is_gone():
    x = torch.ones(1)
    with pytest.warns(UserWarning, match="volatile was removed"):
        assert x.volatile is False
    with pytest.warns(UserWarning, match="volatile was removed"):
        x.volatile = True


def test_data_must_be_a_tensor():
    x = leaf([1.0])
    with pytest.raises(TypeError):
        x.data = None


def test_attributes_of_ones_own_may_be_set():
    x = leaf([1.0])
    x.anything = [1]
    assert x.anything == [1]


def test_every_listed_attribute_can_be_read():
    x = torch.ones(1, 1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in dir(x):
            if name == "imag":  # for complex tensors only
                continue
            assert getattr(x, name) is not NotImplemented


def test_the_imaginary_part_of_a_real_tensor_raises():
    with pytest.raises(RuntimeError, match="imag is not implemented for tensors with non-complex dtypes"):
        assert torch.ones(1).imag is not None


def test_shape_is_a_tuple_of_numbers():
    x = torch.zeros(2, 3, 4)
    assert len(x.shape) == 3
    assert tuple(x.shape) == (2, 3, 4)
    assert x.shape[1:] == torch.Size([3, 4])
    assert x.shape == x.size()
    assert repr(x.shape) == "torch.Size([2, 3, 4])"


def test_the_identity_of_a_tensor_survives_new_data():
    x = leaf([1.0])
    names = {x: "x"}
    x.data = const([2.0, 3.0])
    assert names[x] == "x"


def test_variables_are_tensors():
    x = torch.autograd.Variable(torch.ones(1), requires_grad=True)
    assert isinstance(x, torch.Tensor)
    assert isinstance(torch.ones(1), torch.autograd.Variable)
    assert x.requires_grad


def test_the_text_of_a_dtype_is_that_of_pytorch():
    assert repr(torch.float32) == "torch.float32"
