"""The programs of docs/errors.md: twenty mistakes, each as the smallest program that makes it. `make_errors.py` runs them."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["MISTAKES", "Mistake"]


@dataclass(frozen=True)
class Mistake:
    """One mistake.

    heading: in plain words. program: it imports torch. fix: what to do. phrase: of PyTorch's message, what programs look for;
    empty where it has none. same: what to say where our message adds nothing to PyTorch's.
    """

    heading: str
    program: str
    fix: str
    phrase: str = ""
    same: str = ""


MISTAKES = (
    Mistake(
        "A value that backward still needs was overwritten",
        """
        import torch
        x = torch.tensor([0.5, 1.0], requires_grad=True)
        y = x.exp()
        y += 1
        y.sum().backward()
        """,
        "Write out of place, `y = y + 1`, or change a copy.",
        phrase="modified by an inplace operation: [torch.FloatTensor [2]], which is output 0 of Exp",
    ),
    Mistake(
        "A recurrence is written into slices of one tensor",
        """
        import torch
        decay = torch.tensor([0.5], requires_grad=True)
        state = torch.zeros(4)
        state[0] = 1.0
        for k in range(1, 4):
            state[k] = state[k - 1] * decay
        state.sum().backward()
        """,
        "Collect the steps in a list and join them at the end with `torch.stack` or `torch.cat`.",
        phrase="modified by an inplace operation: [torch.FloatTensor []], which is output 0 of",
    ),
    Mistake(
        "`.grad` is None, because the tensor is not a leaf",
        """
        import torch
        start = torch.ones(3, requires_grad=True)
        weight = start * 0.1
        (weight * 2).sum().backward()
        print(weight.grad)
        """,
        "Read the gradient of the leaf; or make the leaf itself what you want to train: "
        "`weight = (torch.ones(3) * 0.1).requires_grad_()`.",
        phrase="The .grad attribute of a Tensor that is not a leaf Tensor is being accessed",
    ),
    Mistake(
        "The loss was cut off from the parameters",
        """
        import torch
        net = torch.nn.Linear(2, 3)
        label = torch.tensor([1.0])
        guess = net(torch.ones(1, 2)).argmax(dim=1)
        loss = (guess - label).pow(2).sum()
        loss.backward()
        """,
        "Compute the loss from scores, not from what was chosen by them: `cross_entropy(net(x), label)`.",
        phrase="element 0 of tensors does not require grad and does not have a grad_fn",
    ),
    Mistake(
        "The cut is hidden by `loss.requires_grad = True`",
        """
        import torch
        net = torch.nn.Linear(2, 3)
        label = torch.tensor([1.0])
        guess = net(torch.ones(1, 2)).argmax(dim=1)
        loss = (guess - label).pow(2).sum()
        loss.requires_grad = True
        loss.backward()
        print(net.weight.grad)
        """,
        "Take that line out: the error it silences is right. No parameter gets a gradient, and nothing is trained.",
    ),
    Mistake(
        "A hidden state is carried from one backward into the next",
        """
        import torch
        cell = torch.nn.RNNCell(2, 2)
        hidden = torch.zeros(1, 2)
        for step in range(2):
            hidden = cell(torch.ones(1, 2), hidden)
            hidden.sum().backward()
        """,
        "Cut the history once a step: `hidden = hidden.detach()`. `retain_graph=True` would only hide it, and take more time "
        "and memory with each step.",
        phrase="Trying to backward through the graph a second time",
    ),
    Mistake(
        "Memory grows, because a running total keeps every graph",
        """
        import torch
        net = torch.nn.Linear(2, 1)
        total = 0
        for step in range(5000):
            loss = net(torch.ones(1, 2)).sum()
            loss.backward()
            total += loss
        """,
        "Add numbers, not tensors: `total += loss.item()`. The warning comes when Python's garbage collector has seen the graph grow "
        "several times; N stands for counts that differ from run to run. `pellucid.graph.live()` lists who holds graphs at any time.",
    ),
    Mistake(
        "NaN comes through the branch that `where` did not take",
        """
        import torch
        x = torch.tensor([-2.0, 9.0], requires_grad=True)
        with torch.autograd.detect_anomaly():
            y = torch.where(x > 0, x.sqrt(), 2 * x)
            y.sum().backward()
        """,
        "Guard the input of the function, not its result: `torch.where(x > 0, x, 1.0).sqrt()` inside the `where`.",
        phrase="returned nan values in its 0th output",
    ),
    Mistake(
        "NaN begins earlier than where it is noticed",
        """
        import torch
        x = torch.tensor([1.0], requires_grad=True)
        with torch.autograd.detect_anomaly():
            distance = (x - 5).log()
            loss = distance.exp().sum()
            loss.backward()
        """,
        "Look at the operation that makes the first NaN from finite values, and at its input.",
        phrase="returned nan values in its 0th output",
    ),
    Mistake(
        "Shapes do not fit inside a model",
        """
        import torch
        model = torch.nn.Sequential(
            torch.nn.Flatten(), torch.nn.Linear(64, 32), torch.nn.Linear(16, 10))
        images = torch.zeros(5, 8, 8)
        model(images)
        """,
        "The second layer takes what the first one gives: `Linear(32, 10)`.",
        phrase="mat1 and mat2 shapes cannot be multiplied (5x32 and 16x10)",
    ),
    Mistake(
        "Predictions of shape (n,) meet targets of shape (n, 1)",
        """
        import torch
        prediction = torch.zeros(3, requires_grad=True)
        price = torch.tensor([[1.0], [2.0], [3.0]])
        loss = torch.nn.functional.mse_loss(prediction, price)
        """,
        "Bring both to one shape, `price.squeeze(1)`. Otherwise the loss is the mean over all pairs.",
        phrase="Using a target size (torch.Size([3, 1])) that is different to the input size (torch.Size([3]))",
    ),
    Mistake(
        "`backward()` is called on more than one number",
        """
        import torch
        x = torch.ones(3, requires_grad=True)
        y = x * 2
        y.backward()
        """,
        "Reduce to a scalar first: `y.sum().backward()` or `y.mean().backward()`.",
        phrase="grad can be implicitly created only for scalar outputs",
    ),
    Mistake(
        "A parameter is updated in place while gradients are recorded",
        """
        import torch
        weight = torch.ones(2, requires_grad=True)
        (weight * 3).sum().backward()
        weight -= 0.1 * weight.grad
        """,
        "Update inside `with torch.no_grad():`, or let an optimizer do it.",
        phrase="a leaf Variable that requires grad is being used in an in-place operation",
    ),
    Mistake(
        "A tensor that requires grad is handed to NumPy",
        """
        import torch
        loss = torch.ones(2, requires_grad=True).sum()
        loss.numpy()
        """,
        "`loss.detach().numpy()`, or `loss.item()` for one number.",
        phrase="Can't call numpy() on Tensor that requires grad",
        same="PyTorch's message says what to do; ours is the same.",
    ),
    Mistake(
        "Data from NumPy is float64, the model is float32",
        """
        import numpy
        import torch
        features = torch.from_numpy(numpy.ones((4, 2)))
        torch.nn.Linear(2, 1)(features)
        """,
        "Convert the data once: `torch.from_numpy(array).float()`.",
        phrase="must have the same dtype, but got Double and Float",
    ),
    Mistake(
        "Targets of `cross_entropy` have the wrong type",
        """
        import torch
        scores = torch.zeros(2, 3, requires_grad=True)
        label = torch.tensor([0.0, 2.0])
        torch.nn.functional.cross_entropy(scores, label)
        """,
        "Class numbers are integers: `label.long()`. Floating-point targets are probabilities, one for each class.",
        phrase="expected target dtype to be Long or Byte, but got Float",
    ),
    Mistake(
        "The learning rate is wrong after a restart",
        """
        import torch
        def build(rate=1.0):
            weight = torch.nn.Parameter(torch.ones(1))
            return torch.optim.SGD([weight], lr=rate)
        def schedule_for(optimizer):
            return torch.optim.lr_scheduler.LinearLR(optimizer, 0.1, total_iters=6)
        optimizer = build()
        schedule = schedule_for(optimizer)
        for step in range(4):
            optimizer.step()
            schedule.step()
        restarted = build()
        restarted.load_state_dict(optimizer.state_dict())
        resumed = schedule_for(restarted)
        resumed.load_state_dict(schedule.state_dict())
        for name, each in (("ran on", optimizer), ("restarted", restarted)):
            print(name, round(each.param_groups[0]["lr"], 3))
        """,
        "In PyTorch build the optimizer and the schedule first and load both afterwards. Here any order is right.",
    ),
    Mistake(
        "The schedule is stepped before the optimizer",
        """
        import torch
        weight = torch.nn.Parameter(torch.ones(1))
        optimizer = torch.optim.SGD([weight], lr=0.1)
        schedule = torch.optim.lr_scheduler.StepLR(optimizer, step_size=1)
        schedule.step()
        optimizer.step()
        """,
        "`optimizer.step()` first, then `schedule.step()`.",
        phrase="Detected call of `lr_scheduler.step()` before `optimizer.step()`",
    ),
    Mistake(
        "Clipping meets a gradient that is not finite",
        """
        import torch
        net = torch.nn.Sequential(torch.nn.Linear(1, 2), torch.nn.Linear(2, 1))
        net(torch.ones(1, 1)).sum().backward()
        net[1].weight.grad[0, 1] = float("inf")
        torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0, error_if_nonfinite=True)
        """,
        "Find where it comes from with `detect_anomaly()`. Without `error_if_nonfinite=True` clipping makes NaN of it, silently.",
        phrase="is non-finite, so it cannot be clipped",
    ),
    Mistake(
        "A module that holds a computed tensor is copied",
        """
        import copy
        import torch
        net = torch.nn.Linear(2, 1)
        net.last = net(torch.ones(1, 2))
        copy.deepcopy(net)
        """,
        "Keep a detached value in the module, `net.last = net(x).detach()`, or none.",
        phrase="Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol",
    ),
)
