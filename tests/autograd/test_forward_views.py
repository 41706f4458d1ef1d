"""Forward mode: what in-place operations do to tangents, and what views share."""

import pytest
from duals import dual, make_dual, tangent, unpack_dual
from library import close, const, leaf, pellucid_only, torch


@pytest.mark.usefixtures("level")
def test_an_in_place_operation_writes_to_the_tangent_it_finds():
    d = dual()
    before = tangent(d)
    d.mul_(3.0)
    assert tangent(d) is before
    assert close(before, [30.0, 60.0, 90.0])
    d.mul_(d.clone())
    assert close(d, [9.0, 36.0, 81.0])
    assert close(tangent(d), [2 * 3 * 30.0, 2 * 6 * 60.0, 2 * 9 * 90.0])


@pellucid_only("PyTorch computes with what was written")
@pytest.mark.usefixtures("level")
def test_an_operand_may_be_what_is_written_to():
    d = dual()
    d.mul_(d)
    assert close(tangent(d), [20.0, 80.0, 180.0])


@pytest.mark.usefixtures("level")
@pytest.mark.parametrize(
    ("write", "expected"),
    [
        (lambda t: t.zero_(), [0.0, 0.0, 0.0]),
        (lambda t: t.fill_(2.0), [0.0, 0.0, 0.0]),
        (lambda t: t.copy_(torch.ones(3, dtype=torch.float64)), [0.0, 0.0, 0.0]),
        (lambda t: t.__setitem__(0, 5.0), [0.0, 20.0, 30.0]),
        (lambda t: t.__setitem__(slice(1, 3), t[:2] * 2), [10.0, 20.0, 40.0]),
        (lambda t: t.masked_fill_(t > 2, 0.0), [10.0, 20.0, 0.0]),
        (lambda t: t.exp_(), [10.0 * 2.718281828459045, 20.0 * 7.38905609893065, 30.0 * 20.085536923187668]),
        (lambda t: t.add_(t), [20.0, 40.0, 60.0]),
        (lambda t: t.sub_(t[0].clone()), [0.0, 10.0, 20.0]),
        (lambda t: t.pow_(2), [20.0, 80.0, 180.0]),
        (lambda t: t.clamp_(max=2.5), [10.0, 20.0, 0.0]),
    ],
)
def test_tangents_of_in_place_operations(write, expected):
    d = dual().clone()
    write(d)
    assert close(tangent(d), expected)


@pytest.mark.usefixtures("level")
def test_a_dual_written_to_a_tensor_gives_it_a_tangent():
    x = const([1.0, 1.0, 1.0])
    x += dual()
    assert close(tangent(x), [10.0, 20.0, 30.0])


@pytest.mark.usefixtures("level")
def test_writing_to_a_view_writes_to_the_tangent_of_its_base():
    x = const([1.0, 2.0, 3.0, 4.0])
    part = x.narrow(0, 0, 2)
    part *= make_dual(const([1.0, 2.0]), const([10.0, 20.0]))
    assert close(tangent(part), [10.0, 40.0])
    assert close(tangent(x), [10.0, 40.0, 0.0, 0.0])
    assert close(tangent(x[1:3]), [40.0, 0.0])


@pytest.mark.usefixtures("level")
def test_a_view_taken_before_its_base_got_a_tangent_has_its_part_of_it():
    x = torch.zeros(2, 2, dtype=torch.float64)
    transposed = x.t()
    x.copy_(make_dual(const([[1.0, 2.0], [3.0, 4.0]]), const([[10.0, 20.0], [30.0, 40.0]])))
    assert close(tangent(transposed), [[10.0, 30.0], [20.0, 40.0]])


@pytest.mark.usefixtures("level")
def test_a_view_of_a_dual_has_a_view_of_its_tangent():
    d = dual()
    part = d[1:]
    assert tangent(part)._base is tangent(d)
    part.mul_(2.0)
    assert close(tangent(d), [10.0, 40.0, 60.0])
    d[0] = part[0]
    assert close(tangent(d), [40.0, 40.0, 60.0])


@pytest.mark.usefixtures("level")
@pytest.mark.parametrize("name", ["add_", "mul_", "copy_"])
def test_a_dual_may_be_written_to_a_transposed_view(name):
    x = torch.ones(2, 2, dtype=torch.float64)
    d = make_dual(const([[1.0, 2.0], [3.0, 4.0]]), const([[10.0, 20.0], [30.0, 40.0]]))
    getattr(x.transpose(0, 1), name)(d)
    assert close(tangent(x), [[10.0, 30.0], [20.0, 40.0]])


@pytest.mark.usefixtures("level")
def test_unpacked_parts_may_be_written_to():
    x, t = const([1.0, 2.0, 3.0]), const([10.0, 20.0, 30.0])
    d = make_dual(x, t)
    value, direction = unpack_dual(d)
    value *= 2
    assert close(unpack_dual(d).primal, [2.0, 4.0, 6.0])
    assert close(tangent(d), [10.0, 20.0, 30.0])
    direction *= 3
    assert close(tangent(d), [30.0, 60.0, 90.0])
    assert close(t, [30.0, 60.0, 90.0])
    assert close(x, [2.0, 4.0, 6.0])


@pytest.mark.usefixtures("level")
def test_a_dual_and_its_primal_have_tangents_apart():
    x = const([1.0, 2.0, 3.0])
    d = make_dual(x, const([10.0, 20.0, 30.0]))
    value = unpack_dual(d).primal
    value.copy_(dual(direction=(7.0, 8.0, 9.0)))
    assert close(tangent(value), [7.0, 8.0, 9.0])
    assert close(tangent(value[0:1]), [7.0])
    assert close(tangent(d), [10.0, 20.0, 30.0])
    assert tangent(x) is None


@pytest.mark.usefixtures("level")
def test_copying_broadcasts_the_tangent():
    x = torch.zeros(2, 3, dtype=torch.float64)
    x.copy_(dual())
    assert close(tangent(x), [[10.0, 20.0, 30.0], [10.0, 20.0, 30.0]])


@pytest.mark.usefixtures("level")
def test_copying_copies_the_tangent():
    x, d = torch.zeros(3, dtype=torch.float64), dual()
    x.copy_(d)
    assert close(tangent(x), tangent(d))
    assert tangent(x) is not tangent(d)
    x.mul_(2)
    assert close(tangent(d), [10.0, 20.0, 30.0])


@pytest.mark.usefixtures("level")
def test_integers_may_be_written_from_a_dual():
    x = torch.zeros(3, dtype=torch.int64)
    x.copy_(dual())
    assert close(x, [1, 2, 3])
    assert tangent(x) is None


@pytest.mark.usefixtures("level")
def test_in_place_operations_in_both_modes():
    x = leaf([1.0, 2.0])
    y = make_dual(x, const([3.0, 4.0])).clone()
    y.pow_(2).exp_()
    # y = exp(x^2), y' = 2 x y, y'' = (2 + 4 x^2) y
    value = const([1.0, 4.0]).exp()
    assert close(tangent(y), 2 * const([1.0, 2.0]) * value * const([3.0, 4.0]))
    (first,) = torch.autograd.grad(y.sum(), x, create_graph=True)
    second = (2 + 4 * const([1.0, 4.0])) * value
    assert close(first, 2 * const([1.0, 2.0]) * value)
    assert close(tangent(first), second * const([3.0, 4.0]))
    assert close(torch.autograd.grad(tangent(y).sum(), x)[0], second * const([3.0, 4.0]))


@pytest.mark.usefixtures("level")
def test_in_place_operations_on_a_view_in_both_modes():
    x = leaf([1.0, 2.0])
    y = make_dual(x, const([3.0, 4.0])).clone()
    y[1:].exp_()
    value = const([2.0]).exp()
    assert close(tangent(y), [3.0, 4.0 * float(value)])
    (first,) = torch.autograd.grad(y.sum(), x, create_graph=True)
    assert close(tangent(first), [0.0, 4.0 * float(value)])


@pellucid_only("PyTorch refuses an operand that is part of what is written to")
@pytest.mark.usefixtures("level")
def test_an_operand_may_be_part_of_what_is_written_to():
    d = dual(values=(2.0, 3.0), direction=(1.0, 0.0))
    d.mul_(d[0])
    assert close(d, [4.0, 6.0])
    assert close(tangent(d), [4.0, 3.0])
