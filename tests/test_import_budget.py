"""What `import pellucid` costs: time beside NumPy's, and the heavy packages it must leave alone."""

import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

import pellucid

ROUNDS = 9
PROGRAMS = {"nothing": "pass", "numpy": "import numpy", "pellucid": "import pellucid"}


@pytest.fixture
def run(tmp_path):
    """A function that runs code in a fresh interpreter: what it printed, and how many seconds of a processor it took.

    Byte code is kept, whatever the environment says, in a folder that no other process writes to.
    """
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment["PYTHONPATH"] = str(Path(pellucid.__file__).parents[1])
    environment["PYTHONPYCACHEPREFIX"] = str(tmp_path)

    def run_code(code):
        command = [sys.executable, "-c", code]
        begin = resource.getrusage(resource.RUSAGE_CHILDREN)
        result = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        end = resource.getrusage(resource.RUSAGE_CHILDREN)
        return result.stdout, end.ru_utime + end.ru_stime - begin.ru_utime - begin.ru_stime

    return run_code


def test_import_leaves_heavy_packages_alone(run):
    heavy = "{'numba', 'scipy', 'rich', 'safetensors', 'threadpoolctl'}"
    output, _ = run(f"import sys, pellucid; print(sorted({heavy} & {{name.split('.')[0] for name in sys.modules}}))")
    assert output == "[]\n"


def test_import_leaves_most_of_the_standard_library_alone(run):
    """What has a processor busy for long: `importlib.metadata` with its parser of mail alone takes half as long as NumPy."""
    heavy = "{'argparse', 'asyncio', 'email', 'hashlib', 'http', 'importlib.metadata', 'json', 'logging', 'subprocess', 'tempfile'}"
    output, _ = run(f"import sys, numpy; before = set(sys.modules); import pellucid; print(sorted({heavy} & (set(sys.modules) - before)))")
    assert output == "[]\n"


def test_import_adds_at_most_twice_what_numpy_adds(run):
    for code in PROGRAMS.values():
        run(code)  # byte code and disk cache are warm afterwards
    times = {name: [] for name in PROGRAMS}
    for _ in range(ROUNDS):  # interleaved, so that what else the machine does strikes all three alike
        for name, code in PROGRAMS.items():
            times[name].append(run(code)[1])
    bare, numpy, ours = (min(times[name]) for name in PROGRAMS)  # what else runs only ever adds
    ratio = (ours - bare) / (numpy - bare)
    assert ratio <= 2, f"import pellucid adds {ratio:.2f} times what import numpy adds"
