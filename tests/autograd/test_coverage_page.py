"""The page `docs/autograd-coverage.md`: the tests that it names exist, and the counts at its top are right."""

import ast
import re
from pathlib import Path

import pytest

HERE = Path(__file__).parent
PAGE = (HERE.parents[1] / "docs" / "autograd-coverage.md").read_text(encoding="utf-8")
COUNTED, OTHERS = PAGE.split("\n# Other files")
NAMED = re.compile(r"`(test_\w+\.py)::(test_\w+)`")
LEFT_OUT = "left out: "


def rows(text):
    """The cells of every row of the tables, without the rows that head them."""
    lines = [line for line in text.splitlines() if line.startswith("| `")]
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]


def functions(file):
    """The names of the test functions of a file."""
    path = HERE / file
    tree = ast.parse(path.read_text(encoding="utf-8")) if path.exists() else ast.Module([], [])
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


def test_every_test_that_the_page_names_exists():
    named = set(NAMED.findall(PAGE))
    files = {file: functions(file) for file in {file for file, _ in named}}
    missing = sorted(f"{file}::{name}" for file, name in named if name not in files[file])
    assert files
    assert missing == []


@pytest.mark.parametrize("text", [COUNTED, OTHERS], ids=["counted", "others"])
def test_every_row_names_tests_or_says_why_not(text):
    for behaviour, asked, answer in rows(text):
        assert re.fullmatch(r"`[^`]+`", behaviour)
        assert asked
        if not answer.startswith(LEFT_OUT) and answer != "-":
            assert NAMED.sub("", answer).strip(", ") == "", f"{behaviour}: {answer}"
            assert NAMED.search(answer)


def test_no_behaviour_is_listed_twice():
    names = [row[0] for row in rows(COUNTED)]
    assert len(names) == len(set(names))


def test_the_counts_are_right():
    answers = [row[2] for row in rows(COUNTED)]
    covered = sum(bool(NAMED.search(answer)) for answer in answers)
    left_out = sum(answer.startswith(LEFT_OUT) for answer in answers)
    assert f"**{covered} of {len(answers)}** behaviours" in PAGE
    assert f"; {left_out} are left out" in PAGE


@pytest.mark.parametrize("written", ["`test_x.py::test_y`", "left out: there is none", "-"])
def test_what_counts_as_an_answer(written):
    ((behaviour, asked, answer),) = rows(f"# Title\n| behaviour | what it asks | our test |\n| `a` | b \\| c | {written} |")
    assert (behaviour, asked, answer) == ("`a`", "b \\| c", written)
