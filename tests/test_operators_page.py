"""The page docs/operators.md is what the declarations say."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent


def test_the_page_is_up_to_date():
    checked = subprocess.run([sys.executable, ROOT / "docs" / "make_operators.py", "--check"], cwd=ROOT)
    assert checked.returncode == 0, "write it again: python docs/make_operators.py"
