"""Losses of an input and a target of two shapes: what the warning or error says, and where it points."""

import warnings

import pytest

import pellucid as torch
from pellucid import nn

F = nn.functional

COMPARING = [F.mse_loss, F.l1_loss, F.smooth_l1_loss, F.huber_loss]
MODULES = [nn.MSELoss(), nn.L1Loss(), nn.SmoothL1Loss(), nn.HuberLoss()]
SILENT_IN_PYTORCH = [
    F.poisson_nll_loss, F.hinge_embedding_loss, F.multilabel_soft_margin_loss,
    lambda input, target: F.kl_div(input, target, reduction="sum"),
    lambda input, target: F.gaussian_nll_loss(input, target, 1.0),
]  # fmt: skip


def crossed():
    """A prediction in a row and targets in a column, each with two values."""
    return torch.tensor([0.0, 2.0]), torch.tensor([[0.0], [2.0]])


@pytest.mark.parametrize("loss", COMPARING + MODULES)
def test_a_row_against_a_column_is_warned_of(loss):
    prediction, target = crossed()
    with pytest.warns(UserWarning, match="Using a target size") as caught:
        loss(prediction, target)  # the line
    first, second = str(caught[0].message).split("\n")
    assert first == (
        "Using a target size (torch.Size([2, 1])) that is different to the input size (torch.Size([2])). This will "
        "likely lead to incorrect results due to broadcasting. Please ensure they have the same size."
    )
    assert second.startswith(
        "Here prediction of shape (2,) and target of shape (2, 1) broadcast to (2, 2), so that the loss has 4 terms. "
        "If they belong together one by one, use target.squeeze(1). At "
    )
    assert second.endswith("`loss(prediction, target)  # the line`")
    assert caught[0].filename == __file__


def test_the_value_is_that_of_all_pairs():
    with pytest.warns(UserWarning, match="Using a target size"):
        assert F.mse_loss(*crossed()).item() == 2.0
    prediction, target = crossed()
    assert F.mse_loss(prediction, target.squeeze(1)).item() == 0.0


@pytest.mark.parametrize(
    ("shapes", "advice"),
    [
        (((3, 1), (3,)), "use prediction.squeeze(1)."),
        (((3,), (1, 3)), "use truth.squeeze(0)."),
        (((2, 1), (1, 2)), "use truth.reshape(prediction.shape)."),
        (((2, 3), (3,)), "broadcast to (2, 3), so that the loss has 6 terms. If that is meant, say so: truth.expand_as(pre"),
        (((3,), (2, 3)), "If that is meant, say so: prediction.expand_as(truth)."),
        (((2, 1), (1, 3)), "broadcast to (2, 3), so that the loss has 6 terms. Each value of the input needs one of"),
    ],
)
def test_the_way_out_fits_the_shapes(shapes, advice):
    prediction, truth = (torch.zeros(shape) for shape in shapes)
    with pytest.warns(UserWarning, match="Using a target size") as caught:
        F.l1_loss(prediction, truth)
    assert advice in str(caught[0].message)


def test_what_has_no_name_is_called_input_and_target():
    with pytest.warns(UserWarning, match=r"Here input of shape \(2,\) and target of shape \(2, 1\) broadcast") as caught:
        F.mse_loss(torch.zeros(2), torch.zeros(2, 1))
    assert "target.squeeze(1)" in str(caught[0].message)


def test_shapes_that_do_not_broadcast_raise():
    prediction, target = torch.zeros(2, 3), torch.zeros(2)
    text = r"The size of tensor a \(3\) must match the size of tensor b \(2\) at non-singleton dimension 1"
    with pytest.warns(UserWarning, match="do not broadcast"), pytest.raises(RuntimeError, match=text):
        F.mse_loss(prediction, target)


def test_losses_of_probabilities_raise_with_the_same_advice():
    prediction, target = torch.tensor([0.5, 0.5]), torch.tensor([[0.0], [1.0]])
    for loss, text in (
        (F.binary_cross_entropy, r"Using a target size \(torch.Size\(\[2, 1\]\)\) that is different .* is deprecated"),
        (F.binary_cross_entropy_with_logits, r"Target size \(torch.Size\(\[2, 1\]\)\) must be the same as input size"),
    ):
        with pytest.raises(ValueError, match=text + ".*Here prediction .* use target.squeeze\\(1\\)"):
            loss(prediction, target)


def test_a_soft_margin_takes_no_larger_target():
    prediction, target = crossed()
    with pytest.raises(RuntimeError, match=r"output with shape \[2\] doesn't match the broadcast shape \[2, 2\]. Here pred"):
        F.soft_margin_loss(prediction, target)
    with pytest.raises(RuntimeError, match="doesn't match the broadcast shape"):
        F.soft_margin_loss(torch.zeros(3), torch.ones(2, 3))
    assert F.soft_margin_loss(torch.zeros(2, 3), torch.ones(3)).item() == pytest.approx(0.6931472)


@pytest.mark.parametrize("loss", SILENT_IN_PYTORCH)
def test_losses_that_broadcast_warn_of_pairs_alone(loss):
    prediction, target = crossed()
    with pytest.warns(UserWarning, match="taken of every pair of their values") as caught:
        loss(prediction, target)
    assert "use target.squeeze(1). At " in str(caught[0].message)
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        loss(torch.ones(3, 2), torch.ones(2))
        loss(torch.ones(2), torch.ones(2))


@pytest.mark.parametrize("loss", COMPARING)
def test_equal_shapes_are_not_warned_of(loss):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        loss(torch.zeros(2, 1), torch.zeros(2, 1))
