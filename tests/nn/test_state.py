"""State dicts: what is saved, loading it back, what is said when it does not fit, hooks."""

import re
from collections import OrderedDict

import pytest

import pellucid
from pellucid import nn


class Extra(nn.Module):
    """A module with every kind of state."""

    def __init__(self):
        super().__init__()
        self.x = 1
        self.layer = nn.Linear(1, 2, bias=False)
        self.norm = nn.BatchNorm1d(2)
        self.register_buffer("passing", pellucid.zeros(1), persistent=False)

    def get_extra_state(self):
        return {"x": self.x}

    def set_extra_state(self, state):
        self.x = state["x"]


def test_state_dict_has_names_versions_and_extra_state():
    state = Extra().state_dict(prefix="p.")
    assert list(state) == [
        "p._extra_state", "p.layer.weight", "p.norm.weight", "p.norm.bias", "p.norm.running_mean", "p.norm.running_var",
        "p.norm.num_batches_tracked",
    ]
    assert state._metadata == OrderedDict(
        [("p", {"version": 1}), ("p.layer", {"version": 1}), ("p.norm", {"version": 2})]
    )


def test_state_shares_memory_and_is_detached():
    net = nn.Linear(2, 2)
    state = net.state_dict()
    assert not state["weight"].requires_grad
    state["weight"].fill_(7)
    assert net.weight.tolist() == [[7, 7], [7, 7]]
    assert net.state_dict(keep_vars=True)["weight"] is net.weight


def test_destination_and_old_positional_arguments():
    net, into = nn.Linear(1, 1), {}
    assert net.state_dict(destination=into, prefix="a.") is into
    assert net.state_dict(into, "b.") is into
    assert list(into) == ["a.weight", "a.bias", "b.weight", "b.bias"]


def test_round_trip():
    pellucid.manual_seed(0)
    net, other = Extra(), Extra()
    net.x = 5
    weight = other.layer.weight
    result = other.load_state_dict(net.state_dict())
    assert repr(result) == str(result) == "<All keys matched successfully>"
    assert other.x == 5
    assert other.layer.weight is weight
    assert weight.tolist() == net.layer.weight.tolist()
    assert weight.requires_grad


def broken_state(net):
    state = net.state_dict()
    state["0.weight"] = pellucid.zeros(3, 2)
    state["x.y"] = state["2.0.q"] = pellucid.zeros(1)
    state["1.running_mean"] = 3
    del state["2.0.bias"]
    return state


def test_every_error_is_listed_and_nothing_changes():
    net = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2), nn.Sequential(nn.Linear(2, 1)))
    before = {name: value.tolist() for name, value in net.state_dict().items()}
    state = broken_state(net)
    state["0.bias"] = pellucid.ones(2) * 9
    with pytest.raises(RuntimeError) as raised:
        net.load_state_dict(state)
    assert str(raised.value) == (
        "Error(s) in loading state_dict for Sequential:\n"
        '\tMissing key(s) in state_dict: "2.0.bias". \n'
        '\tUnexpected key(s) in state_dict: "x.y", "2.0.q". \n'
        f"\tsize mismatch for 0.weight: copying a param with shape {state['0.weight'].shape} from checkpoint, "
        f"the shape in current model is {net[0].weight.shape}.\n"
        '\tWhile copying the parameter named "1.running_mean", expected Tensor or Tensor-like object from checkpoint '
        "but received <class 'int'>"
    )
    assert {name: value.tolist() for name, value in net.state_dict().items()} == before


def test_not_strict():
    net = nn.Linear(1, 1)
    result = net.load_state_dict({"weight": pellucid.ones(1, 1), "other": pellucid.ones(1)}, strict=False)
    assert (result.missing_keys, result.unexpected_keys) == (["bias"], ["other"])
    assert repr(result) == "_IncompatibleKeys(missing_keys=['bias'], unexpected_keys=['other'])"
    assert net.weight.item() == 1
    with pytest.raises(RuntimeError, match="size mismatch for weight"):
        net.load_state_dict({"weight": pellucid.ones(2, 1)}, strict=False)


def test_a_state_must_be_a_mapping():
    with pytest.raises(TypeError, match="Expected state_dict to be dict-like, got <class 'int'>"):
        nn.Linear(1, 1).load_state_dict(3)


def test_missing_and_unexpected_extra_state():
    state = Extra().state_dict()
    extra = state.pop("_extra_state")
    with pytest.raises(RuntimeError, match='Missing key\\(s\\) in state_dict: "_extra_state"'):
        Extra().load_state_dict(state)
    with pytest.raises(RuntimeError, match='Unexpected key\\(s\\) in state_dict: "_extra_state"'):
        nn.Linear(1, 1).load_state_dict({**nn.Linear(1, 1).state_dict(), "_extra_state": extra})


def test_extra_state_has_to_be_defined():
    with pytest.raises(RuntimeError, match=re.escape("Linear has no extra state: override get_extra_state()")):
        nn.Linear(1, 1).get_extra_state()
    with pytest.raises(RuntimeError, match=re.escape("Linear has no extra state: override set_extra_state()")):
        nn.Linear(1, 1).set_extra_state(None)


def test_assign_takes_the_tensors():
    net = nn.Linear(2, 2)
    net.bias.requires_grad_(False)
    given = {"weight": pellucid.ones(2, 2), "bias": nn.Parameter(pellucid.zeros(2))}
    net.load_state_dict(given, assign=True)
    assert net.bias is given["bias"]
    assert not net.bias.requires_grad
    assert isinstance(net.weight, nn.Parameter)
    assert net.weight.data_ptr() == given["weight"].data_ptr()


def test_assign_takes_buffers_too():
    net = nn.BatchNorm1d(2)
    state = net.state_dict()
    state["running_mean"] = pellucid.ones(2)
    net.load_state_dict(state, assign=True)
    assert net.running_mean is state["running_mean"]


def test_a_number_may_come_as_a_vector_of_one():
    net = nn.BatchNorm1d(1)
    net.load_state_dict({**net.state_dict(), "num_batches_tracked": pellucid.tensor([4])})
    assert net.num_batches_tracked.item() == 4


def test_states_of_version_one_lack_the_batch_count():
    net = nn.BatchNorm1d(1)
    state = {name: value for name, value in net.state_dict().items() if name != "num_batches_tracked"}
    assert not net.load_state_dict(state).missing_keys


def test_copies_convert_the_dtype():
    net = nn.Linear(1, 1)
    net.load_state_dict({name: value.double() for name, value in net.state_dict().items()})
    assert net.weight.dtype == pellucid.float32


def test_a_failed_copy_is_reported():
    net = nn.Linear(1, 1)
    net.weight.copy_ = None  # an attribute of the tensor, in the way of its method
    with pytest.raises(RuntimeError, match='While copying the parameter named "weight", whose dimensions'):
        net.load_state_dict(net.state_dict())


def test_an_own_load_is_done_when_super_returns():
    class Own(nn.Linear):
        def _load_from_state_dict(self, state_dict, prefix, *args):
            super()._load_from_state_dict(state_dict, prefix, *args)

    seen = []
    net = nn.Sequential(Own(1, 1))
    net[0].register_load_state_dict_post_hook(lambda module, keys: seen.append(module.weight.item()))
    net.load_state_dict({"0.weight": pellucid.ones(1, 1) * 4, "0.bias": pellucid.ones(1)})
    assert seen == [4]


def test_load_from_state_dict_by_itself_copies_at_once():
    net, errors = nn.Linear(1, 1), []
    net._load_from_state_dict({"weight": pellucid.ones(1, 1) * 3}, "", {}, False, [], [], errors)
    assert net.weight.item() == 3
    assert errors == []


# --- hooks -----------------------------------------------------------------------------------------------------------


def test_hooks_around_saving():
    seen = []
    net = nn.Sequential(nn.Linear(1, 1))
    net.register_state_dict_pre_hook(lambda module, prefix, keep_vars: seen.append((prefix, keep_vars)))
    net[0].register_state_dict_post_hook(lambda module, state, prefix, metadata: state.update({prefix + "more": 1}))
    assert list(net.state_dict()) == ["0.weight", "0.bias", "0.more"]
    assert seen == [("", False)]


def test_a_post_hook_returns_nothing():
    net = nn.Linear(1, 1)
    hook = lambda *args: 3  # noqa: E731
    net.register_state_dict_post_hook(hook)
    with pytest.raises(RuntimeError, match=r"state_dict post-hook must return None: .* returned int"):
        net.state_dict()
    with pytest.raises(RuntimeError, match="Cannot register the same function as the state dict post hook"):
        net._register_state_dict_hook(hook)


def test_an_older_post_hook_may_replace_the_dict():
    net = nn.Linear(1, 1)
    handle = net._register_state_dict_hook(lambda module, state, prefix, metadata: {"only": 1})
    assert net.state_dict() == {"only": 1}
    handle.remove()
    assert list(net.state_dict()) == ["weight", "bias"]


def test_hooks_around_loading():
    seen = []

    def rename(module, state, prefix, *rest):
        seen.append((type(module).__name__, prefix))
        state[prefix + "weight"] = state.pop(prefix + "old")

    def forgive(module, keys):
        seen.append(list(keys.missing_keys))
        keys.missing_keys.clear()

    net = nn.Sequential(nn.Linear(1, 1))
    net[0].register_load_state_dict_pre_hook(rename)
    net.register_load_state_dict_post_hook(forgive)
    net.load_state_dict({"0.old": pellucid.ones(1, 1) * 2})
    assert net[0].weight.item() == 2
    assert seen == [("Linear", "0."), ["0.bias"]]


def test_an_older_load_hook_is_not_given_the_module():
    seen = []
    net = nn.Linear(1, 1)
    net._register_load_state_dict_pre_hook(lambda state, prefix, *rest: seen.append(sorted(state)))
    net.load_state_dict(net.state_dict())
    assert seen == [["bias", "weight"]]


def test_a_load_hook_returns_nothing():
    net = nn.Linear(1, 1)
    net.register_load_state_dict_post_hook(lambda module, keys: keys)
    with pytest.raises(AssertionError, match="not expected to return new values"):
        net.load_state_dict(net.state_dict())
