"""In-place writes through views between real and complex tensors."""

import pytest
from library import close, leaf, torch

MULTI = "This view is the output of a function that returns multiple views"


def complex_view(x):
    return torch.view_as_complex(x)


def real_view_of_complex_view(x):
    return torch.view_as_real(torch.view_as_complex(x))


def flat_real_view(x):
    return torch.view_as_real(torch.view_as_complex(x)).reshape(-1)


def there_and_back(x):
    return torch.view_as_complex(torch.view_as_real(torch.view_as_complex(x)))


def row_of_complex_view(x):
    return torch.view_as_complex(x)[0]


CHAINS = [complex_view, real_view_of_complex_view, flat_real_view, there_and_back, row_of_complex_view]


@pytest.mark.parametrize("take", CHAINS)
@pytest.mark.parametrize("at", ["base", "view"])
def test_a_write_through_a_chain_of_views_gives_the_gradient_of_the_same_out_of_place(take, at):
    x = torch.arange(1.0, 9.0, dtype=torch.float64).reshape(2, 2, 2).requires_grad_()
    base = x * 1
    view = take(base)
    assert view._base is base
    view.mul_(3)
    touched = torch.ones(2, 2, 2, dtype=torch.float64)
    take(touched).mul_(3)
    if at == "base":
        (base * base).sum().backward()
        assert close(x.grad, 2 * x.detach() * touched**2)
    else:
        (view.abs() ** 2).sum().backward()
        part = (touched - 1) / 2
        assert close(x.grad, 18 * x.detach() * part)


@pytest.mark.parametrize("take", CHAINS)
def test_both_derivatives_of_a_write_through_a_chain_of_views(take):
    def function(x):
        y = x.sin()
        take(y).mul_(2).add_(1)
        return y * y

    x = torch.linspace(0.1, 0.8, 8, dtype=torch.float64).reshape(2, 2, 2).requires_grad_()
    assert torch.autograd.gradcheck(function, (x,))
    assert torch.autograd.gradgradcheck(function, (x,))


def test_a_write_to_the_base_reaches_a_complex_view():
    x = leaf([[1.0, 2.0]])
    base = x * 1
    view = torch.view_as_complex(base)
    base.mul_(3)
    assert view.tolist() == [3 + 6j]
    (view * (2 - 1j)).real.sum().backward()
    assert close(x.grad, [[6.0, 3.0]])


@pytest.mark.parametrize(
    "take",
    [
        lambda x: torch.view_as_complex(x).unbind()[0],
        lambda x: torch.view_as_complex(x.unbind()[0]),
        lambda x: torch.view_as_real(torch.view_as_complex(x).unbind()[0]),
        lambda x: torch.view_as_real(torch.view_as_complex(x)).unbind()[0],
    ],
    ids=["of complex", "complex of one", "real of one", "of real"],
)
def test_one_of_several_views_of_a_complex_view_must_not_be_written_to(take):
    x = torch.ones(2, 2, 2, dtype=torch.float64, requires_grad=True)
    with pytest.raises(RuntimeError, match=f"Output 0 of .* is a view and is being modified inplace.*{MULTI}"):
        take(x * 1).mul_(2)
