"""Pictures of computation graphs: what is drawn, that nothing overlaps, and what is refused. Not how it looks."""

import itertools
import xml.etree.ElementTree as ElementTree

import pytest

import pellucid
from pellucid.graph import draw_svg
from pellucid.graph.layout import Edge, lay_out

SVG = "{http://www.w3.org/2000/svg}"
LEAF, OPERATION = "#dcf2d8", "#dceafb"


def leaf(*shape):
    return pellucid.ones(*shape, requires_grad=True)


def boxes(svg):
    """Fill, left, top, right, bottom of every box."""
    rectangles = [rect for rect in ElementTree.fromstring(svg).iter(f"{SVG}rect") if rect.get("rx")]
    sizes = [(r.get("fill"), *(float(r.get(name)) for name in ("x", "y", "width", "height"))) for r in rectangles]
    return [(fill, x, y, x + width, y + height) for fill, x, y, width, height in sizes]


def texts(svg):
    return [text.text for text in ElementTree.fromstring(svg).iter(f"{SVG}text")]


def arrows(svg):
    return [path for path in ElementTree.fromstring(svg).iter(f"{SVG}path") if path.get("marker-end")]


def textbook():
    x, w = leaf(1), leaf(1)
    y = (x + w) * (w + 1)
    return y, {"x": x, "w": w, "y": y}


def residual():
    x, w = leaf(4, 4), leaf(4, 4)
    hidden = x
    for _ in range(3):
        hidden = hidden + (hidden @ w).tanh() * (hidden @ w).sigmoid()
    return (hidden * hidden).sum(), {"x": x, "a rather long name for a small weight": w}


def test_the_textbook_graph_has_its_leaves_operations_and_arrows():
    y, names = textbook()
    svg = draw_svg(y, names)
    kinds = [fill for fill, *_ in boxes(svg)]
    assert (kinds.count(LEAF), kinds.count(OPERATION)) == (2, 3)
    assert len(arrows(svg)) == 6
    assert sorted(texts(svg)) == sorted(["AddBackward0", "AddBackward0", "MulBackward0", *"xwy", *["[1]"] * 3])


@pytest.mark.parametrize("direction", ["right", "down"])
@pytest.mark.parametrize("graph", [textbook, residual])
def test_boxes_do_not_overlap_and_stay_in_the_picture(graph, direction):
    svg = draw_svg(*graph(), direction=direction)
    for (_, left, top, right, bottom), (_, left2, top2, right2, bottom2) in itertools.combinations(boxes(svg), 2):
        assert right < left2 or right2 < left or bottom < top2 or bottom2 < top
    width, height = (float(ElementTree.fromstring(svg).get(name)) for name in ("width", "height"))
    for _, left, top, right, bottom in boxes(svg):
        assert left >= 0
        assert top >= 0
        assert right < width
        assert bottom < height


@pytest.mark.parametrize("direction", ["right", "down"])
def test_data_flows_the_way_that_was_asked_for(direction):
    y, names = textbook()
    axis = {"right": 1, "down": 2}[direction]
    starts = {fill: box[axis - 1] for fill, *box in boxes(draw_svg(y, names, direction=direction))}
    assert starts[LEAF] < starts[OPERATION] < starts["#ffffff"]


def test_a_tensor_used_twice_by_one_operation_has_two_arrows():
    x = leaf(2)
    assert len(arrows(draw_svg(x * x, {"x": x}))) == 3


def test_a_leaf_is_its_own_picture():
    x = leaf(2, 3)
    assert texts(draw_svg(x, {"x": x})) == ["x", "[2, 3]", "x", "[2, 3]"]


def test_names_are_escaped_and_wide_characters_have_room():
    x = leaf(1)
    plain, wide = (boxes(draw_svg(x, {name: x})) for name in ("ab<&>", "权重权重权"))
    assert "ab<&>" in texts(draw_svg(x, {"ab<&>": x}))
    assert wide[0][3] - wide[0][1] > plain[0][3] - plain[0][1]


def test_a_tensor_without_a_graph_is_refused():
    with pytest.raises(RuntimeError, match="does not require grad and has no graph to draw"):
        draw_svg(pellucid.ones(2))


def test_a_graph_too_large_for_a_picture_is_refused():
    y = leaf(1)
    for _ in range(501):
        y = y + 1
    with pytest.raises(ValueError, match="more than 500 operations: too many for a picture"):
        draw_svg(y)


def test_an_unknown_direction_is_refused():
    with pytest.raises(ValueError, match="direction must be 'right' or 'down', got 'up'"):
        draw_svg(leaf(1), direction="up")


def test_layout_refuses_a_cycle():
    with pytest.raises(ValueError, match="the edges form a cycle"):
        lay_out([(1, 1), (1, 1)], [Edge(0, 1, 0), Edge(1, 0, 0)], 1, 1)
