"""A graph as JSON, Graphviz text and NetworkX graph; pictures are in `test_page.py`."""

import builtins
import json

import pytest

import pellucid
from pellucid import graph, nn


def leaf(*shape):
    return pellucid.ones(*shape, requires_grad=True)


def textbook(values=False):
    x, w = leaf(1), leaf(1)
    y = (x + w) * (w + 1)
    return graph.of(y, values=values)


def model_graph():
    model = nn.Sequential(*[nn.Sequential(nn.Linear(4, 4), nn.Tanh()) for _ in range(3)])
    return graph.of(model, pellucid.ones(2, 4))


def test_the_json_holds_everything_and_says_what_it_is():
    data = json.loads(textbook(values=True).json())
    assert (data["format"], data["version"], data["title"]) == ("pellucid graph", 1, "y")
    assert set(data) == {
        "format", "version", "title", "nodes", "edges", "roots", "calls", "storages", "failure", "freed", "dropped",
        "saved_bytes", "outline",
    }  # fmt: skip
    assert set(data["nodes"][4]) == {
        "id", "kind", "name", "operator", "outputs", "saved", "attributes", "site", "call", "sequence", "phase", "inside",
        "flops", "inplace", "label", "module",
    }  # fmt: skip
    assert data["nodes"][4]["outputs"] == [
        {"shape": [1], "dtype": "float32", "name": "y", "requires_grad": True, "value": [4.0], "gradient": None}
    ]
    assert set(data["edges"][0]) == {
        "source", "output", "target", "input", "name", "kind", "reason", "site", "derivative",
    }  # fmt: skip
    assert data["edges"][3]["derivative"] == {"kind": "scalar", "values": 2.0}
    assert data["nodes"][4]["site"]["source"] == "y = (x + w) * (w + 1)"


def test_numbers_that_json_has_no_form_for_are_texts():
    x = pellucid.tensor([0.0, float("inf"), float("nan")], requires_grad=True)
    data = json.loads(graph.of(x * 1, values=True).json())
    assert data["nodes"][0]["outputs"][0]["value"] == [0.0, "inf", "nan"]


def test_complex_values_are_texts():
    x = pellucid.tensor([1 + 2j], requires_grad=True)
    data = json.loads(graph.of(x * 1, values=True).json())
    assert data["nodes"][0]["outputs"][0]["value"] == ["(1+2j)"]


def test_the_outline_is_the_tree_of_modules_with_equal_calls_folded():
    outline = model_graph().to_dict()["outline"]
    (top,) = outline["items"]
    assert (outline["call"], outline["nodes"]) == (None, 6)
    assert (top["path"], top["type"], top["times"], top["nodes"]) == ("model", "Sequential", 1, 6)
    (block,) = top["items"]
    assert (block["path"], block["times"], block["nodes"], len(block["calls"])) == ("model.0", 3, 2, 3)
    assert [(item["type"], item["nodes"]) for item in block["items"]] == [("Linear", 1), ("Tanh", 1)]


def test_dot_has_a_box_for_each_node_and_an_arrow_for_each_edge():
    text = textbook().dot()
    assert text.startswith("digraph {")
    assert text.count("[label=") == 5
    assert text.count(" -> ") == 5
    assert 'label="y\\nMulBackward0\\n[1]"' in text


def test_dot_collapses_modules_and_draws_opened_ones_as_clusters():
    g = model_graph()
    assert g.dot().count("box3d") == 3
    assert g.dot().count("subgraph cluster") == 1
    assert g.dot(expand="all").count("subgraph cluster") == 10
    assert g.dot(expand="all").count("{") == g.dot(expand="all").count("}")


def test_cuts_are_dashed_in_dot_and_svg():
    x = leaf(2)
    with graph.record() as g:
        y = x * (x * 2).detach()
    assert y.requires_grad
    assert 'style=dashed, color="#c62828", label="detach ' in g.dot()
    assert g.svg().count("stroke-dasharray") == 1


def test_quotes_and_line_breaks_in_dot_labels_are_escaped():
    table = {'a"b': leaf(1)}
    assert 'table[\'a\\"b\']' in graph.of(table['a"b'] * 2).dot()


def test_networkx_gets_the_data_on_nodes_and_edges():
    networkx = pytest.importorskip("networkx")
    made = textbook().to_networkx()
    assert isinstance(made, networkx.MultiDiGraph)
    assert (made.number_of_nodes(), made.number_of_edges()) == (5, 5)
    assert made.nodes[4]["label"] == "y"
    assert made.edges[2, 4, 0]["name"] == "input"
    assert networkx.is_directed_acyclic_graph(made)


def test_without_networkx_the_error_says_what_to_install(monkeypatch):
    real = builtins.__import__

    def refusing(name, *arguments, **options):
        if name == "networkx":
            raise ImportError(name)
        return real(name, *arguments, **options)

    monkeypatch.setattr(builtins, "__import__", refusing)
    with pytest.raises(ImportError, match="to_networkx needs the package networkx: pip install networkx"):
        textbook().to_networkx()
