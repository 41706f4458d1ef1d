"""Profiles: which events there are, how they nest and add up, tables, traces, named ranges."""

import gzip
import json
import threading
import warnings
import weakref

import pytest
from library import ON_PELLUCID, close, leaf, pellucid_only, torch

if ON_PELLUCID:
    from pellucid.autograd import profiler_util
    from pellucid.autograd.profiler import EventList, FunctionEvent, FunctionEventAvg, profile, record_function
else:
    from torch.autograd import profiler_util
    from torch.autograd.profiler import profile, record_function
    from torch.autograd.profiler_util import EventList, FunctionEvent, FunctionEventAvg

KINETO = {"use_kineto": True}


def names(prof):
    return [event.name for event in prof.function_events]


def event_of(prof, name):
    return next(event for event in prof.function_events if event.name == name)


def made_up(id, start, end, thread=0, name="", **facts):
    return FunctionEvent(id=id, node_id=0, name=name, thread=thread, start_us=start, end_us=end, stack=[], **facts)


# --- events ----------------------------------------------------------------------------------------------------------


def test_operators_appear_by_name():
    x = torch.randn(10, 10)
    assert not torch.autograd._profiler_enabled()
    with profile(**KINETO) as prof:
        assert torch.autograd._profiler_enabled()
        x * 2 + 4
    assert not torch.autograd._profiler_enabled()
    assert {"aten::mul", "aten::add"} <= set(names(prof))


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda x: x / 2, "div"), (lambda x: x.sum(), "sum"), (lambda x: x.mean(0), "mean"), (lambda x: x**2, "pow"),
        (lambda x: x @ x, "mm"), (lambda x: x.mul_(2), "mul_"), (lambda x: x.relu_(), "relu_"),
        (lambda x: x[0], "select"), (lambda x: x.t(), "t"), (lambda x: torch.exp(x, out=torch.empty(2, 2)), "exp"),
        (lambda x: x.clamp(0, 1), "clamp"), (lambda x: torch.cat([x, x]), "cat"), (lambda x: x - 1, "sub"),
        (lambda x: x.max(), "max"), (lambda x: torch.topk(x, 1), "topk"), (lambda x: x.chunk(2), "split"),
    ],
)  # fmt: skip
def test_operators_have_the_names_of_pytorch(call, name):
    with profile(**KINETO) as prof:
        call(torch.ones(2, 2))
    assert f"aten::{name}" in names(prof)


def test_derivatives_appear_by_the_names_of_their_nodes():
    x = leaf([[1.0, 2.0], [3.0, 4.0]])
    with profile(**KINETO) as prof:
        (x @ x).relu().sum().backward()
    for name in ("SumBackward0", "ReluBackward0", "MmBackward0", "torch::autograd::AccumulateGrad"):
        assert names(prof).count(name) == 1
    assert names(prof).index("aten::mm") < names(prof).index("SumBackward0") < names(prof).index("MmBackward0")


def test_gradients_are_the_same_under_a_profile():
    x = leaf([1.0, 2.0])
    expected = torch.autograd.grad((x * x.exp()).sum(), x)[0]
    with profile(**KINETO):
        y = (x * x.exp()).sum()
        (g,) = torch.autograd.grad(y, x, create_graph=True)
        (h,) = torch.autograd.grad(g.sum(), x)
        (x * x.exp()).sum().backward()
    assert close(x.grad, expected)
    assert close(g, expected)
    assert close(h, (x.detach() + 2) * x.detach().exp())


def test_operators_within_a_derivative_are_its_children():
    x = leaf([1.0, 2.0])
    y = (x.exp() * x).sum()
    with profile(**KINETO) as prof:
        torch.autograd.grad(y, x, create_graph=True)
    assert "aten::mul" in [child.name for child in event_of(prof, "MulBackward0").cpu_children]


def test_a_function_and_its_derivative():
    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * 2

    x = leaf([1.0])
    with profile(**KINETO) as prof:
        Double.apply(x).backward()
    assert [child.name for child in event_of(prof, "Double").cpu_children] == ["aten::mul"]
    assert "aten::mul" in [child.name for child in event_of(prof, "DoubleBackward").cpu_children]


def test_a_derivative_has_the_number_of_its_operator():
    x = leaf([1.0, 2.0])
    with profile(**KINETO) as prof:
        x.exp().sin().sum().backward()
    for forward, backward in (("aten::exp", "ExpBackward0"), ("aten::sin", "SinBackward0")):
        number = event_of(prof, forward).sequence_nr
        assert number >= 0
        assert event_of(prof, backward).sequence_nr == number
    assert event_of(prof, "aten::exp").scope == 0
    assert event_of(prof, "ExpBackward0").scope == 1


def test_other_calls_than_operators_do_no_harm():
    x = torch.empty(0)
    with profile(**KINETO) as prof:
        x.resize_([3, 2])
        x.detach().requires_grad_()
        x.numpy()
    assert isinstance(names(prof), list)


def test_an_operator_that_fails_is_left_in_order():
    with profile(**KINETO) as prof:
        with pytest.raises(RuntimeError):
            torch.ones(2) + torch.ones(3)
        torch.ones(2) * 2
    assert "aten::mul" in names(prof)
    assert all(event.cpu_time_total >= 0 for event in prof.function_events)


def test_times_are_consistent():
    x = torch.ones(50, 50)
    with profile(**KINETO) as prof, record_function("outer"):
        for _ in range(3):
            x @ x
    outer = event_of(prof, "outer")
    inner = [event for event in prof.function_events if event.name == "aten::mm"]
    assert outer.time_range.start <= inner[0].time_range.start
    assert inner[0].time_range.end <= inner[1].time_range.start
    assert sum(event.cpu_time_total for event in inner) <= outer.cpu_time_total
    assert outer.self_cpu_time_total == pytest.approx(
        outer.cpu_time_total - sum(child.cpu_time_total for child in outer.cpu_children)
    )
    total = sum(event.self_cpu_time_total for event in prof.function_events)
    assert prof.self_cpu_time_total == pytest.approx(total)
    assert total == pytest.approx(outer.cpu_time_total)


def test_shapes_on_request():
    x, y = torch.ones(2, 3), torch.ones(3, 4)
    with profile(record_shapes=True, **KINETO) as prof:
        torch.mm(x, y) * 2
    assert event_of(prof, "aten::mm").input_shapes == [[2, 3], [3, 4]]
    assert event_of(prof, "aten::mul").input_shapes == [[2, 4], []]
    with profile(**KINETO) as prof:
        torch.mm(x, y)
    assert event_of(prof, "aten::mm").input_shapes == []


def test_memory_on_request():
    x, out = torch.ones(8, 4), torch.empty(8, 4)
    with profile(profile_memory=True, **KINETO) as prof, record_function("outer"):
        kept = [x * 2, x.t(), x.add_(1), x.double(), torch.exp(x, out=out)]
    assert event_of(prof, "aten::mul").cpu_memory_usage == 128
    assert event_of(prof, "aten::t").cpu_memory_usage == 0
    assert event_of(prof, "aten::add_").cpu_memory_usage == 0
    assert event_of(prof, "aten::exp").cpu_memory_usage == 0
    assert event_of(prof, "outer").cpu_memory_usage == 128 + 256
    assert event_of(prof, "outer").self_cpu_memory_usage == 0
    assert len(kept) == 5
    with profile(**KINETO) as prof:
        x * 2
    assert event_of(prof, "aten::mul").cpu_memory_usage == 0


def test_floating_point_operations_on_request():
    x, y = torch.ones(2, 3), torch.ones(3, 4)
    with profile(with_flops=True, **KINETO) as prof:
        torch.mm(x, y) * 2
        x.exp()
    assert event_of(prof, "aten::mm").flops == 48
    assert event_of(prof, "aten::mul").flops == 8
    assert event_of(prof, "aten::exp").flops == 0
    assert "FLOPs" in prof.key_averages().table()


@pellucid_only("PyTorch keeps Python frames as events of their own")
def test_stacks_on_request(tmp_path):
    def inner(x):
        return x.exp()

    x = leaf([1.0])
    with profile(with_stack=True) as prof:
        inner(x).backward()
    forward, backward = event_of(prof, "aten::exp"), event_of(prof, "ExpBackward0")
    assert "test_profiler.py(" in forward.stack[0]
    assert forward.stack[0].endswith("): inner")
    assert forward.stack[1].endswith("): test_stacks_on_request")
    assert backward.stack == forward.stack
    assert "Source Location" in prof.key_averages(group_by_stack_n=2).table()
    prof.export_stacks(tmp_path / "stacks")
    line = (tmp_path / "stacks").read_text().splitlines()[0]
    assert "_test_stacks_on_request;" in line
    assert int(line.rsplit(" ", 1)[1]) > 0


def test_a_profile_keeps_no_tensor():
    with profile(record_shapes=True, profile_memory=True, **KINETO) as prof:
        y = torch.ones(3) * 2
        reference = weakref.ref(y)
        del y
        assert reference() is None
    assert "aten::mul" in names(prof)


def test_operators_of_another_thread_are_not_recorded():
    with profile(**KINETO) as prof:
        thread = threading.Thread(target=lambda: torch.ones(3).sin())
        thread.start()
        thread.join()
        torch.ones(3).cos()
    assert "aten::cos" in names(prof)
    assert "aten::sin" not in names(prof)


# --- named ranges ----------------------------------------------------------------------------------------------------


def test_ranges_and_operators_come_in_order():
    def forward(x):
        with record_function("outer"):
            y = x * 2 + 4
            with record_function("inner"):
                y = y - 1
        return y / 1

    x = torch.randn(10, 10)
    forward(x)
    with profile(**KINETO) as prof:
        forward(x)
    wanted = ["outer", "aten::mul", "aten::add", "inner", "aten::sub", "aten::div"]
    assert [name for name in names(prof) if name in wanted] == wanted
    assert event_of(prof, "inner") in event_of(prof, "outer").cpu_children
    assert event_of(prof, "aten::sub").cpu_parent.name == "inner"


def test_a_range_appears_once():
    x = torch.randn(10, 10)
    with profile(**KINETO) as prof, record_function("## range ##"):
        x * 2 + 4
    assert names(prof).count("## range ##") == 1
    assert event_of(prof, "## range ##").is_user_annotation or not ON_PELLUCID


def test_a_range_around_a_function():
    @record_function("my_func")
    def add(x, y):
        """Sum."""
        return x + y

    with profile(**KINETO) as prof:
        assert add(1, 2) == 3
        assert add(3, 4) == 7
    assert "my_func" in str(prof)
    assert names(prof).count("my_func") == 2
    assert (add.__name__, add.__doc__) == ("add", "Sum.")


def test_ranges_may_end_out_of_order():
    outer = record_function("outer")
    with profile(**KINETO) as prof:
        outer.__enter__()
        with record_function("inner"):
            outer.__exit__(None, None, None)
        with record_function("inner"):
            outer.__enter__()
        outer.__exit__(None, None, None)
    assert names(prof).count("outer") == 2
    assert names(prof).count("inner") == 2


def test_ranges_outside_a_profile_do_nothing():
    outer = record_function("outer")
    outer.__enter__()
    with record_function("inner"):
        outer.__exit__(None, None, None)
    with profile(**KINETO) as prof:
        open_range = record_function("open")
        open_range.__enter__()
    open_range.__exit__(None, None, None)
    assert "outer" not in names(prof)
    assert not torch.autograd._profiler_enabled()


def test_a_range_ends_where_an_exception_leaves_it():
    with profile(**KINETO) as prof:
        with pytest.raises(ZeroDivisionError), record_function("outer"):
            1 / 0  # noqa: B018
        torch.ones(2) * 2
    assert event_of(prof, "aten::mul").cpu_parent is None


# --- averages and tables ---------------------------------------------------------------------------------------------


def test_children_of_made_up_events():
    events = EventList()
    for id, thread, start, end in ((1, 1, 0, 1), (2, 1, 1, 2), (3, 0, 0, 2), (4, 0, 1, 2), (5, 0, 1, 3)):
        events.append(made_up(id, start, end, thread))
    events._populate_cpu_children()
    # [1, 3] ends after [0, 2], so that [1, 2] is its child alone
    assert [[child.id for child in event.cpu_children] for event in events] == [[], [], [], [], [4]]


class Foo:
    """Has a key, and is no event."""

    key = "foo"


def test_averages_of_made_up_events():
    average = FunctionEventAvg()
    average.add(made_up(0, 10, 15, name="foo"))
    average.add(made_up(0, 20, 30, name="foo"))
    average.add(average)
    assert average.key == "foo"
    assert average.count == 4
    assert average.cpu_time_total == 30
    assert average.self_cpu_time_total == 30
    assert average.device_time_total == 0
    assert average.cpu_time == 7.5
    assert average.device_time == 0
    assert average.cpu_time_str == "7.500us"
    with pytest.raises(AssertionError, match="Expected keys to match, but got bar vs foo"):
        average.add(made_up(0, 0, 1, name="bar"))
    with pytest.raises(AssertionError, match="Expected other to be a FunctionEvent or FunctionEventAvg"):
        average.add(Foo())


def averages(*events, **options):
    made = EventList(events, **options)
    made._build_tree()
    return made


def test_averages_need_the_tree():
    with pytest.raises(AssertionError, match="Expected tree to be built before calling key_averages"):
        EventList([made_up(0, 0, 1)]).key_averages()


def test_averages_group_by_name_and_shape():
    events = averages(
        made_up(0, 0, 1, name="a", input_shapes=[[1]]),
        made_up(1, 1, 4, name="b", input_shapes=[[1]]),
        made_up(2, 4, 6, name="a", input_shapes=[[2]]),
    )
    found = {average.key: (average.count, average.cpu_time_total) for average in events.key_averages()}
    assert found == {"a": (2, 3), "b": (1, 3)}
    by_shape = events.key_averages(group_by_input_shapes=True)
    assert sorted((a.key, a.count, a.input_shapes) for a in by_shape) == [
        ("a", 1, [[1]]), ("a", 1, [[2]]), ("b", 1, [[1]]),
    ]  # fmt: skip
    total = events.total_average()
    assert (total.key, total.count, total.cpu_time_total) == ("Total", 3, 6)
    assert events.self_cpu_time_total == 6


def test_the_layout_of_a_table():
    events = averages(
        made_up(0, 0, 1000, name="a", input_shapes=[[2, 3]], cpu_memory_usage=2048),
        made_up(1, 1000, 4000, name="b", input_shapes=[[1]]),
        profile_memory=True,
    )
    rows = events.table(sort_by="cpu_time_total").splitlines()
    titles = [title for title in rows[1].split("  ") if title.strip()]
    assert [title.strip() for title in titles] == [
        "Name", "Self CPU %", "Self CPU", "CPU total %", "CPU total", "CPU time avg", "CPU Mem", "Self CPU Mem",
        "# of Calls", "Node ID", "Input Shapes",
    ]  # fmt: skip
    assert rows[0] == rows[2] == rows[5] == "  ".join(["-" * 5, *["-" * 12] * 9, "-" * 12]) + "  "
    assert rows[3].split() == "b 75.00% 3.000ms 75.00% 3.000ms 3.000ms 0 B 0 B 1 0 [[1]]".split()
    assert rows[4].split() == "a 25.00% 1.000ms 25.00% 1.000ms 1.000ms 2.00 KB 2.00 KB 1 0 [[2, 3]]".split()
    assert rows[6] == "Self CPU time total: 4.000ms"
    assert events.table().endswith("\n")
    assert len(rows[3]) == len(rows[1]) == len(rows[0])


def test_options_of_a_table():
    inner = made_up(1, 10, 20, name="inner")
    events = averages(made_up(0, 0, 100, name="outer"), inner, made_up(2, 200, 1_500_200, name="x" * 70))
    assert [row.split()[0] for row in events.table(row_limit=1).splitlines()[3:4]] == ["outer"]
    assert len(events.table(row_limit=-1).splitlines()) == 8
    assert "inner" not in events.table(top_level_events_only=True)
    assert "This report only display top-level ops statistics" in events.table(top_level_events_only=True)
    headed = events.table(header="HEADER").splitlines()
    assert headed[1] == "HEADER"
    assert set(headed[0]) == {"="}
    assert len(headed[0]) == len(headed[2]) - 2
    assert "x" * 52 + "..." in events.table()
    assert "x" * 70 in events.table(max_name_column_width=None)
    assert "1.500s" in events.table()
    assert "1500000.000us" in events.table(time_unit="us")
    assert "1500.000ms" in events.table(time_unit="ms")
    assert "0.000s" in events.table(time_unit="s")
    assert events.table(sort_by="self_cpu_time_total").splitlines()[3].split()[0].startswith("xxx")
    assert EventList().table() == ""


def test_memory_and_time_as_text():
    def shown(**facts):
        events = averages(made_up(0, 0, 10, name="a", **facts), profile_memory=True)
        return events.table()

    assert "1.50 MB" in shown(cpu_memory_usage=3 * 2**19)
    assert "2.00 GB" in shown(cpu_memory_usage=2**31)
    assert "-64 B" in shown(cpu_memory_usage=-64)


def test_a_profile_prints_its_table():
    rnn = torch.nn.Linear(4, 4)
    with profile(record_shapes=True, **KINETO) as prof:
        torch.einsum("i,ij->j", torch.ones(4), rnn(torch.ones(4, 4)))
    assert str(prof) == prof.table()
    assert prof.table(sort_by="cpu_time_total", row_limit=10, header="TEST")
    assert repr(prof).startswith("[<FunctionEvent id=")
    assert "aten::" in prof.key_averages(group_by_input_shape=True).table()


def test_tables_and_traces_of_a_recurrent_network(tmp_path):
    torch.manual_seed(0)
    rnn = torch.nn.LSTM(3, 4, 2)
    with profile(record_shapes=True, **KINETO) as prof:
        out, _ = rnn(torch.randn(5, 2, 3))
        out.sum().backward()
    total = prof.total_average()
    assert total.count == len(prof.function_events)
    for limit in (-1, 10):
        assert prof.key_averages(group_by_input_shape=True).table(sort_by="cpu_time_total", row_limit=limit)
    prof.export_chrome_trace(str(tmp_path / "trace.json"))
    content = json.loads((tmp_path / "trace.json").read_text())
    traced = [event["name"] for event in content["traceEvents"] if event.get("ph") == "X"]
    assert len(traced) >= len(prof.function_events)
    assert len(names(prof)) > 15


@pytest.mark.parametrize("kind", ["events", "profile"])
def test_a_trace_is_valid_json(kind, tmp_path):
    with profile(**KINETO) as prof, record_function("quotes"):
        torch.ones(2) * 2
    path = tmp_path / "trace.json"
    (prof.function_events if kind == "events" else prof).export_chrome_trace(str(path))
    content = json.loads(path.read_text())
    entries = content if kind == "events" else content["traceEvents"]
    mul = next(entry for entry in entries if entry["name"] == "aten::mul")
    assert mul["ph"] == "X"
    assert mul["dur"] >= 0
    assert {"quotes", "aten::mul"} <= {entry["name"] for entry in entries}


@pellucid_only("PyTorch writes in place, and does not escape names")
def test_a_trace_is_whole_or_not_there(tmp_path):
    with profile() as prof, record_function('"name" \\ of\na range'):
        torch.ones(2) * 2
    prof.function_events.export_chrome_trace(tmp_path / "trace.json")
    assert json.loads((tmp_path / "trace.json").read_text())[0]["name"] == '"name" \\ of\na range'
    prof.function_events[0].trace_name = object()  # cannot be written
    with pytest.raises(TypeError):
        prof.function_events.export_chrome_trace(tmp_path / "trace.json")
    assert len(json.loads((tmp_path / "trace.json").read_text())) == len(prof.function_events)
    assert [p.name for p in tmp_path.iterdir()] == ["trace.json"]


@pellucid_only("PyTorch compresses in torch.profiler only")
def test_a_trace_may_be_compressed(tmp_path):
    with profile() as prof:
        torch.ones(2) * 2
    prof.export_chrome_trace(tmp_path / "trace.json.gz")
    content = json.loads(gzip.decompress((tmp_path / "trace.json.gz").read_bytes()))
    assert content["traceEvents"][-1]["args"]["Sequence number"] == -1


# --- the block -------------------------------------------------------------------------------------------------------


def test_a_profile_before_and_after_its_block():
    prof = profile(**KINETO)
    assert str(prof) == repr(prof) == "<unfinished torch.autograd.profile>"
    with prof:
        torch.ones(2) * 2
    with pytest.raises(RuntimeError, match="Profiler context manager is not reentrant"), prof:
        pass
    assert "aten::mul" in str(prof)


def test_a_disabled_profile_does_nothing():
    with profile(enabled=False) as prof:
        assert prof is None
        assert not torch.autograd._profiler_enabled()


@pellucid_only("PyTorch fails with an AttributeError")
def test_a_disabled_profile_is_empty():
    prof = profile(enabled=False)
    with prof:
        torch.ones(2) * 2
    assert prof.table() == ""
    assert prof.key_averages() == []


def test_an_exception_ends_a_profile():
    with pytest.raises(ZeroDivisionError), profile(**KINETO) as prof:
        1 / 0  # noqa: B018
    assert not torch.autograd._profiler_enabled()
    assert names(prof) == []


def test_other_devices_are_not_there():
    with pytest.warns(UserWarning, match="CUDA is not available, disabling CUDA profiling"):
        profile(use_device="cuda")
    with pytest.warns(UserWarning, match="The tpu is not a valid device option"):
        profile(use_device="tpu")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        profile(use_cuda=True)
    assert caught[0].category is FutureWarning
    assert "The attribute `use_cuda` will be deprecated soon" in str(caught[0].message)
    with pytest.raises(AssertionError, match="Device-only events supported only with Kineto"):
        profile(use_cpu=False)
    with pytest.raises(AssertionError, match="No activities specified for the profiler"):
        profile(use_cpu=False, use_kineto=True)
    with pytest.raises(ValueError, match="post_processing_timeout_s must be non-negative"):
        profile(post_processing_timeout_s=-1)


def test_stacks_are_written_only_if_they_were_kept(tmp_path):
    with profile(**KINETO) as prof:
        torch.ones(2) * 2
    with pytest.raises(AssertionError, match=r"export_stacks\(\) requires with_stack=True"):
        prof.export_stacks(str(tmp_path / "stacks"))
    with pytest.raises(ValueError, match="metric should be one of"):
        prof.function_events.export_stacks(str(tmp_path / "stacks"), "mood")
    assert "self_cpu_time_total" in prof.function_events.supported_export_stacks_metrics()


@pellucid_only("in PyTorch the inner profile takes all")
def test_profiles_inside_each_other():
    with profile() as outer:
        torch.ones(2).sin()
        with profile() as inner:
            torch.ones(2).cos()
        torch.ones(2).exp()
    assert [n for n in names(outer) if n in ("aten::sin", "aten::cos", "aten::exp")] == ["aten::sin", "aten::cos", "aten::exp"]
    assert "aten::cos" in names(inner)
    assert "aten::exp" not in names(inner)


@pellucid_only("asks for what is ours")
def test_nothing_stands_around_operators_outside_a_profile():
    from pellucid.core.modes import GENERAL, modes

    with profile():
        assert modes.road == GENERAL
    assert modes.around == ()
    assert modes.road != GENERAL


def test_one_module_has_the_lists():
    assert profiler_util.EventList is EventList
