"""Forward mode: dual tensors, what operators make of their tangents, and when they are gone."""

import gc
import weakref

import pytest
from duals import dual, dual_level, make_dual, tangent, unpack_dual
from library import close, const, forward_ad, leaf, pellucid_only, torch

# --- levels ----------------------------------------------------------------------------------------------------------


def test_a_level_can_be_opened_by_hand():
    x, t = const([1.0, 2.0]), const([3.0, 4.0])
    assert forward_ad.enter_dual_level() == 0
    try:
        d = make_dual(x, t)
        assert close(unpack_dual(d).primal, x)
        assert tangent(d) is t
        assert close(tangent(d * d), [6.0, 16.0])
    finally:
        forward_ad.exit_dual_level()
    value, gone = unpack_dual(d)
    assert value is d
    assert gone is None


def test_the_number_of_the_level():
    assert forward_ad._current_level == -1
    with dual_level() as level:
        assert level == forward_ad._current_level == 0
    assert forward_ad._current_level == -1


@pytest.mark.usefixtures("level")
def test_levels_do_not_nest():
    with pytest.raises(RuntimeError, match="Nested forward mode AD is not supported at the moment"):
        with dual_level():
            pass
    assert close(tangent(dual() * 2), [20.0, 40.0, 60.0])


def test_without_a_level_there_are_no_duals():
    with pytest.raises(RuntimeError, match="Trying to create a dual Tensor for forward AD but no level exists"):
        make_dual(const([1.0]), const([1.0]))


def test_only_the_open_level_can_be_closed():
    with pytest.raises(RuntimeError, match="Dual level must be a positive number"):
        forward_ad.exit_dual_level()
    with dual_level():
        with pytest.raises(RuntimeError, match="exit a forward AD level that was not the last one that was created"):
            forward_ad.exit_dual_level(level=3)


def test_a_function_can_be_decorated_with_a_level():
    @dual_level()
    def derivative(x):
        return tangent(make_dual(x, const([1.0])).sin())

    assert close(derivative(const([0.5])), const([0.5]).cos())
    assert forward_ad._current_level == -1


def test_an_error_closes_the_level():
    with pytest.raises(KeyError, match="mine"), dual_level():
        raise KeyError("mine")
    assert forward_ad._current_level == -1


def test_tangents_end_with_the_level():
    with dual_level():
        d = dual()
        result, view = d * 2, d[0:2]
    with dual_level():
        assert [tangent(t) for t in (d, result, view)] == [None, None, None]


def test_a_tangent_is_freed_with_its_dual():
    def references():
        t = const([1.0, 2.0])
        d = make_dual(const([3.0, 4.0]), t)
        return weakref.ref(d), weakref.ref(t)

    def freed():
        gc.collect()
        return [reference() for reference in references()] == [None, None]

    with dual_level():
        assert freed()
    with dual_level():  # what is left of the first does not disturb the second
        assert freed()


def test_tangents_end_with_the_level_however_many_there_were():
    with dual_level():
        d = dual()
        kept = [d * n for n in range(3)]
        for n in range(3000):
            last = d * n
        kept += [last, d]
        assert all(tangent(t) is not None for t in kept)
    with dual_level():
        assert [tangent(t) for t in kept] == [None] * 5


def test_a_graph_may_outlive_the_level():
    x = leaf([0.5, 1.0])
    with dual_level():
        d = make_dual(x, const([1.0, 1.0]))
        y = d.exp()
        derivative = tangent(y)
    y.sum().backward(retain_graph=True)
    assert close(x.grad, const([0.5, 1.0]).exp())
    (second,) = torch.autograd.grad(derivative.sum(), x)
    assert close(second, const([0.5, 1.0]).exp())


# --- the switch ------------------------------------------------------------------------------------------------------


def test_tangents_travel_by_default():
    assert forward_ad._is_fwd_grad_enabled()
    with dual_level():
        assert forward_ad._is_fwd_grad_enabled()


@pytest.mark.usefixtures("level")
def test_the_switch():
    d = dual()
    with forward_ad._set_fwd_grad_enabled(False):
        assert not forward_ad._is_fwd_grad_enabled()
        hidden, product = tangent(d), d * 2
        with forward_ad._set_fwd_grad_enabled(True):
            inner = d * 2
    assert forward_ad._is_fwd_grad_enabled()
    assert hidden is tangent(product) is None
    assert close(tangent(inner), [20.0, 40.0, 60.0])
    assert close(tangent(d), [10.0, 20.0, 30.0])


# --- making and taking apart -----------------------------------------------------------------------------------------


@pytest.mark.usefixtures("level")
def test_unpacking_gives_the_tangent_itself_and_a_new_view_each_time():
    x, t = const([1.0, 2.0]), const([3.0, 4.0])
    d = make_dual(x, t)
    unpacked = unpack_dual(d)
    assert type(unpacked).__name__ == "UnpackedDualTensor"
    assert unpacked._fields == ("primal", "tangent")
    value, direction = unpacked
    assert direction is t
    assert value is not d
    assert value is not x
    assert unpack_dual(d).primal is not value
    assert value.data_ptr() == d.data_ptr() == x.data_ptr()
    assert d._is_view()
    assert d._base is x
    assert [tangent(part) for part in (value, x, t)] == [None, None, None]


@pytest.mark.usefixtures("level")
def test_unpacking_what_has_no_tangent():
    x = const([1.0])
    value, direction = unpack_dual(x)
    assert direction is None
    assert value is not x
    assert value.data_ptr() == x.data_ptr()


@pytest.mark.usefixtures("level")
@pytest.mark.parametrize("kind", [torch.int64, torch.int32, torch.uint8, torch.bool])
def test_integers_have_no_tangents(kind):
    x, integers = const([1.0, 1.0]), torch.ones(2, dtype=kind)
    with pytest.raises(ValueError, match="Expected primal to be floating point or complex, but got: torch"):
        make_dual(integers, x)
    with pytest.raises(ValueError, match="Expected tangent to be floating point or complex, but got: torch"):
        make_dual(x, integers)


@pytest.mark.usefixtures("level")
def test_sizes_must_be_equal():
    message = "Trying to set a forward gradient that has a different size than that of the original Tensor"
    for shape in ((4,), (3, 1), ()):
        with pytest.raises(RuntimeError, match=message):
            make_dual(torch.ones(3), torch.ones(shape))


@pytest.mark.usefixtures("level")
def test_neither_part_of_a_dual_may_be_one():
    message = "Making a dual Tensor based on a Tensor that already has a forward gradient at the same level"
    with pytest.raises(RuntimeError, match=message):
        make_dual(dual(), const([1.0, 1.0, 1.0]))
    with pytest.raises(RuntimeError, match="Setting a forward grad that itself has a forward gradient at the same level"):
        make_dual(const([1.0, 1.0, 1.0]), dual())


@pytest.mark.usefixtures("level")
def test_the_text_of_a_dual():
    d = dual()
    assert "tangent=tensor([10., 20., 30.]" in str(d)
    assert "tangent=" not in str(unpack_dual(d).primal)
    x = leaf([1.0, 2.0])
    text = str(make_dual(x, const([3.0, 4.0])))
    assert text.index("grad_fn=<ViewBackward0>") < text.index("tangent=tensor([3., 4.]")


def test_the_text_after_the_level():
    with dual_level():
        d = dual()
    assert "tangent=" not in str(d)


@pytest.mark.usefixtures("level")
def test_a_dual_of_an_inference_tensor_in_inference_mode():
    with torch.inference_mode():
        x = const([1.0, 2.0])
        d = make_dual(x, const([3.0, 4.0]))
        assert d is not x
        assert d.data_ptr() == x.data_ptr()
        assert tangent(d) is None
    outside = make_dual(x, const([3.0, 4.0]))
    assert close(tangent(outside * 2), [6.0, 8.0])


@pytest.mark.usefixtures("level")
def test_tangents_do_not_travel_in_inference_mode():
    d = dual()
    with torch.inference_mode():
        product = d * 2
        assert tangent(d) is None
    assert close(tangent(d), [10.0, 20.0, 30.0])
    assert not product.requires_grad


# --- where tangents lie in memory ------------------------------------------------------------------------------------


@pytest.mark.usefixtures("level")
def test_a_tangent_is_copied_where_its_memory_is_of_another_size():
    whole = const([1.0, 2.0, 3.0, 4.0, 5.0])
    given = const([10.0, 20.0, 30.0, 40.0])
    d = make_dual(whole[:4], given)
    assert tangent(d) is not given
    assert close(tangent(d), given)
    assert close(tangent(d.as_strided((2, 2), (2, 1), 0)), [[10.0, 20.0], [30.0, 40.0]])
    assert len(tangent(d).untyped_storage()) == len(whole.untyped_storage())


@pytest.mark.usefixtures("level")
def test_a_tangent_is_copied_where_it_lies_elsewhere_in_its_memory():
    given = torch.arange(6.0)[2:]
    d = make_dual(torch.ones(6)[1:5], given)
    assert tangent(d) is not given
    assert tangent(d).storage_offset() == 1


@pytest.mark.usefixtures("level")
def test_a_tangent_with_other_strides_is_copied():
    given = const([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]).t()
    d = make_dual(torch.ones(2, 3, dtype=torch.float64), given)
    assert tangent(d) is not given
    assert tangent(d).stride() == (3, 1)
    assert close(tangent(d.view(6)), [1.0, 3.0, 5.0, 2.0, 4.0, 6.0])


@pytest.mark.usefixtures("level")
def test_an_expanded_tangent_is_copied():
    d = make_dual(const([1.0, 2.0, 3.0]), const([5.0]).expand(3))
    d.mul_(const([1.0, 2.0, 3.0]))
    assert close(tangent(d), [5.0, 10.0, 15.0])


@pellucid_only("PyTorch cannot copy a tangent into memory that elements share, and refuses")
@pytest.mark.usefixtures("level")
def test_an_expanded_tensor_may_be_the_primal():
    d = make_dual(const([2.0]).expand(3), const([1.0, 2.0, 3.0]))
    assert close(tangent(d * d), [4.0, 8.0, 12.0])


@pytest.mark.usefixtures("level")
def test_strides_of_empty_tensors_do_not_count():
    empty = torch.ones(3, 0, dtype=torch.float64)
    for other in (torch.ones(0, 3, dtype=torch.float64).t(), torch.ones(0, dtype=torch.float64).as_strided((3, 0), (7, 5))):
        assert tangent(make_dual(empty, other)) is other


@pytest.mark.usefixtures("level")
def test_where_empty_tensors_start_does_not_count():
    one = torch.ones(1, dtype=torch.float64)
    given = one.clone().as_strided((0,), (1,), 0)
    assert tangent(make_dual(one.as_strided((0,), (1,), 1), given)) is given


def test_forward_mode_of_an_empty_diagonal():
    assert torch.autograd.gradcheck(
        torch.diagonal, (torch.ones(2, 0, dtype=torch.float64, requires_grad=True),), check_forward_ad=True
    )


@pytest.mark.usefixtures("level")
def test_strides_of_dimensions_of_one_do_not_count():
    given = torch.ones(3, 1, dtype=torch.float64).t()
    assert tangent(make_dual(torch.ones(1, 3, dtype=torch.float64), given)) is given


@pytest.mark.usefixtures("level")
@pytest.mark.parametrize("of", [lambda z: z, lambda z: z.conj(), lambda z: z.real, lambda z: z.conj().imag])
def test_a_tangent_that_lies_as_its_primal_does_is_kept(of):
    z, t = const([1 + 2j, 3 - 1j], dtype=torch.complex128), const([1j, 2 + 0j], dtype=torch.complex128)
    given = of(t)
    assert tangent(make_dual(of(z), given)) is given


@pytest.mark.usefixtures("level")
def test_a_conjugate_may_be_the_primal():
    z, t = const([1 + 2j, 3 - 1j], dtype=torch.complex128), const([1j, 2 + 0j], dtype=torch.complex128)
    d = make_dual(z.conj(), t)
    assert close(tangent(d) * 1, t)
    assert close(tangent(d.conj() * 1), [-1j, 2 + 0j])
    assert close(tangent(d * d), 2 * z.conj() * t)


@pytest.mark.usefixtures("level")
def test_an_imaginary_part_may_be_the_primal():
    z = const([1 + 2j, 3 - 1j], dtype=torch.complex128)
    d = make_dual(z.conj().imag, const([5.0, 7.0]))
    assert close(unpack_dual(d * 2).primal, [-4.0, 2.0])
    assert close(tangent(d * 2), [10.0, 14.0])


# --- through operators -----------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("level")
def test_one_operand_with_a_tangent_is_enough():
    d, x = dual(), const([1.0, 2.0, 3.0])
    assert close(tangent(x - d), [-10.0, -20.0, -30.0])
    assert close(tangent(torch.stack([d, x])), [[10.0, 20.0, 30.0], [0.0, 0.0, 0.0]])
    assert close(tangent(torch.cat([x, d])), [0.0, 0.0, 0.0, 10.0, 20.0, 30.0])
    assert close(tangent(torch.where(x > 2, d, x)), [0.0, 0.0, 30.0])
    assert tangent(x + x) is None


@pytest.mark.usefixtures("level")
def test_only_differentiable_results_have_tangents():
    d = dual()
    values, indices = d.max(0)
    assert close(tangent(values), 30.0)
    assert tangent(indices) is None
    assert tangent(d > 2) is None
    assert tangent(d.long().double()) is None


@pytest.mark.usefixtures("level")
def test_a_cast_casts_the_tangent():
    assert tangent(dual().float()).dtype is torch.float32


@pytest.mark.usefixtures("level")
def test_forward_mode_needs_no_grad_mode():
    with torch.no_grad():
        y = make_dual(leaf([1.0, 2.0]), const([3.0, 4.0])) ** 2
    assert not y.requires_grad
    assert close(tangent(y), [6.0, 16.0])


@pytest.mark.usefixtures("level")
def test_an_operator_without_forward_mode_says_so():
    x = make_dual(const([1.0]), const([1.0]))
    with pytest.raises(NotImplementedError, match=r"Trying to use forward AD with .* that does not support it"):
        torch.igamma(x, x)


@pytest.mark.usefixtures("level")
def test_results_cannot_be_written_to_out():
    d, x = dual(), const([1.0, 2.0, 3.0])
    for operands, out in (((d, d), torch.empty(3, dtype=torch.float64)), ((x, x), d)):
        with pytest.raises(RuntimeError, match="out= function"):
            torch.add(*operands, out=out)
    assert close(torch.add(x, x, out=torch.empty(3, dtype=torch.float64)), [2.0, 4.0, 6.0])


@pytest.mark.usefixtures("level")
def test_functions_that_are_not_differentiable():
    d = dual()
    for result in (d == d, d.eq(2.0), d.isnan(), d.argmax()):
        assert tangent(result) is None
    d.eq_(d)
    assert close(d, [1.0, 1.0, 1.0])
    assert close(tangent(d), [0.0, 0.0, 0.0])


# --- together with reverse mode --------------------------------------------------------------------------------------


@pytest.mark.usefixtures("level")
def test_tangents_are_differentiable_in_reverse():
    x, t = leaf([1.0, 2.0]), leaf([3.0, 4.0])
    product = tangent(make_dual(x, t) ** 3)
    of_x, of_t = torch.autograd.grad(product.sum(), (x, t))
    assert close(of_x, [6 * 1.0 * 3.0, 6 * 2.0 * 4.0])
    assert close(of_t, [3.0, 12.0])


@pytest.mark.usefixtures("level")
def test_gradients_have_tangents():
    x = leaf([1.0, 2.0])
    d = make_dual(x, const([3.0, 4.0]))
    (first,) = torch.autograd.grad((d**3).sum(), d, create_graph=True)
    assert close(first, [3.0, 12.0])
    assert close(tangent(first), [6 * 1.0 * 3.0, 6 * 2.0 * 4.0])
    (plain,) = torch.autograd.grad((d**3).sum(), d)
    assert close(tangent(plain), [18.0, 48.0])


@pytest.mark.usefixtures("level")
def test_primal_and_tangent_have_histories_of_their_own():
    x = leaf([1.0, 2.0])
    value, direction = unpack_dual(make_dual(x, const([3.0, 4.0])) ** 2)
    assert close(torch.autograd.grad(value.sum(), x)[0], [2.0, 4.0])
    assert close(torch.autograd.grad(direction.sum(), x)[0], [6.0, 8.0])


@pytest.mark.usefixtures("level")
def test_what_is_cut_off_has_no_tangent():
    d = make_dual(leaf([1.0, 2.0]), const([3.0, 4.0]))
    assert tangent(d.detach()) is tangent(d.data) is None
    product = d * 2
    product.detach_()
    assert tangent(product) is None
    assert close(tangent(d), [3.0, 4.0])


@pytest.mark.usefixtures("level")
def test_a_dual_shares_memory_and_version_with_its_primal():
    x = const([1.0, 2.0])
    d = make_dual(x, const([3.0, 4.0]))
    value = unpack_dual(d).primal
    d.add_(1)
    assert close(x, [2.0, 3.0])
    assert close(value, [2.0, 3.0])
    assert x._version == d._version == value._version == 1


@pytest.mark.usefixtures("level")
def test_detaching_a_view_does_not_keep_its_base():
    def detached():
        base = dual()
        return base[0:2].detach(), weakref.ref(base)

    part, base = detached()
    gc.collect()
    assert base() is None
    assert tangent(part) is None
