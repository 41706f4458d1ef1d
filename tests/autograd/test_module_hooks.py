"""Backward hooks of modules beside those of tensors and nodes: in which order all of them run."""

from library import torch

GROUP = ["hook", "pre", "accumulated", "post"]


class Outer(torch.nn.Module):
    """A module with one other inside."""

    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(2, 2)

    def forward(self, x):
        return self.linear(x)


class Log(list):
    """Names of hooks as they run."""

    def note(self, name):
        return lambda *args: self.append(name)

    def watch_module(self, module, name):
        module.register_full_backward_pre_hook(self.note(f"{name} before"))
        module.register_full_backward_hook(self.note(name))

    def watch_leaf(self, tensor, name):
        node = torch.autograd.graph.get_gradient_edge(tensor).node
        node.register_hook(self.note(f"{name} post"))
        tensor.register_post_accumulate_grad_hook(self.note(f"{name} accumulated"))
        node.register_prehook(self.note(f"{name} pre"))
        tensor.register_hook(self.note(f"{name} hook"))
        return node

    def watch_node(self, node):
        node.register_hook(self.note(f"{node.name()} post"))
        node.register_prehook(self.note(f"{node.name()} pre"))


def find(node, name):
    """The first node of that name in the graph that ends in `node`."""
    stack = [node]
    while stack:
        node = stack.pop()
        if node.name() == name:
            return node
        stack.extend(child for child, _ in node.next_functions if child is not None)
    raise LookupError(name)


def test_the_order_of_all_hooks_of_a_linear_module_inside_another():
    module, log = Outer(), Log()
    log.watch_module(module, "outer")
    log.watch_module(module.linear, "linear")
    kept = [log.watch_leaf(p, name) for name, p in module.linear.named_parameters()]
    x = torch.ones(2, 2, requires_grad=True)
    x.register_hook(log.note("input"))
    y = module(x)
    y.register_hook(log.note("output"))
    log.watch_node(find(y.grad_fn, "AddmmBackward0"))
    y.sum().backward()
    assert len(kept) == 2
    assert log[:5] == ["output", "outer before", "linear before", "AddmmBackward0 pre", "AddmmBackward0 post"]
    assert log[-3:] == ["linear", "outer", "input"]
    of_parameters = [entry.split() for entry in log[5:-3]]
    assert [kind for name, kind in of_parameters if name == "weight"] == GROUP
    assert [kind for name, kind in of_parameters if name == "bias"] == GROUP
    assert len({name for name, _ in of_parameters[:4]}) == 1  # one parameter is done before the other begins
