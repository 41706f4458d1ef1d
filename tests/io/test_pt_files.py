"""`save` and `load`: what goes in comes out, and files of PyTorch's are read and written to the byte."""

import io
import math
import os
import pathlib
import re
import zipfile
from collections import Counter, OrderedDict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pt_archives import DATA, FLOATS, archive, bytes_of, from_bytes, number, records_of, storage, tensor, with_pickle

from pellucid.core import dtype as dtypes
from pellucid.core.device import device
from pellucid.core.size import Size
from pellucid.core.tensor import Buffer, Parameter, Tensor, wrap
from pellucid.io import load, save
from pellucid.io.zip_writer import ZipWriter


def r(*shape):
    return wrap(np.arange(math.prod(shape), dtype=np.float32).reshape(shape))


def again(obj, **options):
    return from_bytes(bytes_of(obj, **options))


def shares(a: Tensor, b: Tensor) -> bool:
    return np.shares_memory(a._array, b._array)


# --- files of PyTorch's ----------------------------------------------------------------------------------------------


def test_state_dict_of_pytorch():
    state = load(DATA / "state_dict.pt")
    assert type(state) is OrderedDict
    assert {k: v.tolist() for k, v in state.items()} == {
        "0.weight": [[0, 1, 2], [3, 4, 5]], "0.bias": [1, 2], "1.weight": [2, 3], "1.bias": [3, 4],
        "1.running_mean": [0, 0], "1.running_var": [1, 1], "1.num_batches_tracked": 0,
    }
    assert state["1.num_batches_tracked"].dtype is dtypes.int64
    assert state._metadata == OrderedDict({"": {"version": 1}, "0": {"version": 1}, "1": {"version": 2}})


def test_checkpoint_of_pytorch():
    found = load(DATA / "checkpoint.pt")
    weight = found["model"]["weight"]
    assert type(weight) is Parameter
    assert weight.requires_grad
    assert weight.tolist() == [[0, 1], [2, 3]]
    state = found["optimizer"]["state"][0]
    assert state["step"].item() == 1
    assert state["exp_avg"].tolist() == [[pytest.approx(0.1)] * 2] * 2
    group = found["optimizer"]["param_groups"][0]
    assert (group["lr"], group["betas"], group["params"]) == (0.5, (0.9, 0.999), [0])
    assert {k: v for k, v in found.items() if k not in ("model", "optimizer")} == {
        "epoch": 3, "best": 0.25, "name": "é", "tags": ["a", ("b", 1)], "seen": {1, 2}, "z": 1 + 2j, "raw": b"\0\xff",
        "large": 2**70, "none": None,
    }


def test_views_of_pytorch_share_their_storage():
    found = load(DATA / "views.pt")
    base = found["base"]
    assert found["matrix"].tolist() == r(3, 4).tolist()
    assert found["transposed"].tolist() == r(3, 4)._array.T.tolist()
    assert found["transposed"].stride() == (1, 4)
    assert found["step"].tolist() == [1, 4, 7, 10]
    assert found["expanded"].tolist() == [2, 2, 2, 2]
    assert found["expanded"].stride() == (0,)
    assert found["scalar"].tolist() == 5
    assert found["empty"].shape == (0, 3)
    base._array[:] = -1
    assert all((found[name]._array == -1).all() for name in ("matrix", "transposed", "step", "expanded", "scalar"))
    assert found["leaf"].requires_grad
    assert not base.requires_grad
    assert found["conj"].tolist() == [1 - 2j, 3 + 1j]
    assert found["part"].tolist() == [40, 41]
    assert found["part"].storage_offset() == 40


def test_every_dtype_of_pytorch():
    found = load(DATA / "dtypes.pt")
    assert {name: value.dtype for name, value in found.items()} == dtypes.DTYPES
    for name, value in found.items():
        assert value.tolist() == ([0, 1, 1] if name == "bool" else [0, 1, 2])


def test_attributes_of_pytorch():
    plain, parameter, buffer, size, kind, place = load(DATA / "attributes.pt")
    assert (type(plain), plain.tag) == (Tensor, "hello")
    assert (type(parameter), parameter.group) == (Parameter, [1])
    assert (type(buffer), buffer.persistent) == (Buffer, False)
    assert (size, type(size), kind, place) == (Size((2, 3)), Size, dtypes.float16, device("cpu"))


def test_numpy_values_of_pytorch():
    found = load(DATA / "numpy_values.pt")
    assert (found["loss"], type(found["loss"])) == (0.125, np.float64)
    assert (found["count"], type(found["count"])) == (3, np.int64)
    assert (found["name"], type(found["name"])) == ("ab", np.str_)
    assert (found["flag"], type(found["flag"])) == (True, np.bool_)
    np.testing.assert_array_equal(found["curve"], np.arange(3.0), strict=True)
    np.testing.assert_array_equal(found["grid"], np.arange(6, dtype=np.int32).reshape(2, 3).T, strict=True)


def test_format_before_1_6():
    found = load(DATA / "before_1_6.pt")
    assert found["a"].tolist() == [[0, 1, 2], [3, 4, 5]]
    assert found["b"].tolist() == [2, 3]
    assert found["b"].storage_offset() == 2
    assert type(found["p"]) is Parameter
    assert found["n"] == 5


def test_file_without_checksums():
    assert load(DATA / "no_checksums.pt").tolist() == [0, 1, 2]


def _without_identifier(data: bytes) -> bytes:
    """The bytes of a file but for the forty digits that identify it, and their checksum."""
    found = re.search(rb"FB..Z*(\d{40})PK\x07\x08(....)", data, re.DOTALL)
    assert found is not None
    return data.replace(found[1], b"0" * 40).replace(found[2], b"0000")


@pytest.mark.parametrize("name", ["state_dict", "dtypes", "attributes", "numpy_values"])
def test_a_saved_file_is_pytorchs_to_the_byte(name, tmp_path):
    save(load(DATA / f"{name}.pt"), tmp_path / f"{name}.pt")
    ours, theirs = (tmp_path / f"{name}.pt").read_bytes(), (DATA / f"{name}.pt").read_bytes()
    assert _without_identifier(ours) == _without_identifier(theirs)


def test_records_begin_at_multiples_of_64(tmp_path):
    save({"a": r(3), "b": r(5, 7), "c": wrap(np.empty(0, np.float32))}, tmp_path / "some name.pt")
    data = (tmp_path / "some name.pt").read_bytes()
    with zipfile.ZipFile(io.BytesIO(data)) as packed:
        assert packed.testzip() is None
        assert [n.removeprefix("some name/") for n in packed.namelist()] == [
            "data.pkl", ".format_version", ".storage_alignment", "byteorder", "data/0", "data/1", "data/2", "version",
            ".data/serialization_id",
        ]
        for info in packed.infolist():
            sizes = int.from_bytes(data[info.header_offset + 26 : info.header_offset + 28], "little"), int.from_bytes(
                data[info.header_offset + 28 : info.header_offset + 30], "little"
            )
            assert (info.header_offset + 30 + sum(sizes)) % 64 == 0


def test_records_beyond_four_gigabytes_have_64_bit_offsets():
    stream = io.BytesIO()
    writer = ZipWriter(stream, "archive")
    writer._offset = 2**32 + 64  # as if so much had been written before
    writer.write("data/0", FLOATS)
    writer.finish()
    with zipfile.ZipFile(stream) as packed:  # which allows for a missing beginning
        assert packed.read("archive/data/0") == FLOATS
        assert packed.getinfo("archive/data/0").extra[:4] == b"\1\0\x08\0"
        assert packed.getinfo("archive/data/0").extra[4:12] == (2**32 + 64).to_bytes(8, "little")


# --- round trips -----------------------------------------------------------------------------------------------------


@st.composite
def tensors_on_one_storage(draw):
    """Two views of one storage, of any type, shape and strides."""
    kind = dtypes.DTYPES[draw(st.sampled_from(sorted(dtypes.DTYPES)))]
    count = draw(st.integers(1, 30))
    raw = draw(st.binary(min_size=count * kind.itemsize, max_size=count * kind.itemsize))
    memory = np.frombuffer(raw, np.uint8) & (1 if kind is dtypes.bool else 255)
    base = memory.view(kind.numpy)
    return [wrap(_view(draw, base), draw(st.booleans()) and kind.is_floating_point) for _ in range(2)]


def _view(draw, base: np.ndarray) -> np.ndarray:
    offset = draw(st.integers(0, base.size - 1))
    room, shape, strides = base.size - 1 - offset, [], []
    for _ in range(draw(st.integers(0, 3))):
        size = draw(st.integers(1, 4))
        step = draw(st.integers(0, room // max(size - 1, 1)))
        room -= step * (size - 1)
        shape.append(size)
        strides.append(step * base.itemsize)
    return np.ndarray(shape, base.dtype, base, offset * base.itemsize, strides)


def _bits(tensor: Tensor) -> bytes:
    return np.ascontiguousarray(tensor._array).tobytes()


@settings(max_examples=200, deadline=None)
@given(tensors_on_one_storage(), st.booleans(), st.sampled_from([2, 4, 5]))
def test_views_come_back_as_they_were(pair, new_format, protocol):
    found = again(pair, _use_new_zipfile_serialization=new_format, pickle_protocol=protocol)
    for before, after in zip(pair, found, strict=True):
        assert (after.shape, after.dtype, after.requires_grad) == (before.shape, before.dtype, before.requires_grad)
        assert _bits(after) == _bits(before)
        assert after.storage_offset() == before.storage_offset()
    assert found[0]._array.base is found[1]._array.base  # one storage, as before


numbers = st.integers() | st.floats(allow_nan=False) | st.complex_numbers(allow_nan=False, allow_infinity=False)
keys = st.text() | st.integers() | st.tuples(st.integers(), st.text())
plain = st.recursive(
    st.none() | st.booleans() | numbers | st.text() | st.binary(),
    lambda inner: st.lists(inner, max_size=4) | st.tuples(inner, inner) | st.dictionaries(keys, inner),
    max_leaves=20,
)


@settings(max_examples=200, deadline=None)
@given(plain, st.sampled_from([2, 3, 4, 5]), st.booleans())
def test_plain_values_come_back(value, protocol, new_format):
    assert again(value, pickle_protocol=protocol, _use_new_zipfile_serialization=new_format) == value


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_named_values_come_back(protocol):
    value = [Size((2, 3)), dtypes.bfloat16, device("cpu"), device("cuda", 1), Counter("aab"), {1, (2, "x")},
             bytearray(b"ab"), r(1).layout, OrderedDict(a=1), np.float32(0.5), np.arange(3)]
    found = again(value, pickle_protocol=protocol)
    np.testing.assert_array_equal(found.pop(), np.arange(3), strict=True)
    assert found == value[:-1]
    assert [type(v) for v in found] == [type(v) for v in value[:-1]]


def test_an_object_met_twice_is_one_object():
    parameter, inner = Parameter(r(2)), ["x"]
    found = again({"a": parameter, "b": parameter, "c": inner, "d": [inner]})
    assert found["a"] is found["b"]
    assert found["c"] is found["d"][0]


def test_an_object_that_holds_itself():
    loop: list = [1]
    loop.append(loop)
    found = again(loop)
    assert found[1] is found


def test_metadata_of_a_state_dict():
    state = OrderedDict(weight=r(2))
    state._metadata = OrderedDict({"": {"version": 3}})
    assert again(state)._metadata == {"": {"version": 3}}


def test_attributes_come_back():
    plain, parameter = r(2), Parameter(r(2))
    plain.note, parameter.group = "n", 3
    found = again([plain, parameter, Buffer(r(2), persistent=False)])
    assert (found[0].note, found[1].group) == ("n", 3)
    assert (type(found[2]), found[2].persistent) == (Buffer, False)


def test_a_view_saves_the_whole_storage():
    part = wrap(np.arange(1000, dtype=np.float32)[10:12])
    assert len(records_of(bytes_of(part))["data/0"]) == 4000


def test_a_storage_is_saved_once():
    base = np.zeros(1000, np.float32)
    data = bytes_of([wrap(base), wrap(base[::2]), wrap(base.reshape(10, 100).T)])
    assert sorted(n for n in records_of(data) if n.startswith("data/")) == ["data/0"]


def test_views_by_as_strided_share_the_storage():
    base = np.arange(12, dtype=np.float32)
    view = np.lib.stride_tricks.as_strided(base[1:], (3, 2), (16, 4))
    found = again([wrap(base), wrap(view), wrap(view[1:])])
    assert shares(found[0], found[1])
    assert [t.storage_offset() for t in found] == [0, 1, 5]
    assert found[2].tolist() == view[1:].tolist()


def test_arrays_in_column_order():
    columns = np.asfortranarray(np.arange(6, dtype=np.float32).reshape(2, 3))
    found = again(wrap(columns))
    assert found.tolist() == columns.tolist()
    assert found.stride() == (1, 2)


def test_axes_of_a_whole_array_in_any_order():
    array = np.copy(np.arange(24, dtype=np.int64).reshape(2, 3, 4).transpose(1, 2, 0), order="K")
    found = again(wrap(array))
    assert found.tolist() == array.tolist()
    assert found.stride() == wrap(array).stride()


@pytest.mark.parametrize("array", [np.arange(6)[::-1], np.arange(16, dtype=np.uint8)[1:9].view(np.int32)])
def test_memory_that_no_storage_describes_is_copied(array):
    found = again(wrap(array))
    assert found.tolist() == array.tolist()
    assert found.is_contiguous()


def test_loaded_tensors_can_be_written_to():
    found = again([r(3), wrap(np.zeros(0, np.float32)), wrap(np.float64(2).reshape(()))])
    for tensor_ in found:
        tensor_._array[...] = 7
    assert found[0].tolist() == [7, 7, 7]


def test_two_types_on_one_storage():
    base = np.zeros(4, np.float32)
    with pytest.raises(RuntimeError, match=r"view the same data as different types: .*float32, another .*int32.*clone"):
        bytes_of([wrap(base), wrap(base.view(np.int32))])


def test_a_storage_by_itself():
    storages: list = []

    def keep(found, tag):
        storages.append(found)
        return found

    from_bytes(bytes_of(r(3)), map_location=keep)
    found = again(storages)
    assert found[0].tolist() == [0, 1, 2]
    assert found[0].dtype is dtypes.float32


# --- files and streams -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [str, pathlib.Path, os.fsencode])
def test_paths_of_every_kind(kind, tmp_path):
    path = kind(str(tmp_path / "a.pt"))
    save({"x": r(2)}, path)
    assert load(path)["x"].tolist() == [0, 1]


def test_open_files(tmp_path):
    with open(tmp_path / "a.pt", "wb") as stream:
        save(r(2), stream)
    with open(tmp_path / "a.pt", "rb") as stream:
        assert load(stream).tolist() == [0, 1]


def test_a_stream_is_read_from_where_it_stands():
    stream = io.BytesIO(b"before" + bytes_of(r(2)))
    stream.seek(6)
    assert load(stream).tolist() == [0, 1]


def test_a_stream_that_only_writes():
    class Pipe:
        def __init__(self):
            self.data = b""

        def write(self, data):
            self.data += bytes(data)

    pipe = Pipe()
    save(r(2), pipe)
    assert from_bytes(pipe.data).tolist() == [0, 1]


def test_a_stream_without_readinto():
    class Reader:
        def __init__(self, data):
            stream = io.BytesIO(data)
            self.read, self.seek, self.tell, self.seekable = stream.read, stream.seek, stream.tell, stream.seekable

    assert load(Reader(bytes_of(r(2)))).tolist() == [0, 1]


@pytest.mark.parametrize(
    ("name", "folder"),
    [("a.b.pt", "a.b"), ("model", "model"), ("é.pt", "archive"), (".pt", "archive"), ("...pt", "archive")],
)
def test_folder_inside_the_archive(name, folder, tmp_path):
    save(1, tmp_path / name)
    with zipfile.ZipFile(tmp_path / name) as packed:
        assert packed.namelist()[0] == f"{folder}/data.pkl"
    assert load(tmp_path / name) == 1


def test_mapping_into_memory(tmp_path):
    path = tmp_path / "a.pt"
    save({"x": r(1000), "empty": wrap(np.empty(0, np.float32))}, path)
    found = load(path, mmap=True)
    assert found["x"].tolist() == r(1000).tolist()
    found["x"]._array[:] = 0  # a private copy
    assert load(path)["x"].tolist() == r(1000).tolist()
    with pytest.raises(ValueError, match="f must be a file path in order to use the mmap argument"):
        from_bytes(bytes_of(r(2)), mmap=True)
    with pytest.raises(RuntimeError, match="mmap can only be used with files saved with"):
        load(DATA / "before_1_6.pt", mmap=True)


def test_mapping_of_unaligned_records(tmp_path):
    program = tensor(storage(number(4)), number(0), (4,), (1,))
    (tmp_path / "a.pt").write_bytes(b"x" * 3 + with_pickle(program, _0=FLOATS))
    with open(tmp_path / "a.pt", "rb") as stream:
        stream.seek(3)
        assert load(stream).tolist() == [0, 1, 2, 3]
    (tmp_path / "b.pt").write_bytes(with_pickle(program, _0=FLOATS))
    assert load(tmp_path / "b.pt", mmap=True).tolist() == [0, 1, 2, 3]


def test_a_file_of_the_other_byte_order():
    data = bytes_of({"f": r(2), "b": wrap(np.arange(2).astype(dtypes.bfloat16.numpy)), "c": wrap(np.array([1 + 2j])),
                     "u": wrap(np.arange(2, dtype=np.uint8))})
    records = records_of(data)
    for key, unit in (("0", 4), ("1", 2), ("2", 8)):
        stored = np.frombuffer(records[f"data/{key}"], f"u{unit}")
        records[f"data/{key}"] = stored.byteswap().tobytes()
    records["byteorder"] = b"big"
    found = from_bytes(archive(records))
    assert [found[k].tolist() for k in "fbcu"] == [[0, 1], [0, 1], [1 + 2j], [0, 1]]


# --- errors of the caller's ------------------------------------------------------------------------------------------


def test_what_cannot_be_a_file():
    with pytest.raises(AttributeError, match=r"expected 'f' to be string, path, or a file-like object.*'write'.*int"):
        save(1, 3)
    with pytest.raises(AttributeError, match=r"You can only torch\.load from a file that is seekable.*io\.BytesIO"):
        load(3)


def test_a_file_that_cannot_seek():
    class Socket(io.RawIOBase):
        def seekable(self):
            return False

    with pytest.raises(io.UnsupportedOperation, match=r"You can only torch\.load from a file that is seekable"):
        load(Socket())


def test_a_file_in_text_mode():
    with pytest.raises(TypeError, match="opened in binary mode"):
        load(io.StringIO("PK"))


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"missing\.pt"):
        load(tmp_path / "missing.pt")
    with pytest.raises(IsADirectoryError):
        load(tmp_path)


def test_an_object_nested_too_deeply():
    deep: list = []
    for _ in range(5000):
        deep = [deep]
    with pytest.raises(RecursionError, match="nested too deeply to be saved: maximum recursion depth exceeded"):
        bytes_of(deep)


def test_options_of_other_picklers():
    with pytest.raises(RuntimeError, match=r"Can not safely load weights when explicit pickle_module .*weights_only"):
        from_bytes(bytes_of(1), pickle_module=io)
    with pytest.warns(UserWarning, match="pickle_load_args only works if `weights_only=False`"):
        assert from_bytes(bytes_of(1), encoding="latin1") == 1
