"""A machine for the part of the pickle language that data needs. It calls nothing: what a file may name, and what comes
of calling it, is the decision of a `Policy` (see `policy.py`).

The opcodes and their meaning are those of Python's `pickletools`. Opcodes that execute by name of extension, build
instances the old way or carry text as Python source are not here, and stop the load.
"""

from __future__ import annotations

import pickle
import struct
from collections.abc import Callable
from typing import Any, Protocol

__all__ = ["Budget", "KeyGuard", "Machine", "PolicyLike"]

_MAX_KEY_PARTS = 4096
_MAX_KEY_DEPTH = 100
_MAX_SAME_HASH = 128
_CUT_OFF = "the pickle ends before its end mark"
_EMPTY_STACK = "the pickle takes from an empty stack"


class Budget:
    """How much a pickle may have done for it: more than an honest one asks for, and in proportion to its length."""

    def __init__(self, amount: int):
        self._left = amount

    def spend(self, count: int) -> None:
        """Take `count` off what is left."""
        self._left -= count
        if self._left < 0:
            raise pickle.UnpicklingError("the pickle is small and would make something very large of it")


class KeyGuard:
    """Keeps dictionaries and sets fast whatever keys a file brings: a file can choose many keys of one hash value, or a
    tuple that takes forever to hash. Text is exempt, since its hash is salted.

    Args:
        length: of the pickle in bytes.
    """

    def __init__(self, length: int):
        self._budget = Budget(8 * length + 10_000)
        self._seen: dict[int, tuple[Any, dict[int, int]]] = {}
        self._counted: dict[int, tuple[tuple, int]] = {}

    def check(self, container, key) -> None:
        """Refuse a key that would make `container` slow, or that cannot be one."""
        if type(key) is str:
            return
        if isinstance(key, tuple):
            self._budget.spend(self._parts(key))
        try:
            value = hash(key)
        except TypeError:
            raise pickle.UnpicklingError(f"a key that cannot be hashed, of type {type(key).__name__}") from None
        if len(container) < _MAX_SAME_HASH:
            return
        _, counts = self._seen.setdefault(id(container), (container, {}))
        counts[value] = counts.get(value, 0) + 1
        if counts[value] > _MAX_SAME_HASH:
            raise pickle.UnpicklingError(f"more than {_MAX_SAME_HASH} keys of one container have the same hash value")

    def _parts(self, key: tuple, depth: int = 0) -> int:
        """How many parts a tuple has, counted as often as they are reached: that is how often they are hashed."""
        known = self._counted.get(id(key))
        if known is not None:
            return known[1]
        if depth > _MAX_KEY_DEPTH:
            raise pickle.UnpicklingError(f"a key nested more than {_MAX_KEY_DEPTH} deep")
        count = 1 + sum(self._parts(part, depth + 1) if isinstance(part, tuple) else 1 for part in key)
        if count > _MAX_KEY_PARTS:
            raise pickle.UnpicklingError(f"a key made of more than {_MAX_KEY_PARTS} parts")
        if count > 20:  # smaller ones are counted again more cheaply than remembered
            self._counted[id(key)] = key, count
        return count


class PolicyLike(Protocol):
    """What a machine asks of whoever decides."""

    keys: KeyGuard

    def find(self, module: str, name: str) -> Any: ...
    def call(self, function: Any, args: Any) -> Any: ...
    def new(self, kind: Any, args: Any) -> Any: ...
    def build(self, target: Any, state: Any) -> None: ...
    def load_storage(self, identifier: Any) -> Any: ...
    def is_mapping(self, target: Any) -> bool: ...


class Machine:
    """Runs one pickle.

    Args:
        data: the bytes in which the pickle lies.
        policy: decides what the pickle may name and do.
        start: where the pickle begins.
    """

    def __init__(self, data: bytes, policy: PolicyLike, start: int = 0):
        self.position = start
        self._data, self._policy = data, policy
        self._stack: list[Any] = []
        self._marks: list[list[Any]] = []
        self._memo: dict[int, Any] = {}
        self.keys = policy.keys

    def run(self) -> Any:
        """The object that the pickle describes; afterwards `position` is behind it.

        Raises:
            pickle.UnpicklingError: it is damaged, or does what this machine or the policy does not allow.
        """
        data, table = self._data, _TABLE
        try:
            while True:
                code = data[self.position]
                self.position += 1
                if code == _STOP:
                    break
                action = table.get(code)
                if action is None:
                    raise pickle.UnpicklingError(f"Unsupported operand {code} ({chr(code)!r}): data does not need it")
                action(self)
        except IndexError:
            if self.position >= len(data):
                raise pickle.UnpicklingError(_CUT_OFF) from None
            raise pickle.UnpicklingError(_EMPTY_STACK) from None
        if not self._stack:
            raise pickle.UnpicklingError(_EMPTY_STACK)
        return self._stack.pop()

    # --- reading -----------------------------------------------------------------------------------------------------

    def _take(self, count: int) -> bytes:
        start, end = self.position, self.position + count
        if end > len(self._data):
            raise pickle.UnpicklingError(_CUT_OFF)
        self.position = end
        return self._data[start:end]

    def _number(self, layout: struct.Struct):
        return layout.unpack(self._take(layout.size))[0]

    def _line(self) -> str:
        end = self._data.find(b"\n", self.position, self.position + 1000)
        if end < 0:
            self._take(1000)
            raise pickle.UnpicklingError("the pickle names something without end")
        return self._text(end - self.position, skip=1)

    def _text(self, count: int, skip: int = 0) -> str:
        data = self._take(count)
        self.position += skip
        try:
            return data.decode("utf-8", "surrogatepass")
        except UnicodeDecodeError:
            raise pickle.UnpicklingError("text in the pickle is not UTF-8") from None

    def _pop_mark(self) -> list[Any]:
        if not self._marks:
            raise pickle.UnpicklingError("the pickle takes items from a mark it has not set")
        items, self._stack = self._stack, self._marks.pop()
        return items

    # --- containers --------------------------------------------------------------------------------------------------

    def _mark(self) -> None:
        self._marks.append(self._stack)
        self._stack = []

    def _tuple(self, count: int) -> None:
        stack = self._stack
        if len(stack) < count:
            raise IndexError
        stack[-count:] = [tuple(stack[-count:])]

    def _extend(self, items: list) -> None:
        target = self._stack[-1]
        if type(target) is not list:
            raise pickle.UnpicklingError(f"Can only append to lists, but got {type(target).__name__}")
        target.extend(items)

    def _set_items(self, items: list) -> None:
        target = self._stack[-1]
        if not self._policy.is_mapping(target):
            raise pickle.UnpicklingError(
                "Can only set items of dict, OrderedDict, Counter and dictionaries declared safe, but got "
                f"{type(target).__name__}"
            )
        if len(items) % 2:
            raise pickle.UnpicklingError("a dictionary is given a key without a value")
        for key, value in zip(items[::2], items[1::2], strict=True):
            self.keys.check(target, key)
            target[key] = value

    def _add_items(self, items: list) -> None:
        target = self._stack[-1]
        if type(target) is not set:
            raise pickle.UnpicklingError(f"Can only add items to sets, but got {type(target).__name__}")
        for item in items:
            self.keys.check(target, item)
            target.add(item)

    # --- memo --------------------------------------------------------------------------------------------------------

    def _put(self, index: int) -> None:
        self._memo[index] = self._stack[-1]

    def _get(self, index: int) -> None:
        if index not in self._memo:
            raise pickle.UnpicklingError(f"the pickle refers to item {index}, which it has not made")
        self._stack.append(self._memo[index])

    # --- what the policy decides -------------------------------------------------------------------------------------

    def _global(self) -> None:
        module, name = self._line(), self._line()
        self._stack.append(self._policy.find(module, name))

    def _stack_global(self) -> None:
        name, module = self._stack.pop(), self._stack.pop()
        if type(name) is not str or type(module) is not str:
            raise pickle.UnpicklingError("the name of a global must be text")
        self._stack.append(self._policy.find(module, name))

    def _reduce(self) -> None:
        args = self._stack.pop()
        self._stack[-1] = self._policy.call(self._stack[-1], args)

    def _new_object(self) -> None:
        args = self._stack.pop()
        self._stack[-1] = self._policy.new(self._stack[-1], args)

    def _build(self) -> None:
        state = self._stack.pop()
        self._policy.build(self._stack[-1], state)

    def _persistent(self) -> None:
        self._stack[-1] = self._policy.load_storage(self._stack[-1])


_STOP = pickle.STOP[0]
_BYTE, _HALF, _INT, _UINT, _LONG = (struct.Struct(code) for code in ("<B", "<H", "<i", "<I", "<Q"))
_FLOAT = struct.Struct(">d")

_Action = Callable[[Machine], None]


def _constant(value) -> _Action:
    return lambda m: m._stack.append(value)


def _scalar(layout: struct.Struct) -> _Action:
    return lambda m: m._stack.append(m._number(layout))


def _bytes(layout: struct.Struct) -> _Action:
    return lambda m: m._stack.append(m._take(m._number(layout)))


def _text(layout: struct.Struct) -> _Action:
    return lambda m: m._stack.append(m._text(m._number(layout)))


def _integer(layout: struct.Struct) -> _Action:
    return lambda m: m._stack.append(int.from_bytes(m._take(m._number(layout)), "little", signed=True))


def _nothing(machine: Machine) -> None:
    """Frames are a hint for reading from a stream; the bytes are all here."""


_ACTIONS: dict[bytes, _Action] = {
    pickle.PROTO: lambda m: _check_protocol(m._number(_BYTE)),
    pickle.FRAME: lambda m: _nothing(m._take(8)),
    pickle.NONE: _constant(None),
    pickle.NEWTRUE: _constant(True),
    pickle.NEWFALSE: _constant(False),
    pickle.BININT: _scalar(_INT),
    pickle.BININT1: _scalar(_BYTE),
    pickle.BININT2: _scalar(_HALF),
    pickle.BINFLOAT: _scalar(_FLOAT),
    pickle.LONG1: _integer(_BYTE),
    pickle.LONG4: _integer(_UINT),
    pickle.SHORT_BINUNICODE: _text(_BYTE),
    pickle.BINUNICODE: _text(_UINT),
    pickle.BINUNICODE8: _text(_LONG),
    pickle.SHORT_BINBYTES: _bytes(_BYTE),
    pickle.BINBYTES: _bytes(_UINT),
    pickle.BINBYTES8: _bytes(_LONG),
    pickle.BYTEARRAY8: lambda m: m._stack.append(bytearray(m._take(m._number(_LONG)))),
    pickle.SHORT_BINSTRING: _text(_BYTE),  # text of Python 2
    pickle.BINSTRING: _text(_UINT),
    pickle.EMPTY_TUPLE: _constant(()),
    pickle.EMPTY_LIST: lambda m: m._stack.append([]),
    pickle.EMPTY_DICT: lambda m: m._stack.append({}),
    pickle.EMPTY_SET: lambda m: m._stack.append(set()),
    pickle.MARK: Machine._mark,
    pickle.TUPLE: lambda m: _push(m, tuple(m._pop_mark())),
    pickle.TUPLE1: lambda m: m._tuple(1),
    pickle.TUPLE2: lambda m: m._tuple(2),
    pickle.TUPLE3: lambda m: m._tuple(3),
    pickle.APPEND: lambda m: m._extend([m._stack.pop()]),
    pickle.APPENDS: lambda m: m._extend(m._pop_mark()),
    pickle.SETITEM: lambda m: m._set_items([m._stack.pop(-2), m._stack.pop()]),
    pickle.SETITEMS: lambda m: m._set_items(m._pop_mark()),
    pickle.ADDITEMS: lambda m: m._add_items(m._pop_mark()),
    pickle.BINPUT: lambda m: m._put(m._number(_BYTE)),
    pickle.LONG_BINPUT: lambda m: m._put(m._number(_UINT)),
    pickle.MEMOIZE: lambda m: m._put(len(m._memo)),
    pickle.BINGET: lambda m: m._get(m._number(_BYTE)),
    pickle.LONG_BINGET: lambda m: m._get(m._number(_UINT)),
    pickle.GLOBAL: Machine._global,
    pickle.STACK_GLOBAL: Machine._stack_global,
    pickle.REDUCE: Machine._reduce,
    pickle.NEWOBJ: Machine._new_object,
    pickle.BUILD: Machine._build,
    pickle.BINPERSID: Machine._persistent,
}
_TABLE = {code[0]: action for code, action in _ACTIONS.items()}


def _push(machine: Machine, value) -> None:
    machine._stack.append(value)


def _check_protocol(number: int) -> None:
    if number > pickle.HIGHEST_PROTOCOL:
        raise pickle.UnpicklingError(f"pickle protocol {number} is not known; the newest is {pickle.HIGHEST_PROTOCOL}")
