"""The result in docs/performance.md, with its picture, is what docs/performance.json says; and how it is written."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

from pellucid.cli.bench.results import Line, Side

ROOT = Path(__file__).parent.parent
SCRIPT = ROOT / "docs" / "make_performance.py"
CONTENT = {
    "machine": {
        "processor": "A processor", "cores": 2, "system": "Linux", "python": "3.11.7", "packages": {"numpy": "2.4"}, "date": "2026-01-02",
    },
    "settings": {"threads": 2, "rounds": 3, "turns": 5, "clock": "elapsed"},
}  # fmt: skip


def test_the_page_is_up_to_date():
    checked = subprocess.run([sys.executable, SCRIPT, "--check"], cwd=ROOT)
    assert checked.returncode == 0, "write it again: python docs/make_performance.py"


def test_the_result_has_the_machine_the_table_and_what_is_apart():
    spec = importlib.util.spec_from_file_location("make_performance", SCRIPT)
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    sides = {"ours": Side("pellucid", 0.001), "best": Side("torch fused", 0.002)}
    parts = {
        "seconds": 1e-3, "parts": {"products": 4e-4, "optimizer": 1e-4, "softmax": 1e-4}, "flops": 4e7, "bytes": 1e6,
        "limits": [2e11, 2e10], "alone": {"pellucid": 3e-4, "torch": 5e-4},
    }  # fmt: skip
    near = Line("b3", "a network", 0.8, **sides, ratio=0.5, difference=1e-6, tolerance=1e-3, compared=50, breakdown=parts)
    far = Line("b4", "another", 0.8, **sides, ratio=0.5, difference=1e-2, tolerance=1e-3, compared=50, disturbed=True)
    text = script.section(CONTENT, [near, far])
    assert "A processor, 2 cores, Linux, Python 3.11.7; numpy 2.4; 2026-01-02; threads: 2; rounds: 3, of turns: 5." in text
    assert "| `b3` | 1.00 ms | 2.00 ms | fused | 0.50 |" in text
    assert "Losses over 50 steps agree in all rows that have them, but for `b4`." in text
    assert (
        "| `b3` | 1.00 ms | 400 us 40% | 100 of 200 | 300 us / 500 us | 100 us 10% | 10 of 20 | softmax 10% | 400 us 40% |" in text
    )
    assert "| `b4` | 1.00 ms | 400" not in text
    assert "Others used the machine" in text
    assert "- `b4`: another" in text
    quiet = script.section({**CONTENT, "settings": {**CONTENT["settings"], "clock": "processor"}}, [near])
    assert "Losses over 50 steps agree in all rows that have them.\n" in quiet
    assert "Times are the processor's" in quiet
    assert "Others used the machine in" not in quiet
