"""The pages under docs/: each example prints what the page says, and links lead somewhere."""

from __future__ import annotations

import contextlib
import io
import re
import warnings
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = sorted((ROOT / "docs").glob("*.md"))
PAIR = re.compile(r"```python\n(.*?)```\n\n```text\n(.*?)```", re.DOTALL)


def examples() -> list:
    return [
        pytest.param(code, expected, id=f"{page.stem}-{number}")
        for page in PAGES
        for number, (code, expected) in enumerate(PAIR.findall(page.read_text(encoding="utf-8")))
    ]


@pytest.mark.parametrize(("code", "expected"), examples())
def test_an_example_prints_what_the_page_says(code, expected, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), warnings.catch_warnings():
        warnings.simplefilter("error")
        exec(compile(code, "example", "exec"), {"__name__": "example"})
    assert printed.getvalue() == expected


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    targets = [t for t in re.findall(r"\]\(([^)#]+)\)", text) if not t.startswith("http")]
    named = re.findall(r"`((?:src/|tests/|docs/|benchmarks/)[\w./]+)`", text)
    missing = [t for t in targets if not (page.parent / t).exists()] + [t for t in named if not (ROOT / t).exists()]
    assert not missing
