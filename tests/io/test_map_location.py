"""`map_location`: files from other devices come to the CPU when they are told to."""

import io

import numpy as np
import pytest
from pt_archives import FLOATS, bytes_of, from_bytes, number, storage, tensor, with_pickle

from pellucid.core.device import device
from pellucid.core.tensor import wrap
from pellucid.io import load
from pellucid.io.storage import Storage


def on(tag: str) -> bytes:
    """A file whose only storage is tagged with a device."""
    return with_pickle(tensor(storage(number(4), location=tag), number(0), (4,), (1,)), _0=FLOATS)


@pytest.mark.parametrize("where", ["cpu", b"cpu", device("cpu"), {"cuda:1": "cpu"}, {"cuda:1": device("cpu")},
                                   lambda found, tag: found, lambda found, tag: found.cpu()])
def test_from_a_gpu(where):
    found = from_bytes(on("cuda:1"), map_location=where)
    assert found.tolist() == [0, 1, 2, 3]
    assert found.device == device("cpu")


@pytest.mark.parametrize("where", [None, {"cuda:0": "cpu"}, lambda found, tag: None])
def test_from_a_gpu_without_being_told(where):
    with pytest.raises(
        RuntimeError,
        match=r"Attempting to deserialize object on a CUDA device but torch\.cuda\.is_available\(\) is False\. If you "
        r"are running on a CPU-only machine, please use torch\.load with map_location=torch\.device\('cpu'\) to map",
    ) as caught:
        from_bytes(on("cuda:1"), map_location=where)
    assert caught.value.__notes__ == ["while loading the BytesIO object"]


@pytest.mark.parametrize("where", ["cuda", "cuda:0", device("cuda", 0), {"cpu": "cuda:0"}])
def test_to_a_gpu(where):
    with pytest.raises(RuntimeError, match="Attempting to deserialize object on a CUDA device"):
        from_bytes(on("cpu"), map_location=where)


@pytest.mark.parametrize("where", ["mps", "meta", "xla", "somewhere"])
def test_to_other_places(where):
    with pytest.raises(RuntimeError, match=rf"know how to restore data location .*\(tagged with {where}\).*'cpu'"):
        from_bytes(on("cpu"), map_location=where)


def test_names_of_storages_kept_by_cuda():
    program = tensor(storage(number(4), kind="torch.cuda.FloatStorage", location="cuda:0"), number(0), (4,), (1,))
    assert from_bytes(with_pickle(program, _0=FLOATS), map_location="cpu").tolist() == [0, 1, 2, 3]


def test_a_function_sees_each_storage_once():
    seen = []

    def note(found, tag):
        seen.append((found.size(), found.nbytes(), found.element_size(), tag, found.device, found.is_cuda))
        return found

    base = np.arange(4, dtype=np.float32)
    data = bytes_of([wrap(base), wrap(base[1:]), wrap(np.zeros(2, np.int64))])
    from_bytes(data, map_location=note)
    assert seen == [(4, 16, 4, "cpu", device("cpu"), False), (2, 16, 8, "cpu", device("cpu"), False)]


def test_a_function_may_give_another_storage():
    other = Storage(np.frombuffer(FLOATS[::-1], np.uint8).copy(), wrap(np.zeros(1, np.float32)).dtype)
    found = from_bytes(on("cuda:0"), map_location=lambda found, tag: other)
    assert found.tolist() == other.tolist()
    assert (len(other), other[0], repr(other)) == (4, other.tolist()[0], "Storage(dtype=torch.float32, size=4)")
    assert other.data_ptr() == found.data_ptr()


def test_errors_of_the_function_are_its_own():
    def fail(found, tag):
        raise LookupError(tag)

    with pytest.raises(LookupError, match="cuda:0") as caught:
        from_bytes(on("cuda:0"), map_location=fail)
    assert caught.value.__notes__ == ["while loading the BytesIO object"]
    with pytest.raises(TypeError, match="must return a storage or None, not int"):
        from_bytes(on("cuda:0"), map_location=lambda found, tag: 3)
    with pytest.raises(RuntimeError, match=r"Torch not compiled with CUDA enabled.*cannot move to cuda:1"):
        from_bytes(on("cuda:0"), map_location=lambda found, tag: found.cuda(1))


def test_what_is_no_location():
    with pytest.raises(TypeError, match=r"map_location must be None, a device.*'int' object is not callable"):
        load(io.BytesIO(on("cpu")), 3)
