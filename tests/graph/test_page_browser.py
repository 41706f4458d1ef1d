"""The page in a headless browser: it opens, expands, searches, replays, and says nothing on the console."""

# ruff: noqa: RUF001 (the sign of multiplication is meant)

import json
import re

import page_graphs
import pytest
from page_browser import find_browser, opened_browser

from pellucid.core import language
from pellucid.graph.page.content import Content
from pellucid.graph.page.scene import opened_to, scene_of

pytestmark = pytest.mark.skipif(find_browser() is None, reason="no Chromium here: install the package chromium")

SHOWN = "[...document.querySelectorAll('#boxes .box .heading')].map((e) => e.textContent)"
FRAMES = "[...document.querySelectorAll('#frames .close .heading')].map((e) => e.textContent)"
CAPTION = "document.getElementById('caption').textContent"


@pytest.fixture(scope="module")
def browser():
    with opened_browser() as opened:
        yield opened


@pytest.fixture
def show(browser, tmp_path):
    """Opens the page of a graph; at the end of the test it must not have complained or asked for anything."""
    tabs = []

    def open_page(graph, **options):
        path = tmp_path / f"{len(tabs)}.html"
        graph.html(path)
        tab = browser.open(path.as_uri(), **options)
        tabs.append((tab, path))
        return tab

    yield open_page
    for tab, path in tabs:
        assert tab.complaints() == []
        assert tab.requests() == [path.as_uri()]
        tab.close()


# --- languages --------------------------------------------------------------------------------------------------------


@pytest.fixture
def chinese():
    language.set_language("zh")
    yield
    language.set_language(None)


def test_a_chinese_page_speaks_chinese_and_replays_in_it(chinese, show):
    tab = show(page_graphs.textbook())
    assert tab.run("document.documentElement.lang") == "zh-CN"
    assert tab.text("#counts") == "3 个运算 · 2 个叶子节点 · 为反向传播保存 8 B"
    tab.run("(() => { const s = document.getElementById('step'); s.value = 7; s.dispatchEvent(new Event('input')); })()")
    tab.settle()
    assert tab.run(CAPTION) == "a 把梯度 2 继续传下去：w 得到 2 × 1 = 2、x 得到 2 × 1 = 2；w.grad = 2 + 3 = 5"
    tab.click("g.box", text="y")
    shown = tab.run("document.body.innerText")
    of_the_program = {"AddBackward", "MulBackward", "alpha", "float", "grad", "graphs", "input", "other", "page", "textbook"}
    assert set(re.findall("[A-Za-z]{4,}", shown)) <= {*of_the_program, "FLOPs", "Ctrl"}


# --- opening and closing ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", page_graphs.ALL)
def test_every_page_opens_and_shows_its_boxes(show, name):
    tab = show(page_graphs.ALL[name]())
    assert tab.run(SHOWN)


def test_a_click_opens_a_module_and_a_click_on_its_heading_closes_it(show):
    tab = show(page_graphs.model())
    assert tab.run(FRAMES) == ["net Net"]
    tab.click(".box.module", text="head Linear")
    assert tab.run(FRAMES) == ["net Net", "head Linear"]
    assert "logits View" not in tab.run(SHOWN)
    tab.click(".close", text="head Linear")
    assert tab.run(FRAMES) == ["net Net"]
    assert "head Linear" in tab.run(SHOWN)


def test_what_is_opened_stays_where_it_is_on_the_screen(show):
    tab = show(page_graphs.model())
    place = "(() => {{ const r = document.querySelector('{}').getBoundingClientRect(); return r.top; }})()"
    box = tab.run("[...document.querySelectorAll('.box')].find((e) => e.textContent.includes('4 × Block')).getBoundingClientRect().top")
    tab.click(".box.module", text="4 × Block")
    frame = tab.run("[...document.querySelectorAll('.frame')].find((e) => e.textContent.includes('4 × Block')).getBoundingClientRect().top")
    assert frame == pytest.approx(box, abs=2)
    assert tab.run(place.format("#canvas")) >= 0


def test_equal_blocks_show_the_first_and_on_a_click_all(show):
    tab = show(page_graphs.model())
    tab.click(".box.module", text="4 × Block")
    assert {"norm LayerNorm", "up Linear", "down Linear"} <= {text for text in tab.run(SHOWN)}
    tab.click(".unfold", text="show all 4")
    assert [text for text in tab.run(SHOWN) if "Block" in text] == [f"blocks.{k} Block" for k in range(4)]
    tab.click(".unfold", text="show one")
    assert "up Linear" in tab.run(SHOWN)
    tab.click("#details button", text="show all 4")  # the same by keyboard
    assert "blocks.3 Block" in tab.run(SHOWN)


def test_open_all_and_close_all(show):
    tab = show(page_graphs.model())
    tab.click("#open-all")
    assert "weight" in tab.run(SHOWN)
    tab.click("#close-all")
    assert tab.run(FRAMES) == []


def test_a_failing_model_shows_the_error_and_the_operation_in_red(show):
    tab = show(page_graphs.failing())
    assert "mat1 and mat2 shapes cannot be multiplied" in tab.text("#failure")
    assert "input [2, 3] float32" in tab.text("#failure")
    assert "weight [2, 5] float32" in tab.text("#failure")
    assert tab.run("getComputedStyle(document.querySelector('.box.failed rect')).stroke") == "rgb(198, 40, 40)"
    assert "weight [2, 5] float32" in tab.text(".box.failed")


# --- search -----------------------------------------------------------------------------------------------------------


def test_search_opens_and_centres_what_it_finds(show):
    tab = show(page_graphs.model())
    tab.key("/")
    assert tab.run("document.activeElement.id") == "find"
    tab.type("blocks.2.up")
    assert tab.run("document.querySelectorAll('#hits [role=option]').length") > 0
    assert tab.run("document.getElementById('find').getAttribute('aria-activedescendant')") == "hit-0"
    tab.key("Enter")
    assert "net.blocks.2.up" in tab.text("#details")
    box = "document.querySelector('.selected').getBoundingClientRect()"
    canvas = "document.getElementById('canvas').getBoundingClientRect()"
    off = tab.run(f"(() => {{ const b = {box}, c = {canvas}; return Math.abs(b.x + b.width / 2 - c.x - c.width / 2); }})()")
    assert off < 5


@pytest.mark.parametrize("query", ["loss", "nllloss", "page_graphs.py:", "cross_entropy"])
def test_search_finds_names_operators_lines_and_source(show, query):
    tab = show(page_graphs.model())
    found = tab.run(f"pellucid.findThings({json.dumps(query)}).map((t) => t.label.name)")
    assert "loss" in found


def test_search_says_so_when_nothing_is_found(show):
    tab = show(page_graphs.textbook())
    tab.key("/")
    tab.type("zzz")
    assert tab.text("#hits") == "nothing found"
    tab.key("Escape")
    assert tab.run("document.getElementById('hits').hidden")


# --- replay -----------------------------------------------------------------------------------------------------------


def captions(tab):
    return tab.run(f"pellucid.replay.steps.map((_, k) => {{ pellucid.setStep(k); return {CAPTION}; }})")


def test_the_slider_replays_the_textbook_with_its_numbers(show):
    tab = show(page_graphs.textbook())
    assert captions(tab) == [
        "Leaves: w, x. Nothing has been computed yet.",
        "a = w + x = 3",
        "b = w + 1 = 2",
        "y = a × b = 6",
        "Backward starts at y with ∂y/∂y = 1.",
        "y hands its gradient 1 on: to a 1 × 2 = 2, to b 1 × 3 = 3",
        "b hands its gradient 3 on: to w 3 × 1 = 3",
        "a hands its gradient 2 on: to w 2 × 1 = 2, to x 2 × 1 = 2; w.grad = 2 + 3 = 5",
        "The whole graph. Press Play to watch the forward and the backward pass.",
    ]


def test_arrow_keys_step_the_slider_and_gradients_gather_in_the_leaves(show):
    tab = show(page_graphs.textbook())
    grad = "[...document.querySelectorAll('.box.leaf')].map((e) => e.querySelector('.grad').textContent)"
    assert tab.run(grad) == ["grad 5", "grad 2"]
    tab.run("document.getElementById('step').focus()")
    tab.key("ArrowLeft")
    tab.key("ArrowLeft")
    assert tab.run(CAPTION) == "b hands its gradient 3 on: to w 3 × 1 = 3"
    assert tab.run(grad) == ["grad 3", ""]
    assert tab.run("document.querySelectorAll('.arrow.flow.back').length") == 2
    tab.key("ArrowLeft")
    assert tab.run(grad) == ["", ""]
    for _ in range(4):
        tab.key("ArrowLeft")
    assert tab.run("[...document.querySelectorAll('.box.dim .name')].map((e) => e.textContent)") == ["b", "y"]
    assert tab.run("document.getElementById('step').getAttribute('aria-valuetext')") == "step 1 of 8: a = w + x = 3"


def test_play_runs_to_the_end_and_can_be_paused(show):
    tab = show(page_graphs.textbook())
    tab.click("#play")
    assert tab.run("document.getElementById('play').getAttribute('aria-label')") == "Pause"
    assert tab.run("pellucid.replay.at") == 0
    tab.wait("pellucid.replay.at === 2")
    tab.click("#play")
    assert tab.run("document.getElementById('play').getAttribute('aria-label')") == "Play"
    assert tab.run("pellucid.replay.at") == 2


@pytest.mark.parametrize("name", ["textbook", "shared", "cut", "vectors", "bad"])
def test_the_gradients_of_the_replay_are_those_of_backward(show, name):
    g = page_graphs.ALL[name]()
    tab = show(g)
    found = tab.run(
        "pellucid.setStep(pellucid.replay.steps.length - 1),"
        "pellucid.nodes.filter((n) => n.kind === 'leaf').map((n) => [n.id, pellucid.gradientAt(n).map(String)])"
    )
    for number, numbers in found:
        gradient = g.nodes[number].outputs[0].gradient
        values = [float(text) for text in numbers]
        finite = [value for value in values if value == value and abs(value) != float("inf")]
        assert sum(value != value for value in values) == gradient.nan
        assert sum(value * value for value in finite) ** 0.5 == pytest.approx(gradient.norm, rel=1e-4)


def test_models_replay_by_what_is_shown(show):
    tab = show(page_graphs.model())
    found = captions(tab)
    assert "4 × Block is computed" in found
    assert any(text.startswith("4 × Block hands its gradient on to") for text in found)
    assert found.index("4 × Block is computed") < found.index("head Linear is computed")


# --- chain rule -------------------------------------------------------------------------------------------------------


def test_the_chain_rule_lists_paths_products_and_their_sum(show):
    g = page_graphs.shared()
    tab = show(g)
    assert tab.text("#chain-result .formula") == "∂z/∂a = sum over 3 paths"
    paths = tab.run("[...document.querySelectorAll('#chain-result li')].map((e) => e.textContent)")
    assert paths == [
        "∂z/∂d · ∂d/∂b · ∂b/∂a = 6 × 1 × 3 = 18",
        "∂z/∂d · ∂d/∂c · ∂c/∂a = 6 × 1 × 4 = 24",
        "∂z/∂b · ∂b/∂a = 10 × 3 = 30",
    ]
    assert tab.text("#chain-result .sum") == "sum = 18 + 24 + 30 = 72"
    assert g.chain("z", "a").total == 72


def test_a_path_is_shown_in_the_picture(show):
    tab = show(page_graphs.shared())
    tab.click("#chain-result li button", text="10 × 3")
    # a to b and b to z, each in two pieces around its label
    assert tab.run("document.querySelectorAll('.arrow.path').length") == 4


def test_the_chain_rule_counts_more_paths_than_it_lists(show):
    import pellucid
    from pellucid import graph

    a = pellucid.tensor(1.0, requires_grad=True)
    b = a
    for _ in range(30):
        b = b + b
    tab = show(graph.of(b, values=True))
    assert "sum over 1,073,741,824 paths" in tab.text("#chain-result .formula")
    assert tab.text("#chain-result .sum") == f"sum = {2.0**30:.4g}".replace("e+09", "e+9")


@pytest.mark.parametrize("name", ["textbook", "shared", "cut", "vectors"])
def test_the_chain_rule_of_the_page_is_that_of_python(show, name):
    g = page_graphs.ALL[name]()
    tab = show(g)
    (root, _), leaf = g.roots[0], g.leaves[0].id
    chain = g.chain(root, leaf)
    found = tab.run(f"(({{ count, total }}) => [String(count), total])(pellucid.chainOf({root}, {leaf}))")
    assert int(found[0]) == chain.count
    total = chain.total if isinstance(chain.total, list) else [[chain.total]]
    assert found[1] == [pytest.approx(row, rel=1e-6) for row in total]


# --- details ----------------------------------------------------------------------------------------------------------


def test_details_tell_everything_of_an_operation(show):
    g = page_graphs.model()
    tab = show(g)
    number = next(node.id for node in g.operations if node.outputs[0].name == "loss")
    tab.run(f"pellucid.select(pellucid.nodes[{number}], {{ reveal: true }})")
    found = tab.text("#details")
    for text in ("NllLossBackward0", "scalar float32", "page_graphs.py:", "F.cross_entropy(", "norm 1, 0% zeros, no NaN, no Inf"):
        assert text in found


def test_details_of_a_module_add_up(show):
    tab = show(page_graphs.model())
    tab.click(".box.module", text="head Linear")
    # x is [2, 3, 8] and the weight [7, 8]: 2 * 6 * 8 * 7 operations
    assert "forward FLOPs672" in tab.text("#details")
    assert "net.head" in tab.text("#details")


def test_numbers_that_are_none_are_red(show):
    tab = show(page_graphs.bad())
    tab.click(".box.leaf")
    assert tab.text("#details strong.bad") == "1 NaN"
    assert tab.run("getComputedStyle(document.querySelector('#details strong.bad')).color") == "rgb(198, 40, 40)"
    assert "1 NaN in the gradient" in tab.text(".box.leaf .bad")


# --- keyboard and readers ---------------------------------------------------------------------------------------------


def test_the_picture_goes_by_keyboard(show):
    tab = show(page_graphs.model())
    for _ in range(30):
        tab.key("Tab")
        if tab.run("document.activeElement.id") == "canvas":
            break
    selected = "pellucid.state.selected && pellucid.state.selected.label.name"
    assert tab.run(selected) == "loss"
    tab.key("ArrowUp")
    tab.key("ArrowUp")
    assert tab.run("document.getElementById('spoken').textContent").startswith("module, head Linear, [2, 3, 7] float32")
    tab.key("Enter")
    assert "head Linear" in tab.run(FRAMES)
    tab.key("Escape")
    assert tab.run(FRAMES) == []
    before = tab.run("pellucid.view.k")
    tab.key("+")
    assert tab.run("pellucid.view.k") > before
    tab.key("0")
    x = tab.run("pellucid.view.x")
    tab.key("ArrowRight", shift=True)
    assert tab.run("pellucid.view.x") == x - 80


def test_the_outline_goes_by_keyboard(show):
    tab = show(page_graphs.model())
    tab.run("document.querySelector('#outline [tabindex=\"0\"]').focus()")
    words = "document.activeElement.querySelector('.words').textContent"
    first = tab.run(words)
    for _ in range(3):
        if not tab.run(words).startswith("net Net"):
            tab.key("ArrowDown")
    tab.key("ArrowRight")
    assert tab.run("document.activeElement.getAttribute('aria-expanded')") == "true"
    tab.key("ArrowRight")
    assert tab.run("document.activeElement.getAttribute('aria-level')") == "2"
    tab.key("Enter")
    assert tab.run("document.activeElement.getAttribute('aria-selected')") == "true"
    tab.key("ArrowLeft")
    tab.key("ArrowLeft")
    assert tab.run("document.activeElement.getAttribute('aria-expanded')") == "false"
    tab.key("Home")
    assert tab.run(words) == first


def test_readers_are_told_what_everything_is(show):
    tab = show(page_graphs.model())
    tree = tab.ask("Accessibility.getFullAXTree")["nodes"]
    named = {}
    for node in tree:
        role, name = node.get("role", {}).get("value"), node.get("name", {}).get("value", "")
        if not node.get("ignored"):
            named.setdefault(role, []).append(name)
    assert "Picture of the graph" in named["application"]
    assert "Find name, module or line" in named["combobox"]
    assert any(name.startswith("Step of the replay") for name in named["slider"])
    assert {"Play", "One step back", "One step forward", "Zoom in (+)", "Fit", "Dark or light"} <= set(named["button"])
    assert any(name.startswith("module, head Linear") for name in named["button"])
    assert any(name.startswith("The graph in words") for name in named["tree"])
    assert any("net Net" in name for name in named["treeitem"])
    for role in ("button", "combobox", "slider", "tree", "treeitem", "application"):
        assert all(named[role]), f"a {role} without a name"


# --- looks ------------------------------------------------------------------------------------------------------------

OVERLAPS = """(() => {
  const texts = [...document.querySelectorAll('#picture text')].filter((e) => e.textContent.trim() && e.checkVisibility());
  const found = [], rects = texts.map((e) => e.getBoundingClientRect());
  for (let i = 0; i < rects.length; i++) for (let j = i + 1; j < rects.length; j++) {
    const a = rects[i], b = rects[j], x = Math.min(a.right, b.right) - Math.max(a.left, b.left);
    const y = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
    if (x > 1 && y > 4 * pellucid.view.k) found.push([texts[i].textContent, texts[j].textContent]);
  }
  for (const box of document.querySelectorAll('#boxes .box')) {
    const outer = box.querySelector('rect').getBoundingClientRect();
    for (const text of box.querySelectorAll('text')) {
      const inner = text.getBoundingClientRect();
      if (text.textContent && (inner.left < outer.left || inner.right > outer.right + 1)) found.push([text.textContent, 'box']);
    }
  }
  return found;
})()"""


@pytest.mark.parametrize("name", page_graphs.ALL)
def test_no_text_overlaps_another_or_leaves_its_box(show, name):
    tab = show(page_graphs.ALL[name](), width=1600, height=1200)
    assert tab.run(OVERLAPS) == []
    tab.click("#open-all")
    assert tab.run(OVERLAPS) == []
    for step in range(0, tab.run("pellucid.replay.steps.length"), 3):
        tab.run(f"pellucid.setStep({step})")
        assert tab.run(OVERLAPS) == []


@pytest.mark.parametrize("name", page_graphs.ALL)
def test_the_page_places_everything_as_python_does(show, name):
    g = page_graphs.ALL[name]()
    tab = show(g)
    content = Content(g, replayed=True)
    for levels in (0, 1, None):
        opened = opened_to(content.blocks, levels)
        wanted = scene_of(content, opened).layout
        found = tab.run(
            "(() => { pellucid.data.most_unfolded = 0;"
            f"const s = pellucid.sceneOf(new Set({sorted(opened)}), new Set(), {json.dumps(content.learning)}).layout;"
            "const r = (p) => p && [p.main, p.cross, p.length, p.width];"
            "return { places: s.places.map((all) => all.map(r)), labels: s.labels.map(r), heads: [...s.heads.values()],"
            "lines: s.lines.map((l) => l.spans.map((p) => [p.start, p.end, p.middle])), size: [s.length, s.width] }; })()"
        )
        assert [[pytest.approx(list(rect)) for rect in place] for place in wanted.places] == found["places"]
        assert [None if rect is None else pytest.approx(list(rect)) for rect in wanted.labels] == found["labels"]
        assert sorted(found["heads"]) == pytest.approx(sorted(wanted.heads.values()))
        assert [[pytest.approx(list(span)) for span in line.spans] for line in wanted.lines] == found["lines"]
        assert found["size"] == pytest.approx([wanted.length, wanted.width])


def test_dark_follows_the_system_and_the_switch(show):
    background = "getComputedStyle(document.body).backgroundColor"
    tab = show(page_graphs.textbook(), dark=True)
    assert tab.run(background) == "rgb(20, 24, 29)"
    tab.click("#theme")
    assert tab.run(background) == "rgb(255, 255, 255)"
    assert show(page_graphs.textbook()).run("matchMedia('(prefers-color-scheme: dark)').matches") is False


def test_wheel_and_mouse_move_and_zoom(show):
    tab = show(page_graphs.textbook())
    x, y, k = (tab.run(f"pellucid.view.{name}") for name in "xyk")
    tab.mouse("mouseWheel", 400, 300, deltaX=0, deltaY=100)
    tab.wait(f"pellucid.view.y === {y} - 100")
    tab.mouse("mouseWheel", 400, 300, deltaX=0, deltaY=-100, modifiers=2)
    tab.wait(f"pellucid.view.k > {k}")
    tab.run("pellucid.view.x = 0")
    tab.mouse("mousePressed", 30, 60)
    tab.mouse("mouseMoved", 80, 100)
    tab.mouse("mouseMoved", 130, 140)
    tab.mouse("mouseReleased", 130, 140)
    assert tab.run("pellucid.view.x") == pytest.approx(100, abs=1)
    assert x != 0


def test_five_thousand_operations_are_no_burden(show):
    tab = show(page_graphs.irregular(5000))
    assert tab.run("document.querySelectorAll('#picture *').length") < 2000
    tab.click("#open-all")
    assert tab.run("pellucid.state.scene.boxes.length") > 5000
    assert tab.run("document.querySelectorAll('#picture *').length") < 5000
    tab.click("#fit")
    assert tab.run("document.querySelectorAll('#picture *').length") < 2000
    tab.run("pellucid.select(pellucid.nodes[2500], { reveal: true })")
    assert tab.run("document.querySelectorAll('.box.selected').length") == 1
