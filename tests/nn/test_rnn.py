"""Recurrent layers: values fixed from PyTorch, shapes and states in every layout, packed sequences, errors."""

import re

import pytest

import pellucid
from pellucid import nn
from pellucid.nn.utils.rnn import (
    PackedSequence,
    invert_permutation,
    pack_padded_sequence,
    pack_sequence,
    pad_packed_sequence,
    pad_sequence,
    unpack_sequence,
    unpad_sequence,
)  # fmt: skip


def filled(module):
    """The module with weights that follow a rule."""
    with pellucid.no_grad():
        for number, parameter in enumerate(module.parameters()):
            count = parameter.numel()
            ramp = pellucid.arange(count, dtype=parameter.dtype).reshape(parameter.shape)
            parameter.copy_((ramp - count / 2) * (0.1 + 0.05 * number))
    return module


def ramp(*shape):
    return pellucid.linspace(-1, 1, pellucid.Size(shape).numel()).reshape(*shape)


def flat(tensor):
    return tensor.detach().reshape(-1).tolist()


OUTPUTS = {  # of two directions, for the ramp [3, 2, 2]
    "RNN": [
        -0.16661388, -0.0816361, 0.0650448, -0.22783093, -0.27037907, -0.04542327, -0.10605291, -0.07262786,
        -0.31324017, -0.02133309, -0.11890898, 0.03872599, -0.38637114, 0.02045638, -0.41281798, 0.1817362, -0.4678962,
        0.06036292, -0.8651926, 0.18862312, -0.5376139, 0.10270503, -0.92759955, 0.29131263,
    ],
    "LSTM": [
        -0.01684018, 0.001028, -0.04903372, -0.06025653, -0.00751437, 0.0390279, -0.01891742, 0.02808743, -0.0080748,
        0.06453957, -0.00116411, 0.06329178, 0.00026357, 0.09251832, 0.00112258, 0.03409385, 0.00177065, 0.09594973,
        0.00053237, 0.01212666, 0.00367535, 0.09054781, 0.00016448, 0.00388149,
    ],
    "GRU": [
        -0.0762082, -0.09808191, -0.20615959, -0.15780276, 0.00970695, 0.05394417, -0.05945361, 0.17685029, 0.06574291,
        0.13241415, 0.2823497, 0.45333332, 0.21184906, 0.32877648, 0.63673794, 0.62755716, 0.33472508, 0.4396326,
        0.668847, 0.4442731, 0.480736, 0.58120257, 0.7924625, 0.4244154,
    ],
}
CELLS = {  # of one step, for the first step of the ramp
    "RNN": [-0.16661388, -0.0816361, -0.27037907, -0.04542327],
    "LSTM": [-0.01684018, 0.00102801, -0.00751437, 0.03902789],
    "GRU": [-0.07620818, -0.09808192, 0.00970695, 0.05394417],
}


@pytest.mark.parametrize("kind", OUTPUTS)
def test_values(kind):
    output, state = filled(getattr(nn, kind)(2, 2, bidirectional=True))(ramp(3, 2, 2))
    assert flat(output) == pytest.approx(OUTPUTS[kind], abs=1e-6)
    h = state[0] if kind == "LSTM" else state
    assert h.shape == (2, 2, 2)
    assert flat(h[0]) == pytest.approx(flat(output[-1, :, :2]))
    assert flat(h[1]) == pytest.approx(flat(output[0, :, 2:]))


@pytest.mark.parametrize("kind", CELLS)
def test_cells(kind):
    result = filled(getattr(nn, f"{kind}Cell")(2, 2))(ramp(3, 2, 2)[0])
    assert flat(result[0] if kind == "LSTM" else result) == pytest.approx(CELLS[kind], abs=1e-6)


@pytest.mark.parametrize("kind", CELLS)
def test_layers_are_cells_step_by_step(kind):
    layer, cell = getattr(nn, kind)(2, 3), getattr(nn, f"{kind}Cell")(2, 3)
    cell.load_state_dict({name.removesuffix("_l0"): value for name, value in layer.state_dict().items()})
    x, state = ramp(4, 2, 2), None
    output, _ = layer(x)
    for step in range(4):
        state = cell(x[step], state)
        assert flat(state[0] if kind == "LSTM" else state) == pytest.approx(flat(output[step]), abs=1e-6)
    assert cell(x[0, 0]) is not None
    assert flat(cell(x[0, 0])[0] if kind == "LSTM" else cell(x[0, 0])) == pytest.approx(flat(output[0, 0]), abs=1e-6)


def test_projection():
    output, (h, c) = filled(nn.LSTM(2, 3, 2, proj_size=1))(ramp(3, 2, 2))
    expected = [0.00394866, 0.00394775, 0.00525701, 0.00526408, 0.0056567, 0.00566992]
    assert flat(output) == pytest.approx(expected, abs=1e-6)
    assert (h.shape, c.shape) == ((2, 2, 1), (2, 2, 3))


def test_relu_is_not_tanh():
    layer = filled(nn.RNN(1, 1, nonlinearity="relu"))
    assert layer(pellucid.ones(1, 1, 1))[0].item() == 0
    assert layer.mode == "RNN_RELU"


@pytest.mark.parametrize("kind", OUTPUTS)
def test_layouts(kind):
    layer = getattr(nn, kind)(2, 3, 2, bidirectional=True)
    first = getattr(nn, kind)(2, 3, 2, bidirectional=True, batch_first=True)
    first.load_state_dict(layer.state_dict())
    x = ramp(4, 5, 2)
    output, _ = layer(x)
    assert output.shape == (4, 5, 6)
    assert flat(first(x.transpose(0, 1))[0].transpose(0, 1)) == pytest.approx(flat(output), abs=1e-6)
    single, state = layer(x[:, 0])
    assert flat(single) == pytest.approx(flat(output[:, 0]), abs=1e-6)
    assert (state[0] if kind == "LSTM" else state).shape == (4, 3)


@pytest.mark.parametrize("kind", OUTPUTS)
def test_gradients_flow_to_everything(kind):
    layer = getattr(nn, kind)(2, 3, 2, bidirectional=True)
    x = ramp(3, 2, 2).requires_grad_()
    layer(x)[0].sum().backward()
    assert x.grad is not None
    assert all(parameter.grad is not None for parameter in layer.parameters())


def test_given_states_are_used():
    layer = nn.GRU(1, 1)
    x, h = pellucid.ones(2, 1, 1), pellucid.ones(1, 1, 1)
    output, _ = layer(x[:1], h)
    again, _ = layer(x[1:], output)
    assert flat(layer(x, h)[0]) == pytest.approx([*flat(output), *flat(again)])


def test_dropout_only_between_layers_and_in_training():
    layer = nn.RNN(1, 4, 2, dropout=1.0)
    x = pellucid.ones(2, 1, 1)
    expected = nn.RNN(4, 4)
    expected.load_state_dict({name.replace("_l1", "_l0"): v for name, v in layer.state_dict().items() if "_l1" in name})
    assert flat(layer(x)[0]) == pytest.approx(flat(expected(pellucid.zeros(2, 1, 4))[0]))
    assert flat(layer.eval()(x)[0]) != flat(expected(pellucid.zeros(2, 1, 4))[0])


def test_weights_by_layer():
    layer = nn.LSTM(1, 2, 2, bidirectional=True, proj_size=1)
    assert [len(weights) for weights in layer.all_weights] == [5] * 4
    assert layer.all_weights[1][0] is layer.weight_ih_l0_reverse
    layer.flatten_parameters()
    assert layer.weight_ih_l1.shape == (8, 2)


@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (lambda: nn.RNN(0, 1), ValueError, "input_size must be greater than zero, got 0"),
        (lambda: nn.RNN(1, 1.5), TypeError, "hidden_size should be of type int, got: float"),
        (lambda: nn.RNN(1, 1, 0), ValueError, "num_layers must be greater than zero, got 0"),
        (lambda: nn.RNN(1, 1, bias=1), TypeError, "bias should be of type bool, got: int"),
        (lambda: nn.RNN(1, 1, dropout=2), ValueError, "dropout should be a number in range [0, 1]"),
        (lambda: nn.RNN(1, 1, nonlinearity="elu"), ValueError, "Unknown nonlinearity 'elu'. Select from"),
        (lambda: nn.LSTM(1, 1, proj_size=-1), ValueError, "proj_size should be a positive integer or zero"),
        (lambda: nn.LSTM(1, 1, proj_size=1), ValueError, "proj_size has to be smaller than hidden_size"),
        (lambda: nn.RNNBase("TREE", 1, 1), ValueError, "Unrecognized RNN mode: TREE"),
    ],
)
def test_constructor_errors(make, error, text):
    with pytest.raises(error, match=re.escape(text)):
        make()


def test_dropout_with_one_layer_warns():
    with pytest.warns(UserWarning, match="non-zero dropout expects num_layers greater than 1"):
        nn.GRU(1, 1, dropout=0.5)


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ([(2,)], ValueError, "LSTM: Expected input to be 2D or 3D, got 1D tensor instead"),
        ([(3, 2, 4)], RuntimeError, "input.size(-1) must be equal to input_size. Expected 2, got 4"),
        ([(3, 2, 2), (1, 2), (1, 2)], RuntimeError, "hx and cx should also be 3-D but got (2-D, 2-D)"),
        ([(3, 2), (1, 1, 3), (1, 1, 3)], RuntimeError, "For unbatched 2-D input, hx and cx should also be 2-D"),
        ([(3, 2, 2), (1, 2, 4), (1, 2, 3)], RuntimeError, "Expected hidden[0] size (1, 2, 3), got [1, 2, 4]"),
        ([(3, 2, 2), (1, 2, 3), (1, 1, 3)], RuntimeError, "Expected hidden[1] size (1, 2, 3), got [1, 1, 3]"),
    ],
)
def test_call_errors(arguments, error, text):
    x, *states = (pellucid.zeros(shape) for shape in arguments)
    with pytest.raises(error, match=re.escape(text)):
        nn.LSTM(2, 3)(x, tuple(states) or None)


def test_more_call_errors():
    with pytest.raises(ValueError, match=r"does not match weight dtype .*Convert input: input.to"):
        nn.GRU(1, 1)(pellucid.zeros(1, 1, 1, dtype=pellucid.float64))
    with pytest.raises(RuntimeError, match=r"For batched 3-D input, hx should also be 3-D but got 2-D tensor"):
        nn.GRU(1, 1)(pellucid.zeros(1, 1, 1), pellucid.zeros(1, 1))
    with pytest.raises(RuntimeError, match=r"Expected hidden size \(1, 1, 1\), got \[2, 1, 1\]"):
        nn.GRU(1, 1)(pellucid.zeros(1, 1, 1), pellucid.zeros(2, 1, 1))
    packed = pack_sequence([pellucid.zeros(1, 1)])
    with pytest.raises(RuntimeError, match="input must have 2 dimensions, got 1"):
        nn.GRU(1, 1)(PackedSequence(packed.data[:, 0], packed.batch_sizes))


@pytest.mark.parametrize(
    ("x", "h", "error", "text"),
    [
        ((1, 1, 1), (1, 1), ValueError, "GRUCell: Expected input to be 1D or 2D, got 3D instead"),
        ((1, 1), (1, 1, 1), ValueError, "GRUCell: Expected hidden to be 1D or 2D, got 3D instead"),
        ((1, 2), (1, 1), RuntimeError, "input has inconsistent input_size: got 2, expected 1"),
        ((2, 1), (1, 1), RuntimeError, "Input batch size 2 doesn't match hidden0 batch size 1"),
        ((1, 1), (1, 2), RuntimeError, "hidden0 has inconsistent hidden_size: got 2, expected 1"),
    ],
)
def test_cell_errors(x, h, error, text):
    with pytest.raises(error, match=re.escape(text)):
        nn.GRUCell(1, 1)(pellucid.zeros(x), pellucid.zeros(h))


def test_unknown_nonlinearity_of_a_cell():
    with pytest.raises(RuntimeError, match="Unknown nonlinearity: elu"):
        nn.RNNCell(1, 1, nonlinearity="elu")(pellucid.zeros(1, 1))


# --- packed sequences ------------------------------------------------------------------------------------------------


def test_packing():
    padded = pellucid.tensor([[1.0, 4.0], [2.0, 5.0], [3.0, 0.0]])
    packed = pack_padded_sequence(padded, [3, 2])
    assert packed.data.tolist() == [1, 4, 2, 5, 3]
    assert packed.batch_sizes.tolist() == [2, 2, 1]
    back, lengths = pad_packed_sequence(packed, padding_value=-1, total_length=4)
    assert back.tolist() == [[1, 4], [2, 5], [3, -1], [-1, -1]]
    assert lengths.tolist() == [3, 2]


def test_packing_sorts_and_restores():
    padded = pellucid.tensor([[4.0, 5.0, 0.0], [1.0, 2.0, 3.0]])
    packed = pack_padded_sequence(padded, pellucid.tensor([2, 3]), batch_first=True, enforce_sorted=False)
    assert packed.data.tolist() == [1, 4, 2, 5, 3]
    assert packed.sorted_indices.tolist() == packed.unsorted_indices.tolist() == [1, 0]
    back, lengths = pad_packed_sequence(packed, batch_first=True)
    assert back.tolist() == padded.tolist()
    assert lengths.tolist() == [2, 3]


def test_lists_of_sequences():
    sequences = [pellucid.ones(n) * n for n in (2, 3, 1)]
    assert pad_sequence(sequences, batch_first=True).tolist() == [[2, 2, 0], [3, 3, 3], [1, 0, 0]]
    assert pad_sequence(sequences, padding_value=9, padding_side="left").T.tolist() == [[9, 2, 2], [3, 3, 3], [9, 9, 1]]
    packed = pack_sequence(sequences, enforce_sorted=False)
    assert [s.tolist() for s in unpack_sequence(packed)] == [s.tolist() for s in sequences]
    padded = pad_sequence(sequences)
    assert [s.tolist() for s in unpad_sequence(padded, pellucid.tensor([2, 3, 1]))] == [s.tolist() for s in sequences]
    assert invert_permutation(None) is None


@pytest.mark.parametrize("kind", OUTPUTS)
@pytest.mark.parametrize("given", [False, True])
def test_packed_sequences_are_run_each_by_itself(kind, given):
    layer = getattr(nn, kind)(2, 3, 2, bidirectional=True)
    sequences = [ramp(n, 2) * n for n in (2, 4, 1, 4)]
    hx = None
    if given:
        h = ramp(4, 4, 3)
        hx = (h, h * 2) if kind == "LSTM" else h
    output, state = layer(pack_sequence(sequences, enforce_sorted=False), hx)
    for number, (sequence, rows) in enumerate(zip(sequences, unpack_sequence(output), strict=True)):
        own = None
        if given:
            own = tuple(s[:, number] for s in hx) if kind == "LSTM" else hx[:, number]
        expected, last = layer(sequence, own)
        assert flat(rows) == pytest.approx(flat(expected), abs=1e-6)
        for whole, single in zip(state, last, strict=True) if kind == "LSTM" else [(state, last)]:
            assert flat(whole[:, number]) == pytest.approx(flat(single), abs=1e-6)


def test_gradients_pass_through_packing():
    padded = pellucid.ones(3, 2, requires_grad=True)
    back, _ = pad_packed_sequence(pack_padded_sequence(padded, [3, 1]))
    (back * 2).sum().backward()
    assert padded.grad.tolist() == [[2, 2], [2, 0], [2, 0]]


def test_packed_sequences_convert_their_data():
    packed = pack_sequence([pellucid.ones(2)])
    assert packed.double().data.dtype == packed.to(pellucid.float64).data.dtype == pellucid.float64
    assert packed.half().float().long().int().data.dtype == pellucid.int32
    assert packed.cpu() is packed.pin_memory() is packed.float() is packed
    assert not packed.is_cuda
    assert not packed.is_pinned()
    assert PackedSequence((packed.data, packed.batch_sizes)).data is packed.data
    with pytest.raises(RuntimeError, match="not available"):
        packed.cuda()
    with pytest.raises(AssertionError, match="Expected data to be a list or tuple of length 2"):
        PackedSequence(packed.data)


@pytest.mark.parametrize(
    ("lengths", "text"),
    [
        ([1], "Expected `len(lengths)` to be equal to batch_size, but got 1 (batch_size=2)"),
        ([1, 2], "`lengths` array must be sorted in decreasing order when `enforce_sorted` is True"),
        ([2, 0], "Length of all samples has to be greater than 0"),
        ([4, 1], "Expected lengths of at most 3, the padded length, but got 4"),
    ],
)
def test_packing_errors(lengths, text):
    with pytest.raises(RuntimeError, match=re.escape(text)):
        pack_padded_sequence(pellucid.zeros(3, 2), lengths)


def test_padding_errors():
    with pytest.raises(RuntimeError, match="Cannot pack empty tensors"):
        pack_padded_sequence(pellucid.zeros(3, 0), [])
    with pytest.raises(ValueError, match="Expected total_length to be at least the length of the longest sequence"):
        pad_packed_sequence(pack_sequence([pellucid.ones(2)]), total_length=1)
    with pytest.raises(ValueError, match="padding_side must be 'left' or 'right', got 'up'"):
        pad_sequence([pellucid.ones(2)], padding_side="up")
    with pytest.raises(RuntimeError, match="received an empty list of sequences"):
        pad_sequence([])
