"""The safetensors format, in both directions."""

import json
import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from pt_archives import DATA
from safetensors import SafetensorError

from pellucid.core import dtype as dtypes
from pellucid.core.tensor import Tensor, wrap
from pellucid.io import load as load_pt
from pellucid.io import load_safetensors, safetensors, save_safetensors
from pellucid.io.safetensors import load, load_file, save, save_file

TYPES = [kind for name, kind in dtypes.DTYPES.items() if name != "complex128"]


def r(*shape) -> Tensor:
    return wrap(np.arange(np.prod(shape, dtype=int), dtype=np.float32).reshape(shape))


def test_names():
    assert (load_safetensors, save_safetensors) == (load_file, save_file)
    assert sorted(safetensors.__all__) == ["load", "load_file", "save", "save_file"]


def test_a_file_of_pytorchs_package():
    found = load_file(DATA / "tensors.safetensors")
    assert {name: value.tolist() for name, value in found.items()} == {
        "weight": [[0, 1, 2], [3, 4, 5]], "half": [0, 1, 2], "mask": [True, False], "z": [1 + 2j], "scalar": 2.5,
    }
    assert found["half"].dtype is dtypes.bfloat16
    assert found["scalar"].shape == ()


def test_the_general_loader_knows_the_suffix():
    for where in (None, "cpu"):
        assert load_pt(DATA / "tensors.safetensors", map_location=where)["half"].tolist() == [0, 1, 2]
    for where, kind in (({}, "dict"), (lambda found, tag: found, "callable")):
        with pytest.raises(RuntimeError, match=f"Loading safetensors file with {kind} map_location is not supported"):
            load_pt(DATA / "tensors.safetensors", map_location=where)


@settings(max_examples=100, deadline=None)
@given(st.data(), st.sampled_from(TYPES), arrays.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4))
def test_every_type_and_shape_comes_back(data, kind, shape):
    size = int(np.prod(shape)) * kind.itemsize
    raw = np.frombuffer(data.draw(st.binary(min_size=size, max_size=size)), np.uint8)
    values = (raw & 1 if kind is dtypes.bool else raw).copy().view(kind.numpy).reshape(shape)
    found = load(save({"x": wrap(values)}))["x"]
    assert (found.dtype, found.shape) == (kind, shape)
    assert found._array.tobytes() == values.tobytes()


def test_files(tmp_path):
    path = tmp_path / "a.safetensors"
    save_file({"b": r(2), "a": r(3)}, path, metadata={"format": "pt"})
    found = load_file(str(path))
    assert list(found) == ["a", "b"]
    found["a"]._array[:] = 7  # memory of its own
    assert load_file(path)["a"].tolist() == [0, 1, 2]
    assert [p.name for p in tmp_path.iterdir()] == ["a.safetensors"]


def test_metadata_is_in_the_header():
    data = save({"a": r(2)}, {"made": "here"})
    (length,) = struct.unpack("<Q", data[:8])
    assert json.loads(data[8 : 8 + length])["__metadata__"] == {"made": "here"}


def test_a_failed_save_leaves_the_old_file(tmp_path):
    path = tmp_path / "a.safetensors"
    save_file({"a": r(2)}, path)
    with pytest.raises(ValueError, match="Key `b` is invalid"):
        save_file({"b": 3}, path)
    assert load_file(path)["a"].tolist() == [0, 1]


@pytest.mark.parametrize("second", [lambda base: base, lambda base: base[2:], lambda base: base.reshape(2, 3)])
def test_shared_memory(second):
    base = np.arange(6.0)
    with pytest.raises(RuntimeError, match=r"Some tensors share memory, .*\[\{'head', 'other'\}\].*clone\(\)"):
        save({"other": wrap(base), "alone": r(2), "head": wrap(second(base))})


def test_parts_side_by_side_are_not_shared():
    base = np.arange(6.0)
    found = load(save({"a": wrap(base[:3]), "b": wrap(base[3:]), "none": wrap(base[:0])}))
    assert {name: value.tolist() for name, value in found.items()} == {"a": [0, 1, 2], "b": [3, 4, 5], "none": []}


def test_a_tensor_that_is_not_contiguous():
    with pytest.raises(ValueError, match=r"You are trying to save a non contiguous tensor: `x` .*\.contiguous\(\)"):
        save({"x": wrap(np.zeros((2, 3)).T)})


@pytest.mark.parametrize(("tensors", "metadata", "error", "match"), [
    ([1], None, ValueError, r"Expected a dict of \[str, torch\.Tensor\] but received <class 'list'>"),
    ({"a": 1}, None, ValueError, "Key `a` is invalid, expected torch.Tensor but received <class 'int'>"),
    ({1: r(1)}, None, TypeError, "the names of tensors must be text: 1 is int"),
    ({"a": r(1)}, {"epoch": 3}, TypeError, r"metadata must be text by text: 'epoch' is int; write str\(value\)"),
    ({"z": wrap(np.zeros(1, complex))}, None, TypeError, "`z` is complex128, which the format does not have"),
])
def test_what_cannot_be_saved(tensors, metadata, error, match):
    with pytest.raises(error, match=match):
        save(tensors, metadata)


def _file(header: dict, data: bytes) -> bytes:
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def test_a_type_that_does_not_exist_here(tmp_path):
    data = _file({"x": {"dtype": "F8_E4M3", "shape": [2], "data_offsets": [0, 2]}}, b"ab")
    (tmp_path / "a.safetensors").write_bytes(data)
    with pytest.raises(TypeError, match=r"a\.safetensors': the tensor 'x' has the element type F8_E4M3"):
        load_file(tmp_path / "a.safetensors")


@pytest.mark.parametrize("data", [
    b"", b"abc", struct.pack("<Q", 2**62) + b"{}", save({"a": r(4)})[:-1],
    _file({"x": {"dtype": "F32", "shape": [2**40], "data_offsets": [0, 4]}}, b"abcd"),
    _file({"x": {"dtype": "F32", "shape": [1], "data_offsets": [0, 2**40]}}, b"abcd"),
    _file({"x": {"dtype": "U8", "shape": [4], "data_offsets": [0, 4]},
           "y": {"dtype": "U8", "shape": [4], "data_offsets": [0, 4]}}, b"abcd"),
])
def test_damaged_files(data, tmp_path):
    with pytest.raises(SafetensorError):
        load(data)
    (tmp_path / "bad.safetensors").write_bytes(data)
    with pytest.raises(SafetensorError, match=r"bad\.safetensors"):
        load_file(tmp_path / "bad.safetensors")


def test_files_that_are_not_there(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"missing\.safetensors"):
        load_file(tmp_path / "missing.safetensors")


def test_what_is_not_bytes():
    with pytest.raises(TypeError, match="'str' object is not an instance of 'bytes'"):
        load("abc")


def test_other_devices():
    with pytest.raises(RuntimeError, match=r"cannot load to cuda:0: this library computes on the CPU"):
        load_file(DATA / "tensors.safetensors", device="cuda:0")
