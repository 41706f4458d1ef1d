"""What a node tells about the values it saved: `_saved_*` and `_raw_saved_*`, and hooks on a single one."""

import pytest
from library import close, const, leaf, make_saved_tensor, torch

FREED = "Trying to backward through the graph a second time"


# --- attributes of nodes ---------------------------------------------------------------------------------------------


def test_a_node_gives_its_saved_operands_as_they_are():
    x, y = leaf([2.0]), leaf([5.0])
    node = (x * y).grad_fn
    assert node._saved_self is x
    assert node._saved_other is y


def test_a_node_gives_its_saved_result_as_an_equal_tensor():
    y = leaf([1.0]).exp()
    saved = y.grad_fn._saved_result
    assert saved is not y
    assert close(saved, y)
    assert saved.grad_fn is y.grad_fn


def test_a_saved_result_shares_the_version_of_the_result():
    y = leaf([1.0]).exp()
    saved = y.grad_fn._saved_result
    y.mul_(2)
    assert saved._version == y._version == 1


@pytest.mark.parametrize(
    "make", [lambda x: x.max(0), lambda x: x.sort(0), lambda x: x.topk(1, 0)], ids=["max", "sort", "topk"]
)
def test_saved_indices_have_no_history(make):
    values, indices = make(leaf([[1.0], [2.0]]))
    saved = values.grad_fn._saved_indices
    assert saved.tolist() == indices.tolist()
    assert not saved.requires_grad


F = torch.nn.functional
ATTRIBUTES = {
    "x ** 3": (lambda x: x**3, "_saved_exponent", 3),
    "sum(0)": (lambda x: x.sum(0), "_saved_dim", (0,)),
    "sum(0, keepdim)": (lambda x: x.sum(0, keepdim=True), "_saved_keepdim", True),
    "sum of the shape": (lambda x: x.sum(0), "_saved_self_sym_sizes", (2, 2)),
    "mean of the shape": (lambda x: x.mean(), "_saved_self_sym_sizes", (2, 2)),
    "view": (lambda x: x.view(4), "_saved_self_sym_sizes", (2, 2)),
    "expand": (lambda x: x.expand(3, 2, 2), "_saved_self_sym_sizes", (2, 2)),
    "transpose": (lambda x: x.transpose(0, 1), "_saved_dim1", 1),
    "permute": (lambda x: x.permute(1, 0), "_saved_dims", (1, 0)),
    "select": (lambda x: x.select(0, 1), "_saved_index", 1),
    "narrow": (lambda x: x.narrow(0, 1, 1), "_saved_end", 2),
    "[1:]": (lambda x: x[1:], "_saved_start", 1),
    "[1:] without end": (lambda x: x[1:], "_saved_end", 2**63 - 1),
    "[:, :1]": (lambda x: x[:, :1], "_saved_dim", 1),
    "[1, ::2]": (lambda x: x[1, ::2], "_saved_step", 2),
    "[1:, :1] of the shape": (lambda x: x[1:, :1], "_saved_self_sym_sizes", (1, 2)),
    "[None, 1:]": (lambda x: x[None, 1:], "_saved_dim", 1),
    "[..., -1]": (lambda x: x[..., -1], "_saved_index", 2**64 - 1),
    "[:, None]": (lambda x: x[:, None], "_saved_dim", 1),
    "diagonal": (lambda x: x.diagonal(), "_saved_dim2", 1),
    "as_strided": (lambda x: x.as_strided((3,), (1,)), "_saved_size", (3,)),
    "unfold": (lambda x: x.unfold(0, 2, 1), "_saved_step", 1),
    "flip": (lambda x: x.flip(0), "_saved_dims", (0,)),
    "roll": (lambda x: x.roll(1, 0), "_saved_shifts", (1,)),
    "stack": (lambda x: torch.stack([x, x], dim=0), "_saved_dim", 0),
    "cat": (lambda x: torch.cat([x, x], 1), "_saved_dim", 1),
    "cumsum": (lambda x: x.cumsum(0), "_saved_dim", 0),
    "tril": (lambda x: x.tril(1), "_saved_diagonal", 1),
    "softmax": (lambda x: x.softmax(1), "_saved_dim", 1),
    "clamp": (lambda x: x.clamp(0.0, 1.0), "_saved_max", 1.0),
    "threshold": (lambda x: F.threshold(x, 1.5, 1.0), "_saved_threshold", 1.5),
    "leaky_relu": (lambda x: F.leaky_relu(x, 0.2), "_saved_negative_slope", 0.2),
    "logit": (lambda x: torch.logit(x / 8, 0.25), "_saved_eps", 0.25),
    "logit without eps": (lambda x: torch.logit(x / 8), "_saved_eps", None),
    "pdist": (lambda x: torch.pdist(x, p=1), "_saved_p", 1.0),
    "var": (lambda x: x.var(0), "_saved_correction", 1),
    "addmm": (lambda x: torch.addmm(x, x, x, alpha=3), "_saved_alpha", 3),
    "addcmul": (lambda x: torch.addcmul(x, x, x, value=2), "_saved_value", 2),
    "lerp": (lambda x: torch.lerp(x, x, 0.5), "_saved_weight", 0.5),
    "conv2d": (lambda x: F.conv2d(x[None, None], x[None, None], dilation=1), "_saved_dilation", (1, 1)),
    "conv2d groups": (lambda x: F.conv2d(x[None, None], x[None, None]), "_saved_groups", 1),
    "qr": (lambda x: torch.linalg.qr(x, mode="reduced")[0], "_saved_mode", "reduced"),
    "embedding": (lambda x: F.embedding(torch.tensor([1]), x), "_saved_scale_grad_by_freq", False),
    "nll_loss": (lambda x: F.nll_loss(x, torch.tensor([1, 0])), "_saved_weight", None),
}


@pytest.mark.parametrize("name", ATTRIBUTES)
def test_a_node_gives_the_attributes_of_its_operation(name):
    compute, attribute, expected = ATTRIBUTES[name]
    value = getattr(compute(leaf([[1.0, 2.0], [3.0, 4.0]])).grad_fn, attribute)
    assert value == expected


@pytest.mark.parametrize(
    ("compute", "names"),
    [
        (lambda x: x.exp(), {"_saved_result"}),
        (lambda x: x * x, {"_saved_self", "_saved_other"}),
        (lambda x: x[1:], {f"_saved_{n}" for n in ("dim", "end", "self_sym_sizes", "start", "step")}),
        (lambda x: x[:, :], set()),
    ],
    ids=["exp", "mul", "slice", "alias"],
)
def test_a_node_lists_what_it_saved(compute, names):
    assert {name for name in dir(compute(leaf([[1.0], [2.0]])).grad_fn) if name.startswith("_saved_")} == names


def test_a_weight_that_was_saved():
    weight = const([2.0, 3.0])
    out = F.nll_loss(leaf([[1.0, 2.0]]), torch.tensor([1]), weight=weight)
    assert close(out.grad_fn._saved_weight, [2.0, 3.0])
    out.backward()
    with pytest.raises(RuntimeError, match=FREED):
        assert out.grad_fn._saved_weight


def test_an_attribute_that_was_not_saved():
    with pytest.raises(AttributeError, match="has no attribute '_saved_exponent'"):
        assert leaf([1.0]).exp().grad_fn._saved_exponent


def test_saved_values_are_gone_after_the_backward():
    y = leaf([2.0]) * leaf([3.0])
    node = y.grad_fn
    y.backward()
    with pytest.raises(RuntimeError, match=FREED):
        assert node._saved_self


def test_saved_values_stay_with_retain_graph():
    x = leaf([2.0])
    y = x * leaf([3.0])
    y.backward(retain_graph=True)
    assert y.grad_fn._saved_self is x


def test_the_node_of_a_function_gives_its_saved_tensors():
    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, g):
            return 2 * g * ctx.saved_tensors[0]

    x = leaf([2.0])
    y = Square.apply(x)
    assert y.grad_fn.saved_tensors[0] is x
    y.backward()
    with pytest.raises(RuntimeError, match=FREED):
        assert y.grad_fn.saved_tensors


# --- hooks on one saved value ----------------------------------------------------------------------------------------


def test_one_saved_value_may_be_given_hooks():
    x, y = leaf([2.0]), leaf([5.0])
    out = x * y
    out.grad_fn._raw_saved_self.register_hooks(lambda t: t * 10, lambda t: t * 5)
    out.backward()
    assert close(y.grad, [100.0])
    assert close(x.grad, [5.0])


def test_one_saved_result_may_be_given_hooks():
    x = leaf([1.0])
    out = x.exp()
    out.grad_fn._raw_saved_result.register_hooks(lambda t: t * 10, lambda t: t * 5)
    out.backward()
    assert close(x.grad, 50 * x.exp())


def test_a_saved_value_takes_hooks_once():
    out = leaf([1.0]) * leaf([2.0])
    raw = out.grad_fn._raw_saved_self
    raw.register_hooks(lambda t: t, lambda t: t)
    with pytest.raises(RuntimeError, match="already been set"):
        raw.register_hooks(lambda t: t, lambda t: t)


@pytest.mark.parametrize("operand", ["_raw_saved_self", "_raw_saved_other"])
def test_hooks_on_one_operand_act_in_both_orders(operand):
    x = leaf([2.0])
    out = x * x
    getattr(out.grad_fn, operand).register_hooks(lambda t: 2 * t, lambda t: 3 * t)
    (first,) = torch.autograd.grad(out, x, create_graph=True)
    assert close(first, [14.0])
    assert first.requires_grad


def test_a_raw_saved_value_shows_its_data_and_hook():
    def unpack(t):
        return t * 5

    x = leaf([2.0])
    square = (x * x).grad_fn
    assert square._raw_saved_self.data is x
    assert square._raw_saved_self.unpack_hook is None
    node = x.exp().grad_fn
    raw = node._raw_saved_result
    assert close(raw.data, x.exp())
    assert raw.data.grad_fn is None
    raw.register_hooks(lambda t: t * 10, unpack)
    assert close(raw.data, 10 * x.exp())
    assert raw.unpack_hook is unpack
    assert close(node._saved_result, 50 * x.exp())


def test_hooks_in_force_show_in_a_raw_saved_value():
    def unpack(t):
        return t

    with torch.autograd.graph.saved_tensors_hooks(lambda t: "handle", unpack):
        node = leaf([2.0]).exp().grad_fn
    raw = node._raw_saved_result
    assert raw.data == "handle"
    assert raw.unpack_hook is unpack


BAD_HOOKS = {
    "no functions": (1, 2, TypeError, r"register_hooks\(\)"),
    "pack of no arguments": (lambda: 1, lambda t: t, TypeError, "takes 0 positional arguments but 1 was given"),
    "pack writes": (lambda t: t.mul_(2), lambda t: t, RuntimeError, "pack hook is modifying its input in place"),
}


@pytest.mark.parametrize("name", BAD_HOOKS)
@pytest.mark.parametrize("kept", ["operand", "result"])
def test_hooks_that_are_refused(name, kept):
    pack, unpack, error, message = BAD_HOOKS[name]
    x = leaf([2.0]) * 1
    node = (x * x).grad_fn if kept == "operand" else x.exp().grad_fn
    raw = node._raw_saved_self if kept == "operand" else node._raw_saved_result
    with pytest.raises(error, match=message):
        raw.register_hooks(pack, unpack)


def test_hooks_that_unpack_no_tensor():
    x = leaf([2.0])
    out = x * x
    out.grad_fn._raw_saved_self.register_hooks(lambda t: 1, lambda t: t)
    with pytest.raises(TypeError, match="unpack_hook expected to be a Tensor but got result of type int"):
        out.backward()


def test_nothing_saved_takes_no_hooks():
    node = (leaf([2.0]) * const([3.0])).grad_fn
    assert node._saved_self is None
    with pytest.raises(RuntimeError, match="with value None is forbidden"):
        node._raw_saved_self.register_hooks(lambda t: t, lambda t: t)


def test_a_freed_value_takes_no_hooks():
    out = leaf([2.0]).exp()
    raw = out.grad_fn._raw_saved_result
    out.backward()
    with pytest.raises(RuntimeError, match="after it has been freed"):
        raw.register_hooks(lambda t: t, lambda t: t)


# --- saved by nobody -------------------------------------------------------------------------------------------------


def test_a_saved_tensor_cannot_be_made():
    with pytest.raises(RuntimeError, match="Trying to create a SavedTensor object from Python is forbidden"):
        torch.autograd.SavedTensor()


def test_a_value_may_be_saved_without_a_node():
    log = []

    def note(name):
        def hook(t):
            log.append(name)
            return t

        return hook

    x = leaf([2.0])
    with torch.autograd.graph.saved_tensors_hooks(note("pack"), note("unpack")):
        saved = make_saved_tensor(x, is_output=False)
    assert isinstance(saved, torch.autograd.SavedTensor)
    assert log == ["pack"]
    assert close(saved.unpack(), [2.0])
    assert close(saved.unpack(), [2.0])
    assert log == ["pack", "unpack", "unpack"]


def test_a_value_saved_without_a_node_may_be_given_hooks():
    saved = make_saved_tensor(leaf([2.0]), is_output=False)
    saved.register_hooks(lambda t: t * 10, lambda t: t * 5)
    assert close(saved.data, [20.0])
    assert close(saved.unpack(), [100.0])
