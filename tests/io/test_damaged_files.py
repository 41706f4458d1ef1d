"""Files that were cut off, changed, or are something else: each gives one clear error that names the file."""

import io
import pickle
import random
import struct
import time
import zipfile
from contextlib import suppress

import numpy as np
import pytest
from pt_archives import (
    DATA,
    FLOATS,
    NO_TENSORS,
    archive,
    bytes_of,
    from_bytes,
    nothing_runs,
    number,
    records_of,
    refused,
    storage,
    with_pickle,
)

from pellucid.core.tensor import wrap
from pellucid.io import load

ERRORS = (RuntimeError, pickle.UnpicklingError, EOFError)


# --- damaged pickles -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("program", "match"), [
    (b"R", "takes from an empty stack"), (b"", "takes from an empty stack"), (b"a", "takes from an empty stack"),
    (b"N\x86", "takes from an empty stack"), (b"t", "a mark it has not set"), (b"u", "a mark it has not set"),
    (b"h\5", "refers to item 5, which it has not made"), (b"X\1\0\0\0\xff", "not UTF-8"), (b"c" * 1100, "without end"),
    (b"NNa", "Can only append to lists"), (b"N(NNu", "Can only set items of"), (b"N(N\x90", "Can only add items to"),
    (b"NN\x93", "the name of a global must be text"), (b"\x80\x63", "pickle protocol 99 is not known"),
])
def test_damaged_pickles(program, match):
    refused(with_pickle(program), pickle.UnpicklingError, rf"Weights only load failed\. .*{match}")


def test_a_pickle_that_is_cut_off():
    whole = records_of((DATA / "checkpoint.pt").read_bytes())
    for end in range(0, len(whole["data.pkl"]), 7):
        data = archive({**whole, "data.pkl": whole["data.pkl"][:end]})
        refused(data, pickle.UnpicklingError, "ends before its end mark")


# --- damaged archives ------------------------------------------------------------------------------------------------


def test_an_empty_file(tmp_path):
    (tmp_path / "empty.pt").touch()
    with pytest.raises(EOFError, match=r"empty\.pt': Ran out of input: the file is empty"):
        load(tmp_path / "empty.pt")


@pytest.mark.parametrize("data", [b"hello world", b"\x80", b"\x80\x02K\x05.", b"<html>", b"\0" * 600,
                                  b"x" * 257 + b"ustar" + b"\0" * 300])
def test_files_of_other_kinds(data):
    refused(data, pickle.UnpicklingError, "this is no file of save")


def test_large_files_of_other_kinds_are_not_read():
    class Endless(io.BytesIO):
        def read(self, size=-1):
            assert size >= 0
            return super().read(size)

    for data in (b"\x80\x04\x95" + bytes(1000), pickle.dumps(list(range(1000))), b"x" * 1000):
        with pytest.raises(pickle.UnpicklingError, match=r"the Endless object: .*this is no file of save"):
            load(Endless(data))


def test_the_error_names_the_file(tmp_path):
    (tmp_path / "notes.txt").write_bytes(b"hello world")
    with pytest.raises(pickle.UnpicklingError, match=r"notes\.txt': this is no file of save\(\): .* b'hello wo'"):
        load(tmp_path / "notes.txt")


def test_every_cut():
    whole = bytes_of({"a": wrap(np.arange(3.0)), "b": 1})
    for end in range(4, len(whole), 5):
        refused(whole[:end], RuntimeError, "failed reading zip archive: failed finding central directory.*was cut off")


def test_an_archive_of_something_else():
    for data in archive({"word/document.xml": b"<x/>"}), archive({}), archive({"data.pkl": NO_TENSORS}, folder=""):
        refused(data, RuntimeError, "failed locating file data.pkl: file not found.*not written by")


def test_two_folders():
    both = archive({"a/data.pkl": NO_TENSORS, "b/data.pkl": NO_TENSORS}, folder="")
    refused(both, RuntimeError, "it must be in one folder and is in several")


def test_a_compiled_program():
    data = archive({"data.pkl": NO_TENSORS, "constants.pkl": NO_TENSORS})
    refused(data, RuntimeError, "TorchScript archives.*state_dict")


def test_versions():
    refused(archive({"data.pkl": NO_TENSORS, "version": b"11\n"}), RuntimeError,
            "Attempted to read a PyTorch file with version 11, but the maximum supported version for reading is 10")
    refused(archive({"data.pkl": NO_TENSORS, "version": b"x" * 50}), RuntimeError, "the file's version is no number")
    refused(archive({"data.pkl": NO_TENSORS, "byteorder": b"middle"}), RuntimeError, "Unknown endianness type: b'midd")


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_record_that_is_there_twice():
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as packed:
        for data in (NO_TENSORS, b"other", b"other"):
            packed.writestr("a/data/0" if data == b"other" else "a/data.pkl", data)
    refused(stream.getvalue(), RuntimeError, "the record 'data/0' is there twice")


@pytest.mark.parametrize("name", [
    "../../etc/passwd", "archive/../../x", "/etc/passwd", "archive/..", "archive\\..\\x", "other/x", "C:/x",
])
def test_names_that_climb_out(name):
    data = archive({"archive/data.pkl": NO_TENSORS, name: b"x"}, folder="")
    refused(data, RuntimeError, "leaves the archive's folder.*do not trust this file")


@pytest.mark.parametrize("compression", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_compressed_records(compression):
    data = archive({"data.pkl": NO_TENSORS, "data/0": bytes(10_000_000)}, compression)
    refused(data, RuntimeError, "it is compressed.*zip -0 -r")


def test_encrypted_records():
    data = bytearray(archive({"data.pkl": NO_TENSORS}))
    data[data.rindex(b"PK\1\2") + 8] |= 1
    refused(bytes(data), RuntimeError, "it is encrypted")


def test_a_wrong_checksum():
    data = bytearray(bytes_of(wrap(np.arange(100.0))))
    data[data.index(np.arange(100.0).tobytes()) + 20] ^= 1
    refused(bytes(data), RuntimeError, r"failed reading file data/0: wrong checksum \(CRC32\).*or download it again")


def _directory_entry(data: bytearray, name: bytes) -> int:
    """Where the entry of a record begins in the directory of an archive."""
    return data.rindex(name) - 46


def test_records_that_overlap():
    """Many entries for one stretch of the file would make much memory of it."""
    data = bytearray(archive({"data.pkl": NO_TENSORS, "data/0": FLOATS, "data/1": FLOATS}))
    first, second = (_directory_entry(data, b"archive/data/" + key) for key in (b"0", b"1"))
    data[second + 42 : second + 46] = data[first + 42 : first + 46]
    refused(bytes(data), RuntimeError, "its size and place do not fit the file")


@pytest.mark.parametrize("size", [17, 2**31, 2**32 - 2])
def test_a_record_longer_than_the_file(size):
    data = bytearray(with_pickle(storage(number(4)), _0=FLOATS))
    entry = _directory_entry(data, b"archive/data/0")
    data[entry + 20 : entry + 28] = struct.pack("<2I", size, size)
    refused(bytes(data), RuntimeError, "its size and place do not fit the file|wrong checksum")


def test_a_header_that_names_another_record():
    data = bytearray(with_pickle(storage(number(4)), _0=FLOATS))
    at = data.index(b"archive/data/0")
    data[at : at + 14] = b"archive/data/9"
    refused(bytes(data), RuntimeError, "failed reading file data/0: its header does not fit the directory")


# --- the format before 1.6 -------------------------------------------------------------------------------------------

OLD = (DATA / "before_1_6.pt").read_bytes()


def test_every_cut_of_the_old_format():
    for end in range(1, len(OLD), 3):
        refused(OLD[:end], ERRORS, "unexpected EOF|ends before its end mark")


@pytest.mark.parametrize(("old", "new", "match"), [
    (OLD[:14], b"\x80\x02K\x05.", "Invalid magic number"), (b"M\xe9\x03", b"M\xea\x03", "protocol version: 1002"),
    (b"ctorch._utils\n_rebuild_tensor_v2\n", b"cos\nsystem\n", "module os is blocked"),
    (b"K\x06N", b"J\xff\xff\xff\x7fN", "unexpected EOF, expected 8589934588 bytes|requiring a storage size"),
    (b"K\x06N", b"K\x05N", "is described in two ways|out of bounds|does not have the size"),
])
def test_changes_of_the_old_format(old, new, match):
    assert old in OLD
    refused(OLD.replace(old, new), ERRORS, match)


def test_storages_of_the_old_format_that_are_not_used():
    end = OLD.index(b"\x80\x02]q\x00(X")
    keys = pickle.dumps(["a"], 2)
    refused(OLD[:end] + keys + OLD[end:], pickle.UnpicklingError, "lists other storages than its tensors use")


# --- any change at all -----------------------------------------------------------------------------------------------


def _sources() -> list[bytes]:
    return [path.read_bytes() for path in sorted(DATA.glob("*.pt"))]


def _mutated(source: bytes, other: bytes, draw: random.Random) -> bytes:
    """A copy with a few changes: bits, bytes, opcodes, pieces cut out, doubled or taken from another file."""
    data = bytearray(source)
    for _ in range(draw.choice([1, 1, 2, 5])):
        at, length = draw.randrange(len(data)), draw.randrange(1, 30)
        change = draw.randrange(6)
        if change == 0:
            data[at] ^= 1 << draw.randrange(8)
        elif change == 1:
            data[at] = draw.choice(b"R\x81bQctuase(.}])hqX\x85\x86\x87\x8a\x93")
        elif change == 2:
            del data[at : at + length]
        elif change == 3:
            data[at:at] = draw.randbytes(length)
        elif change == 4:
            start = draw.randrange(len(other))
            data[at : at + length] = other[start : start + draw.randrange(60)]
        elif len(data) > 40:
            del data[draw.randrange(20, len(data)) :]
    return bytes(data) or b"x"


def _swapped(records: dict[str, bytes], draw: random.Random) -> dict[str, bytes]:
    first, second = draw.choice(list(records)), draw.choice(list(records))
    return {**records, first: records[second], second: records[first]}


@pytest.mark.parametrize("seed", range(10))
def test_no_change_of_a_file_does_harm(seed):
    """Two hundred changed files each: half with the right checksums, so that the change reaches what is behind them."""
    draw, sources = random.Random(seed), _sources()
    archives = [records_of(s) for s in sources if s[:2] == b"PK" and b"no_checksums/" not in s]
    for _ in range(200):
        if draw.random() < 0.5:
            records = draw.choice(archives)
            changed = _mutated(records["data.pkl"], draw.choice(archives)["data.pkl"], draw)
            data = archive(_swapped(records, draw) if draw.random() < 0.2 else {**records, "data.pkl": changed})
        else:
            data = _mutated(draw.choice(sources), draw.choice(sources), draw)
        start = time.process_time()
        with nothing_runs(), suppress(*ERRORS):
            from_bytes(data)
        assert time.process_time() - start < 1
