"""`pellucid graph` and `pellucid summary`: programs of others are run, looked at, and left to their own."""

import json
import sys

import pytest

from pellucid.cli.main import main
from pellucid.core.modes import RECORD, modes

TRAINING = """
import sys

import pellucid as torch
from pellucid import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
x, y = torch.randn(8, 4), torch.zeros(8, 1)
steps = int(sys.argv[1])
for step in range(steps):
    loss = nn.functional.mse_loss(net(x), y)
    loss.backward()
    with torch.no_grad():
        for p in net.parameters():
            p -= 0.1 * p.grad
            p.grad = None
penalty = sum((p * p).sum() for p in net.parameters())
penalty.backward()
print("trained", sys.argv[1:], __name__)
"""

BROKEN = """
import pellucid as torch
from pellucid import nn

net = nn.Sequential(nn.Linear(4, 3), nn.Linear(5, 2))
net(torch.ones(2, 4))
"""

MODELS = """
from pellucid import nn


class Net(nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.layer = nn.Linear(4, width)

    def forward(self, x):
        return self.layer(x)


def make():
    return Net(16)


ready = Net(2)
number = 3
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "training.py").write_text(TRAINING)
    (tmp_path / "broken.py").write_text(BROKEN)
    (tmp_path / "quiet.py").write_text("print('no tensors here')\n")
    (tmp_path / "leaving.py").write_text(TRAINING + "sys.exit(3)\n")
    (tmp_path / "some_models.py").write_text(MODELS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "some_models", raising=False)
    return tmp_path


def outcome(capsys, *arguments):
    """Exit status, standard output, standard error."""
    try:
        status = main([str(argument) for argument in arguments])
    except SystemExit as exit_:
        status = exit_.code
    return status, *capsys.readouterr()


# --- graph ------------------------------------------------------------------------------------------------------------


def test_a_program_runs_and_the_graph_of_its_last_backward_is_shown(capsys, folder):
    status, output, errors = outcome(capsys, "graph", "training.py", 3)
    assert (status, errors) == (0, "")
    assert output.startswith("trained ['3'] __main__\ngraph of penalty, backward 4 at training.py:")
    assert "penalty = AddBackward0 []" in output
    assert "net.0.weight [8, 4]" in output


def test_the_nth_backward_and_the_program_ends_there(capsys, folder):
    status, output, _ = outcome(capsys, "graph", "training.py", 3, "--nth", 2)
    assert status == 0
    assert "trained" not in output
    assert output.startswith("graph of loss, backward 2 at training.py:13: ")
    assert "← net: Sequential [8, 1] (3 operations, 49 parameters) of x [8, 4]  [|grad| " in output


def test_the_last_backward_of_a_line(capsys, folder):
    status, output, _ = outcome(capsys, "graph", "--line", 13, "training.py", 3)
    assert status == 0
    assert "graph of loss, backward 3 at training.py:13: " in output


def test_options_may_stand_on_both_sides_and_after_dashes_all_is_the_programs(capsys, folder):
    status, output, _ = outcome(capsys, "graph", "--nth", 1, "training.py", "2", "--expand", "all")
    assert status == 0
    assert "AddmmBackward0" in output
    status, output, _ = outcome(capsys, "graph", "training.py", "--line", 13, "--", 2, "--nth", 1)
    assert "trained ['2', '--nth', '1']" in output


@pytest.mark.parametrize(
    ("name", "begins"),
    [("g.txt", "graph of penalty"), ("g.dot", "digraph {"), ("g.json", "{\n"), ("g.svg", "<svg ")],
)
def test_files_in_the_form_their_ending_says(capsys, folder, name, begins):
    status, output, _ = outcome(capsys, "graph", "training.py", 1, "-o", name)
    assert status == 0
    assert (folder / name).read_text().startswith(begins)
    assert output.endswith(f"written to {name}\n")
    assert "<graph of penalty" in output


@pytest.mark.parametrize(("option", "begins"), [("--dot", "digraph {"), ("--svg", "<svg "), ("--text", "graph of ")])
def test_forms_on_standard_output(capsys, folder, option, begins):
    _, output, _ = outcome(capsys, "graph", "training.py", 1, option)
    assert output.partition("__main__\n")[2].startswith(begins)


def test_the_json_has_values_when_asked_for(capsys, folder):
    outcome(capsys, "graph", "training.py", 1, "--values", "-o", "g.json")
    data = json.loads((folder / "g.json").read_text())
    assert data["nodes"][data["roots"][0][0]]["outputs"][0]["value"] > 0


def test_a_program_that_fails_shows_its_traceback_and_the_part_that_ran(capsys, folder):
    status, output, errors = outcome(capsys, "graph", "broken.py")
    assert status == 1
    assert errors.startswith("Traceback (most recent call last):\n")
    assert "broken.py" in errors
    assert "runpy" not in errors
    assert "linear(input [2, 3], weight [2, 5], bias [2]) failed at broken.py:6 in net.1: RuntimeError: " in output
    assert "net.0: Linear" in output


def test_a_program_that_leaves_with_a_status_has_its_graph_shown(capsys, folder):
    status, output, errors = outcome(capsys, "graph", "leaving.py", 1)
    assert status == 0
    assert errors == "leaving.py ended with exit status 3\n"
    assert "graph of penalty" in output


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["none.py"], "pellucid graph: none.py: there is no such file"),
        (["quiet.py"], "pellucid graph: quiet.py never called backward(): there is no graph to show"),
        (["training.py", "1", "-o", "g.png"], "pellucid graph: g.png: unknown ending; known are .txt, .dot"),
        (["training.py", "1", "--nth", "9"], "pellucid graph: --nth 9: no such backward(); there were 2, started at lines 13, 19"),
        (["training.py", "1", "--line", "9"], "pellucid graph: --line 9: no such backward(); there were 2, started at lines"),
        (["training.py", "1", "--nth", "0"], "argument --nth: expected a whole number from 1 up, got 0"),
        (["training.py", "1", "--expand", "x"], "argument --expand: expected a number of levels or 'all', got 'x'"),
        (["training.py", "1", "-o", "no/such/g.txt"], "cannot write no/such/g.txt: "),
    ],
)
def test_a_mistake_gets_one_line_and_status_2(capsys, folder, arguments, complaint):
    status, _, errors = outcome(capsys, "graph", *arguments)
    assert status == 2
    assert complaint in errors
    assert errors.count("\n") == 1


def test_the_process_is_left_as_it_was(capsys, folder):
    before = list(sys.argv), list(sys.path)
    outcome(capsys, "graph", "training.py", 1)
    outcome(capsys, "graph", "broken.py")
    assert (sys.argv, sys.path) == before
    assert (modes.observers, modes.around, modes.road) == ((), (), RECORD)


# --- summary ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "parameters"),
    [("some_models:Net", 40), ("some_models.py:Net(3)", 15), ("some_models:make", 80), ("some_models:ready", 10)],
)
def test_a_model_by_class_call_function_or_instance(capsys, folder, model, parameters):
    status, output, _ = outcome(capsys, "summary", model, "--input", "2,4")
    assert status == 0
    assert f"parameters: {parameters}, of which {parameters} are trainable" in output
    assert "Linear" in output
    assert "MACs" in output


def test_depth_and_no_inputs(capsys, folder):
    _, output, _ = outcome(capsys, "summary", "some_models:Net", "--depth", 0)
    assert "Linear" not in output
    assert "MACs" not in output


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["some_models"], "some_models: expected MODULE:MODEL, such as net:Net or net.py:Net(10)"),
        (["nowhere:Net"], "cannot import nowhere: ModuleNotFoundError: No module named 'nowhere'"),
        (["none.py:Net"], "cannot import none.py: FileNotFoundError: "),
        (["some_models:Nope"], "some_models:Nope cannot be made: NameError: name 'Nope' is not defined"),
        (["some_models:number"], "some_models:number cannot be made: TypeError: 'int' object is not callable"),
        (["some_models:dict"], "some_models:dict is no module but a dict"),
        (["some_models:Net", "--input", "2,x"], "argument --input: expected sizes such as 1,3,32,32, got '2,x'"),
        (["some_models:Net", "--dtype", "nan"], "argument --dtype: expected an element type such as float32 or int64, got 'nan'"),
        (["some_models:Net", "--input", "2,5"], "some_models:Net failed: mat1 and mat2 shapes cannot be multiplied (2x5 and 4x8)"),
    ],
)
def test_a_mistake_in_a_summary_gets_one_line_and_status_2(capsys, folder, arguments, complaint):
    status, output, errors = outcome(capsys, "summary", *arguments)
    assert (status, output) == (2, "")
    assert complaint in errors
    assert errors.count("\n") == 1
