"""What the repository promises: files that stay small and say what they hold, READMEs whose examples run."""

import ast
import contextlib
import io
import re
import tomllib
from pathlib import Path

import pytest

import pellucid

ROOT = Path(__file__).parents[1]
READMES = ["README.md", "README.zh-CN.md"]
SOURCES = sorted(str(path.relative_to(ROOT)) for folder in ("src", "tests") for path in (ROOT / folder).rglob("*.py"))
MOST_LINES = 600


def read(name):
    return (ROOT / name).read_text(encoding="utf-8")


def examples(readme):
    """Pairs of an example and the output printed under it."""
    return re.findall(r"```python\n(.*?)```\n\n```text\n(.*?)```", read(readme), re.DOTALL)


@pytest.mark.parametrize("name", SOURCES)
def test_a_source_file_is_small_and_says_what_it_holds(name):
    text = read(name)
    assert text.count("\n") <= MOST_LINES, f"{name} has grown past {MOST_LINES} lines: make two of it"
    assert ast.get_docstring(ast.parse(text)), f"{name} must start with a docstring that says what lives here"


@pytest.mark.parametrize("number", [0, 1])
@pytest.mark.parametrize("readme", READMES)
def test_readme_examples_print_what_the_readme_says(readme, number, tmp_path, monkeypatch):
    code, expected = examples(readme)[number]
    monkeypatch.chdir(tmp_path)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, readme, "exec"), {})
    assert printed.getvalue() == expected
    for picture in tmp_path.glob("*.svg"):
        assert picture.read_text() == read(f"docs/pictures/{picture.name}"), "the picture in docs/ is out of date"


def test_both_readmes_show_the_same_examples():
    assert examples("README.md") == examples("README.zh-CN.md")
    assert len(re.findall("```python", read("README.md"))) == len(examples("README.md")) == 2


@pytest.mark.parametrize("readme", READMES)
def test_readmes_point_to_files_that_exist(readme):
    targets = re.findall(r"\]\(([^)#]+)\)", read(readme)) + re.findall(r"`((?:src/|\.ci/|docs/)[^`]+)`", read(readme))
    missing = [target for target in targets if not target.startswith("http") and not (ROOT / target).exists()]
    assert not missing


@pytest.mark.parametrize("readme", READMES)
def test_readmes_name_make_targets_that_exist(readme):
    named = set(re.findall(r"^make (\w+)|`make (\w+)`", read(readme), re.MULTILINE))
    named = {target for pair in named for target in pair if target}
    rules = set(re.findall(r"^(\w+):", read("Makefile"), re.MULTILINE))
    assert {"demo", "test"} <= named <= rules


def test_the_digits_carry_their_attribution():
    for name in ("NOTICE", "src/pellucid/cli/assets/README.md"):
        for phrase in ("E. Alpaydin and C. Kaynak", "UCI Machine Learning Repository", "10.24432/C50P49"):
            assert phrase in " ".join(read(name).split())


def test_the_version_is_the_same_everywhere():
    assert tomllib.loads(read("pyproject.toml"))["project"]["version"] == pellucid.__version__
