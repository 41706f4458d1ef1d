"""The HTML page of a graph, without a browser: its structure, its data, its texts, and who writes it where."""

# ruff: noqa: RUF001 (the sign of multiplication is meant)

import html
import json
import re
import sys
import types
import webbrowser
from html.parser import HTMLParser
from importlib.resources import files
from pathlib import Path

import page_graphs
import pytest

from pellucid.cli.main import main
from pellucid.core import language
from pellucid.graph.page import blocks, document, texts
from pellucid.graph.page.colours import DARK, LIGHT
from pellucid.graph.page.content import Content
from pellucid.graph.page.document import SCRIPTS
from pellucid.graph.page.scene import opened_at_first

EMPTY_ELEMENTS = {"meta", "link", "input", "br", "img"}
PAGE = files("pellucid.graph.page")


class Reader(HTMLParser):
    """Reads a page; `errors` are ends without a beginning and attributes that lead out of the page."""

    def __init__(self):
        super().__init__()
        self.open, self.errors, self.ids, self.texts = [], [], [], {}

    def handle_starttag(self, tag, attributes):
        found = dict(attributes)
        if tag not in EMPTY_ELEMENTS:
            self.open.append((tag, found.get("id", "")))
        self.ids += [found["id"]] if "id" in found else []
        for name in ("src", "href", "action", "data", "poster", "srcset"):
            if name in found and not found[name].startswith(("#", "data:")):
                self.errors.append(f"{tag} {name}={found[name]}")

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        self.open.pop()

    def handle_endtag(self, tag):
        if not self.open or self.open.pop()[0] != tag:
            self.errors.append(f"</{tag}>")

    def handle_data(self, data):
        if self.open:
            key = self.open[-1]
            self.texts[key] = self.texts.get(key, "") + data


def read(page):
    reader = Reader()
    reader.feed(page)
    reader.close()
    return reader


def data_of(page):
    return json.loads(read(page).texts["script", "data"])


# --- the file ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", page_graphs.ALL)
def test_the_page_is_well_formed_and_needs_nothing_from_outside(name):
    page = page_graphs.ALL[name]().html()
    reader = read(page)
    assert (reader.errors, reader.open) == ([], [])
    assert len(reader.ids) == len(set(reader.ids))
    assert page.startswith("<!doctype html>")
    assert set(re.findall(r"\w+://[^\s\"'<>]*", page)) == {"http://www.w3.org/2000/svg"}  # a name, not an address
    assert not re.search(r"@import|url\((?!#)|\bfetch\(|XMLHttpRequest|WebSocket|\bimport\b *[({'\"]|\beval\(", page)
    assert "default-src 'none'" in page


def test_labels_and_references_between_elements_lead_somewhere():
    page = page_graphs.textbook().html()
    ids = set(read(page).ids)
    named = re.findall(r'(?:aria-(?:labelledby|controls|describedby)|for)="([^"]+)"', page)
    assert {name for names in named for name in names.split()} <= ids


def test_a_small_page_is_small():
    assert len(page_graphs.textbook().html()) < 200_000


def test_a_name_can_not_end_the_data_and_comes_back_as_it_was():
    g = page_graphs.hostile()
    leaf = g.leaves[0].outputs[0].name = "</script><!--\u2028'\"&amp;"
    page = g.html()
    assert page.count("</script>") == 2
    assert "\u2028" not in page
    assert data_of(page)["graph"]["nodes"][0]["outputs"][0]["name"] == leaf


def test_the_title_is_escaped():
    g = page_graphs.textbook()
    g.title = "a<b>&c"
    page = g.html()
    assert "<title>Graph of a&lt;b&gt;&amp;c</title>" in page
    assert read(page).texts["span", "title"] == "a<b>&c"


# --- the data ---------------------------------------------------------------------------------------------------------

EDGE = ("source", "output", "target", "input", "name", "kind", "reason", "site", "derivative")


@pytest.mark.parametrize("name", page_graphs.ALL)
def test_the_page_holds_the_whole_graph(name):
    g = page_graphs.ALL[name]()
    data, wanted = data_of(g.html()), g.to_dict()
    sites = data["graph"]["sites"]
    assert (data["format"], data["version"]) == (wanted["format"], wanted["version"])
    for key in ("title", "roots", "calls", "storages", "failure", "freed", "dropped", "saved_bytes"):
        assert data["graph"][key] == wanted[key]
    assert len(data["graph"]["nodes"]) == len(wanted["nodes"])
    for found, node in zip(data["graph"]["nodes"], wanted["nodes"], strict=True):
        assert same(found, {key: value for key, value in node.items() if key not in ("id", "label", "module")}, sites)
    edges = data["edges"][: len(wanted["edges"])]
    for found, edge in zip(edges, wanted["edges"], strict=True):
        assert same(dict(zip(EDGE, found, strict=False)), edge, sites)


def same(found, wanted, sites):
    """Whether what was left out of a dictionary is empty, and all else is as it was."""
    for key, value in wanted.items():
        if key == "site":
            given = found.get("site")
            assert (None if given is None else sites[given]) == value
        elif isinstance(value, list) and value and isinstance(value[0], dict):
            assert all(same(f, w, sites) for f, w in zip(found[key], value, strict=True))
        elif key in found:
            assert found[key] == value
        else:
            assert value is None or value is False or (isinstance(value, (str, list, dict)) and not value), key
    return True


def test_every_line_of_the_program_is_in_the_page_once():
    sites = data_of(page_graphs.loop().html())["graph"]["sites"]
    assert len(sites) == len({(site["file"], site["line"]) for site in sites}) <= 3


def test_numbers_given_to_operations_are_constants_of_small_graphs():
    data = data_of(page_graphs.textbook().html())
    ((target, name, text),) = data["constants"]
    assert (data["graph"]["nodes"][target]["outputs"][0]["name"], name, text) == ("b", "other", "1")
    assert data["edges"][-1] == [len(data["graph"]["nodes"]), 0, target, 1, "other", "constant"]
    assert data_of(page_graphs.loop().html())["constants"] == []


# --- blocks -----------------------------------------------------------------------------------------------------------


def titles(content, kind):
    return [" ".join(content.heading(block)) for block in content.blocks if block.kind == kind]


@pytest.mark.parametrize("name", page_graphs.ALL)
def test_every_operation_is_in_one_block_and_leaves_are_too(name):
    g = page_graphs.ALL[name]()
    made = blocks.blocks_of(g)
    inside = [item for block in made for item in block.items if not isinstance(item, blocks.Block)]
    assert sorted(inside) == [node.id for node in g.operations if not node.inside]
    assert made[0].operations() == sorted(inside) or name == "interleaved"
    leaves = [number for block in made for number in block.leaves]
    hidden = {edge.source for edge in g.edges if g.nodes[edge.target].inside}
    hidden -= {edge.source for edge in g.edges if not g.nodes[edge.target].inside}
    assert sorted(leaves) == [node.id for node in g.nodes if node.kind != "operation" and node.id not in hidden]
    assert [block.id for block in made] == list(range(len(made)))
    assert all(block.parent is None or block.parent.id < block.id for block in made)


def test_what_ran_in_a_custom_function_is_not_shown():
    content = Content(page_graphs.function())
    assert [content.label(item).name for item in content.blocks[0].items] == ["Cube", "y", "ran in backward"]
    assert [content.graph.nodes[n].label for n in content.blocks[0].leaves] == ["x"]


def test_equal_modules_in_a_row_are_folded_and_two_are_not():
    assert titles(Content(page_graphs.model(4)), "fold") == ["4 × Block"]
    assert titles(Content(page_graphs.model(2)), "fold") == []


def test_repetitions_in_a_long_list_are_folded():
    assert titles(Content(page_graphs.loop(50)), "fold") == ["50 × Mul, Add, Tanh"]
    assert titles(Content(page_graphs.loop(5)), "fold") == []


def test_a_long_list_without_repetitions_is_divided_into_parts():
    made = blocks.blocks_of(page_graphs.irregular(1000))
    assert all(len(block.items) <= blocks.MOST_ITEMS for block in made)
    assert [block.kind for block in made[0].items if isinstance(block, blocks.Block)].count("part") >= 8


def test_parameters_live_where_they_are_used_and_inputs_outermost():
    content = Content(page_graphs.model())
    where = {}
    for block in content.blocks:
        for number in block.leaves:
            where[content.graph.nodes[number].label] = content._path_of(block)
    assert where["tokens"] == ""
    assert where["net.embedding.weight"] == "net"  # used by the embedding and by the head
    assert where["net.blocks.0.up.weight"] == "net.blocks.0.up"


def test_outermost_modules_are_open_at_first_and_what_is_in_them_is_not():
    content = Content(page_graphs.model())
    opened = opened_at_first(content.graph, content.blocks)
    assert [" ".join(content.heading(content.blocks[k])) for k in sorted(opened)] == [" ", "net Net"]


def test_what_failed_is_open_at_first():
    content = Content(page_graphs.failing())
    opened = opened_at_first(content.graph, content.blocks)
    assert titles_of(content, opened) == ["net Sequential", "2 Linear"]


def titles_of(content, opened):
    return [" ".join(content.heading(content.blocks[k])) for k in sorted(opened) if k]


# --- what stands on boxes ---------------------------------------------------------------------------------------------


def labels(content):
    return {node.label: content.label(node.id) for node in content.graph.nodes}


def test_boxes_of_small_graphs_show_formula_type_and_value():
    found = labels(Content(page_graphs.textbook()))
    assert (found["y"].name, found["y"].what) == ("y", "= a × b")
    assert (found["b"].name, found["b"].what) == ("b", "= w + 1")
    assert found["y"].rows == [("type", "scalar float32"), ("value", "= 6"), ("grad", "|grad| 1")]
    assert found["w"].rows == [("type", "scalar float32"), ("value", "= 1"), ("grad", "|grad| 5")]


def test_a_square_is_written_as_one():
    assert labels(Content(page_graphs.shared()))["c"].what == "= a²"


def test_boxes_of_models_show_operator_shape_dtype_and_parameters():
    content = Content(page_graphs.model())
    assert (labels(content)["loss"].name, labels(content)["loss"].what) == ("loss", "NllLoss")
    fold = next(block for block in content.blocks if block.kind == "fold")
    assert (content.label(fold).name, content.label(fold).what) == ("4 ×", "Block")
    # 4 times: norm 8 + 8, up 8 * 16 + 16, down 16 * 8 + 8; LayerNorm, Linear, ReLU, Linear, sum
    assert content.label(fold).rows == [("type", "[2, 3, 8] float32"), ("facts", "1,184 parameters, 20 operations")]
    assert labels(content)["tokens"].rows == [("type", "[2, 3] int64")]


def test_the_failing_operation_shows_both_shapes_in_red():
    content = Content(page_graphs.failing())
    label = content.label(content.graph.failure.node)
    assert label.rows == [
        ("bad", "failed: RuntimeError"), ("bad", "input [2, 3] float32"), ("bad", "weight [2, 5] float32"),
        ("bad", "bias [2] float32"),
    ]  # fmt: skip
    assert content.kind(content.graph.failure.node) == "failed"
    assert [content.kind(block) for block in content.blocks if block.call is not None] == [
        "failed", "module", "module", "failed",
    ]  # fmt: skip


def test_gradients_that_are_no_numbers_are_red_also_on_closed_blocks():
    assert ("bad", "1 NaN in the gradient") in labels(Content(page_graphs.bad()))["x"].rows
    model = page_graphs.model()
    number = next(node.id for node in model.operations if model.module_of(node) == "net.blocks.2.up")
    model.nodes[number].outputs[0].gradient.inf = 3
    content = Content(model)
    red = [" ".join(content.heading(b)) for b in content.blocks if ("bad", "NaN or Inf in a gradient") in content.label(b).rows]
    assert red == [" ", "net Net", "4 × Block", "blocks.2 Block", "up Linear"]


def test_edges_show_their_local_derivative_or_why_they_are_cut():
    content = Content(page_graphs.cut())
    rows = {(edge.kind, edge.source, edge.target): content.edge_rows([k]) for k, edge in enumerate(content.edges)}
    found = [text for each in rows.values() for _, text in each]
    assert sorted(text for text in found if text.startswith("∂")) == ["∂a/∂t = 2", "∂b/∂t = 6", "∂z/∂a = 1", "∂z/∂b = 1"]
    assert "cut: detach" in found
    assert any(re.fullmatch(r"page_graphs\.py:\d+", text) for text in found)


# --- texts and assets -------------------------------------------------------------------------------------------------

SPEAKING = re.compile(r"\bsay\(\s*(?:\w+ === \w+ \? )?[\"'`]([^\"'`]+)[\"'`]")
COMPOSED = ("kind.", "legend.")  # keys that are put together in the page, from what the data say


def spoken_keys():
    """The keys of texts that programs and page ask for."""
    found = set()
    for path in Path(str(PAGE)).iterdir():
        text = path.read_text(encoding="utf-8") if path.suffix in (".py", ".js", ".html") else ""
        if path.name != "texts.py":
            found |= set(re.findall(r"[\"'`]([a-zA-Z][\w .]*)[\"'`]", text)) | set(re.findall(r"\{\{text:([^}]+)\}\}", text))
    return found


def test_every_text_is_used_and_every_text_asked_for_is_there():
    known = {key.partition("|")[0] for key in texts.TEXTS}
    used = spoken_keys()
    assert {key for key in known if key not in used and not key.startswith(COMPOSED)} == set()
    for path in Path(str(PAGE)).iterdir():
        if path.suffix in (".py", ".js", ".html"):
            text = path.read_text(encoding="utf-8")
            asked = set(SPEAKING.findall(text))
            asked |= set(re.findall(r"\{\{text:([^}]+)\}\}", text)) if path.suffix == ".html" else set()
            assert {key for key in asked if "$" not in key and key not in known} == set(), path.name


def test_texts_are_filled_in_and_counted():
    assert texts.say("operations", n=1) == "1 operation"
    assert texts.say("operations", n=1200) == "1,200 operations"
    assert texts.say("graph of", title="y") == "Graph of y"


@pytest.fixture
def chinese():
    language.set_language("zh")
    yield
    language.set_language(None)


def test_a_page_is_in_english_and_says_so():
    assert '<html lang="en"' in document(page_graphs.textbook())


def test_a_chinese_page_is_in_chinese_and_says_so(chinese):
    page = document(page_graphs.cut())
    reader = read(page)
    data = json.loads(reader.texts["script", "data"])
    assert '<html lang="zh-CN"' in page
    assert "<title>z 的计算图</title>" in page
    assert data["texts"]["legend.cut"] == "断开：梯度到此为止"
    assert data["boxes"][0][1] == ["t", "", [["type", "标量 float32"], ["value", "= 3"], ["grad", "梯度 -0.0000"]]]
    assert ["bad", "断开：detach"] in [row for rows in data["labels"].values() for row in rows]


def test_a_chinese_page_has_no_english_words_of_its_own(chinese):
    """What is left without a Chinese character are signs, numbers, and names from the program."""
    said = {key: re.sub(r"\{\w+\}(\.grad)?", "", text) for key, text in texts.page_texts().items()}
    assert [key for key, text in said.items() if re.search("[A-Za-z]{3}", text) and not re.search("[\u4e00-\u9fff]", text)] == []


def test_a_chinese_picture_is_in_chinese(chinese):
    picture = page_graphs.textbook().svg()
    assert "<title>y 的计算图</title>" in picture
    assert "标量 float32" in picture
    assert "scalar" not in picture


def test_every_script_is_in_the_page_and_dark_has_every_colour_of_light():
    names = {path.name.removesuffix(".js") for path in Path(str(PAGE)).iterdir() if path.suffix == ".js"}
    assert names == set(SCRIPTS)
    assert set(DARK) == set(LIGHT)
    used = set(re.findall(r"var\(--([\w-]+)\)", (PAGE / "page.css").read_text()))
    assert used <= set(LIGHT)


# --- where it goes ----------------------------------------------------------------------------------------------------


def test_html_writes_a_file_and_gives_its_text(tmp_path):
    g = page_graphs.textbook()
    text = g.html(tmp_path / "graph.html")
    assert (tmp_path / "graph.html").read_text(encoding="utf-8") == text == g.html()


def test_notebooks_get_the_page_in_a_frame():
    g = page_graphs.textbook()
    frame = g._repr_html_()
    (source,) = re.findall(r'srcdoc="([^"]*)"', frame)
    assert html.unescape(source) == document(g, embedded=True)
    assert 'sandbox="allow-scripts"' in frame
    assert 'title="Graph of y"' in frame
    assert "<" not in source


def test_show_opens_a_file_in_the_browser(monkeypatch):
    opened = []
    monkeypatch.setattr(webbrowser, "open", opened.append)
    monkeypatch.delitem(sys.modules, "IPython", raising=False)
    g = page_graphs.textbook()
    path = Path(g.show())
    try:
        assert opened == [path.as_uri()]
        assert path.read_text(encoding="utf-8") == g.html()
    finally:
        path.unlink()


def test_show_in_a_notebook_displays_the_graph(monkeypatch):
    shown = []
    python, display = types.ModuleType("IPython"), types.ModuleType("IPython.display")
    python.get_ipython = lambda: types.SimpleNamespace(kernel=object())
    display.display = shown.append
    monkeypatch.setitem(sys.modules, "IPython", python)
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    g = page_graphs.textbook()
    assert g.show() is None
    assert shown == [g]


def test_the_command_line_writes_a_page(tmp_path, capsys):
    program = tmp_path / "train.py"
    program.write_text("import pellucid\nw = pellucid.ones(3, requires_grad=True)\nloss = (w * 2).sum()\nloss.backward()\n")
    assert main(["graph", str(program), "-o", str(tmp_path / "graph.html")]) == 0
    data = data_of((tmp_path / "graph.html").read_text(encoding="utf-8"))
    assert [node["name"] for node in data["graph"]["nodes"] if node["kind"] == "operation"] == ["MulBackward0", "SumBackward0"]
    assert "written to" in capsys.readouterr().out
