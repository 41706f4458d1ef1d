"""Views, indexing, scattering, products and linear algebra under vmap, against a loop over the examples.

Every choice of operands is batched; each function is taken with its gradient and its tangent as well.
"""

from __future__ import annotations

import pytest
from loops import assert_is_a_loop, draw, pushed, slopes, whole

import pellucid as torch
from pellucid.autograd import batching
from pellucid.func import vmap

x = draw(4, 5)
cube = draw(2, 4, 3)
number, vector = draw(), draw(5, seed=2)
rows, columns, places = whole(3, high=4), whole(3, high=3, seed=2), whole(4, 2, high=5)
flips = whole(3, high=2)
one = whole(high=2)

# name: (function, operands ...), those first that are differentiated; TABLES says how many
VIEWS = {
    "as_strided": (lambda x: x.as_strided((2, 2), (1, 3)), x),
    "as_strided with shared memory": (lambda x: x.as_strided((3, 2), (1, 1), 1), x),
    "as_strided of a transpose": (lambda x: x.t().as_strided((2, 2), (1, 5)), x),
    "narrow": (lambda x: x.narrow(1, 1, 3), x),
    "unfold": (lambda x: x.unfold(1, 2, 2), x),
    "ravel": (lambda x: x.t().ravel(), x),
    "reshape": (lambda x: x.t().reshape(10, 2), x),
    "movedim": (lambda x: x.movedim(0, -1), cube),
    "atleast_3d": (torch.atleast_3d, vector),
    "diagonal": (lambda x: x.diagonal(1, -1, 0), cube),
    "chunk": (lambda x: x.chunk(2, 1), x),
    "tensor_split": (lambda x: x.tensor_split(3, 1), x),
    "unsafe_split": (lambda x: x.unsafe_split(2, 1), x),
    "hsplit of a vector": (lambda x: x.hsplit(5), vector),
    "expand": (lambda x: x.expand(2, -1, 5), x),
    "repeat": (lambda x: x.repeat(2, 1, 3), x),
    "tile": (lambda x: x.tile(2), x),
    "repeat_interleave": (lambda x: x.repeat_interleave(torch.tensor([1, 0, 2, 1]), 0), x),
    "roll of all": (lambda x: x.roll(3), x),
    "roll": (lambda x: x.roll((1, 2), (0, 1)), x),
    "tril": (lambda x: x.tril(1), x),
    "triu": (lambda x: x.triu(-1), cube),
    "trace": (torch.trace, x),
    "diag": (lambda x: x.diag(1), x),
    "diagflat": (torch.diagflat, x),
    "rot90": (lambda x: x.rot90(3), x),
    "fill_diagonal_": (lambda x: x.clone().fill_diagonal_(2.0), x),
    "pixel_shuffle": (lambda x: torch.pixel_shuffle(x, 2), draw(8, 2, 3)),
    "pixel_unshuffle": (lambda x: torch.pixel_unshuffle(x, 2), draw(2, 4, 6)),
    "channel_shuffle": (lambda x: torch.channel_shuffle(x, 2), draw(2, 4, 3)),
    "pad": (lambda x: torch.nn.functional.pad(x, (1, 2, -1, 1), value=2.0), x),
    "max of all": (lambda x: x.max(), x),
    "min along": (lambda x: x.min(1, keepdim=True), x),
    "aminmax": (lambda x: x.aminmax(dim=0), x),
    "max of a number": (lambda x: x.max(0), number),
}
JOINED = {
    "cat": (lambda x, y: torch.cat([x, y], 1), x, draw(4, 2)),
    "dstack": (lambda x, y: torch.dstack([x, y]), x, draw(4, 5, seed=3)),
    "column_stack": (lambda x, y: torch.column_stack([x, y]), vector, draw(5, seed=3)),
    "block_diag": (lambda x, y: torch.block_diag(x, y), x, draw(2, 2)),
    "select_scatter": (lambda x, s: x.select_scatter(s, 0, 1), x, vector),
    "slice_scatter": (lambda x, s: x.slice_scatter(s, 0, 1, 3), x, draw(2, 5)),
    "diagonal_scatter": (lambda x, s: x.diagonal_scatter(s), x, draw(4)),
    "as_strided_scatter": (lambda x, s: x.as_strided_scatter(s, (2, 2), (1, 2)), x, draw(2, 2)),
    "mv": (torch.mv, x, vector),
    "bmm": (torch.bmm, draw(2, 3, 4), draw(2, 4, 2)),
    "einsum": (lambda a, b: torch.einsum("bij,bjk->bik", a, b), draw(2, 3, 4), draw(2, 4, 2)),
    "einsum with an ellipsis": (lambda a, b: torch.einsum("...i,i", a, b), x, vector),
    "tensordot": (lambda a, b: torch.tensordot(a, b, 1), x, draw(5, 2)),
    "kron": (torch.kron, draw(2, 3), draw(2, 2)),
    "inner": (torch.inner, x, draw(2, 5)),
    "multi_dot": (lambda a, b: torch.linalg.multi_dot([a, b, a]), draw(2, 3), draw(3, 2)),
    "solve": (torch.linalg.solve, draw(3, 3) + 3 * torch.eye(3, dtype=torch.float64), draw(3, 2)),
    "solve of vectors": (torch.linalg.solve, draw(3, 3) + 3 * torch.eye(3, dtype=torch.float64), draw(3)),
    "cdist": (lambda a, b: torch.cdist(a, b, 3.0), x, draw(2, 5)),
}
ADDED = {
    "addmm": (lambda i, a, b: torch.addmm(i, a, b, beta=0.5, alpha=2), draw(2, 4), draw(2, 3), draw(3, 4)),
    "addmm of a row": (torch.addmm, draw(4), draw(2, 3), draw(3, 4)),
    "addmm without the addend": (lambda i, a, b: torch.addmm(i, a, b, beta=0), draw(4), draw(2, 3), draw(3, 4)),
    "addmv": (torch.addmv, draw(2), draw(2, 3), draw(3)),
    "addr": (lambda i, a, b: torch.addr(i, a, b, beta=0.5, alpha=2), draw(2, 3), draw(2), draw(3)),
    "addbmm": (lambda i, a, b: torch.addbmm(i, a, b, alpha=2), draw(2, 4), draw(5, 2, 3), draw(5, 3, 4)),
    "baddbmm": (torch.baddbmm, draw(2, 4), draw(5, 2, 3), draw(5, 3, 4)),
    "bilinear": (torch.nn.functional.bilinear, draw(2, 3), draw(2, 4), draw(5, 3, 4)),
}
INDEXED = {
    "x[i]": (lambda x, i: x[i], x, rows),
    "x[:, i]": (lambda x, i: x[:, i], x, rows),
    "x[-i]": (lambda x, i: x[-i - 1], x, rows),
    "x[one]": (lambda x, i: x[i], x, one),
    "x[one, 1]": (lambda x, i: x[i, 1], x, one),
    "x[None, i]": (lambda x, i: x[None, i, ..., None], cube, flips),
    "a list": (lambda x, i: x[[0, 2, 1]][:, i], x, rows),
    "a mask that is the same for all": (lambda x, i: x[torch.tensor([True, False, True, True])][:, i], x, rows),
    "take": (lambda x, i: x.take(i - 2), x, rows),
    "gather": (lambda x, i: x.gather(-1, i), x, places),
    "gather of a vector, one index": (lambda x, i: x.gather(0, i), vector, one),
    "gather of numbers": (lambda x, i: x.gather(0, i * 0), number, one),
    "take_along_dim": (lambda x, i: torch.take_along_dim(x, i - 2, 1), x, places),
    "take_along_dim of all": (lambda x, i: torch.take_along_dim(x, i - 2), x, places),
    "index_select": (lambda x, i: x.index_select(1, i - 2), x, rows),
    "index_select by one": (lambda x, i: x.index_select(0, i), vector, one),
    "index_fill": (lambda x, i: x.index_fill(1, i, 2.0), x, rows),
    "scatter of a number": (lambda x, i: x.scatter(1, i, 2.0), x, places),
}
INDEXED_TWICE = {
    "x[i, j]": (lambda x, i, j: x[i, j], x, rows, columns),
    "x[:, i, j]": (lambda x, i, j: x[:, i, j], cube, rows, columns),
    "x[i, :, j]": (lambda x, i, j: x[i, :, j], cube, flips, columns),
    "x[one, :, j]": (lambda x, i, j: x[i, :, j], cube, one, columns),
    "x[one, :, one]": (lambda x, i, j: x[i, :, j], cube, one, one),
    "x[:, one, j]": (lambda x, i, j: x[:, i, j], cube, one, columns),
    "x[[i], :, j]": (lambda x, i, j: x[i, :, j], cube, whole(2, 1, high=2), columns),
}


def assigned(x, value, *key):
    made = x * 1
    made[key] = value
    return made


WRITTEN = {
    "x[i] = v": (lambda x, v, i: assigned(x, v, i), x, draw(3, 5), rows),
    "x[i] = v, broadcast": (lambda x, v, i: assigned(x, v, i), x, vector, rows),
    "x[i] = 2": (lambda x, v, i: assigned(x, 2.0, i) + v, x, vector, rows),
    "x[:, i] = v": (lambda x, v, i: assigned(x, v, slice(None), i), x, draw(4, 3), rows),
    "x[one] = v": (lambda x, v, i: assigned(x, v, i), x, vector, one),
    "x[i, :, j] = v": (lambda x, v, i: assigned(x, v, i, slice(None), columns[0]), cube, draw(3, 4), flips),
    "x[one, :, j] = v": (lambda x, v, i: assigned(x, v, i, slice(None), columns[0]), cube, draw(4, 3), one),
    "x[:, i, j] = v": (lambda x, v, i: assigned(x, v, slice(None), i, columns[0]), cube, draw(2, 3), rows),
}
PUT = {
    "index_put": (lambda x, v, i: x.index_put((i, i), v, True), x, draw(3), rows),
    "index_put behind": (lambda x, v, i: x.index_put((None, i), v), x, draw(3), rows),
    "put": (lambda x, v, i: x.put(i, v), x, draw(3), rows),
    "put added": (lambda x, v, i: x.put(i - 3, v, True), x, draw(3), rows),
    "index_add": (lambda x, s, i: x.index_add(0, i, s, alpha=2), x, draw(3, 5), rows),
    "index_add behind": (lambda x, s, i: x.index_add(1, i, s), x, draw(4, 3), rows),
    "index_copy": (lambda x, s, i: x.index_copy(1, i, s), x, draw(4, 3), rows),
    "index_fill by a tensor": (lambda x, v, i: x.index_fill(1, i, v), x, number, rows),
    "scatter": (lambda x, s, i: x.scatter(1, i, s), x, draw(4, 3), places),
    "scatter of vectors, one index": (lambda x, s, i: x.scatter(0, i, s), vector, number, one),
    "scatter_add": (lambda x, s, i: x.scatter_add(1, i, s), x, draw(4, 3), places),
    **{
        f"scatter_reduce {reduce}, {'with' if own else 'without'} its own": (
            lambda x, s, i, reduce=reduce, own=own: x.scatter_reduce(1, i, s, reduce, include_self=own),
            x, draw(4, 3), places,
        )
        for reduce in ("sum", "prod", "mean", "amax", "amin")
        for own in (True, False)
    },
    "index_reduce": (lambda x, s, i: x.index_reduce(1, i, s, "mean"), x, draw(4, 3), rows),
}
TABLES = ((VIEWS, 1), (JOINED, 2), (ADDED, 3), (INDEXED, 1), (INDEXED_TWICE, 1), (WRITTEN, 2), (PUT, 2))
WRITABLE = [(True, True, True), (True, True, False), (True, False, True), (True, False, False)]  # into what differs
CASES = [
    pytest.param(f, operands, count, WRITABLE if table is WRITTEN else None, id=name)
    for table, count in TABLES
    for name, (f, *operands) in table.items()
]


@pytest.fixture(autouse=True)
def _every_fallback_warns():
    batching._warned.clear()


@pytest.mark.parametrize(("f", "operands", "count", "choices"), CASES)
def test_values_gradients_and_tangents_are_those_of_a_loop(f, operands, count, choices):
    assert_is_a_loop(f, *operands, choices=choices)
    every = [(True,) * len(operands)]
    assert_is_a_loop(slopes(f, count), *operands, choices=every)
    assert_is_a_loop(pushed(f, count), *operands, choices=every)


WITHOUT_DERIVATIVES = {
    "argmax": (lambda x: x.argmax(), x),
    "argmin along": (lambda x: x.argmin(-1, keepdim=True), x),
    "argmax of all, kept": (lambda x: x.argmax(keepdim=True), x),
    "view as another type": (lambda x: x.view(torch.int64), x),
    "view as a narrower type": (lambda x: x.view(torch.float32), x),
    "scatter that multiplies": (lambda x, i, s: x.scatter(1, i, s, reduce="multiply"), x, places, draw(4, 3)),
    "scatter that adds": (lambda x, i, s: x.scatter(1, i, s, reduce="add"), x, places, draw(4, 3)),
    "addr of bools": (torch.addr, whole(3, 2, high=2) > 0, whole(3, high=2) > 0, whole(2, high=2) > 0),
    "unravel_index": (lambda i: torch.unravel_index(i, (2, 3)), whole(3, high=6)),
    "repeat_interleave of a known size": (
        lambda x, r: x.repeat_interleave(r, 0, output_size=4),
        x, torch.tensor([[1, 0, 2, 1], [1, 1, 1, 1], [0, 0, 0, 4]]),
    ),
    "is it in there": (lambda x, v: torch.isin(x, v), x, vector),
}  # fmt: skip


@pytest.mark.parametrize("name", WITHOUT_DERIVATIVES)
def test_values_are_those_of_a_loop(name):
    f, *operands = WITHOUT_DERIVATIVES[name]
    assert_is_a_loop(f, *operands)


def test_in_place_methods_write_for_each_example():
    batched = [(True, True), (True, False)]
    assert_is_a_loop(lambda x, i: x.clone().index_fill_(1, i, 3.0), x, rows, choices=batched)
    assert_is_a_loop(lambda x, i: x.clone().scatter_(1, i, draw(4, 3)[0]), x, places, choices=batched)
    assert_is_a_loop(lambda x, v: x.clone().index_put_((rows[0],), v), x, draw(3, 5), choices=batched)


NESTED = {
    "index": (lambda x, i: vmap(lambda x, i: x[i])(x, i), draw(2, 4), whole(2, 3, high=4)),
    "index apart": (lambda x, i: vmap(lambda x, i: x[i, :, columns[0]])(x, i), draw(2, 2, 4, 3), whole(2, 3, high=2)),
    "index, the inner one batched": (
        lambda x, i, j: vmap(lambda x, j: x[:, i, j])(x, j), draw(2, 2, 4, 3), rows, whole(2, 3, high=3)
    ),
    "index_select": (lambda x, i: vmap(lambda x, i: x.index_select(1, i))(x, i), draw(2, 4, 5), whole(2, 3, high=5)),
    "index_add": (
        lambda x, i, s: vmap(lambda x, i: x.index_add(1, i, s))(x, i), draw(2, 4, 5), whole(2, 3, high=5), draw(4, 3)
    ),
    "gather": (lambda x, i: vmap(lambda x, i: x.gather(1, i))(x, i), draw(2, 4, 5), whole(2, 4, 3, high=5)),
    "as_strided": (lambda x: vmap(lambda x: x.as_strided((2, 2), (1, 2)))(x), draw(2, 4, 5)),
    "block_diag": (lambda x: vmap(lambda a, b: torch.block_diag(a, b))(x, x), draw(2, 2, 3)),
}  # fmt: skip


@pytest.mark.parametrize("name", NESTED)
def test_vmap_in_vmap_is_a_loop(name):
    f, *operands = NESTED[name]
    assert_is_a_loop(f, *operands)


@pytest.mark.parametrize(
    ("f", "operands", "phrase"),
    [
        (lambda x, m: x[m], (x, x > 0), "indexing with a boolean mask"),
        (lambda x, m: assigned(x, 0.0, m), (x, x > 0), "indexing with a boolean mask"),
        (torch.nonzero, (x,), "output dynamic shape"),
        (torch.argwhere, (x,), "output dynamic shape"),
        (lambda x, r: x.repeat_interleave(r), (x, whole(4, 5, high=3)), "dynamic shape"),
        (lambda x, i: x.narrow(0, i, 1), (x, one), r".item\(\)"),
        (lambda x, v: v in x, (x, number), "data-dependent control flow"),
        (lambda x, i: x[i + 9], (x, rows), "out of bounds for dimension 0 with size 4"),
    ],
)
def test_what_differs_between_examples_and_decides_a_shape_is_refused(f, operands, phrase):
    with pytest.raises((RuntimeError, IndexError), match=phrase):
        vmap(f)(*operands)


def test_an_index_out_of_bounds_in_one_example_is_refused():
    index = torch.tensor([[0, 1], [2, 3], [1, 4]])
    with pytest.raises(IndexError, match="index 4 is out of bounds for dimension 0 with size 4"):
        vmap(lambda x, i: x[i])(x, index)
