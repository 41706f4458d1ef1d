"""What the machinery promises beyond PyTorch: lines of operations, readable declaration errors, memory that is freed."""

from __future__ import annotations

import gc
import inspect
import resource
import time
import weakref

import numpy as np
import pytest

import pellucid
from pellucid.autograd.declaration import OPERATORS, Operator
from pellucid.autograd.operator import Array, Promote, operator
from pellucid.core.sites import Site


def leaf(*values):
    return pellucid.tensor(list(values), requires_grad=True)


def test_a_node_knows_the_line_that_made_it():
    x = leaf(1.0, 2.0)
    y = x * x  # this line
    line = inspect.currentframe().f_lineno - 1
    assert y.grad_fn.site.file == __file__
    assert y.grad_fn.site.line == line
    assert "this line" in y.grad_fn.site.source


def test_a_site_skips_frames_of_the_library():
    layer = pellucid.nn.Linear(2, 1)
    y = layer(pellucid.ones(1, 2))
    assert y.grad_fn.site.file == __file__
    assert y.grad_fn.site.line == inspect.currentframe().f_lineno - 2


def test_a_cut_remembers_where_the_path_ended():
    x = leaf(1.0)
    cut = (x * 2).detach()
    line = inspect.currentframe().f_lineno - 1
    after = cut * 3 + 1
    with pytest.raises(RuntimeError, match=rf"(?s)does not require grad .* cut by detach at .*:{line}"):
        after.sum().backward()


def test_no_grad_is_a_cut_too():
    x = leaf(1.0)
    with pellucid.no_grad():
        y = x * 2
    with pytest.raises(RuntimeError, match="cut by no_grad at"):
        (y * 3).backward()


def test_sites_keep_no_frame_alive():
    class Big:
        pass

    def program():
        big = Big()
        x = leaf(1.0)
        return x * 2, weakref.ref(big)

    y, big = program()
    assert big() is None
    assert isinstance(y.grad_fn.site, Site)


def test_a_stale_saved_value_names_both_operations_and_lines():
    x = leaf(1.0, 2.0)
    y = x * 1
    z = y * y
    y.add_(1)
    with pytest.raises(
        RuntimeError,
        match=r"(?s)modified by an inplace operation.*saved: +by MulBackward0 at .*overwritten: +by add_ at .*test_machinery",
    ):
        z.sum().backward()


def test_a_misspelt_name_in_a_formula_is_found_with_a_readable_message():
    class wrong:
        """Wrong."""

        def forward(xp, input: Array):
            return input

        def vjp_input(F, grad, resullt):
            return grad

    with pytest.raises(TypeError, match=r"wrong\.vjp_input: there is no 'resullt'; known are .*result"):
        Operator(wrong, {}).parameters  # noqa: B018 (reading is what works it out)


def test_an_unknown_option_is_refused():
    class odd:
        """Odd."""

        def forward(xp, input: Array):
            return input

    with pytest.raises(TypeError, match="unknown options promotee"):
        Operator(odd, {"promotee": Promote.SAME}).parameters  # noqa: B018


def test_a_reserved_name_is_refused():
    class taken:
        """Taken."""

        def forward(xp, result: Array):
            return result

    with pytest.raises(TypeError, match="'result': the name is reserved"):
        Operator(taken, {}).parameters  # noqa: B018


def test_a_name_that_nodes_have_a_place_for_is_refused():
    class taken:
        """Taken."""

        def forward(xp, input: Array):
            return input, input

    with pytest.raises(TypeError, match="an output may not be called 'extra', which every node has a place for"):
        Operator(taken, {"outputs": ("result", "extra")}).outputs  # noqa: B018


def test_a_name_that_generated_code_uses_is_refused():
    @operator(module=None)
    class taken_for_test:
        """Taken."""

        def forward(xp, input: Array, outside: int = 0):
            return input

    try:
        with pytest.raises(TypeError, match="taken_for_test: a parameter may not be called 'outside'"):
            taken_for_test(pellucid.ones(1))
    finally:
        del OPERATORS["taken_for_test"]


def test_an_operator_declared_by_a_user_works_in_both_orders():
    @operator(promote=Promote.FLOAT, module=None)
    class cube_for_test:
        """Third power."""

        def forward(xp, input: Array):
            return input * input * input

        def vjp_input(F, grad, input):
            return grad * input * input * 3

    try:
        x = pellucid.tensor([2.0], dtype=pellucid.float64, requires_grad=True)
        assert pellucid.autograd.gradcheck(cube_for_test, (x,))
        assert pellucid.autograd.gradgradcheck(cube_for_test, (x,))
        assert cube_for_test(x).grad_fn.name() == "CubeForTestBackward0"
    finally:
        del OPERATORS["cube_for_test"]


def test_a_long_chain_runs_forward_backward_and_is_freed_without_recursion():
    x = leaf(1.0)
    z = x
    for _ in range(200_000):
        z = z * 1.0
    z.backward()
    assert x.grad.item() == 1.0
    del z


def test_time_is_linear_in_the_length_of_a_chain():
    def seconds(length):
        x = leaf(1.0)
        start = time.process_time()
        z = x
        for _ in range(length):
            z = z * 1.0
        z.backward()
        del z
        return time.process_time() - start

    gc.collect()
    gc.disable()  # its full collections walk over whatever else the test process holds
    try:
        ratios = [seconds(40_000) / seconds(10_000) for _ in range(5)]
    finally:
        gc.enable()
    assert sorted(ratios)[1] < 8  # 4 if linear, 16 if quadratic


def test_a_graph_is_freed_by_reference_counting_alone():
    gc.collect()
    gc.disable()
    try:
        x = leaf(1.0, 2.0)
        y = (x * x).exp().tanh()
        nodes = [weakref.ref(y.grad_fn), weakref.ref(y.grad_fn.next_functions[0][0])]
        del y
        assert [n() for n in nodes] == [None, None]
    finally:
        gc.enable()


def test_memory_is_flat_over_many_steps_without_the_collector():
    model = pellucid.nn.Sequential(pellucid.nn.Linear(8, 16), pellucid.nn.Tanh(), pellucid.nn.Linear(16, 1))
    optimizer = pellucid.optim.Adam(model.parameters(), lr=1e-3)
    data = pellucid.randn(4, 8)

    def steps(count):
        for _ in range(count):
            optimizer.zero_grad()
            model(data).pow(2).mean().backward()
            optimizer.step()

    gc.collect()
    gc.disable()
    try:
        steps(300)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        steps(2000)
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 1024  # KiB
    finally:
        gc.enable()


def test_a_gradient_is_never_an_alias_of_a_value_the_user_holds():
    x = leaf(1.0, 2.0)
    given = pellucid.ones(2)
    (x + 0).backward(given)
    x.grad.mul_(7)
    np.testing.assert_array_equal(given.numpy(), [1, 1])


def test_two_leaves_do_not_share_one_gradient():
    a, b = leaf(1.0), leaf(2.0)
    (a + b).backward()
    a.grad.mul_(5)
    assert b.grad.item() == 1.0


def test_a_failed_inplace_operation_changes_nothing():
    x = pellucid.ones(2, 3)
    version = x._version
    with pytest.raises(RuntimeError, match=r"must match|doesn't match"):
        x.add_(pellucid.ones(4))
    with pytest.raises(RuntimeError, match="can't be cast"):
        pellucid.ones(2, dtype=pellucid.int64).add_(1.5)
    np.testing.assert_array_equal(x.numpy(), np.ones((2, 3), np.float32))
    assert x._version == version
