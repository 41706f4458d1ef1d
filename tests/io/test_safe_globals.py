"""Classes in files: refused by default, allowed by name, and everything with `weights_only=False`."""

import io
import pickle
from collections import OrderedDict, defaultdict

import numpy as np
import pytest
from pt_archives import DATA, archive, bytes_of, call, from_bytes, listed, named, number, sequence, text, with_pickle

from pellucid.core.tensor import Parameter, Tensor, wrap
from pellucid.io import (
    add_safe_globals,
    clear_safe_globals,
    get_safe_globals,
    get_unsafe_globals_in_checkpoint,
    load,
    safe_globals,
    save,
)


class Net:
    """A class as programs have them: with attributes and a tensor."""

    def __init__(self):
        self.weight = wrap(np.arange(3.0))
        self.name = "net"


class Slotted:
    __slots__ = ("a",)


class Stateful:
    def __getstate__(self):
        return {"kept": 1}

    def __setstate__(self, state):
        self.restored = state["kept"]


class Broken:
    def __setstate__(self, state):
        raise KeyError("no such thing")

    def __getstate__(self):
        return {"a": 1}


class Tagged(Tensor):
    pass


def double(x):
    return 2 * x


@pytest.fixture(autouse=True)
def nothing_declared():
    clear_safe_globals()
    yield
    clear_safe_globals()


def test_a_class_is_refused_and_the_way_out_named(tmp_path):
    save(Net(), tmp_path / "net.pt")
    start, path = r"Weights only load failed\. .*net\.pt': .*GLOBAL", rf"{Net.__module__}\.Net"
    with pytest.raises(pickle.UnpicklingError, match=rf"{start} {path} was not an allowed .*safe_globals\(\[Net\]\)"):
        load(tmp_path / "net.pt")


def test_a_class_declared_safe():
    data = bytes_of([Net(), Net()])
    with safe_globals([Net]):
        first, _ = from_bytes(data)
    assert (type(first), first.name, first.weight.tolist()) == (Net, "net", [0, 1, 2])
    with pytest.raises(pickle.UnpicklingError):
        from_bytes(data)


def test_declaring_for_good():
    add_safe_globals([Net])
    add_safe_globals([Net, Stateful])
    assert get_safe_globals() == [Net, Stateful]
    assert from_bytes(bytes_of(Net())).name == "net"
    assert from_bytes(bytes_of(Stateful())).restored == 1
    clear_safe_globals()
    assert get_safe_globals() == []


def test_a_module_of_pytorch():
    from pellucid import nn

    with pytest.raises(pickle.UnpicklingError, match=r"nn\.modules\.linear\.Linear was .*safe_globals\(\[Linear\]"):
        load(DATA / "module.pt")
    with safe_globals([nn.Linear]):
        safe = load(DATA / "module.pt")
    for module in safe, load(DATA / "module.pt", weights_only=False):
        assert type(module) is nn.Linear
        assert module(wrap(np.ones((1, 2), np.float32))).tolist() == [[8]]


@pytest.mark.parametrize("options", [{}, {"weights_only": False}])
def test_a_module_of_ours(options):
    from pellucid import nn

    data = bytes_of(nn.Sequential(nn.Linear(2, 3), nn.Tanh()))
    with safe_globals([nn.Sequential, nn.Linear, nn.Tanh]):
        found = from_bytes(data, **options)
    assert [type(part) for part in found] == [nn.Linear, nn.Tanh]
    assert found[0].weight.requires_grad


def test_contexts_inside_each_other():
    with safe_globals([Net]):
        with safe_globals([Net, Stateful]):
            add_safe_globals([Slotted])
        assert get_safe_globals() == [Net, Slotted]
    assert get_safe_globals() == [Slotted]


def test_a_class_by_another_name():
    program = named("old_module.OldNet") + pickle.EMPTY_TUPLE + pickle.NEWOBJ
    with safe_globals([(Net, "old_module.OldNet")]):
        assert type(from_bytes(with_pickle(program))) is Net


def test_entries_that_are_none():
    with pytest.raises(ValueError, match="Expected tuple of length 2"):
        add_safe_globals([(Net, "a", "b")])
    with pytest.raises(TypeError, match="Expected second item in tuple to be str"):
        add_safe_globals([(Net, 3)])
    assert get_safe_globals() == []


def test_functions_and_dictionaries():
    with safe_globals([double, defaultdict, Slotted]):
        assert from_bytes(with_pickle(call(f"{__name__}.double", number(4)))) == 8
        program = call("collections.defaultdict") + text("a") + number(1) + pickle.SETITEM
        assert from_bytes(with_pickle(program)) == {"a": 1}
        slotted = named(f"{__name__}.Slotted") + pickle.EMPTY_TUPLE + pickle.NEWOBJ
        state = sequence(pickle.NONE, pickle.EMPTY_DICT + text("a") + number(5) + pickle.SETITEM)
        assert from_bytes(with_pickle(slotted + state + pickle.BUILD)).a == 5


def test_a_function_is_not_a_class():
    with safe_globals([double]), pytest.raises(pickle.UnpicklingError, match="Can only create new object"):
        from_bytes(with_pickle(named(f"{__name__}.double") + pickle.EMPTY_TUPLE + pickle.NEWOBJ))


def test_blocked_modules_stay_blocked():
    import os

    with safe_globals([(os.getcwd, "os.getcwd")]), pytest.raises(pickle.UnpicklingError, match="is blocked"):
        from_bytes(with_pickle(call("os.getcwd")))


@pytest.mark.parametrize("entry", [Tensor, (Tensor, "my.Tensor"), Parameter, OrderedDict, bytearray])
def test_what_is_always_allowed_keeps_its_rules(entry):
    path = entry[1] if isinstance(entry, tuple) else f"{entry.__module__}.{entry.__qualname__}"
    with safe_globals([entry]), pytest.raises(pickle.UnpicklingError):
        from_bytes(with_pickle(call(path, number(10**12))))


def test_an_error_inside_a_declared_class():
    with safe_globals([Broken]), pytest.raises(pickle.UnpicklingError, match="KeyError: 'no such thing'") as caught:
        from_bytes(bytes_of(Broken()))
    assert isinstance(caught.value.__cause__, KeyError)


def test_subclasses_of_tensors():
    tagged = wrap(np.arange(2.0), cls=Tagged)
    tagged.note = "n"
    data = bytes_of(tagged)
    with pytest.raises(pickle.UnpicklingError, match="Tagged was not an allowed global"):
        from_bytes(data)
    with safe_globals([Tagged]):
        found = from_bytes(data)
    assert (type(found), found.note, found.tolist()) == (Tagged, "n", [0, 1])


def test_looking_without_loading():
    with open(DATA / "module.pt", "rb") as stream:
        assert get_unsafe_globals_in_checkpoint(stream) == ["torch.nn.modules.linear.Linear"]
    assert get_unsafe_globals_in_checkpoint(DATA / "checkpoint.pt") == []
    assert get_unsafe_globals_in_checkpoint(DATA / "before_1_6.pt") == []
    data = bytes_of([Net(), {Net: 1}], pickle_protocol=4)
    assert get_unsafe_globals_in_checkpoint(io.BytesIO(data)) == [f"{__name__}.Net"]
    with safe_globals([Net]):
        assert get_unsafe_globals_in_checkpoint(io.BytesIO(bytes_of(Net()))) == []
    with pytest.raises(pickle.UnpicklingError, match="the pickle takes from an empty stack"):
        get_unsafe_globals_in_checkpoint(io.BytesIO(with_pickle(b"R")))


@pytest.mark.parametrize(("path", "match"), [
    ("torch._utils._rebuild_sparse_tensor", "sparse tensors are not supported here.*to_dense"),
    ("torch._utils._rebuild_qtensor", "quantized tensors are not supported here.*dequantize"),
    ("torch._utils._rebuild_meta_tensor_no_storage", "meta device, which has no values"),
    ("torch._utils._rebuild_tensor_v3", "an element type that is not supported here"),
    ("torch._utils._rebuild_nested_tensor", "nested tensors are not supported here"),
])
def test_tensors_of_other_kinds(path, match):
    with pytest.raises(pickle.UnpicklingError, match=match):
        from_bytes(with_pickle(named(path)))


def test_a_sparse_tensor_of_pytorch():
    with pytest.raises(pickle.UnpicklingError, match=r"sparse\.pt.*sparse tensors are not supported here"):
        load(DATA / "sparse.pt")


def test_another_layout():
    with pytest.raises(RuntimeError, match=r"layout torch\.sparse_coo; only torch\.strided is supported"):
        from_bytes(with_pickle(call("torch.serialization._get_layout", text("torch.sparse_coo"))))


# --- weights_only=False ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("new_format", [True, False])
@pytest.mark.parametrize("protocol", [2, 4, 5])
def test_trusted_files(protocol, new_format):
    data = bytes_of([Net(), {"size": wrap(np.zeros(2)).shape, "range": range(3)}], pickle_protocol=protocol,
                    _use_new_zipfile_serialization=new_format)
    net, rest = from_bytes(data, weights_only=False)
    assert (type(net), net.weight.tolist()) == (Net, [0, 1, 2])
    assert rest == {"size": (2,), "range": range(3)}


@pytest.mark.parametrize(
    "name", ["checkpoint", "views", "dtypes", "attributes", "numpy_values", "before_1_6", "state_dict"]
)
def test_files_of_pytorch_as_trusted_ones(name):
    assert type(load(DATA / f"{name}.pt", weights_only=False)) is type(load(DATA / f"{name}.pt"))


def test_options_of_the_unpickler():
    program = pickle.SHORT_BINSTRING + b"\1\xe9"
    assert from_bytes(with_pickle(program), weights_only=False, encoding="latin1") == "é"
    with pytest.raises(UnicodeDecodeError) as caught:
        from_bytes(with_pickle(program), weights_only=False)
    assert caught.value.__notes__ == ["while loading the BytesIO object"]


def test_names_that_do_not_exist():
    with pytest.raises(pickle.UnpicklingError, match=r"names torch\.nowhere\.Thing, which has no counterpart"):
        from_bytes(with_pickle(named("torch.nowhere.Thing")), weights_only=False)
    with pytest.raises(ModuleNotFoundError, match="no_such_module") as caught:
        from_bytes(with_pickle(named("no_such_module.Thing")), weights_only=False)
    assert caught.value.__notes__ == ["while loading the BytesIO object"]


def test_damage_is_still_found():
    data = bytes_of(wrap(np.zeros(1))).replace(b"data/0", b"data/1")
    with pytest.raises(RuntimeError, match="failed locating file data/0"):
        from_bytes(data, weights_only=False)
    with pytest.raises(pickle.UnpicklingError, match=r"the BytesIO object: .*truncated"):
        from_bytes(archive({"data.pkl": b"\x80\x02X\5\0\0\0a"}), weights_only=False)


def test_lists_of_values_stay_lists():
    assert from_bytes(with_pickle(listed(number(1)))) == [1]
