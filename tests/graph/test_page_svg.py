"""The still picture of a graph: what is drawn, in which colours, and that nothing overlaps or is cut off."""

# ruff: noqa: RUF001 (the sign of multiplication is meant)

import itertools
import re
import xml.etree.ElementTree as ElementTree

import page_graphs
import pytest

import pellucid
from pellucid import graph
from pellucid.graph.draw import FONT, NOTE_FONT, text_width
from pellucid.graph.page.colours import LIGHT
from pellucid.graph.page.content import Content
from pellucid.graph.page.scene import BUTTON, opened_at_first, opened_to, scene_of

SVG = "{http://www.w3.org/2000/svg}"


def draw(g, **options):
    return ElementTree.fromstring(g.svg(**options))


def texts(svg):
    return ["".join(text.itertext()) for text in svg.iter(f"{SVG}text")]


def fills(svg):
    return [rect.get("fill") for rect in svg.iter(f"{SVG}rect") if rect.get("rx")]


# --- what is drawn ----------------------------------------------------------------------------------------------------


def test_the_textbook_graph_has_its_boxes_values_and_derivatives():
    svg = draw(page_graphs.textbook())
    assert sorted(fills(svg)) == sorted(
        [LIGHT["leaf"]] * 2 + [LIGHT["input"]] + [LIGHT["operation"]] * 2 + [LIGHT["root"]]
    )
    found = texts(svg)
    for text in ("y = a × b", "a = w + x", "b = w + 1", "= 6", "∂y/∂a = 2", "∂y/∂b = 3", "∂b/∂w = 1", "|grad| 5"):
        assert text in found


def test_the_path_that_needs_gradients_is_orange_and_the_rest_is_not():
    svg = draw(page_graphs.textbook())
    strokes = [path.get("stroke") for path in svg.iter(f"{SVG}path") if path.get("stroke")]
    assert strokes.count(LIGHT["gradient"]) == 10  # five edges, each with a label on it
    assert strokes.count(LIGHT["constant"]) == 1


def test_a_cut_is_a_broken_edge_with_its_reason():
    svg = draw(page_graphs.cut())
    assert "cut: detach" in texts(svg)
    assert [p.get("stroke") for p in svg.iter(f"{SVG}path") if p.get("stroke-dasharray")] == [LIGHT["constant"]]
    assert [p.get("stroke") for p in svg.iter(f"{SVG}path")].count(LIGHT["bad"]) == 1  # the strokes across it


def test_models_are_collapsed_and_equal_blocks_folded():
    svg = draw(page_graphs.model())
    found = texts(svg)
    assert "net Net" in found
    assert "4 × Block" in found
    assert "embedding Embedding" in found
    assert not any("up Linear" in text for text in found)


def test_levels_of_modules_open_and_of_equal_blocks_the_first():
    g = page_graphs.model()
    assert sum("Block" in text for text in texts(draw(g, expand=0))) == 0
    assert "up Linear" in texts(draw(g, expand=2))
    everything = texts(draw(g, expand="all"))
    assert everything.count("Addmm") + everything.count("x Addmm") == 2  # of one block; the head has no bias
    assert "4 × Block" in everything


def test_the_failing_operation_is_red_and_shows_both_shapes():
    svg = draw(page_graphs.failing())
    assert LIGHT["bad-fill"] in fills(svg)
    assert "input [2, 3] float32" in texts(svg)
    assert "weight [2, 5] float32" in texts(svg)


@pytest.mark.parametrize("direction", ["down", "right"])
def test_data_flows_the_way_that_was_asked_for(direction):
    svg = draw(page_graphs.textbook(), direction=direction)
    axis = {"right": "x", "down": "y"}[direction]
    starts = {rect.get("fill"): float(rect.get(axis)) for rect in svg.iter(f"{SVG}rect") if rect.get("rx")}
    assert starts[LIGHT["leaf"]] < starts[LIGHT["operation"]] < starts[LIGHT["root"]]


def test_a_long_loop_is_one_box():
    y = pellucid.ones(1, requires_grad=True)
    for _ in range(600):
        y = y * 1.5
    assert "600 × Mul" in texts(draw(graph.of(y)))


def test_names_are_escaped():
    assert any("</sc" in text for text in texts(draw(page_graphs.hostile())))


# --- what is refused --------------------------------------------------------------------------------------------------


def test_a_picture_of_too_much_is_refused_and_the_way_out_named():
    g = page_graphs.irregular(700)
    with pytest.raises(ValueError, match=r"(?s)boxes, more than 500: too many to read\n.*Graph\.html\(path\)"):
        g.svg(expand="all")
    assert len(fills(draw(g))) < 100


def test_unknown_directions_and_levels_are_refused():
    g = page_graphs.textbook()
    with pytest.raises(ValueError, match="direction must be 'right' or 'down', got 'up'"):
        g.svg(direction="up")
    with pytest.raises(ValueError, match="expand must be a number of levels from 0 up, 'all' or None, got -1"):
        g.svg(expand=-1)


# --- where it is ------------------------------------------------------------------------------------------------------


def scenes():
    for name, make in page_graphs.ALL.items():
        for levels in ("at first", 0, 2, None):
            for direction in ("down", "right"):
                yield pytest.param((make, levels, direction), id=f"{name}-{levels}-{direction}")


@pytest.fixture(params=scenes(), scope="module")
def scene(request):
    make, levels, direction = request.param
    content = Content(make())
    opened = opened_at_first(content.graph, content.blocks) if levels == "at first" else opened_to(content.blocks, levels)
    made = scene_of(content, opened, direction)
    made.content, made.direction = content, direction
    return made


def rectangles(scene):
    """Left, top, right, bottom of everything that has an area, with the box that it is in."""
    layout = scene.layout
    for number, box in enumerate(scene.boxes):
        for rect in layout.places[number]:
            yield corners(rect), box.parent, number
    for rect in layout.labels:
        if rect is not None:
            yield corners(rect), "label", None


def corners(rect):
    return rect.main, rect.cross, rect.main + rect.length, rect.cross + rect.width


def apart(one, other, slack=0.0):
    return (
        one[2] <= other[0] + slack or other[2] <= one[0] + slack or one[3] <= other[1] + slack or other[3] <= one[1] + slack
    )


def inside(inner, outer, slack=0.01):
    return all(a >= b - slack for a, b in zip(inner[:2], outer[:2], strict=True)) and all(
        a <= b + slack for a, b in zip(inner[2:], outer[2:], strict=True)
    )


def test_boxes_beside_one_another_do_not_touch_and_labels_touch_no_closed_box(scene):
    found = list(rectangles(scene))
    for (one, parent, _), (other, other_parent, _) in itertools.combinations(found, 2):
        if parent == other_parent != "label" or (parent == "label" and other_parent == "label"):
            assert apart(one, other)
    closed = [rect for rect, parent, number in found if parent != "label" and not scene.boxes[number].opened]
    for label, parent, _ in found:
        assert parent != "label" or all(apart(label, rect) for rect in closed)


def test_everything_is_in_the_box_it_belongs_to_and_in_the_picture(scene):
    layout = scene.layout
    whole = (0.0, 0.0, layout.length, layout.width)
    frames = {n: corners(layout.places[n][0]) for n, box in enumerate(scene.boxes) if box.opened}
    for rect, parent, _ in rectangles(scene):
        assert inside(rect, whole)
        assert parent in (None, "label") or inside(rect, frames[parent])
    for line in layout.lines:
        for span in line.spans:
            assert inside((span.start, span.middle, span.end, span.middle), whole)


def points_of(line):
    """Points on a drawn line: its straight stretches and the curves between them."""
    for span in line.spans:
        for part in range(5):
            yield span.start + (span.end - span.start) * part / 4, span.middle
    for before, after in itertools.pairwise(line.spans):
        half = (before.end + after.start) / 2
        curve = [(before.end, before.middle), (half, before.middle), (half, after.middle), (after.start, after.middle)]
        for step in range(1, 12):
            t = step / 12
            weights = ((1 - t) ** 3, 3 * (1 - t) ** 2 * t, 3 * (1 - t) * t**2, t**3)
            yield tuple(sum(w * p[axis] for w, p in zip(weights, curve, strict=True)) for axis in (0, 1))


def test_no_line_runs_through_a_closed_box_a_label_or_a_heading(scene):
    kept_clear = [
        corners(rect)
        for n, box in enumerate(scene.boxes)
        for rect in (scene.layout.places[n] if not box.opened else [heading_of(scene, n)])
    ]
    kept_clear += [corners(rect) for rect in scene.layout.labels if rect is not None]
    for line in scene.layout.lines:
        for main, cross in points_of(line):
            for top, left, bottom, right in kept_clear:
                assert not (top + 0.5 < main < bottom - 0.5 and left + 0.5 < cross < right - 0.5)


def heading_of(scene, number):
    (rect,) = scene.layout.places[number]
    head = scene.boxes[number].head - BUTTON
    if scene.direction == "down":
        return rect._replace(cross=scene.layout.heads[number], length=24.0, width=head)
    return rect._replace(main=rect.main + 12, length=head, width=24.0)


def test_texts_fit_into_their_boxes(scene):
    for number, thing in enumerate(scene.things):
        label = scene.content.label(thing)
        if scene.boxes[number].opened or not scene.layout.places[number]:
            continue
        height, width = scene.content.size(thing)
        assert text_width(f"{label.name} {label.what}".strip(), FONT) <= width - 16
        assert all(text_width(text, NOTE_FONT) <= width - 16 for _, text in label.rows)
        assert FONT + (NOTE_FONT + 2) * len(label.rows) <= height


def test_lines_lead_from_their_source_to_their_target(scene):
    """Each arrow ends at its target; where it has one line only, it begins at its source."""
    ends = {}
    for line in scene.layout.lines:
        if line.head:
            for number in line.arrows:
                ends.setdefault(number, []).append((line.spans[-1].end, line.spans[-1].middle))
    for number, arrow in enumerate(scene.arrows):
        target = corners(scene.layout.places[arrow.target][0])
        ((main, cross),) = ends[number]
        assert main == pytest.approx(target[0])
        assert target[1] <= cross <= target[3]


def test_numbers_in_the_picture_are_short():
    found = texts(draw(page_graphs.vectors()))
    assert all(len(number) <= 8 for text in found for number in re.findall(r"-?\d+\.\d+", text))
