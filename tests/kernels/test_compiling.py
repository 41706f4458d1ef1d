"""What is kept on disk of a kernel goes out of date with the source of any other: kernels contain those that they call."""

import ast
import importlib
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("numba")

from llvmlite import binding

from pellucid.kernels import compiled

OWN = {"__init__", "pool"}  # the pool calls nothing outside of its file
NAMES = sorted(path.stem for path in Path(compiled.__file__).parent.glob("*.py") if path.stem not in OWN)


@pytest.mark.parametrize("name", NAMES)
def test_every_kernel_that_is_kept_looks_at_all_sources(name):
    module = importlib.import_module(f"pellucid.kernels.compiled.{name}")
    kept = [each._cache._cache_file for each in vars(module).values() if hasattr(getattr(each, "_cache", None), "_cache_file")]
    assert all(cache._source_stamp == compiled._STAMP for cache in kept)


def test_the_stamp_changes_with_any_source(monkeypatch, tmp_path):
    for name in ("__init__.py", "a.py"):
        (tmp_path / name).write_text("")
    monkeypatch.setattr(compiled, "__file__", str(tmp_path / "__init__.py"))
    before = compiled._stamp_of_sources()
    (tmp_path / "a.py").write_text("1")
    assert compiled._stamp_of_sources() != before


def is_view(value: ast.expr) -> bool:
    return isinstance(value, ast.Subscript) or (isinstance(value, ast.Call) and getattr(value.func, "id", "") == "at")


def kept_by_address(function: ast.FunctionDef) -> tuple[set[str], set[str]]:
    """Arrays that a function makes or gets from others and takes the address of, and those that it holds.

    Not those it got as arguments, which its caller has, nor parts of other arrays, nor what `at` gave it, which owns nothing.
    """
    arguments = {argument.arg for argument in function.args.args}
    views, taken, held = set(), set(), set()
    for node in ast.walk(function):
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if is_view(value):
                views.add(name)
            case ast.Assign(targets=[ast.Tuple(elts=names)], value=ast.Tuple(elts=values)):
                pairs = zip(names, values, strict=True)
                views |= {name.id for name, value in pairs if isinstance(name, ast.Name) and is_view(value)}
            case ast.Call(func=ast.Name(id="address"), args=[ast.Name(id=name)]):
                taken.add(name)
            case ast.Call(func=ast.Name(id="hold"), args=[ast.Name(id=name)]):
                held.add(name)
    return taken - arguments - views, held


@pytest.mark.parametrize("name", NAMES)
def test_arrays_that_are_used_by_address_are_held(name):
    """Numba frees an array when it has been named for the last time: memory that is used by its address would be anybody's."""
    tree = ast.parse(Path(compiled.__file__).with_name(f"{name}.py").read_text(encoding="utf-8"))
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef):
            taken, held = kept_by_address(function)
            assert not taken - held, f"{name}.{function.name} takes addresses of {', '.join(taken - held)} and does not hold them"
            assert not held - taken


def test_what_is_held_is_freed_after_its_last_use():
    """In the code that LLVM gets: allocated, written to by address, read, and freed then."""
    numba = pytest.importorskip("numba")
    from pellucid.kernels.compiled.blas import address, at, hold

    def kernel(count):
        memory = np.empty(count, np.float32)
        place = address(memory)
        filled = at(place, count, np.float32(0))
        for i in range(count):
            filled[i] = i
        hold(memory)
        return place

    compiled_kernel = numba.njit(kernel)
    compiled_kernel(3)
    (code,) = compiled_kernel.inspect_llvm().values()
    body = code[code.index("NRT_MemInfo_alloc") :]
    assert body.index("store float") < body.index("@NRT_decref")


@pytest.mark.skipif(not binding.get_host_cpu_features().get("avx512f"), reason="the processor has no vectors of 512 bits")
def test_whole_vectors_are_used():
    numba = pytest.importorskip("numba")

    def doubled(x, out):
        for i in range(x.size):
            out[i] = x[i] + x[i]

    function = numba.njit(doubled)
    function(np.zeros(100, np.float32), np.zeros(100, np.float32))
    assert any("zmm" in code for code in function.inspect_asm().values())
