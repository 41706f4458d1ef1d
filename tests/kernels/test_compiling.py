"""What is kept on disk of a kernel goes out of date with the source of any other: kernels contain those that they call."""

import importlib
from pathlib import Path

import pytest

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
