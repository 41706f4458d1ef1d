"""Names that are made for a whole family at once: in-place methods of composites, second names of linear algebra."""

import inspect

import pytest

import pellucid as torch


@pytest.mark.parametrize(
    ("name", "rest"),
    [("det", ["out"]), ("slogdet", ["out"]), ("inverse", ["out"]), ("matrix_exp", []), ("matrix_power", ["n", "out"])],
)
def test_second_names_call_the_first_argument_input(name, rest):
    assert list(inspect.signature(getattr(torch, name)).parameters) == ["input", *rest]


def test_second_names_give_the_same():
    matrix = torch.tensor([[2.0, 1.0], [0.0, 4.0]])
    assert torch.det(input=matrix).item() == matrix.det().item() == torch.linalg.det(matrix).item() == 8.0
    assert torch.matrix_power(matrix, n=2).tolist() == torch.linalg.matrix_power(matrix, 2).tolist() == [[4.0, 6.0], [0.0, 16.0]]
    out = torch.empty(2, 2)
    assert torch.inverse(matrix, out=out) is out
    assert out.tolist() == [[0.5, -0.125], [0.0, 0.25]]


def test_a_second_name_has_a_node_of_its_operator():
    matrix = torch.eye(2, requires_grad=True)
    assert torch.inverse(matrix).grad_fn.name() == "LinalgInvExBackward0"


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda x: x.clamp_(min=1.0, max=2.0), [1.0, 2.0, 2.0]),
        (lambda x: x.clamp_min_(min=2.0), [2.0, 2.0, 3.0]),
        (lambda x: x.clamp_max_(2.0), [0.5, 2.0, 2.0]),
        (lambda x: x.pow_(exponent=2), [0.25, 4.0, 9.0]),
        (lambda x: x.square_(), [0.25, 4.0, 9.0]),
        (lambda x: x.scatter_reduce_(0, torch.tensor([0, 0]), torch.tensor([1.0, 2.0]), reduce="sum"), [3.5, 2.0, 3.0]),
        (lambda x: x.index_reduce_(0, torch.tensor([2]), torch.tensor([2.0]), "prod", include_self=False), [0.5, 2.0, 2.0]),
        (lambda x: x.masked_scatter_(mask=x > 1, source=torch.tensor([7.0, 8.0])), [0.5, 7.0, 8.0]),
        (lambda x: x.index_fill_(0, torch.tensor([1]), 9.0), [0.5, 9.0, 3.0]),
    ],
)
def test_in_place_methods_write_into_the_tensor_and_return_it(change, expected):
    tensor = torch.tensor([0.5, 2.0, 3.0])
    assert change(tensor) is tensor
    assert tensor.tolist() == expected


def test_in_place_methods_say_what_they_are():
    assert torch.Tensor.clamp_.__name__ == "clamp_"
    assert torch.Tensor.clamp_.__doc__ == "In-place form of `clamp`."
    assert list(inspect.signature(torch.Tensor.clamp_).parameters) == ["input", "min", "max"]


def test_in_place_methods_are_recorded():
    leaf = torch.tensor([0.5, 2.0, 3.0], requires_grad=True)
    changed = (leaf * 2).clamp_(0.0, 5.0)
    changed.sum().backward()
    assert changed.grad_fn.name() == "ClampBackward1"
    assert leaf.grad.tolist() == [2.0, 2.0, 0.0]


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: torch.where(1, 2, 3), "where(): argument 'condition' must be Tensor, not int"),
        (lambda: torch.ldexp(torch.ones(1), 2), "ldexp(): argument 'other' must be Tensor, not int"),
        (lambda: torch.clamp(1, 2), "clamp(): argument 'input' must be Tensor, not int"),
        (lambda: torch.zeros_like([1]), "zeros_like(): argument 'input' (position 1) must be Tensor, not list"),
        (lambda: torch.rand_like([1]), "rand_like(): argument 'input' (position 1) must be Tensor, not list"),
        (lambda: torch.polar(torch.ones(1), 1.0), "polar(): argument 'angle' must be Tensor, not float"),
        (lambda: torch.unravel_index(1, (2, 2)), "unravel_index(): argument 'indices' must be Tensor, not int"),
    ],
)
def test_what_is_no_tensor_is_refused(call, text):
    with pytest.raises(TypeError) as error:
        call()
    assert str(error.value) == text
