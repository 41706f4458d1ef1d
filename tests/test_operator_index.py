"""Families of operators and functions are imported when one of their names is first used."""

import subprocess
import sys
from pathlib import Path

import pytest

import pellucid as torch
from pellucid.autograd.registry import OPERATORS, PUBLIC, Registry, announce
from pellucid.core.tensor import Tensor

ROOT = Path(__file__).parents[1]
SOURCE = str(Path(torch.__file__).parents[1])


def program(code: str) -> str:
    """What a program prints in a fresh interpreter."""
    command = [sys.executable, "-c", f"import sys; sys.path.insert(0, {SOURCE!r}); import pellucid as torch\n{code}"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


LOADED = (
    "print(sorted(m.removeprefix('pellucid.') for m in sys.modules if m.startswith(('pellucid.ops.', 'pellucid.functions.'))))"
)


def test_the_indexes_are_up_to_date():
    result = subprocess.run([sys.executable, ROOT / "docs" / "make_index.py", "--check"], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr


def test_import_loads_no_family():
    assert program(LOADED) == "['functions.index', 'ops.index']"


@pytest.mark.parametrize(
    ("use", "family"),
    [
        ("torch.stft", "functions.spectrograms"),
        ("torch.Tensor.histc", "ops.counting"),
        ("torch.tensor(1.0).erfinv()", "ops.special"),
        ("torch.fft.rfft", "functions.fourier"),
        ("from pellucid import einsum", "functions.einsum"),
        ("torch.nn.functional.grid_sample", "ops.grid_sampling"),
        ("hasattr(torch.tensor(1.0), 'lgamma')", "ops.special"),
    ],
)
def test_a_name_loads_its_family(use, family):
    after = program(f"{use}\n{LOADED}")
    assert f"'{family}'" in after


def test_python_operators_load_theirs():
    assert program("x = torch.ones(2); print((x + 1)[0].item(), len(x), bool((x == 1).all()), (x @ x).item())") == "2.0 2 True 2.0"


def test_super_finds_the_method_of_tensor():
    assert program(
        "class Mine(torch.Tensor):\n"
        "    def sigmoid(self): return 'mine', super().sigmoid().shape\n"
        "print(torch.ones(2).as_subclass(Mine).sigmoid())"
    ) == "('mine', torch.Size([2]))"  # fmt: skip


def test_properties_can_be_set_before_they_are_read():
    assert program("z = torch.zeros(1, dtype=torch.complex64); z.imag = 2.0; print(z.tolist())") == "[2j]"


def test_the_state_of_a_generator_is_a_tensor_before_any_family_is_loaded():
    assert program("state = torch.Generator().get_state(); print(type(state) is torch.Tensor, state.dtype, state.shape)") == (
        "True torch.uint8 torch.Size([5056])"
    )


def test_star_import_and_dir_know_all_names():
    assert program("from pellucid import *; print(relu is torch.relu, 'stft' in dir(torch), 'relu' in dir(torch.Tensor))") == "True True True"


def test_public_modules_refuse_unknown_names_by_theirs():
    with pytest.raises(AttributeError, match=r"module 'torch\.linalg' has no attribute 'sqroot'"):
        torch.linalg.sqroot  # noqa: B018
    with pytest.raises(AttributeError, match="module 'pellucid' has no attribute 'reelu'"):
        torch.reelu  # noqa: B018


def test_registry_looks_complete_to_whoever_reads_it():
    assert {"add", "mm"} <= set(OPERATORS)
    assert len(OPERATORS) == len(OPERATORS.names()) > 400
    assert OPERATORS.get("no such operator") is None
    assert "relu" in PUBLIC["torch"]


def test_an_unknown_entry_is_a_key_error():
    with pytest.raises(KeyError, match="nothing"):
        Registry()["nothing"]


def test_a_family_that_does_not_make_what_was_announced_is_named():
    announce("pellucid.version", {"Tensor": "announced_for_test"})
    try:
        with pytest.raises(AttributeError, match=r"pellucid\.version did not make Tensor\.announced_for_test"):
            torch.tensor(1.0).announced_for_test  # noqa: B018
    finally:
        del Tensor.announced_for_test
