"""Whether a gradient that is a view may be written to: only if nobody else holds the array that it is a view of."""

import numpy as np

import pellucid
from pellucid.autograd.engine import _is_sole_view


def test_a_view_alone_owns_its_array():
    part, turned = np.ones(4)[1:], np.ones((2, 3)).T
    assert _is_sole_view(part)
    assert _is_sole_view(turned)


def test_whoever_holds_the_array_or_a_view_of_it_is_seen():
    array = np.ones(4)
    view = array[1:]
    assert not _is_sole_view(view)
    del array
    assert _is_sole_view(view)
    other = view[1:]
    assert not _is_sole_view(view)
    assert not _is_sole_view(other)


def test_what_is_no_view_of_an_array_is_not_one():
    assert not _is_sole_view(np.ones(4))
    assert not _is_sole_view(np.frombuffer(bytes(8), np.uint8))


def test_a_gradient_that_somebody_keeps_is_not_written_to():
    x = pellucid.ones(3, requires_grad=True)
    kept = []
    y = x * 1
    y.register_hook(lambda grad: kept.append(grad))
    (y.view(1, 3) * 2).sum().backward()
    (x * 5).sum().backward()
    assert kept[0].tolist() == [2.0, 2.0, 2.0]
    assert x.grad.tolist() == [7.0, 7.0, 7.0]
