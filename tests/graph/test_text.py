"""`Graph.text()`: structure, folding, references, what stands on a line."""

import pytest

import pellucid
from pellucid import graph, nn
from pellucid.graph.dominators import meeting_points
from pellucid.graph.folding import Run, runs


def leaf(*shape):
    return pellucid.ones(*shape, requires_grad=True)


def lines(g, **options):
    """The lines without the heading and without the places in the program."""
    return [line.rpartition("  test_text.py")[0].rstrip() or line for line in g.text(**options).splitlines()[2:]]


def test_a_tree_from_the_result_to_the_leaves():
    x, w = leaf(1), leaf(1)
    y = (x + w) * (w + 1)
    assert lines(graph.of(y)) == [
        "y = MulBackward0 [1]",
        "├─ input ← AddBackward0 [1] of x [1], w [1]",
        "└─ other ← AddBackward0 [1] of w [1]",
    ]


def test_the_heading_and_the_lines_of_the_program():
    x = leaf(2, 3)
    y = x.exp()
    text = graph.of(y).text()
    assert text.startswith("graph of y: 1 operation, 1 leaf (6 elements); 24 B saved for backward\n\n")
    assert text.rstrip().endswith(f"test_text.py:{graph.of(y).operations[0].site.line}")


def test_numbers_and_attributes_stand_on_the_line():
    x = leaf(2, 3)
    with graph.record() as g:
        y = (x * 3).sum(1)
    assert y.requires_grad
    assert lines(g) == ["y = SumBackward1 [2] of dim=(1,)", "← MulBackward0 [2, 3] of x [2, 3], other=3"]


def test_the_main_line_goes_on_where_branches_meet():
    x = leaf(2)
    h = x.exp()
    y = h.tanh() + h.sigmoid()
    assert lines(graph.of(y.sum())) == [
        "SumBackward0 []",
        "← y = AddBackward0 [2]",
        "├─ input ← TanhBackward0 [2]",
        "└─ other ← SigmoidBackward0 [2]",
        "← h = ExpBackward0 [2] of x [2]",
    ]


def test_what_is_used_in_two_branches_is_shown_once():
    x, w = leaf(2), leaf(2)
    a = x * 2
    y = (a + w * 3).exp() * (a + w * 5).exp()
    text = graph.of(y).text()
    assert text.count("a = MulBackward0") == 1
    assert text.count("a (above)") == 1


def test_cuts_are_told_with_reason_and_line():
    x = leaf(2)
    with graph.record() as g:
        y = x * (x * 2).detach()
    assert y.requires_grad
    number = g.cuts[0].site.line
    assert f"\nother (cut by detach, test_text.py:{number}) ← MulBackward0 [2] of x [2]" in g.text()


def test_a_cut_branch_says_so_where_it_meets_the_others():
    x = leaf(2)
    with graph.record() as g:
        h = x.exp()
        y = h * h.detach().abs()
    assert y.requires_grad
    assert lines(g) == [
        "y = MulBackward0 [2]",
        "├─ input ← h (below)",
        "└─ other ← abs [2]",
        f"   input (cut by detach, test_text.py:{g.cuts[0].site.line}) ← h (below)",
        "← h = ExpBackward0 [2] of x [2]",
    ]


def test_gradients_after_a_backward():
    x = pellucid.tensor([1.0, -1.0], requires_grad=True)
    with graph.record() as g:
        (x.relu() * 3).sum().backward()
    assert "ReluBackward0 [2] of x [2] (|grad| 3, 50% zeros)  [|grad| 4.24]" in g.text()


def test_local_derivatives_of_scalars():
    x = pellucid.tensor(3.0, requires_grad=True)
    y = x * x
    assert "of x [] (∂ = 3)" in graph.of(y, values=True).text()


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x):
        return x + self.linear(x).relu()


def stack(count):
    return nn.Sequential(nn.Linear(3, 4), *[Block() for _ in range(count)], nn.Linear(4, 1))


def test_modules_are_collapsed_and_repeated_blocks_folded():
    model, x = stack(12), pellucid.ones(5, 3)
    assert lines(graph.of(model, x)) == [
        "model.13: Linear [5, 1] (1 operation, 5 parameters)",
        "← 12 x model.1 ... model.12: Block [5, 4] (3 operations, 20 parameters)",
        "← x = model.0: Linear [5, 4] (1 operation, 16 parameters) of x [5, 3]",
    ]


def test_parameters_and_buffers_of_closed_modules_are_not_listed():
    model, x = nn.Sequential(nn.BatchNorm1d(4), nn.Linear(4, 2)), pellucid.ones(3, 4)
    text = graph.of(model, x).text()
    assert "8 parameters) of x [3, 4]\n" in text
    assert "model.0.weight" not in text
    assert "model.0.weight" in graph.of(model, x).text(expand="all")


def test_levels_of_modules_are_opened_on_demand():
    model, x = stack(3), pellucid.ones(5, 3)
    g = graph.of(model, x)
    assert lines(g, expand=0) == ["model: Sequential [5, 1] (11 operations, 81 parameters) of x [5, 3]"]
    assert lines(g, expand=2)[5:10] == [
        "← 2 x",
        "│  ← x = AddBackward0 [5, 4]",
        "│  ├─ input ← x (below)",
        "│  └─ other ← ReluBackward0 [5, 4]",
        "│     ← model.2.linear: Linear [5, 4] (1 operation, 20 parameters)",
    ]
    assert len(lines(g, expand="all", fold=False)) > len(lines(g, expand="all"))
    assert "AddmmBackward0" in g.text(expand="all")
    assert "AddmmBackward0" not in g.text(expand=0)


@pytest.mark.parametrize("expand", [-1, "some", 1.5])
def test_a_wrong_number_of_levels_is_refused(expand):
    with pytest.raises(ValueError, match="expand must be a number of levels from 0 up, 'all' or None, got "):
        graph.of(leaf(1) * 2).text(expand=expand)


def test_equal_branches_are_folded():
    x = leaf(4)
    y = pellucid.cat([(x * 2).exp() for _ in range(9)])
    assert "... and 8 more like it" in graph.of(y).text()


def test_branches_nested_too_deep_are_counted():
    a, b = leaf(1) * 1, leaf(1) * 1
    for _ in range(200):
        a, b = a * b, a
    text = graph.of(a).text()
    assert "more, nested too deep to show)" in text
    assert len(text.splitlines()) < 200


def test_repeats_are_found_in_sequences():
    assert runs("AAAB") == [Run(0, 1, 3), Run(3, 1, 1)]
    assert runs("XABABABY") == [Run(0, 1, 1), Run(1, 2, 3), Run(7, 1, 1)]
    assert runs("ABC") == [Run(0, 1, 1), Run(1, 1, 1), Run(2, 1, 1)]
    assert runs("AABAAB") == [Run(0, 3, 2)]
    assert runs("") == []


def test_meeting_points_are_those_of_all_paths():
    sources = [[], [0], [1], [1], [2, 3], [4, 1], [], [5, 6]]
    assert meeting_points(sources) == [None, 0, 1, 1, 1, 1, None, None]


def test_meeting_points_on_a_long_chain_with_far_skips():
    sources = [[], *([k, 0] for k in range(5000))]
    assert meeting_points(sources)[-1] == 0
