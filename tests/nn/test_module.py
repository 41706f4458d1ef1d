"""Module: registration, attributes, names, conversion, training mode, printing, copies.

State dicts and hooks are tested in files of their own.
"""

import copy
import pickle
import re
import warnings

import pytest

import pellucid
from pellucid import nn


class Net(nn.Linear):
    """A Linear of size 2 with a plain attribute, a child and a buffer."""

    def __init__(self):
        super().__init__(2, 2)
        self.plain = 3
        self.child = nn.ReLU()
        self.register_buffer("count", pellucid.zeros(1))


def members(module):
    return list(module._parameters), list(module._buffers), list(module._modules)


# --- registration ----------------------------------------------------------------------------------------------------


def test_attributes_are_registered_by_kind():
    net = Net()
    assert members(net) == (["weight", "bias"], ["count"], ["child"])
    assert "plain" in net.__dict__
    assert "weight" not in net.__dict__


def test_assigning_another_kind_moves_the_name():
    net = Net()
    net.child = nn.Parameter(pellucid.zeros(1))
    net.plain = nn.Tanh()
    net.count = nn.Parameter(pellucid.zeros(1))
    assert members(net) == (["weight", "bias", "child", "count"], [], ["plain"])
    assert "plain" not in net.__dict__


def test_a_module_takes_the_place_of_a_buffer():
    net = Net()
    net.count = nn.ReLU()
    assert members(net) == (["weight", "bias"], [], ["child", "count"])


def test_none_leaves_a_registered_name():
    net = Net()
    net.weight = net.count = net.child = None
    assert members(net) == (["weight", "bias"], ["count"], ["child"])
    assert [name for name, _ in net.named_parameters()] == ["bias"]


def test_buffer_objects_are_registered():
    net = nn.Module()
    net.kept = nn.Buffer(pellucid.zeros(2))
    net.passing = nn.Buffer(pellucid.zeros(2), persistent=False)
    assert list(net._buffers) == ["kept", "passing"]
    assert list(net.state_dict()) == ["kept"]


def test_a_buffer_is_overwritten_by_a_tensor():
    net = Net()
    net.count = pellucid.ones(3)
    assert net._buffers["count"].shape == (3,)


@pytest.mark.parametrize(
    ("name", "make", "error", "text"),
    [
        ("weight", lambda: 3, TypeError, "cannot assign 'int' as parameter 'weight' (nn.Parameter or None expected)"),
        ("weight", lambda: pellucid.zeros(2), TypeError, "(nn.Parameter or None expected). Wrap a tensor"),
        ("child", lambda: 3, TypeError, "cannot assign 'int' as child module 'child' (nn.Module or None expected)"),
        ("count", lambda: "a", TypeError, "cannot assign 'str' as buffer 'count' (nn.Buffer, Tensor or None expected)"),
        ("plain", lambda: nn.Buffer(pellucid.zeros(1)), KeyError, "attribute 'plain' already exists"),
    ],
)
def test_wrong_assignments(name, make, error, text):
    with pytest.raises(error, match=re.escape(text)):
        setattr(Net(), name, make())


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (nn.ReLU, "cannot assign module before Module.__init__() call: begin Early.__init__ with super().__init__()"),
        (lambda: nn.Parameter(pellucid.zeros(1)), "cannot assign parameters before Module.__init__() call"),
        (lambda: nn.Buffer(pellucid.zeros(1)), "cannot assign buffer before Module.__init__() call"),
    ],
)
def test_assignment_before_init(make, text):
    class Early(nn.Module):
        def __init__(self):
            self.member = make()

    with pytest.raises(AttributeError, match=re.escape(text)):
        Early()


@pytest.mark.parametrize("method", ["register_parameter", "register_buffer"])
def test_registration_before_init(method):
    class Early(nn.Module):
        def __init__(self):
            getattr(self, method)("member", None)

    with pytest.raises(AttributeError, match=r"before Module.__init__\(\) call"):
        Early()


@pytest.mark.parametrize(
    ("method", "what"), [("register_parameter", "parameter"), ("register_buffer", "buffer"), ("add_module", "module")]
)
def test_names(method, what):
    net = Net()
    register = getattr(net, method)
    with pytest.raises(TypeError, match=f"{what} name should be a string. Got int"):
        register(3, None)
    with pytest.raises(KeyError, match=f"{what} name can.+t contain"):
        register("a.b", None)
    with pytest.raises(KeyError, match=f"{what} name can.+t be empty string"):
        register("", None)
    with pytest.raises(KeyError, match="attribute 'plain' already exists"):
        register("plain", None)


def test_registering_wrong_values():
    net = Net()
    with pytest.raises(TypeError, match=re.escape("cannot assign 'int' object to parameter 'q' (nn.Parameter or None")):
        net.register_parameter("q", 3)
    with pytest.raises(TypeError, match=re.escape("'int' object to buffer 'q' (Tensor or None required)")):
        net.register_buffer("q", 3)
    with pytest.raises(TypeError, match="int is not a Module subclass"):
        net.add_module("q", 3)


def test_a_computed_parameter_is_refused():
    parameter = nn.Parameter(pellucid.ones(2))
    parameter.requires_grad_(False)
    parameter.mul_(pellucid.ones(2, requires_grad=True))
    with pytest.raises(ValueError, match="Cannot assign non-leaf Tensor to parameter 'q'"):
        nn.Module().register_parameter("q", parameter)


def test_register_buffer_without_persistent():
    class Old(nn.Module):
        def register_buffer(self, name, tensor):
            super().register_buffer(name, tensor)

    old = Old()
    old.kept = nn.Buffer(pellucid.zeros(1))
    assert list(old._buffers) == ["kept"]
    with pytest.raises(RuntimeError, match="implements register_buffer\\(\\) without the persistent argument"):
        old.passing = nn.Buffer(pellucid.zeros(1), persistent=False)


def test_module_takes_no_arguments():
    with pytest.raises(TypeError, match=re.escape("Module.__init__() takes 1 positional argument but 2 were given")):
        nn.Module(3)
    with pytest.raises(TypeError, match=re.escape("Module.__init__() got an unexpected keyword argument 'a'")):
        nn.Module(a=3)


def test_call_super_init_goes_on_with_the_arguments():
    class Other:
        def __init__(self, z):
            self.z = z

    class Both(nn.Module, Other):
        call_super_init = True

        def __init__(self, z):
            super().__init__(z=z)

    assert Both(4).z == 4


# --- attributes ------------------------------------------------------------------------------------------------------


def test_missing_attribute_says_why():
    with pytest.raises(AttributeError, match=r"'Net' object has no attribute 'nope'$"):
        _ = Net().nope

    class Lazy(nn.Module):
        def __init__(self):
            pass

        @property
        def broken(self):
            return self.missing

    with pytest.raises(AttributeError, match=r"\(Module.__init__\(\) has not been called yet\)"):
        _ = Lazy().other

    class Broken(Lazy):
        def __init__(self):
            nn.Module.__init__(self)

    with pytest.raises(AttributeError, match="its property of that name raised an AttributeError itself"):
        _ = Broken().broken


def test_deleting_members():
    net = Net()
    for name in ("weight", "count", "child", "plain"):
        delattr(net, name)
    assert members(net) == (["bias"], [], [])
    with pytest.raises(AttributeError, match="nope"):
        del net.nope


def test_dir_lists_members_and_no_numbers():
    names = dir(nn.Sequential(Net()))
    assert "0" not in names
    assert {"weight", "child", "count", "plain", "forward"} <= set(dir(Net()))


def test_missing_forward():
    with pytest.raises(NotImplementedError, match=r'Module \[Module\] is missing the required "forward" function'):
        nn.Module()(1)


def test_forward_may_be_replaced_on_an_instance():
    net = nn.Identity()
    net.forward = lambda x: x + 1
    assert net(1) == 2


# --- names and paths -------------------------------------------------------------------------------------------------


def shared():
    """A module that stands in two places."""
    twice = nn.Linear(1, 1)
    return nn.Sequential(twice, nn.Sequential(twice, nn.ReLU()), nn.BatchNorm1d(1))


def test_named_modules():
    net = shared()
    assert [name for name, _ in net.named_modules()] == ["", "0", "1", "1.1", "2"]
    assert [name for name, _ in net.named_modules(remove_duplicate=False)] == ["", "0", "1", "1.0", "1.1", "2"]
    assert [name for name, _ in net.named_modules(prefix="p")] == ["p", "p.0", "p.1", "p.1.1", "p.2"]
    assert [name for name, _ in net.named_modules(memo={net[1]})] == ["", "0", "2"]
    assert len(list(net.modules())) == 5
    assert [name for name, _ in net.named_children()] == ["0", "1", "2"]
    assert len(list(net.children())) == 3


def test_named_parameters_and_buffers():
    net = shared()
    assert [name for name, _ in net.named_parameters()] == ["0.weight", "0.bias", "2.weight", "2.bias"]
    assert len(list(net.named_parameters(remove_duplicate=False))) == 6
    assert next(name for name, _ in net.named_parameters(prefix="p")) == "p.0.weight"
    assert list(net.named_parameters(recurse=False)) == []
    assert [name for name, _ in net.named_buffers()] == ["2.running_mean", "2.running_var", "2.num_batches_tracked"]
    assert len(list(net.parameters())) == 4
    assert len(list(net.buffers())) == 3


def test_a_deep_tree_needs_no_recursion_to_be_walked():
    net = nn.Sequential()
    for _ in range(3000):
        net = nn.Sequential(net)
    assert sum(1 for _ in net.modules()) == 3001


def test_paths():
    net = nn.Sequential(Net())
    assert net.get_submodule("") is net
    assert net.get_submodule("0.child") is net[0].child
    assert net.get_parameter("0.weight") is net[0].weight
    assert net.get_buffer("0.count") is net[0].count
    with pytest.raises(AttributeError, match=r"Net has no attribute `a` \(in '0.a'\)"):
        net.get_submodule("0.a")
    with pytest.raises(AttributeError, match=r"`weight` is not an nn.Module: it is a Parameter"):
        net.get_submodule("0.weight")
    with pytest.raises(AttributeError, match=r"`plain` is not an nn.Parameter: it is a int"):
        net.get_parameter("0.plain")
    with pytest.raises(AttributeError, match="Net has no attribute `nope`"):
        net.get_parameter("0.nope")
    with pytest.raises(AttributeError, match="`weight` is not a buffer: it is a Parameter"):
        net.get_buffer("0.weight")


def test_set_submodule():
    net = nn.Sequential(Net())
    net.set_submodule("0.child", nn.Tanh())
    net.set_submodule("0.new", nn.Tanh())
    assert members(net[0])[2] == ["child", "new"]
    with pytest.raises(ValueError, match="Cannot set the submodule without a target name!"):
        net.set_submodule("", nn.Tanh())
    with pytest.raises(ValueError, match=r"`module` is not an nn.Module, found <class 'int'>"):
        net.set_submodule("0.child", 3)
    with pytest.raises(AttributeError, match="Net has no attribute `other`"):
        net.set_submodule("0.other", nn.Tanh(), strict=True)
    with pytest.raises(AttributeError, match=r"`weight` is not an nn.Module"):
        net.set_submodule("0.weight", nn.Tanh())


# --- the whole tree --------------------------------------------------------------------------------------------------


def test_apply_calls_children_first():
    seen = []
    net = nn.Sequential(nn.Linear(1, 1), nn.Sequential(nn.ReLU()))
    assert net.apply(lambda module: seen.append(type(module).__name__)) is net
    assert seen == ["Linear", "ReLU", "Sequential", "Sequential"]


def test_train_and_eval():
    net = nn.Sequential(nn.Dropout(), nn.Sequential(nn.ReLU()))
    assert net.eval() is net
    assert not any(module.training for module in net.modules())
    net.train()
    assert all(module.training for module in net.modules())
    with pytest.raises(ValueError, match="training mode is expected to be boolean, got int"):
        net.train(1)


def test_requires_grad_and_zero_grad():
    net = nn.Linear(2, 2)
    net(pellucid.ones(1, 2)).sum().backward()
    net.zero_grad(set_to_none=False)
    assert net.weight.grad.tolist() == [[0, 0], [0, 0]]
    net.zero_grad()
    assert net.weight.grad is None
    assert not any(p.requires_grad for p in net.requires_grad_(False).parameters())


def test_zero_grad_leaves_the_graph_of_a_gradient():
    net = nn.Linear(1, 1, bias=False)
    net.weight.grad = net.weight * 2
    assert net.weight.grad.grad_fn is not None
    net.zero_grad(set_to_none=False)
    assert net.weight.grad.grad_fn is None


def test_conversion_keeps_the_parameters():
    net = Net()
    weight = net.weight
    net(pellucid.ones(1, 2)).sum().backward()
    assert net.double() is net
    assert net.weight is weight
    assert (weight.dtype, weight.grad.dtype, net.count.dtype) == (pellucid.float64,) * 3
    assert net.to(pellucid.zeros(1)).weight.dtype == pellucid.float32
    assert net.to("cpu", pellucid.float64).weight.dtype == pellucid.float64
    assert net.half().weight.dtype == pellucid.float16
    assert net.bfloat16().weight.dtype == pellucid.bfloat16
    assert net.float().weight.dtype == pellucid.float32
    assert net.cpu().weight is weight


def test_conversion_leaves_integers():
    net = nn.BatchNorm1d(1).double()
    assert net.num_batches_tracked.dtype == pellucid.int64


def test_to_refuses_what_it_cannot_do():
    net = nn.Linear(1, 1)
    with pytest.raises(TypeError, match=r"nn.Module.to only accepts floating point or complex dtypes, but got"):
        net.to(pellucid.int32)
    with pytest.raises(RuntimeError, match="device 'cuda' is not available"):
        net.to("cuda")
    with pytest.raises(TypeError, match="to\\(\\) received an unexpected keyword argument 'dtipe'"):
        net.to(dtipe=pellucid.float64)
    with pytest.raises(RuntimeError, match="not available"):
        net.cuda()
    with pytest.warns(UserWarning, match="Complex modules are a new feature"):
        assert net.to(pellucid.complex64).weight.dtype == pellucid.complex64
    assert nn.ReLU().cuda() is not None


def test_to_empty_keeps_shapes():
    net = nn.Linear(2, 3).to_empty(device="cpu")
    assert net.weight.shape == (3, 2)


# --- printing and copies ---------------------------------------------------------------------------------------------


def test_repr():
    assert repr(nn.Module()) == "Module()"
    assert repr(nn.Linear(2, 3, bias=False)) == "Linear(in_features=2, out_features=3, bias=False)"
    assert repr(nn.Sequential(Net(), nn.Sequential(nn.Tanh()))) == (
        "Sequential(\n"
        "  (0): Net(\n"
        "    in_features=2, out_features=2, bias=True\n"
        "    (child): ReLU()\n"
        "  )\n"
        "  (1): Sequential(\n"
        "    (0): Tanh()\n"
        "  )\n"
        ")"
    )


def test_deepcopy_and_pickle():
    net = nn.Sequential(Net(), nn.ReLU()).eval()
    for other in (copy.deepcopy(net), pickle.loads(pickle.dumps(nn.Sequential(nn.Linear(2, 2), nn.ReLU()).eval()))):
        assert not other.training
        assert isinstance(other[0].weight, nn.Parameter)
    other = copy.deepcopy(net)
    assert other[0].weight is not net[0].weight
    assert other[0].weight.tolist() == net[0].weight.tolist()


def test_deepcopy_keeps_shared_parameters_shared():
    net = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    net[1].weight = net[0].weight
    other = copy.deepcopy(net)
    assert other[1].weight is other[0].weight


def test_a_state_without_newer_tables_is_completed():
    state = nn.Linear(1, 1).__getstate__()
    del state["_backward_pre_hooks"], state["_is_full_backward_hook"]
    net = nn.Linear.__new__(nn.Linear)
    net.__setstate__(state)
    assert net(pellucid.ones(1, 1)).shape == (1, 1)


def test_a_replica_shares_values_and_has_no_parameters():
    net = Net()
    replica = net._replicate_for_data_parallel()
    assert members(replica) == ([], ["count"], ["child"])
    assert replica.count is net.count


def test_no_warnings_on_import_and_use():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        nn.Sequential(nn.Linear(2, 2), nn.ReLU())(pellucid.ones(1, 2))
