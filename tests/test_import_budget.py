"""What `import pellucid` costs: time beside NumPy's, and the heavy packages it must leave alone."""

import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

import pellucid

ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(pellucid.__file__).parents[1])}
ROUNDS = 9


def run(code):
    """Run `code` in a fresh interpreter; what it printed, and how many seconds it took."""
    begin = time.perf_counter()
    result = subprocess.run([sys.executable, "-c", code], env=ENVIRONMENT, capture_output=True, text=True, check=True)
    return result.stdout, time.perf_counter() - begin


def test_import_leaves_heavy_packages_alone():
    heavy = "{'numba', 'scipy', 'rich', 'safetensors', 'threadpoolctl'}"
    output, _ = run(f"import sys, pellucid; print(sorted({heavy} & {{name.split('.')[0] for name in sys.modules}}))")
    assert output == "[]\n"


def test_import_adds_at_most_twice_what_numpy_adds():
    programs = {"nothing": "pass", "numpy": "import numpy", "pellucid": "import pellucid"}
    for code in programs.values():
        run(code)  # byte code and disk cache are warm afterwards
    times = {name: [] for name in programs}
    for _ in range(ROUNDS):  # interleaved, so that what else the machine does strikes all three alike
        for name, code in programs.items():
            times[name].append(run(code)[1])
    bare, numpy, ours = (statistics.median(times[name]) for name in programs)
    ratio = (ours - bare) / (numpy - bare)
    assert ratio <= 2, f"import pellucid adds {ratio:.2f} times what import numpy adds"
