"""What an error about shapes tells beside its message: the arguments by name, their shapes, the line, the module."""

import inspect

import pytest

import pellucid as torch
from pellucid import nn
from pellucid.core.errors import locate, refused

F = nn.functional


def here(text):
    """The file and number of the line in the caller's function that contains a text."""
    lines, first = inspect.getsourcelines(inspect.currentframe().f_back.f_code)
    return f"{__file__}:{first + next(k for k, line in enumerate(lines) if text in line)}"


def note(program, *arguments, kind=RuntimeError):
    """The note of the error that a program ends in: there is one."""
    with pytest.raises(kind) as caught:
        program(*arguments)
    (text,) = caught.value.__notes__
    return text


# --- operators --------------------------------------------------------------------------------------------------------

a, b, c = torch.ones(2, 3), torch.ones(4, 5), torch.ones(2, 4)
index = torch.zeros(3, 4, dtype=torch.int64)

OPERATORS = {
    "matmul": (lambda: a @ b, "mm(input [2, 3] `a`, mat2 [4, 5] `b`)"),
    "bmm": (lambda: torch.bmm(a[None], b[None]), "bmm(input [1, 2, 3], mat2 [1, 4, 5])"),
    "linear": (lambda: F.linear(a, b), "linear(input [2, 3] `a`, weight [4, 5] `b`)"),
    "add": (lambda: a + c, "add(input [2, 3] `a`, other [2, 4] `c`)"),
    "mul": (lambda: a * b, "mul(input [2, 3] `a`, other [4, 5] `b`)"),
    "add_": (lambda: a.add_(c), "add(input [2, 3] `a`, other [2, 4] `c`)"),
    "growing": (lambda: a.add_(torch.ones(5, 2, 3)), "add_(input [2, 3] `a`, other [5, 2, 3])"),
    "where": (lambda: torch.where(a > 0, a, c), "where(condition [2, 3], input [2, 3] `a`, other [2, 4] `c`)"),
    "cat": (lambda: torch.cat([a, c]), "cat(tensors[0] [2, 3] `a`, tensors[1] [2, 4] `c`)"),
    "stack": (lambda: torch.stack([a, c]), "stack(tensors[0] [2, 3] `a`, tensors[1] [2, 4] `c`)"),
    "view": (lambda: a.view(4, 2), "view(input [2, 3] `a`, size=(4, 2))"),
    "reshape": (lambda: a.reshape(5, -1), "view(input [2, 3] `a`, size=(5, -1))"),
    "expand": (lambda: a.expand(3, 3), "expand(input [2, 3] `a`, size=(3, 3))"),
    "permute": (lambda: a.permute(0, 1, 2), "permute(input [2, 3] `a`, dims=(0, 1, 2))"),
}  # fmt: skip

LISTED = {
    "embedding": (lambda: F.embedding(torch.tensor([7]), a), "embedding(weight [2, 3] `a`, indices [1]", IndexError),
    "sum": (lambda: a.sum(3), "sum(input [2, 3] `a`, dim=3)", IndexError),
    "softmax": (lambda: a.softmax(2), "softmax(input [2, 3] `a`, dim=2)", IndexError),
    "squeeze": (lambda: a.squeeze(4), "squeeze(input [2, 3] `a`, dim=4)", IndexError),
    "item": (lambda: a[5], "__getitem__(input [2, 3] `a`, key=", IndexError),
    "gather": (lambda: a.gather(0, index), "gather(input [2, 3] `a`, index [3, 4] `index`, dim=0)", RuntimeError),
    "scatter": (lambda: a.scatter(0, index, b), "scatter(input [2, 3] `a`, index [3, 4] `index`, src [4, 5] `b`, dim=0)", RuntimeError),
    "clamp": (lambda: torch.clamp(a, torch.ones(4)), "clamp(input [2, 3] `a`, min [4])", RuntimeError),
}


@pytest.mark.parametrize("name", OPERATORS)
def test_an_operator_names_its_arguments_their_shapes_and_the_line(name):
    program, call = OPERATORS[name]
    text = note(program)
    assert text.startswith(f"{call} failed at {__file__}:{program.__code__.co_firstlineno}, `")
    assert "in module" not in text


@pytest.mark.parametrize("name", LISTED)
def test_an_operator_goes_by_the_name_that_the_program_calls(name):
    program, call, kind = LISTED[name]
    assert note(program, kind=kind).startswith(call)


def test_a_leaf_that_is_written_to_is_named():
    w = torch.ones(2, requires_grad=True)

    def program():
        w.add_(1)  # the write

    assert note(program).startswith("add_(input [2] `w`")
    assert f"failed at {__file__}:" in note(program)


def test_the_dimension_that_differs_is_in_the_message():
    for program, phrase in (
        (lambda: a + c, r"The size of tensor a \(3\) must match the size of tensor b \(4\) at non-singleton dimension 1 \(a is 'input'"),
        (lambda: torch.clamp(a, torch.ones(4)), r"dimension 1 .* in clamp\(input: \[2, 3\], min: \[4\]\)"),
        (lambda: torch.cat([a, c]), "Sizes of tensors must match except in dimension 0. Expected size 3 but got size 4 for tensor number 1"),
        (lambda: a @ b, r"\(2x3 and 4x5\): the columns of the first \(3\) must be as many as the rows of the second \(4\)"),
    ):
        with pytest.raises(RuntimeError, match=phrase):
            program()


def test_other_arguments_are_shown_unless_they_are_long():
    assert "size=(2, 2)" in note(lambda: a.view(2, 2))
    assert "view(input [2, 3] `a`)" in note(lambda: a.view(*range(2, 40)))


# --- modules ----------------------------------------------------------------------------------------------------------


class Net(nn.Module):
    """A module for each kind of layer."""

    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList([nn.Sequential(nn.Linear(3, 3), nn.Linear(4, 3))])
        self.conv, self.up, self.pool = nn.Conv2d(3, 8, 3), nn.ConvTranspose2d(3, 8, 3), nn.MaxPool2d(3)
        self.batch, self.layer, self.group = nn.BatchNorm1d(3), nn.LayerNorm(5), nn.GroupNorm(2, 4)
        self.table, self.rnn, self.cell = nn.Embedding(5, 3), nn.LSTM(3, 4), nn.LSTMCell(3, 4)
        self.attention, self.loss = nn.MultiheadAttention(4, 2), nn.CrossEntropyLoss()
        self.scale = nn.Parameter(torch.ones(7))

    def forward(self, x, run):
        return run(self, x)


MODULES = {
    "linear": (lambda net, x: net.blocks[0](x), (2, 3), RuntimeError,
               "linear(input [2, 3], weight [3, 4] `net.blocks.0.1.weight`, bias [3] `net.blocks.0.1.bias`)",
               "model.blocks.0.1 (Linear)"),
    "conv": (lambda net, x: net.conv(x), (1, 4, 6, 6), RuntimeError,
             "conv2d(input [1, 4, 6, 6] `x`, weight [8, 3, 3, 3] `net.conv.weight`, bias [8] `net.conv.bias`)", "model.conv (Conv2d)"),
    "transposed": (lambda net, x: net.up(x), (1, 4, 6, 6), RuntimeError,
                   "conv_transpose2d(input [1, 4, 6, 6] `x`, weight [3, 8, 3, 3] `net.up.weight`", "model.up (ConvTranspose2d)"),
    "pool": (lambda net, x: net.pool(x), (1, 1, 2, 2), RuntimeError, "max_pool2d(input [1, 1, 2, 2] `x`)", "model.pool (MaxPool2d)"),
    "batch": (lambda net, x: net.batch(x), (2, 4), RuntimeError,
              "batch_norm(input [2, 4] `x`, running_mean [3] `net.batch.running_mean`, running_var [3] `net.batch.running_var`",
              "model.batch (BatchNorm1d)"),
    "layer": (lambda net, x: net.layer(x), (2, 4), RuntimeError,
              "layer_norm(input [2, 4] `x`, weight [5] `net.layer.weight`, bias [5] `net.layer.bias`)", "model.layer (LayerNorm)"),
    "group": (lambda net, x: net.group(x), (2, 3), RuntimeError, "group_norm(input [2, 3] `x`", "model.group (GroupNorm)"),
    "embedding": (lambda net, x: net.table(x.long() * 9), (2,), IndexError,
                  "embedding(weight [5, 3] `net.table.weight`, indices [2]", "model.table (Embedding)"),
    "lstm": (lambda net, x: net.rnn(x), (2, 1, 4), RuntimeError, "LSTM(input [2, 1, 4] `x`)", "model.rnn (LSTM)"),
    "states": (lambda net, x: net.rnn(x, (x[:1], x[:1])), (2, 1, 3), RuntimeError, "LSTM(input [2, 1, 3] `x`)", "model.rnn (LSTM)"),
    "cell": (lambda net, x: net.cell(x), (2, 4), RuntimeError, "LSTMCell(input [2, 4] `x`)", "model.cell (LSTMCell)"),
    "attention": (lambda net, x: net.attention(x, x, x), (2, 1, 5), AssertionError,
                  "MultiheadAttention(query [2, 1, 5] `x`, key [2, 1, 5] `x`, value [2, 1, 5] `x`)",
                  "model.attention (MultiheadAttention)"),
    "loss": (lambda net, x: net.loss(x, torch.tensor([1, 2, 3])), (2, 5), ValueError,
             "cross_entropy(input [2, 5] `x`, target [3])", "model.loss (CrossEntropyLoss)"),
    "parameter": (lambda net, x: x * net.scale, (2, 3), RuntimeError, "mul(input [2, 3] `x`, other [7] `net.scale`)", "model (Net)"),
    "function": (lambda net, x: F.layer_norm(x, (5,)), (2, 3), RuntimeError, "layer_norm(input [2, 3] `x`)", "model (Net)"),
}  # fmt: skip


@pytest.mark.parametrize("name", MODULES)
def test_in_a_module_the_note_tells_its_path_and_its_parameters(name):
    run, shape, kind, call, module = MODULES[name]
    model = Net()
    text = note(lambda: model(torch.ones(shape), run), kind=kind)
    assert text.startswith(call)
    assert f" failed at {__file__}:{run.__code__.co_firstlineno}, `" in text
    assert text.endswith(f", in module {module}")


def test_a_function_that_has_replaced_its_arguments_is_not_quoted():
    def replacing(value):
        value = torch.ones(7)
        raise RuntimeError(value.shape)

    def keeping(value):
        raise RuntimeError(value.shape)

    for function, expected in ((replacing, None), (keeping, "value")):
        with pytest.raises(RuntimeError) as caught:
            function(a)
        inner = caught.value.__traceback__.tb_next
        with pytest.MonkeyPatch.context() as patch:
            patch.setitem(refused.__globals__["outside"], __file__, False)  # as if these were functions of the library
            found = refused(inner)
        assert (found and found[1][0][0]) == expected


def test_an_error_is_noted_once():
    model = nn.Sequential(nn.Sequential(nn.Linear(3, 4)))
    with pytest.raises(RuntimeError) as caught:
        model(torch.ones(2, 5))
    locate(caught.value, None, "again", [])
    assert len(caught.value.__notes__) == 1


def test_an_error_of_the_program_itself_in_a_module_tells_what_the_module_was_given():
    class Strict(nn.Module):
        def forward(self, image, *, mask=None):
            raise ValueError("no")

    model = Strict()
    text = note(lambda: model(a, mask=c), kind=ValueError)
    assert text.startswith("Strict(image [2, 3] `image`, mask [2, 4] `mask`) failed at ")
    assert text.endswith('`raise ValueError("no")`, in module model (Strict)')


def test_the_line_is_the_innermost_of_the_program():
    class Inner(nn.Module):
        def forward(self, x):
            return F.cross_entropy(x, torch.tensor([1]))  # here

    model = nn.Sequential(nn.Identity(), Inner())
    text = note(lambda: model(a), kind=ValueError)
    assert f"cross_entropy(input [2, 3] `x`, target [1]) failed at {__file__}:" in text
    assert text.endswith("# here`, in module model.1 (Inner)")


def test_what_autocast_has_been_put_around_keeps_its_name():
    model = Net()
    with torch.autocast("cpu"):
        torch.ones(2, 2) @ torch.ones(2, 2)
    for name in ("conv", "transposed", "loss"):
        run, shape, kind, call, _ = MODULES[name]
        assert note(lambda run=run, shape=shape: model(torch.ones(shape), run), kind=kind).startswith(call)
        with torch.autocast("cpu"):  # the function gets copies in bfloat16, which have no name in the program
            inside = note(lambda run=run, shape=shape: model(torch.ones(shape), run), kind=kind)
        assert inside.startswith(call.partition("(")[0] + "(input [")


def test_settings_are_told_unless_they_are_the_default_written_again():
    x, target = torch.ones(2, 3), torch.ones(2)
    call = "cross_entropy(input [2, 3] `x`, target [2] `target`"
    same = note(lambda: F.cross_entropy(x, target, ignore_index=int("-100"), label_smoothing=float("0")))
    assert same.startswith(f"{call}) failed at ")
    other = note(lambda: F.cross_entropy(x, target, ignore_index=int("-200"), label_smoothing=float("0")))
    assert other.startswith(f"{call}, ignore_index=-200) failed at ")
