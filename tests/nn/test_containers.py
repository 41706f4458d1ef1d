"""Containers: Sequential, ModuleList, ModuleDict, ParameterList, ParameterDict."""

import re
from collections import OrderedDict

import pytest

import pellucid
from pellucid import nn


def kinds(modules):
    return [type(module).__name__ for module in modules]


def test_sequential_calls_in_turn():
    net = nn.Sequential(OrderedDict(first=nn.Identity(), second=nn.Flatten(0)))
    assert list(net._modules) == ["first", "second"]
    assert net.second is net[1]
    assert net(pellucid.zeros(2, 3)).shape == (6,)


def test_sequential_is_a_list():
    net = nn.Sequential(nn.ReLU(), nn.Tanh(), nn.Sigmoid())
    net.append(nn.GELU()).insert(1, nn.ELU())
    assert kinds(net) == ["ReLU", "ELU", "Tanh", "Sigmoid", "GELU"]
    assert list(net._modules) == ["0", "1", "2", "3", "4"]
    assert type(net.pop(0)) is nn.ReLU
    del net[1:3]
    assert kinds(net) == ["ELU", "GELU"]
    del net[-1]
    net[0] = nn.Mish()
    net.extend([nn.ReLU()])
    net += nn.Sequential(nn.Tanh())
    assert kinds(net) == ["Mish", "ReLU", "Tanh"]
    assert kinds(net + nn.Sequential(nn.ELU())) == ["Mish", "ReLU", "Tanh", "ELU"]
    assert kinds(net[::2]) == ["Mish", "Tanh"]
    assert type(net[-1]) is nn.Tanh
    assert len(2 * net) == len(net * 2) == 6
    net *= 2
    assert kinds(net) == ["Mish", "ReLU", "Tanh"] * 2


def test_sequential_repeats_modules_without_copying():
    net = nn.Sequential(nn.Linear(1, 1))
    assert (net * 2)[1] is net[0]


@pytest.mark.parametrize(
    ("change", "error", "text"),
    [
        (lambda net: net[2], IndexError, "index 2 is out of range: there are 1 elements"),
        (lambda net: net.insert(3, nn.ReLU()), IndexError, "Index out of range: 3"),
        (lambda net: net.insert(0, 3), AssertionError, "module should be of type:"),
        (lambda net: net.extend(3), TypeError, "Sequential.extend should be called with an iterable, but got int"),
        (lambda net: net + 3, ValueError, "add operator supports only objects of Sequential class, but <class 'int'>"),
        (lambda net: net * "a", TypeError, "unsupported operand type(s) for *:"),
        (lambda net: net * 0, ValueError, "Non-positive multiplication factor 0 for"),
    ],
)
def test_sequential_errors(change, error, text):
    with pytest.raises(error, match=re.escape(text)):
        change(nn.Sequential(nn.ReLU()))


def test_module_list():
    modules = nn.ModuleList([nn.ReLU()])
    modules += [nn.Tanh()]
    modules.insert(0, nn.ELU())
    modules.append(nn.GELU())
    assert kinds(modules) == ["ELU", "ReLU", "Tanh", "GELU"]
    del modules[0]
    more = [nn.ReLU()]
    assert kinds(modules + more) == ["ReLU", "Tanh", "GELU", "ReLU"]
    assert type(modules[1:]) is nn.ModuleList
    assert kinds(modules[1:]) == ["Tanh", "GELU"]
    assert type(modules.pop(-1)) is nn.GELU
    modules[0] = nn.Mish()
    assert kinds(modules) == ["Mish", "Tanh"]
    with pytest.raises(IndexError, match="index 5 is out of range"):
        modules[5]
    with pytest.raises(NotImplementedError, match='missing the required "forward" function'):
        modules(1)


def test_module_list_prints_repeated_modules_once():
    modules = nn.ModuleList([nn.Linear(1, 2), nn.Linear(1, 2), nn.ReLU()])
    assert repr(modules) == (
        "ModuleList(\n  (0-1): 2 x Linear(in_features=1, out_features=2, bias=True)\n  (2): ReLU()\n)"
    )
    assert repr(nn.ModuleList()) == "ModuleList()"


def test_module_dict():
    modules = nn.ModuleDict([["a", nn.ReLU()]])
    modules["b"] = nn.Tanh()
    modules.update({"c": nn.ELU(), "a": nn.Mish()})
    assert list(modules) == list(modules.keys()) == ["a", "b", "c"]
    assert kinds(modules.values()) == ["Mish", "Tanh", "ELU"]
    assert "a" in modules
    assert modules.a is modules["a"]
    assert type(modules.pop("a")) is nn.Mish
    del modules["b"]
    assert [(name, type(m).__name__) for name, m in modules.items()] == [("c", "ELU")]
    modules.clear()
    assert len(modules) == 0


@pytest.mark.parametrize("kind", [nn.ModuleDict, nn.ParameterDict])
def test_update_errors(kind):
    name = kind.__name__
    with pytest.raises(TypeError, match=f"{name}.update should be called with an iterable of key/value pairs, but got"):
        kind(3)
    with pytest.raises(TypeError, match=f"{name} update sequence element #0 should be Iterable; is int"):
        kind([3])
    with pytest.raises(ValueError, match=f"{name} update sequence element #0 has length 1; 2 is required"):
        kind([["a"]])


def test_parameter_list():
    values = nn.ParameterList([pellucid.zeros(2), 3])
    values.append(pellucid.ones(1))
    values += [pellucid.ones(1)]
    assert kinds(values) == ["Parameter", "int", "Parameter", "Parameter"]
    assert [name for name, _ in values.named_parameters()] == ["0", "2", "3"]
    values[1] = pellucid.ones(4)
    assert len(values[1:]) == 3
    assert values[-1] is values[3]
    with pytest.raises(IndexError, match="index 4 is out of range"):
        values[4]
    with pytest.raises(TypeError, match=r"ParameterList\.extend should be called with an iterable, but got Tensor"):
        values.extend(pellucid.zeros(2))
    with pytest.raises(RuntimeError, match="ParameterList should not be called"):
        values(1)


def test_parameter_list_prints_its_values():
    assert repr(nn.ParameterList([pellucid.zeros(2, 3), 3])) == (
        "ParameterList(\n"
        f"    (0): Parameter containing: [{pellucid.float32} of size 2x3]\n"
        "    (1): Object of type: int\n"
        ")"
    )


def test_parameter_dict():
    values = nn.ParameterDict({"b": pellucid.zeros(1), "a": pellucid.zeros(2)})
    assert list(values) == ["a", "b"]  # a plain dict is taken in sorted order
    assert list(nn.ParameterDict(OrderedDict(b=1, a=2))) == ["b", "a"]
    values["z"] = pellucid.zeros(1)
    assert list(reversed(values)) == ["z", "b", "a"]
    assert (values.get("q", 4), values.setdefault("w", 5)) == (4, 5)
    assert values.popitem() == ("w", 5)
    assert values.pop("z").shape == (1,)
    assert list((values | {"y": 1}).keys()) == ["a", "b", "y"]
    values |= {"x": 1}
    assert [name for name, _ in values.named_parameters()] == ["a", "b"]
    assert dict(values.copy().items())["x"] == 1
    assert list(values.fromkeys(["k"], 1).values()) == [1]
    del values["x"]
    values.clear()
    assert len(values) == 0


def test_parameter_dict_errors():
    values = nn.ParameterDict()
    with pytest.raises(TypeError, match="cannot be used as a key as it is not a string \\(type is 'int'\\)"):
        values[3] = 1
    with pytest.raises(KeyError, match="nope"):
        values["nope"]
    with pytest.raises(KeyError, match="empty"):
        values.popitem()
    with pytest.raises(RuntimeError, match="ParameterDict should not be called"):
        values(1)


def test_container():
    assert list(nn.Container(a=nn.ReLU())._modules) == ["a"]
