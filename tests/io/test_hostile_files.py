"""Files made to harm: each gives one clear error, runs nothing, and takes neither long nor much memory."""

import os
import pickle
import struct
from collections import OrderedDict

import pytest
from pt_archives import (
    FLOATS,
    archive,
    bytes_of,
    call,
    from_bytes,
    listed,
    named,
    number,
    refused,
    sequence,
    storage,
    tensor,
    text,
    with_pickle,
)

from pellucid.core.tensor import Parameter, Tensor

HUGE = 10**12  # more than any machine's memory


# --- code ------------------------------------------------------------------------------------------------------------


class Evil:
    """Pickles as a call of `os.system`."""

    def __reduce__(self):
        return os.system, ("echo harm > harm",)


class EvilState(Evil):
    def __reduce__(self):
        return OrderedDict, (), {"_metadata": Evil()}


NESTINGS = {
    "alone": lambda evil: evil,
    "in a list": lambda evil: [1, [evil]],
    "in a dictionary": lambda evil: {"a": {"b": evil}},
    "in an ordered dictionary": lambda evil: OrderedDict(a=evil),
    "in a tuple": lambda evil: (1, (2, evil)),
    "as a dictionary's key": lambda evil: {evil: 1},
    "in metadata": lambda evil: EvilState(),
}


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
@pytest.mark.parametrize("nest", NESTINGS.values(), ids=NESTINGS)
def test_a_call_of_the_system(nest, protocol):
    data = archive({"data.pkl": pickle.dumps(nest(Evil()), protocol), "version": b"3\n"})
    refused(data, pickle.UnpicklingError, r"Weights only load failed\. .*unsupported GLOBAL .*is blocked")


@pytest.mark.parametrize("protocol", [0, 1])
def test_old_protocols(protocol):
    data = archive({"data.pkl": pickle.dumps(Evil(), protocol), "version": b"3\n"})
    refused(data, pickle.UnpicklingError, r"is blocked|Unsupported operand")


@pytest.mark.parametrize("place", ["hooks", "metadata", "state", "storage", "size"])
def test_a_call_inside_a_tensor(place):
    evil = call("os.system", text("echo"))
    hooks = call("collections.OrderedDict")
    parts = {"storage": storage(number(4)), "size": sequence(number(4)), "hooks": hooks, "metadata": pickle.EMPTY_DICT,
             place: evil}
    program = call("torch._utils._rebuild_tensor_v2", parts["storage"], number(0), parts["size"], sequence(number(1)),
                   pickle.NEWFALSE, parts["hooks"], parts["metadata"])
    if place == "state":
        program = call("torch._utils._rebuild_parameter_with_state", program, pickle.NEWTRUE, hooks, evil)
    refused(with_pickle(program, _0=FLOATS), pickle.UnpicklingError, "os.system whose module os is blocked")


@pytest.mark.parametrize("path", [
    "builtins.eval", "__builtin__.eval", "builtins.exec", "builtins.getattr", "builtins.open", "builtins.__import__",
    "numpy.load", "pickle.loads", "torch.load", "torch.hub.load", "pellucid.io.load", "pellucid.io.policy.get_layout",
    "webbrowser.open", "code.interact",
])
def test_names_that_are_not_allowed(path):
    refused(with_pickle(named(path)), pickle.UnpicklingError, "Unsupported global: GLOBAL .* was not an allowed global")


@pytest.mark.parametrize("path", [
    "os.system", "posix.system", "nt.system", "sys.exit", "subprocess.Popen", "runpy.run_path", "os.path.join",
    "importlib.import_module",
])
def test_names_that_never_are(path):
    refused(with_pickle(named(path)), pickle.UnpicklingError, "whose module .* is blocked.*do not trust this file")


def test_the_refusal_says_what_to_do():
    refused(with_pickle(named("mymodels.Net")), pickle.UnpicklingError,
            r"GLOBAL mymodels\.Net was not an allowed global by default.*safe_globals\(\[Net\]\)"
            r".*add_safe_globals\(\[Net\]\).*weights_only=False.*only on files you trust")


def test_a_name_that_hides_in_a_message():
    refused(with_pickle(named("a.\x1b[2Jb")), pickle.UnpicklingError, r"'a\.\\x1b\[2Jb'")


@pytest.mark.parametrize("program", [named("torch.Tensor"), named("collections.OrderedDict"), named("torch.float32"),
                                     named("torch.FloatStorage"), pickle.EMPTY_LIST, text("x"), number(1)])
def test_what_is_allowed_cannot_be_changed_or_called(program):
    state = pickle.EMPTY_DICT + text("backward") + number(1) + pickle.SETITEM
    slots = sequence(pickle.NONE, state)
    refused(with_pickle(program + state + pickle.BUILD), pickle.UnpicklingError, "Can only build")
    refused(with_pickle(program + slots + pickle.BUILD), pickle.UnpicklingError, "Can only build")
    assert getattr(Tensor, "backward", None) != 1


@pytest.mark.parametrize("path", ["torch.Tensor", "torch.float32", "torch.FloatStorage", "numpy.ndarray"])
def test_names_that_are_values_only(path):
    refused(with_pickle(call(path, number(10))), pickle.UnpicklingError, "call reduce for unrecognized function")
    refused(with_pickle(named(path) + sequence() + b"\x81"), pickle.UnpicklingError, "Can only create new object")


def test_arguments_that_are_no_tuple():
    refused(with_pickle(named("torch.Size") + text("ab") + pickle.REDUCE), pickle.UnpicklingError, "must be a tuple")


@pytest.mark.parametrize("opcode", [
    b"i", b"o", b"\x82\x01", b"\x83\x01\0", b"P0\n", b"\x92", b"0", b"2", b"1", b"I1\n", b"L1L\n", b"F1\n", b"S'a'\n",
    b"V\n", b"g0\n", b"p0\n", b"d", b"l", b"\xff", b"\0",
])
def test_opcodes_that_data_does_not_need(opcode):
    refused(with_pickle(b"N" + opcode), pickle.UnpicklingError, "Unsupported operand")


@pytest.mark.parametrize("name", ["__class__", "items", "__dict__", "_OrderedDict__root", "a b", "__len__"])
def test_attributes_of_dictionaries(name):
    state = pickle.EMPTY_DICT + text(name) + number(1) + pickle.SETITEM
    refused(with_pickle(call("collections.OrderedDict") + state + pickle.BUILD), RuntimeError, "not its to set")


@pytest.mark.parametrize("name", ["_array", "_backward_hooks", "grad_fn", "__class__", "requires_grad", "shape"])
def test_attributes_of_tensors(name):
    state = pickle.EMPTY_DICT + text(name) + number(1) + pickle.SETITEM
    plain = tensor(storage(number(4)), number(0), (4,), (1,))
    program = call("torch._utils._rebuild_parameter_with_state", plain, pickle.NEWTRUE, pickle.NONE, state)
    refused(with_pickle(program, _0=FLOATS), RuntimeError, "not its to set")


def test_state_that_is_no_dictionary():
    program = call("collections.OrderedDict") + listed(number(1)) + pickle.BUILD
    refused(with_pickle(program), RuntimeError, "must be a dictionary")


def test_hooks_are_never_restored():
    hooks = call("collections.OrderedDict", listed(sequence(number(0), text("hook"))))
    program = call("torch._utils._rebuild_tensor_v2", storage(number(4)), number(0), sequence(number(4)),
                   sequence(number(1)), pickle.NEWFALSE, hooks)
    found = from_bytes(with_pickle(program, _0=FLOATS))
    assert found.tolist() == [0, 1, 2, 3]
    assert not found.__dict__


@pytest.mark.parametrize(
    "subject", ["torch.Tensor", "torch.nn.parameter.Parameter", "builtins.complex", "mymodels.Sub"]
)
def test_tensors_of_a_class_that_is_none_or_not_safe(subject):
    function = named("torch._utils._rebuild_tensor_v2")
    place = storage(number(4)), number(0), sequence(number(4)), sequence(number(1))
    args = sequence(*place, pickle.NEWFALSE, pickle.NONE)
    program = call("torch._tensor._rebuild_from_type_v2", function, named(subject), args, pickle.NONE)
    data = with_pickle(program, _0=FLOATS)
    if subject in ("torch.Tensor", "torch.nn.parameter.Parameter"):
        assert type(from_bytes(data)) in (Tensor, Parameter)
    else:
        refused(data, pickle.UnpicklingError, "its class is not safe|was not an allowed global")
    nested = call("torch._tensor._rebuild_from_type_v2", named("torch.Size"), named("torch.Tensor"), args, pickle.NONE)
    refused(with_pickle(nested, _0=FLOATS), pickle.UnpicklingError, "described wrongly")


# --- memory that is not the file's -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("offset", "size", "stride"), [
    (0, (5,), (1,)), (1, (4,), (1,)), (4, (1,), (1,)), (0, (2, 2), (3, 1)), (0, (2,), (2**61,)), (2**61, (1,), (1,)),
    (0, (2**62, 4), (0, 1)), (0, (2**40, 2**40), (0, 0)), (0, (2**64,), (0,)), (2**600, (1,), (1,)),
])
def test_places_outside_the_storage(offset, size, stride):
    program = tensor(storage(number(4)), number(offset), size, stride)
    refused(with_pickle(program, _0=FLOATS), RuntimeError, "setStorage: .*are out of bounds for storage of size 16")


@pytest.mark.parametrize(("offset", "size", "stride"), [
    (number(-1), sequence(number(1)), sequence(number(1))), (number(0), sequence(number(-1)), sequence(number(1))),
    (number(0), sequence(number(2)), sequence(number(-1))), (number(0), sequence(number(2)), sequence()),
    (number(0), sequence(text("2")), sequence(number(1))), (text("0"), sequence(number(2)), sequence(number(1))),
    (pickle.NEWTRUE, sequence(number(2)), sequence(number(1))), (number(0), listed(number(2)), listed(number(1))),
    (number(0), sequence(*[number(1)] * 65), sequence(*[number(1)] * 65)),
])
def test_places_that_are_none(offset, size, stride):
    more = pickle.NEWFALSE, pickle.NONE
    program = call("torch._utils._rebuild_tensor_v2", storage(number(4)), offset, size, stride, *more)
    refused(with_pickle(program, _0=FLOATS), RuntimeError, "must be non-negative integers")


def test_an_empty_tensor_may_have_any_other_sizes():
    found = from_bytes(with_pickle(tensor(storage(number(4)), number(0), (0, 2**40), (2**40, 1)), _0=FLOATS))
    assert found.shape == (0, 2**40)


@pytest.mark.parametrize("count", [5, 2**60, 2**70])
def test_a_storage_larger_than_its_record(count):
    program = tensor(storage(number(count)), number(0), (1,), (1,))
    refused(with_pickle(program, _0=FLOATS), RuntimeError, r"record size \(16 bytes\) does not match expected size")


def test_a_storage_that_is_not_there():
    for key in ("0", "../../etc/passwd", "/etc/passwd"):
        data = with_pickle(storage(number(4), key=key))
        refused(data, RuntimeError, f"failed locating file data/{key}: file not found")


@pytest.mark.parametrize("identifier", [
    number(1), text("storage"), sequence(text("module"), text("x"), text("0"), text("cpu"), number(1)), sequence(),
    sequence(text("storage"), text("x")),
])
def test_other_persistent_objects(identifier):
    refused(with_pickle(identifier + b"Q"), pickle.UnpicklingError, "Only persistent_load of storage is allowed")


@pytest.mark.parametrize("parts", [
    (named("collections.OrderedDict"), text("0"), text("cpu"), number(4)),
    (named("torch.FloatStorage"), number(0), text("cpu"), number(4)),
    (named("torch.FloatStorage"), text("0"), number(0), number(4)),
    (named("torch.FloatStorage"), text("0"), text("cpu"), number(-4)),
    (named("torch.FloatStorage"), text("0"), text("cpu"), b"G" + struct.pack(">d", 4.0)),
    (named("torch.FloatStorage"), text("0"), text("cpu"), pickle.NEWTRUE),
])
def test_storages_described_wrongly(parts):
    program = sequence(text("storage"), *parts) + b"Q"
    refused(with_pickle(program, _0=FLOATS), pickle.UnpicklingError, "describes a storage wrongly")


def test_a_storage_of_two_types():
    program = listed(storage(number(4)), storage(number(4), kind="torch.IntStorage"))
    refused(with_pickle(program, _0=FLOATS), RuntimeError, "is described as torch.float32 and as torch.int32")


def test_a_tensor_on_no_storage():
    program = tensor(number(1), number(0), (1,), (1,))
    refused(with_pickle(program), RuntimeError, "built on a storage, the file gives a int")
    program = call("torch._utils._rebuild_parameter", number(1), pickle.NEWTRUE, pickle.NONE)
    refused(with_pickle(program), RuntimeError, "a parameter is made of a tensor, the file gives a int")


def test_gradients_of_integers():
    program = tensor(storage(number(2), kind="torch.LongStorage"), number(0), (2,), (1,), pickle.NEWTRUE)
    refused(with_pickle(program, _0=FLOATS), RuntimeError, "only Tensors of floating point dtype can require gradients")
    program = tensor(storage(number(4)), number(0), (2,), (1,), number(1))
    refused(with_pickle(program, _0=FLOATS), RuntimeError, "requires_grad must be a bool")


def test_unknown_properties_of_a_tensor():
    more = pickle.EMPTY_DICT + text("device_code") + number(1) + pickle.SETITEM
    program = tensor(storage(number(4)), number(0), (2,), (1,), pickle.NEWFALSE, more)
    refused(with_pickle(program, _0=FLOATS), RuntimeError, "a property of a tensor that is not known")


# --- sizes out of proportion -----------------------------------------------------------------------------------------


def test_lengths_that_are_not_there():
    four, eight = struct.pack("<I", 2**31), struct.pack("<Q", 2**62)
    for program in (b"X" + four, b"B" + four, b"\x8b" + four, b"\x8d" + eight, b"\x8e" + eight, b"\x96" + eight):
        refused(with_pickle(program), pickle.UnpicklingError, "ends before its end mark")


def _repeated(path: str, argument: bytes, times: int, *more: bytes) -> bytes:
    """A list of results of calling a name on one argument again and again; the argument is written once."""
    again_ = named(path) + sequence(b"h\0", *more) + pickle.REDUCE
    return argument + b"q\0" + pickle.EMPTY_LIST + pickle.MARK + again_ * times + pickle.APPENDS


@pytest.mark.parametrize("program", [
    _repeated("_codecs.encode", text("x" * 10_000), 3000, text("latin1")),
    _repeated("builtins.set", listed(*[number(i) for i in range(3000)]), 3000),
    _repeated("builtins.bytearray", b"B" + struct.pack("<I", 10_000) + b"x" * 10_000, 3000),
    _repeated("collections.Counter", b"}(" + b"".join(number(i) * 2 for i in range(3000)) + b"u", 3000),
    _repeated("collections.OrderedDict", listed(*[sequence(number(i), b"N") for i in range(3000)]), 3000),
    _repeated("numpy._core.numeric._frombuffer", b"B" + struct.pack("<I", 10_000) + b"x" * 10_000, 3000,
              call("numpy.dtype", text("u1")), sequence(number(10_000)), text("C")),
], ids=["bytes", "set", "bytearray", "Counter", "OrderedDict", "array"])
def test_copies_of_copies(program):
    refused(with_pickle(program), pickle.UnpicklingError, "is small and would make something very large of it")


@pytest.mark.parametrize("program", [
    call("builtins.bytearray", number(HUGE)), call("builtins.bytes", number(HUGE)), call("builtins.set", text("ab")),
    call("collections.Counter", text("ab")), call("collections.OrderedDict", number(1)),
    call("collections.OrderedDict", listed(number(1))), call("_codecs.encode", text("ab"), text("rot13")),
    call("torch.Size", number(HUGE)), call("torch.Size", sequence(text("a"))),
    call("builtins.complex", text("1"), number(1)), call("torch.device", number(1)),
    call("torch.device", text("cpu"), text("1")),
])
def test_calls_with_other_arguments(program):
    refused(with_pickle(program), pickle.UnpicklingError, "in the file (is|are) (made|written)|that do not fit")


@pytest.mark.parametrize("program", [
    call("numpy.dtype", text("O")), call("numpy.dtype", text("f8,O")), call("numpy.dtype", text(f"({HUGE},)f8")),
    call("numpy.dtype", number(1)), call("numpy._core.multiarray.scalar", call("numpy.dtype", text("f8")), b"C\1x"),
    call("numpy._core.multiarray._reconstruct", named("numpy.ndarray"), sequence(number(HUGE)), b"C\1b"),
    call("numpy._core.numeric._frombuffer", b"C\1x", call("numpy.dtype", text("f8")), sequence(number(2)), text("C")),
    call("numpy._core.numeric._frombuffer", b"C\1x", call("numpy.dtype", text("u1")), sequence(number(1)), text("K")),
    call("numpy.dtype", text("f8")) + sequence(*[number(3), text(">"), *[b"N"] * 3, *[number(0)] * 3]) + b"b",
    call("numpy.dtype", text("f8")) + sequence() + b"b",
])
def test_numpy_values_that_are_not_plain(program):
    refused(with_pickle(program), pickle.UnpicklingError, "NumPy")


def _array(*state: bytes) -> bytes:
    empty = call("numpy._core.multiarray._reconstruct", named("numpy.ndarray"), sequence(number(0)), b"C\1b")
    return empty + sequence(*state) + b"b"


@pytest.mark.parametrize("program", [
    _array(number(1), sequence(number(HUGE)), call("numpy.dtype", text("u1")), b"\x89", b"C\1x"),
    _array(number(1), sequence(number(-1)), call("numpy.dtype", text("u1")), b"\x89", b"C\1x"),
    _array(number(1), sequence(number(1)), named("numpy.dtype"), b"\x89", b"C\1x"),
    _array(number(1), sequence(number(1)), call("numpy.dtype", text("u1")), b"\x89", listed(number(1))),
    _array(number(1)),
])
def test_numpy_arrays_that_are_damaged(program):
    refused(with_pickle(program), pickle.UnpicklingError, "a NumPy array in the file")


def test_an_array_is_filled_once():
    state = sequence(number(1), sequence(number(1)), call("numpy.dtype", text("u1")), b"\x89", b"C\1x")
    program = call("numpy._core.multiarray._reconstruct", named("numpy.ndarray"), sequence(number(0)), b"C\1b")
    refused(with_pickle(program + state + b"b" + state + b"b"), pickle.UnpicklingError, "Can only build")


# --- time ------------------------------------------------------------------------------------------------------------


def test_keys_of_one_hash_value():
    keys = [number(k * (2**61 - 1)) for k in range(1, 20_000)]
    program = pickle.EMPTY_DICT + pickle.MARK + b"".join(key + b"N" for key in keys) + pickle.SETITEMS
    refused(with_pickle(program), pickle.UnpicklingError, "keys of one container have the same hash value")
    refused(with_pickle(call("builtins.set", listed(*keys))), pickle.UnpicklingError, "have the same hash value")


def test_a_key_that_takes_forever_to_hash():
    pairs = b")" + b"".join(b"q" + bytes([i]) + b"h" + bytes([i]) + b"\x86" for i in range(80))
    refused(with_pickle(b"}" + pairs + b"Ns"), pickle.UnpicklingError, "a key made of more than")
    cheap = b")" + b"".join(b"q" + bytes([i]) + b"h" + bytes([i]) + b"\x86" for i in range(10)) + b"q\x7f"
    program = cheap + b"}(" + b"h\x7fN" * 50_000 + b"u"
    refused(with_pickle(program), pickle.UnpicklingError, "would make something very large")


def test_many_honest_keys():
    table = {(i, -i): i for i in range(3000)} | {i: i for i in range(3000)} | {float(i) + 0.5: i for i in range(3000)}
    assert from_bytes(bytes_of(table)) == table


def test_keys_that_are_none():
    refused(with_pickle(b"}]Ns"), pickle.UnpicklingError, "a key that cannot be hashed, of type list")
    refused(with_pickle(b"}(Nu"), pickle.UnpicklingError, "a key without a value")


def test_depth():
    depth = 100_000
    refused(with_pickle(b"(" * depth), pickle.UnpicklingError, "takes from an empty stack")
    for program in b"]" * depth + b"a" * (depth - 1), b")" + b"\x85" * depth:
        assert len(from_bytes(with_pickle(program))) == 1
    refused(with_pickle(b"}" + b")" + b"\x85" * depth + b"Ns"), pickle.UnpicklingError, "a key nested more than")
