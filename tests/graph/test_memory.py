"""`graph.memory`: what is kept, counted against what NumPy allocates; the peak and its moment."""

import gc
import tracemalloc

import pytest

import pellucid
from pellucid import graph, nn
from pellucid.nn import functional as F

NUMPY = 389047  # the domain under which NumPy reports its arrays to tracemalloc


def leaf(*shape):
    return pellucid.ones(*shape, requires_grad=True)


def numpy_bytes():
    """Bytes of arrays that are traced now."""
    return sum(trace.size for trace in tracemalloc.take_snapshot().traces if trace.domain == NUMPY)


def measured(net, step):
    """Bytes of arrays alive after `step()`, the peak of its backward, and what is in use before that, beyond what was
    there before. The last two contain Python's objects too. What is made at first use is not of this step, nor is what
    the collector of cycles makes when it comes by."""
    step().backward()
    net.zero_grad()
    gc.collect()
    gc.disable()
    tracemalloc.start()
    try:
        start_arrays, start = numpy_bytes(), tracemalloc.get_traced_memory()[0]
        loss = step()
        kept = numpy_bytes() - start_arrays
        gc.collect()
        tracemalloc.reset_peak()
        before = tracemalloc.get_traced_memory()[0]
        loss.backward()
        peak = tracemalloc.get_traced_memory()[1] - start
        return kept, peak, before - start
    finally:
        tracemalloc.stop()
        gc.enable()


class LeNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.c1, self.c2 = nn.Conv2d(1, 6, 5, padding=2), nn.Conv2d(6, 16, 5)
        self.f1, self.f2, self.f3 = nn.Linear(400, 120), nn.Linear(120, 84), nn.Linear(84, 10)

    def forward(self, x):
        x = F.max_pool2d(self.c1(x).relu(), 2)
        x = F.max_pool2d(self.c2(x).relu(), 2).flatten(1)
        return self.f3(self.f2(self.f1(x).relu()).relu())


def lenet():
    net, images, labels = LeNet(), pellucid.randn(32, 1, 28, 28), pellucid.zeros(32, dtype=pellucid.int64)
    return net, lambda: F.cross_entropy(net(images), labels)


class Residual(nn.Module):
    def __init__(self, inside, outside, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inside, outside, 3, stride, 1, bias=False)
        self.conv2 = nn.Conv2d(outside, outside, 3, 1, 1, bias=False)
        self.norm1, self.norm2 = nn.BatchNorm2d(outside), nn.BatchNorm2d(outside)
        self.down = None
        if stride != 1 or inside != outside:
            self.down = nn.Sequential(nn.Conv2d(inside, outside, 1, stride, bias=False), nn.BatchNorm2d(outside))

    def forward(self, x):
        h = self.norm2(self.conv2(F.relu(self.norm1(self.conv1(x)))))
        return F.relu(h + (x if self.down is None else self.down(x)))


def resnet18():
    """ResNet-18 with an eighth of its channels, on images of 32 by 32."""
    widths = [8, 8, 16, 32, 64]
    blocks = [
        Residual(widths[k] if not second else widths[k + 1], widths[k + 1], 1 if second or not k else 2)
        for k in range(4)
        for second in (False, True)
    ]
    net = nn.Sequential(
        nn.Conv2d(3, 8, 3, 1, 1, bias=False), nn.BatchNorm2d(8), nn.ReLU(), *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(),
        nn.Linear(64, 10),
    )  # fmt: skip
    images, labels = pellucid.randn(16, 3, 32, 32), pellucid.zeros(16, dtype=pellucid.int64)
    return net, lambda: F.cross_entropy(net(images), labels)


class GptBlock(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.heads = heads

    def forward(self, x):
        batch, steps, width = x.shape
        q, k, v = (
            part.view(batch, steps, self.heads, -1).transpose(1, 2) for part in self.qkv(self.norm1(x)).chunk(3, -1)
        )
        scores = q @ k.transpose(-2, -1) / (width // self.heads) ** 0.5
        mask = pellucid.ones(steps, steps).tril().bool()
        weights = scores.masked_fill(~mask, float("-inf")).softmax(-1)
        x = x + self.proj((weights @ v).transpose(1, 2).reshape(batch, steps, width))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


def gpt_block():
    block, x = GptBlock(64, 4), pellucid.randn(8, 64, 64)
    return block, lambda: block(x).square().mean()


def lstm():
    net, x = nn.LSTM(64, 128), pellucid.randn(24, 64, 64)
    return net, lambda: net(x)[0].square().mean()


PROGRAMS = {"lenet": lenet, "resnet18": resnet18, "gpt block": gpt_block, "lstm": lstm}


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_is_saved_is_what_numpy_has_allocated_and_the_peak_is_right(name):
    net, step = PROGRAMS[name]()
    kept, peak, after_forward = measured(net, step)
    found = graph.memory(step)
    assert found.saved == pytest.approx(kept, rel=0.05)
    assert found.after_forward == pytest.approx(kept, rel=0.05)
    in_backward = max(moment.peak for moment in found.moments if moment.phase == "backward")
    python = after_forward - kept  # nodes and tensors are no arrays, but in the traced peak
    assert in_backward == pytest.approx(peak - python, rel=0.05)
    assert found.peak.peak >= in_backward


# --- what counts and what does not ------------------------------------------------------------------------------------


def test_shared_storage_is_counted_once():
    x = leaf(1000)

    def run():
        h = x.exp()
        return (h * h.view(10, 100).t().reshape(1000)).sum() + (h[:500] * 2).exp().sum()

    found = graph.memory(run)
    sizes = [piece.bytes for piece in found.kept]
    assert sizes == [4000, 4000, 2000]  # h; the reordered copy; the second exponential
    assert found.kept[0].users == 2


def test_parameters_and_inputs_live_anyway():
    layer, x = nn.Linear(100, 10), leaf(20, 100)
    found = graph.memory(layer, x)
    assert (found.saved, found.parameters, found.inputs) == (0, 4000 + 8000, 0)
    data = pellucid.ones(20, 100)
    assert graph.memory(layer, data).inputs == 8000


def test_each_module_has_what_was_saved_in_it():
    net, x = nn.Sequential(nn.Linear(10, 100), nn.Tanh(), nn.Linear(100, 10), nn.Sigmoid()), pellucid.ones(5, 10)
    found = graph.memory(net, x)
    assert [(m.path, m.saved) for m in found.modules] == [
        ("net", 5 * 110 * 4), ("net.0", 0), ("net.1", 2000), ("net.2", 0), ("net.3", 200),
    ]  # fmt: skip


def test_the_largest_pieces_say_what_they_are():
    x = leaf(1000)
    (piece,) = graph.memory(lambda: x.exp().sum()).top(3)
    assert (piece.bytes, piece.saved.name, piece.node.name) == (4000, "result", "ExpBackward0")
    assert piece.node.site.source == "(piece,) = graph.memory(lambda: x.exp().sum()).top(3)"


def test_the_peak_has_its_moment():
    x = leaf(1000)

    def run():
        small = x.exp()
        large = small.expand(50, 1000).exp()
        return large.sum() + small.sum()

    found = graph.memory(run)
    assert found.peak.peak >= 50 * 4000
    assert found.peak.node.name in ("ExpBackward0", "SumBackward0", "ExpandBackward0")
    assert [moment.phase for moment in found.moments[:2]] == ["forward", "forward"]
    assert found.moments[-1].used <= found.after_forward


def test_a_tensors_graph_is_looked_at_without_running_anything():
    x = leaf(1000)
    loss = x.exp().sum()
    found = graph.memory(loss)
    assert (found.saved, found.peak, found.moments) == (4000, None, [])
    loss.backward()
    assert graph.memory(loss).saved == 0
    assert "a backward has freed saved values already" in str(graph.memory(loss))


def test_without_a_backward_there_is_the_peak_of_the_forward():
    x = pellucid.ones(1000)
    found = graph.memory(lambda: (x.exp() + 1).sum(), backward=False)
    assert {moment.phase for moment in found.moments} == {"forward"}
    assert found.peak.peak >= 8000
    assert found.after_forward is None


def test_gradients_hooks_and_the_model_are_left_as_they_were():
    net, x = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4)), pellucid.randn(8, 4)
    weight, called = net[0].weight, []
    weight.grad = pellucid.ones(4, 4)
    weight.register_post_accumulate_grad_hook(called.append)
    before = net[1].running_mean.clone()
    graph.memory(net, x)
    assert (weight.grad == 1).all()
    assert called == []
    assert net[0].bias.grad is None
    assert (net[1].running_mean == before).all()
    net(x).sum().backward()
    assert called


def test_tracing_that_was_on_stays_on():
    x = leaf(10)
    tracemalloc.start()
    try:
        graph.memory(lambda: x.exp().sum())
        assert tracemalloc.is_tracing()
    finally:
        tracemalloc.stop()


def test_the_report():
    net, x = nn.Sequential(nn.Linear(10, 1000), nn.Tanh()), pellucid.ones(5, 10)
    found = graph.memory(net, x)
    text = str(found)
    for phrase in ("memory of net", "20 kB saved for backward in 1 piece", "peak ", "net.1", "result of TanhBackward0"):
        assert phrase in text
    assert "<table>" in found._repr_html_()
    assert repr(found).startswith("<memory of net: 20 kB saved for backward in 1 piece")


def test_a_program_that_fails_hands_over_the_part_that_ran():
    net = nn.Sequential(nn.Linear(4, 3), nn.Linear(5, 2))
    with pytest.raises(RuntimeError, match="cannot be multiplied") as caught:
        graph.memory(net, pellucid.ones(2, 4))
    assert len(caught.value.graph.operations) == 2
    assert not tracemalloc.is_tracing()
