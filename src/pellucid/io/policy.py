"""What a file may name when it is loaded with `weights_only=True`, and what comes of calling it.

An allow-list: every name has its own function that checks its arguments; whatever is not listed stops the load.
Programs add classes of their own with `add_safe_globals`. The pickle language itself is in `unpickler.py`.
"""

from __future__ import annotations

import _compat_pickle
import codecs
import pickle
from collections import Counter, OrderedDict
from collections.abc import Callable
from typing import Any

import numpy as np

from pellucid.core import dtype as dtypes
from pellucid.core.device import device
from pellucid.core.size import Size
from pellucid.core.tensor import Buffer, Parameter, Tensor, strided
from pellucid.io import numpy_values, tensors
from pellucid.io.safe_globals import user_globals
from pellucid.io.storage import STORAGE_DTYPES, StorageType
from pellucid.io.unpickler import Budget, KeyGuard

__all__ = ["TORCH_VALUES", "Policy", "rebuild_functions", "resolve_name"]

LoadStorage = Callable[[StorageType, str, str, int], Any]

# Running these on a file's say-so is never data, whatever a program declares safe.
_BLOCKED_MODULES = {"sys", "os", "posix", "nt", "subprocess", "runpy", "importlib"}
_LATIN = ("latin1", "latin-1")


def get_layout(name: str):
    """The memory layout of a name; RuntimeError for the ones that do not exist here."""
    if name != "torch.strided":
        raise RuntimeError(f"the file holds a tensor of layout {str(name)[:40]}; only torch.strided is supported")
    return strided


rebuild_functions: dict[str, Callable] = {
    "torch._utils._rebuild_tensor": tensors.rebuild_tensor,
    "torch._utils._rebuild_tensor_v2": tensors.rebuild_tensor_v2,
    "torch._utils._rebuild_parameter": tensors.rebuild_parameter,
    "torch._utils._rebuild_parameter_with_state": tensors.rebuild_parameter_with_state,
    "torch._tensor._rebuild_from_type_v2": tensors.rebuild_from_type,
}

# What PyTorch's names mean here. Reading follows the table in one direction, writing in the other.
TORCH_VALUES: dict[str, Any] = {
    **rebuild_functions,
    **{f"torch.{name}": StorageType(name, kind) for name, kind in STORAGE_DTYPES.items()},
    **{f"torch.{kind.name}": kind for kind in dtypes.DTYPES.values()},
    "torch.storage.UntypedStorage": StorageType("UntypedStorage", dtypes.uint8),
    "torch.Tensor": Tensor,
    "torch.nn.parameter.Parameter": Parameter,
    "torch.Size": Size,
    "torch.device": device,
    "torch.serialization._get_layout": get_layout,
}

_PYTHON_VALUES: dict[str, Any] = {
    "collections.OrderedDict": OrderedDict,
    "collections.Counter": Counter,
    "builtins.set": set,
    "builtins.bytearray": bytearray,
    "builtins.bytes": bytes,
    "builtins.complex": complex,
    "_codecs.encode": codecs.encode,
    "numpy.dtype": np.dtype,
    "numpy.ndarray": np.ndarray,
}
for _module in ("numpy._core.multiarray", "numpy.core.multiarray"):
    _PYTHON_VALUES[f"{_module}.scalar"] = numpy_values.scalar
    _PYTHON_VALUES[f"{_module}._reconstruct"] = numpy_values.new_array
_PYTHON_VALUES["numpy._core.numeric._frombuffer"] = numpy_values.from_buffer

_VALUES = {**_PYTHON_VALUES, **TORCH_VALUES}
_OWN_IDS = {id(value) for value in (*_VALUES.values(), Buffer)}


def resolve_name(module: str, name: str) -> tuple[str, str]:
    """Today's name for one of Python 2, which pickles of protocol 2 still use, and for storages kept by CUDA."""
    if (module, name) in _compat_pickle.NAME_MAPPING:
        return _compat_pickle.NAME_MAPPING[module, name]
    module = _compat_pickle.IMPORT_MAPPING.get(module, module)
    if module == "torch.cuda" and name in STORAGE_DTYPES:
        module = "torch"
    return module, name


class Policy:
    """Decides for one load.

    Args:
        load_storage: makes a storage from the type, key, location and number of elements that a file gives.
        length: of the pickle in bytes; it bounds what may be made of it.
    """

    def __init__(self, load_storage: LoadStorage, length: int):
        self._load_storage = load_storage
        # Two for each byte: an honest pickle copies its bytes at most twice (text to bytes, bytes to an array), and its
        # containers once, whose items take two bytes of pickle each, pairs four or five.
        self._budget = Budget(2 * length + 1000)
        self.keys = KeyGuard(length)
        self._user = user_globals()
        # What is always allowed is called by the rules below, even if a program declares it safe once more.
        self._user_ids = {id(value) for value in self._user.values()} - _OWN_IDS
        self._calls: dict[int, Callable] = {
            id(OrderedDict): self._ordered_dict,
            id(Counter): self._counter,
            id(set): self._set,
            id(bytearray): self._bytearray,
            id(bytes): _no_bytes,
            id(complex): _complex,
            id(codecs.encode): self._encode,
            id(np.dtype): numpy_values.make_dtype,
            id(numpy_values.scalar): numpy_values.scalar,
            id(numpy_values.new_array): numpy_values.new_array,
            id(numpy_values.from_buffer): self._from_buffer,
            id(Size): _size,
            id(device): _device,
            id(get_layout): get_layout,
            id(Parameter): tensors.rebuild_parameter,
            **{id(function): function for function in rebuild_functions.values()},
            id(tensors.rebuild_from_type): self._rebuild_from_type,
        }
        self._unfilled: dict[int, np.ndarray] = {}

    # --- what the machine asks ---------------------------------------------------------------------------------------

    def find(self, module: str, name: str) -> Any:
        """What a name stands for; UnpicklingError unless it is on the list."""
        module, name = resolve_name(module, name)
        path = f"{module}.{name}"
        if module.partition(".")[0] in _BLOCKED_MODULES:
            raise pickle.UnpicklingError(
                f"Trying to load unsupported GLOBAL {_shown(path)} whose module {_shown(module)} is blocked. No file "
                "of data needs it; do not trust this file"
            )
        if path in _VALUES:
            return _VALUES[path]
        if path in self._user:
            return self._user[path]
        raise pickle.UnpicklingError(_refusal(path))

    def call(self, function: Any, args: Any) -> Any:
        """The result of a call that the file asks for."""
        if type(args) is not tuple:
            raise pickle.UnpicklingError("the arguments of a call must be a tuple")
        known = self._calls.get(id(function))
        if known is None and id(function) not in self._user_ids:
            raise pickle.UnpicklingError(f"Trying to call reduce for unrecognized function {_kind(function)}")
        if known is None:
            return function(*args)
        try:
            made = known(*args)
        except TypeError as error:
            raise pickle.UnpicklingError(f"a call in the file has arguments that do not fit ({error})") from None
        if known is numpy_values.new_array:
            self._unfilled[id(made)] = made
        return made

    def new(self, kind: Any, args: Any) -> Any:
        """A new instance of a class that the program declared safe, or a parameter."""
        if kind is Parameter:
            return self.call(kind, args)
        if id(kind) not in self._user_ids or not isinstance(kind, type) or type(args) is not tuple:
            raise pickle.UnpicklingError(
                "Can only create new object for nn.Parameter or classes allowlisted via `add_safe_globals` but got "
                f"{_kind(kind)}"
            )
        return kind.__new__(kind, *args)

    def build(self, target: Any, state: Any) -> None:
        """Give an object the state that the file has for it."""
        kind = type(target)
        if isinstance(target, np.dtype):
            numpy_values.check_dtype_state(target, state)
        elif id(target) in self._unfilled:
            numpy_values.build_array(self._unfilled.pop(id(target)), state)
            self._budget.spend(target.nbytes)
        elif kind is OrderedDict:
            tensors.set_plain_attributes(target, state)
        elif id(kind) in self._user_ids:
            _build_user_object(target, state)
        else:
            raise pickle.UnpicklingError(
                "Can only build OrderedDict, NumPy values or types allowlisted via `add_safe_globals`, but got "
                f"{kind.__name__}"
            )

    def load_storage(self, identifier: Any) -> Any:
        """The storage of a persistent id."""
        whole = type(identifier) is tuple and len(identifier) in (5, 6)
        if not whole or identifier[0] not in ("storage", b"storage"):
            raise pickle.UnpicklingError("Only persistent_load of storage is allowed; the file asks for something else")
        kind, key, location, count = identifier[1:5]
        typed = isinstance(kind, StorageType) and type(key) is str and type(location) is str
        if not typed or type(count) is not int or count < 0:
            raise pickle.UnpicklingError("the file describes a storage wrongly")
        return self._load_storage(kind, key, location, count)

    def is_mapping(self, target: Any) -> bool:
        """Whether items may be set: the usual dictionaries, and those that the program declared safe."""
        kind = type(target)
        return kind in (dict, OrderedDict, Counter) or (isinstance(target, dict) and id(kind) in self._user_ids)

    # --- calls that copy ---------------------------------------------------------------------------------------------

    def _ordered_dict(self, pairs: list | tuple = ()) -> OrderedDict:
        made: OrderedDict = OrderedDict()
        wrong = pickle.UnpicklingError("an OrderedDict in the file is made from something that is no list of pairs")
        if type(pairs) not in (list, tuple):
            raise wrong
        self._budget.spend(10 * len(pairs))
        for pair in pairs:  # as Python 2 wrote them
            if type(pair) not in (list, tuple) or len(pair) != 2:
                raise wrong
            self.keys.check(made, pair[0])
            made[pair[0]] = pair[1]
        return made

    def _counter(self, counts: dict | None = None) -> Counter:
        if counts is not None and type(counts) is not dict:
            raise pickle.UnpicklingError("a Counter in the file is made from something that is no dictionary")
        self._budget.spend(8 * len(counts or ()))
        made: Counter = Counter()
        dict.update(made, counts or {})
        return made

    def _set(self, items: list | tuple = ()) -> set:
        if type(items) not in (list, tuple):
            raise pickle.UnpicklingError("a set in the file is made from something that is no list")
        self._budget.spend(4 * len(items))
        made: set = set()
        for item in items:
            self.keys.check(made, item)
            made.add(item)
        return made

    def _bytearray(self, data: bytes | str = b"", encoding: str = "latin-1") -> bytearray:
        data = self._encode(data, encoding) if type(data) is str else data
        if type(data) is not bytes:  # a number would ask for that many bytes
            raise pickle.UnpicklingError("a bytearray in the file is made from something that is no text or bytes")
        self._budget.spend(len(data))
        return bytearray(data)

    def _from_buffer(self, data: Any, *description: Any) -> np.ndarray:
        self._budget.spend(len(data))
        return numpy_values.from_buffer(data, *description)

    def _encode(self, text: str, encoding: str = "latin1") -> bytes:
        if type(text) is not str or encoding not in _LATIN:
            raise pickle.UnpicklingError("bytes in the file are written in a way that Python does not write them")
        self._budget.spend(len(text))
        return text.encode("latin1")

    def _rebuild_from_type(self, function: Any, kind: Any, args: Any, state: Any) -> Tensor:
        known = any(function is one for one in rebuild_functions.values()) and function is not tensors.rebuild_from_type
        declared = kind is Tensor or kind is Parameter or (id(kind) in self._user_ids and isinstance(kind, type))
        if not known or not declared or not issubclass(kind, Tensor) or type(args) is not tuple:
            raise pickle.UnpicklingError("a tensor with attributes is described wrongly, or its class is not safe")
        return tensors.rebuild_from_type(function, kind, args, state)


def _no_bytes() -> bytes:
    """Which is all that is ever asked of `bytes`: other values go through `_codecs.encode`."""
    return b""


def _complex(real: float, imag: float) -> complex:
    if type(real) not in (int, float) or type(imag) not in (int, float):
        raise pickle.UnpicklingError("a complex number in the file is made from something that is no number")
    return complex(real, imag)


def _size(sizes: tuple = ()) -> Size:
    if type(sizes) is not tuple or not all(type(n) is int for n in sizes):
        raise pickle.UnpicklingError("a torch.Size in the file is made from something that is no tuple of integers")
    return Size(sizes)


def _device(kind: str, index: int | None = None) -> device:
    if type(kind) is not str or not (index is None or type(index) is int):
        raise pickle.UnpicklingError("a torch.device in the file is made from something that is no name and number")
    return device(kind, index)


def _build_user_object(target: Any, state: Any) -> None:
    """As `pickle` does: the class's own `__setstate__`, or its attributes."""
    if hasattr(target, "__setstate__"):
        target.__setstate__(state)
        return
    slots = None
    if isinstance(state, tuple) and len(state) == 2:
        state, slots = state
    if state:
        target.__dict__.update(state)
    for name, value in (slots or {}).items():
        setattr(target, name, value)


def _kind(value: Any) -> str:
    """A word for a value that may be anything: its name if it has one of ours, its type otherwise."""
    return value.__qualname__ if isinstance(value, type) else f"an object of type {type(value).__name__}"


def _shown(name: str) -> str:
    """A name from a file, short and without control characters."""
    return name[:120] if name.isprintable() else repr(name[:120])


def _refusal(path: str) -> str:
    if path in _UNSUPPORTED:
        return f"Unsupported global: GLOBAL {path}: {_UNSUPPORTED[path]}"
    name, shown = _shown(path.rpartition(".")[2]), _shown(path.removeprefix("builtins."))
    return (
        f"Unsupported global: GLOBAL {shown} was not an allowed global by default. If you trust this class or function "
        f"import it and allow it, `with pellucid.serialization.safe_globals([{name}]): ...` for one load, or "
        f"`pellucid.serialization.add_safe_globals([{name}])` for all. `weights_only=False` would let the file run any "
        "code: use it only on files you trust"
    )


_SPARSE = "sparse tensors are not supported here. Save `tensor.to_dense()` instead"
_QUANTIZED = "quantized tensors are not supported here. Save `tensor.dequantize()` instead"
_META = "the file holds a tensor on the meta device, which has no values"
_EXOTIC = "the file holds a tensor of an element type that is not supported here. Convert it before it is saved"
_UNSUPPORTED = {
    "torch._utils._rebuild_sparse_tensor": _SPARSE,
    "torch._utils._rebuild_sparse_csr_tensor": _SPARSE,
    "torch._utils._rebuild_qtensor": _QUANTIZED,
    "torch._utils._rebuild_meta_tensor_no_storage": _META,
    "torch._utils._rebuild_tensor_v3": _EXOTIC,
    "torch._utils._rebuild_nested_tensor": "nested tensors are not supported here. Save their parts in a list instead",
}
