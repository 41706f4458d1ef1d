"""Connectionist temporal classification: the loss of an unaligned sequence of labels. The arithmetic is in kernels/ctc.py."""

from __future__ import annotations

from pellucid.autograd.operator import Array, Index, operator
from pellucid.kernels import ctc as kernel
from pellucid.ops.batch_places import into, out_of
from pellucid.ops.batches import for_each

__all__: list[str] = []


def _more_sequences(F, size: int, batched: set, operands: dict) -> list:
    """The examples of a batch as more sequences of one."""
    return [into(F, for_each(F, t, n in batched, size), int(n == "log_probs")) for n, t in operands.items()]


@operator(module=None, name="ctc_loss", node="CtcLossBackward0", widen=False)
class _ctc_loss:
    """The loss of each sequence. log_probs: [T, N, C]; targets: [N, S], padded; lengths: [N]. Returns [N].

    The gradient is that with respect to the scores before log_softmax, as in PyTorch; it is the same once it went through
    log_softmax's own.
    """

    def forward(
        xp,
        log_probs: Array,
        targets: Index,
        input_lengths: Index,
        target_lengths: Index,
        blank: int,
        zero_infinity: bool,
    ):
        loss = kernel.losses(log_probs, targets, input_lengths, target_lengths, blank)
        return xp.where(xp.isinf(loss), 0, loss).astype(loss.dtype, copy=False) if zero_infinity else loss

    def vjp_log_probs(F, grad, log_probs, targets, input_lengths, target_lengths, blank, zero_infinity):
        return F.ctc_loss_backward(grad, log_probs, targets, input_lengths, target_lengths, blank, zero_infinity)

    def jvp_log_probs(F, tangent, log_probs, targets, input_lengths, target_lengths, result, blank, zero_infinity):
        one = F.zeros_as(result) + 1
        slope = F.ctc_loss_backward(one, log_probs, targets, input_lengths, target_lengths, blank, zero_infinity)
        return F.sum_dim(slope * tangent, (0, 2), False)

    def batch(F, size_of_batch, batched, log_probs, targets, input_lengths, target_lengths, blank, zero_infinity):
        operands = {"log_probs": log_probs, "targets": targets, "input_lengths": input_lengths, "target_lengths": target_lengths}
        made = F.ctc_loss(*_more_sequences(F, size_of_batch, batched, operands), blank, zero_infinity)
        return out_of(F, made, 0, size_of_batch, input_lengths.shape[-1])


@operator(module=None, widen=False)
class ctc_loss_backward:
    """The gradient of `ctc_loss`: probabilities minus the share of each class in the alignments, times grad.

    input: [N]; the rest as for ctc_loss. Returns [T, N, C]. It has no derivative.
    """

    def forward(
        xp, input: Array, log_probs: Array, targets: Index, input_lengths: Index, target_lengths: Index, blank: int,
        zero_infinity: bool,
    ):  # fmt: skip
        return kernel.gradient(input, log_probs, targets, input_lengths, target_lengths, blank, zero_infinity)

    def batch(F, size_of_batch, batched, input, log_probs, targets, input_lengths, target_lengths, blank, zero_infinity):
        operands = {"input": input, "log_probs": log_probs, "targets": targets}
        operands |= {"input_lengths": input_lengths, "target_lengths": target_lengths}
        made = F.ctc_loss_backward(*_more_sequences(F, size_of_batch, batched, operands), blank, zero_infinity)
        return out_of(F, made, 1, size_of_batch, input_lengths.shape[-1])

    def vjp(F, grad, needs):
        raise RuntimeError("derivative for aten::_ctc_loss_backward is not implemented: ctc_loss has a first derivative only, so "
                           "leave out create_graph=True")


@operator(module=None, batching="leading")
class ctc_labels:
    """Targets [N, longest], from rows [N, S] or from one after another [sum of lengths]; beyond a length there are blanks."""

    def forward(xp, targets: Index, lengths: Index, longest: int, blank: int):
        return kernel.labels(targets, lengths, longest, blank)
