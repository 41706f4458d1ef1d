"""`pellucid bench`: the arithmetic of its figures, what it prints and writes, and its processes. Its rows are in test_bench_rows.py."""

from __future__ import annotations

import dataclasses
import json
import math
import os
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from pellucid.cli.bench import figures, package, profiles, report
from pellucid.cli.bench.figures import Spread, Turn
from pellucid.cli.bench.picture import ratios_picture
from pellucid.cli.bench.processes import SOURCES, THREADS, CellDied, CellProcess, environment
from pellucid.cli.bench.results import Line, Side, line_of, memory_line
from pellucid.cli.bench.rounds import PROCESSOR, Measured, Settings, measure
from pellucid.cli.bench.row import FUSED, OURS, PLAIN
from pellucid.cli.bench.rows import ROWS
from pellucid.cli.main import main

QUICK = Settings(threads=1, rounds=1, turns=2, seconds=0.001, warm=0.001, steps=3, patience=0.0, quick=True)
TURNS = [Turn({"ours": 1.0, "a": 2.0, "b": 2.2}), Turn({"ours": 3.0, "a": 4.0, "b": 9.0}), Turn({"ours": 2.0, "a": 2.5})]


def outcome(capsys, *arguments):
    """Exit status, standard output, standard error."""
    try:
        status = main(["bench", *map(str, arguments)])
    except SystemExit as exit_:
        status = exit_.code
    return status, *capsys.readouterr()


# --- figures ----------------------------------------------------------------------------------------------------------


def test_a_spread_is_the_median_and_the_quartiles():
    assert figures.spread([4.0, 1.0, 2.0, 3.0, 5.0]) == Spread(3.0, 2.0, 4.0)
    assert figures.spread([7.0]) == Spread(7.0, 7.0, 7.0)
    with pytest.raises(ValueError, match="expected one value at least, got none"):
        figures.spread([])


def test_medians_take_each_cell_where_it_was_measured():
    assert figures.medians(TURNS) == {"ours": 2.0, "a": 2.5, "b": 5.6}


def test_the_fastest_is_chosen_by_its_median():
    assert figures.fastest(TURNS, ["a", "b"]) == "a"
    assert figures.fastest(TURNS, ["c"]) is None


def test_ratios_are_of_the_same_turn():
    assert figures.ratios(TURNS, "ours", "b") == [1.0 / 2.2, 3.0 / 9.0]


def test_contenders_are_the_fastest_and_those_near_it():
    turns = [Turn({"a": 1.0, "b": 1.14, "c": 1.16})]
    assert figures.contenders(turns, ["a", "b", "c"]) == ["a", "b"]
    assert figures.contenders(turns, []) == []


def test_disturbed_turns_do_not_count_while_there_are_enough_others():
    quiet, disturbed = [Turn({"a": 1.0})] * 3, Turn({"a": 9.0}, others=0.5)
    assert figures.counted([*quiet, disturbed]) == quiet
    assert figures.counted([*quiet[:2], disturbed]) == [*quiet[:2], disturbed]


@pytest.mark.parametrize(
    ("values", "others", "expected"),
    [
        ([1.0, 2.0], [1.0, 2.0], 0.0),
        ([1.0, 2.0], [1.0, 2.5], 0.2),
        ([0.0], [0.0], 0.0),
        ([1.0, 1e-5], [1.0, 2e-5], 1e-3),
        ([1.0], [math.nan], math.inf),
        ([math.inf], [math.inf], math.inf),
    ],
)
def test_the_difference_is_the_largest_and_relative(values, others, expected):
    assert figures.difference(values, others) == pytest.approx(expected)


def test_losses_of_different_lengths_are_a_mistake():
    with pytest.raises(ValueError, match="zip"):
        figures.difference([1.0], [1.0, 2.0])


def test_steps_fill_a_time():
    assert [figures.steps_in(1.0, step) for step in (0.3, 1.0, 5.0, 0.0)] == [4, 1, 1, 1]


# --- lines ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def measured():
    """B2 with two cells of PyTorch, of which the second is the faster; ours takes half its time."""
    found = Measured(ROWS["b2-512-adam"])
    found.turns = [Turn({OURS: 1e-3, PLAIN.name: 4e-3, FUSED.name: 2e-3}) for _ in range(3)]
    found.values = {OURS: [1.0, 0.5], PLAIN.name: [1.0, 0.50001]}
    for name, size in ((OURS, 40), (PLAIN.name, 100), (FUSED.name, 80)):
        found.peak[name], found.first[name] = [size * 2**20], [0.01]
        found.growth[name], found.faults[name], found.cores[name] = [2**20], [0.0, 3.0], [2.0]
    return found


def test_the_ratio_is_to_the_fastest_cell_of_the_other_library(measured):
    line = line_of(measured)
    assert (line.best.name, line.ratio, line.target, line.reached) == (FUSED.name, 0.5, 0.70, True)
    assert [side.name for side in line.others] == [PLAIN.name]
    assert (line.difference, line.agrees) == (pytest.approx(2e-5, rel=1e-3), True)


def test_the_memory_line_takes_the_most_frugal_cell(measured):
    line = memory_line(measured)
    assert (line.name, line.best.name, line.ratio, line.reached) == ("b8-memory-b2-512-adam", FUSED.name, 0.5, True)


def test_a_target_that_is_missed_and_losses_that_are_apart(measured):
    measured.turns = [Turn({OURS: 3e-3, FUSED.name: 2e-3}, others=1.0)]
    measured.values[OURS] = [1.0, 0.6]
    line = line_of(measured)
    assert (line.reached, line.agrees, line.disturbed) == (False, False, True)
    assert report.entries(line)[0] == "b2-512-adam*"
    assert report.entries(line)[-1].endswith("APART")


def test_losses_may_be_as_far_apart_as_the_other_library_is_from_itself():
    row = ROWS["b4"]
    found = Measured(row, [Turn({OURS: 1.0, PLAIN.name: 1.0})])
    found.values = {OURS: [1.0, 0.502], PLAIN.name: [1.0, 0.5], row.cells[-1].name: [1.0, 0.503]}
    line = line_of(found)
    assert (line.difference > line.tolerance, line.agrees) == (True, True)
    found.values[row.cells[-1].name] = [1.0, 0.501]
    assert line_of(found).agrees is False


def test_without_the_other_library_there_is_no_ratio(measured):
    measured.turns = [Turn({OURS: 1e-3})]
    measured.values.pop(PLAIN.name)
    line = line_of(measured)
    assert (line.ours.value, line.best, line.ratio, line.reached, line.agrees) == (1e-3, None, None, None, None)
    assert report.entries(line)[2:5] == ["-", "-", "-"]


def test_a_line_survives_its_file(measured):
    line = line_of(measured)
    assert Line.from_json(json.loads(json.dumps(line.as_json()))).as_json() == json.loads(json.dumps(line.as_json()))


# --- words and pictures -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("time", "expected"),
    [(12.34, "12.3 s"), (1.0, "1.00 s"), (0.2, "200 ms"), (0.0123, "12.3 ms"), (5e-6, "5.00 us"), (2e-8, "0.02 us")],
)
def test_times_have_the_unit_that_suits_them(time, expected):
    assert report.seconds(time) == expected


def test_entries_of_a_line(measured):
    assert report.entries(line_of(measured)) == [
        "b2-512-adam", "1.00 ms", "2.00 ms", "fused", "0.50", "0.50-0.50", "0.70", "10.0 ms / 10.0 ms", "40 / 80", "2 / 2", "2e-05",
    ]  # fmt: skip


def test_parts_of_a_step_add_up(measured):
    parts = {"products": 2e-3, "attention": 1e-3, "softmax": 3e-4, "sums": 5e-5, "pooling": 4e-5, "rectifiers": 3e-5, "clipping": 1e-5}
    found = {"seconds": 4e-3, "parts": parts, "flops": 0.0, "bytes": 0.0, "limits": [1e11, 1e10], "alone": {}}
    name, step, products, rate, alone, optimizer, copied, others, rest = report.parts_of(line_of(measured), found)
    assert (name, step, products, rate, alone) == ("b2-512-adam", "4.00 ms", "2.00 ms 50%", "-", "-")
    assert (optimizer, copied, others, rest) == ("-", "-", "attention 25%, softmax 8%, others 3%", "570 us 14%")


def test_a_table_has_its_texts_left_and_its_numbers_right(capsys, monkeypatch):
    rows = [(["a", "1.00 s"], None), (["long name", "10 ms"], True)]
    report.print_table(["row", "ours"], rows)
    assert capsys.readouterr().out == "row          ours\na          1.00 s\nlong name   10 ms\n"
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    report.print_table(["row", "ours"], rows)
    assert capsys.readouterr().out.splitlines()[2] == "\x1b[32mlong name   10 ms\x1b[0m"


def test_values_with_an_amount_are_rates():
    line = Line("limit-copy", "", None, ours=Side(OURS, 0.5), amount=(10.0, "GB/s"))
    assert report.value(line, line.ours) == "20.0 GB/s"


def test_the_picture_is_well_formed_and_has_a_bar_for_each_ratio(measured):
    slow = Line("a<b", "slow & long", None, ratio=5.0)
    picture = ratios_picture([line_of(measured), slow, Line("without", "", 0.5)])
    texts = ["".join(element.itertext()) for element in ElementTree.fromstring(picture).iter("{http://www.w3.org/2000/svg}text")]
    assert {"b2-512-adam", "0.50", "a<b", "5.00"} <= set(texts)
    assert "without" not in texts


def test_the_table_of_a_profile_adds_up():
    operators = [{"name": f"op{n}", "shapes": [[2, 3]] if n == 0 else [], "seconds": 0.01, "calls": 2.0} for n in range(14)]
    lines = profiles.table({"seconds": 0.2, "operators": operators})
    assert lines[1].split() == ["op0", "2x3", "10.0", "ms", "5.0%", "2.0"]
    assert lines[-2].split()[-3:] == ["20.0", "ms", "10.0%"]
    assert lines[-1].split()[-3:] == ["60.0", "ms", "30.0%"]


# --- processes --------------------------------------------------------------------------------------------------------


def test_a_row_is_measured_in_a_process_of_its_own():
    row = ROWS["b1a"]
    measured = measure(row, row.cells[:1], QUICK, lambda text: None)
    assert measured.failures == {}
    assert measured.values[OURS] == [6.0, 6.0, 6.0]
    assert len(measured.turns) == QUICK.turns
    assert min(turn.seconds[OURS] for turn in measured.turns) > 0
    assert measured.peak[OURS][0] > measured.growth[OURS][0] >= 0


def test_processor_time_is_compared_on_request():
    row, clock = ROWS["b1a"], {"patience": 100.0, "clock": PROCESSOR}  # which needs no patience
    measured = measure(row, row.cells[:1], dataclasses.replace(QUICK, **clock), lambda text: None)
    assert 0 < measured.turns[0].seconds[OURS] < 1
    assert measured.turns[0].others == 0.0
    assert not dataclasses.replace(QUICK, **clock).by_processor(ROWS["loader"])


def test_a_cell_that_dies_is_told_of_with_its_last_words():
    row = ROWS["b1a"]
    process = CellProcess(row, FUSED, 1, True)  # which this row has not
    with process, pytest.raises(CellDied, match="KeyError: 'torch fused'"):
        process.ask("prepare")


def test_a_cold_process_has_a_folder_of_its_own_for_what_it_compiles():
    row = ROWS["b1a"]
    with CellProcess(row, row.cells[0], 1, True, cold=True) as process:
        folder = Path(process._compiled.name)
        assert folder.is_dir()
        assert process.ask("prepare")["value"] == 6.0
    assert not folder.exists()


def test_a_cell_that_fails_leaves_the_others_their_figures():
    row = ROWS["b1a"]
    measured = measure(row, [row.cells[0], FUSED], QUICK, lambda text: None)
    assert "KeyError" in measured.failures[FUSED.name]
    assert measured.turns[0].seconds.keys() == {OURS}


def test_a_process_names_its_operators():
    row = ROWS["b2-64-sgd"]
    with CellProcess(row, row.cells[0], 1, True) as process:
        process.ask("prepare")
        profile = process.ask("profile", 2, True)
    found = {operator["name"]: operator for operator in profile["operators"]}
    assert found["aten::relu"]["calls"] == 1
    assert profile["seconds"] > 0


def test_a_process_takes_its_steps_apart():
    """FLOPs of all products, those of the first layer's input left out; bytes of parameters, gradients and momentum."""
    row = ROWS["b2-512-sgd"]
    with CellProcess(row, row.cells[0], 1, False) as process:
        process.ask("prepare")
        found = process.ask("breakdown", 2)
        seconds = process.ask("alone", found["products"])
    layers = [(784, 256), (256, 128), (128, 10)]
    assert found["flops"] == 2 * 512 * (3 * sum(a * b for a, b in layers) - 784 * 256)
    assert found["bytes"] == 4 * 5 * sum((a + 1) * b for a, b in layers)
    assert sum(found["parts"].values()) < found["seconds"]
    assert next(iter(found["parts"])) == "products"
    assert 0 < seconds < 1
    assert all(limit > 0 for limit in found["limits"])


def test_without_kernels_there_is_nothing_to_take_apart():
    with CellProcess(ROWS["b1a"], ROWS["b1a"].cells[0], 1, False) as process:
        process.ask("prepare")
        assert process.ask("breakdown", 2) is None


def test_the_process_of_another_library_does_not_load_this_one(tmp_path, monkeypatch):
    stand_in = "import sys\nassert 'pellucid' not in sys.modules\ndef set_num_threads(number): assert number == 1\n"
    (tmp_path / "torch.py").write_text(stand_in)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with CellProcess(ROWS["b1a"], PLAIN, 1, True) as process:
        assert process.ask("peak") > 0


def test_the_environment_has_the_threads_and_keeps_byte_code(monkeypatch):
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    monkeypatch.setenv("PYTHONPATH", "elsewhere")
    ours, theirs = environment(OURS, 3), environment("torch", 3)
    assert {ours[name] for name in THREADS} == {"3"}
    assert "PYTHONDONTWRITEBYTECODE" not in ours
    assert ours["PYTHONPATH"] == os.pathsep.join([str(SOURCES), "elsewhere"])
    assert theirs["PYTHONPATH"] == "elsewhere"


def test_the_import_is_timed_in_turns():
    line = package.import_line([OURS], imports=2)
    assert line.ours.value > 0
    assert (line.best, line.ratio, line.turns) == (None, None, 2)


def test_the_size_counts_what_an_installation_brings():
    assert {"pellucid", "numpy", "scipy"} <= package.closure("pellucid")
    assert "pytest" not in package.closure("pellucid")
    assert package.size("pellucid") > package.size("numpy") > 2**20
    assert package.closure("no-such-distribution") == set()


# --- the command ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--rows", "b9"], "--rows b9: there is no such row, but limit-product, "),
        (["--rows", ","], "argument --rows: expected names of rows such as b2,b3, got ','"),
        (["--rounds", "0"], "argument --rounds: expected a whole number from 1 up, got 0"),
        (["--turns", "few"], "argument --turns: expected a whole number, got 'few'"),
        (["--threads", "0"], "argument --threads: expected a whole number from 1 up, got 0"),
        (["--steps", "0"], "argument --steps: expected a whole number from 1 up, got 0"),
        (["--seconds", "-1"], "argument --seconds: expected a finite number above 0, got -1"),
        (["--json", "{}/none/file"], "cannot write {0}/none/file: there is no folder {0}/none"),
        (["--svg", "{}"], "cannot write {}: it is a folder"),
    ],
)
def test_a_mistake_gets_one_line_and_status_2(capsys, tmp_path, arguments, complaint):
    status, output, errors = outcome(capsys, *(argument.format(tmp_path) for argument in arguments))
    assert status == 2
    assert output == ""
    assert complaint.format(tmp_path) in errors
    assert errors.count("\n") == 1


def test_the_rows_are_listed(capsys):
    status, output, _ = outcome(capsys, "--list", "--rows", "b2,B8")
    assert status == 0
    assert [line.split()[0] for line in output.splitlines()] == [
        *("b2-64-sgd", "b2-64-adam", "b2-512-sgd", "b2-512-adam"),
        *("b8-memory-b2-512-adam", "b8-memory-b4", "b8-memory-b5", "b8-import", "b8-size"),
    ]


def test_a_run_prints_a_table_and_writes_its_files(capsys, tmp_path):
    json_file, svg_file = tmp_path / "bench.json", tmp_path / "bench.svg"
    arguments = ["--rows", "b1a,b8-size", "--quick", "--alone", "--threads", "1", "--json", json_file, "--svg", svg_file]
    status, output, _ = outcome(capsys, *arguments)
    assert status == 0
    assert [line.split()[0].rstrip("*") for line in output.splitlines()[:3]] == ["row", "b1a", "b8-size"]
    content = json.loads(json_file.read_text())
    assert content["settings"]["threads"] == 1
    assert [line["name"] for line in content["lines"]] == ["b1a", "b8-size"]
    assert content["lines"][0]["ours"]["value"] > 0
    ElementTree.parse(svg_file)


def test_a_profile_is_printed(capsys):
    status, output, _ = outcome(capsys, "--rows", "b2-64-sgd", "--quick", "--alone", "--threads", "1", "--profile")
    assert status == 0
    assert "b2-64-sgd: MLP 784-256-128-10" in output
    assert "AddmmBackward0" in output
    assert "outside operators" in output
