"""The page docs/errors.md shows what the library says of twenty mistakes, beside what PyTorch was measured to say."""

from __future__ import annotations

import html
import importlib.util
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "errors.md").read_text(encoding="utf-8")
SECTIONS = re.findall(r"^## (\d+)\. (.*?)\n(.*?)(?=^## )", PAGE, re.DOTALL | re.MULTILINE)


def test_the_page_is_up_to_date():
    checked = subprocess.run([sys.executable, ROOT / "docs" / "make_errors.py", "--check"], cwd=ROOT)
    assert checked.returncode == 0, "write it again: python docs/make_errors.py"


def test_there_are_twenty_mistakes_in_order():
    assert [int(number) for number, _, _ in SECTIONS] == list(range(1, 21))


@pytest.mark.parametrize(("heading", "text"), [pytest.param(h, t, id=n) for n, h, t in SECTIONS])
def test_each_has_a_program_two_messages_and_a_way_out(heading, text):
    assert heading[0] != " "
    assert text.count("```python\n") == 1
    assert "import torch\n" in text
    assert len(re.findall(r"<td><pre>\n.+?\n</pre></td>", text, re.DOTALL)) == 2
    assert "**Instead:** " in text
    assert "/root" not in text


def programs():
    """The data that the page is made of."""
    spec = importlib.util.spec_from_file_location("errors_programs", ROOT / "docs" / "errors_programs.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module.MISTAKES


@pytest.mark.parametrize("mistake", programs(), ids=lambda mistake: mistake.heading)
def test_both_messages_have_one_type_and_the_phrase_that_programs_look_for(mistake):
    (text,) = (text for _, heading, text in SECTIONS if heading == mistake.heading)
    cells = re.findall(r"<td><pre>\n(.+?)\n</pre></td>", text, re.DOTALL)
    theirs, ours = (" ".join(html.unescape(cell).split()) for cell in cells)
    if mistake.phrase:
        assert mistake.phrase in theirs
        assert mistake.phrase in ours
        types = [re.findall(r"\b(\w+(?:Error|Warning)): ", each)[-1] for each in (theirs, ours)]
        assert types[0] == types[1]
    else:
        assert "Error: " not in theirs


def test_what_is_kept_of_pytorch_says_which_version():
    kept = json.loads((ROOT / "docs" / "errors_torch.json").read_text(encoding="utf-8"))
    assert f"PyTorch {kept['version']} and with Pellucid" in PAGE
    assert len(kept["programs"]) == 20
