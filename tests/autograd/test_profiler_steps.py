"""`torch.profiler`: profiles of programs that go in steps, schedules, what is done with a cycle when it is over."""

import gzip
import json
import warnings

import pytest
from library import pellucid_only, torch

if torch.__name__ != "pellucid":
    import torch.profiler

lib = torch.profiler
Action = lib.ProfilerAction
CPU = [lib.ProfilerActivity.CPU]
quietly = pytest.mark.filterwarnings("ignore:.*Profiler clears events")


def names(prof):
    return [event.name for event in prof.events()]


def run(steps, prof):
    for _ in range(steps):
        torch.ones(2) * 2
        prof.step()


def test_a_profile_without_a_schedule():
    with lib.profile(activities=CPU) as prof:
        torch.ones(2) * 2
        with lib.record_function("range"):
            torch.ones(2).sin()
    assert {"aten::mul", "range", "aten::sin"} <= set(names(prof))
    assert "aten::mul" in prof.key_averages().table(sort_by="cpu_time_total", row_limit=10)


def test_a_profile_is_started_and_stopped_by_hand():
    prof = lib.profile(activities=CPU, record_shapes=True, profile_memory=True)
    torch.ones(2).cos()
    prof.start()
    torch.ones(2) * 2
    prof.stop()
    torch.ones(2).sin()
    assert "aten::mul" in names(prof)
    assert not {"aten::sin", "aten::cos"} & set(names(prof))
    shapes = prof.key_averages(group_by_input_shape=True)
    assert [[2], []] in [average.input_shapes for average in shapes]


@quietly
def test_cycles_of_steps():
    seen = []
    plan = lib.schedule(wait=1, warmup=1, active=2, repeat=2)
    with lib.profile(activities=CPU, schedule=plan, on_trace_ready=lambda p: seen.append((p.step_num, names(p)))) as prof:
        run(10, prof)
    assert [step for step, _ in seen] == [4, 8]
    for _, found in seen:
        assert found.count("ProfilerStep*") == 2
        assert found.count("aten::mul") == 2
    assert prof.step_num == 10
    assert prof.current_action is Action.NONE
    assert names(prof) == seen[1][1]


def test_events_of_all_cycles_on_request():
    plan = lib.schedule(wait=0, warmup=1, active=1)
    with lib.profile(activities=CPU, schedule=plan, acc_events=True) as prof:
        run(6, prof)
    assert names(prof).count("aten::mul") == 3


def test_a_cycle_that_is_cut_short_is_ready_at_the_end():
    seen = []
    plan = lib.schedule(wait=0, warmup=1, active=5)
    with lib.profile(activities=CPU, schedule=plan, on_trace_ready=lambda p: seen.append(names(p))) as prof:
        run(3, prof)
    assert seen[0].count("aten::mul") == 2


def test_a_profile_that_only_warmed_up_is_empty():
    plan = lib.schedule(wait=0, warmup=5, active=1)
    with lib.profile(activities=CPU, schedule=plan) as prof:
        run(2, prof)
    assert "aten::mul" not in names(prof)


def test_the_actions_of_a_schedule():
    plan = lib.schedule(wait=1, warmup=1, active=2, repeat=2, skip_first=1)
    none, warm, record, save = Action.NONE, Action.WARMUP, Action.RECORD, Action.RECORD_AND_SAVE
    assert [plan(step) for step in range(11)] == [none, none, warm, record, save, none, warm, record, save, none, none]
    eager = lib.schedule(wait=2, warmup=1, active=1, skip_first_wait=1)
    assert [eager(step) for step in range(7)] == [warm, save, none, none, warm, save, none]


def test_schedules_that_make_no_sense():
    with pytest.raises(AssertionError, match=r"Invalid profiler schedule arguments. Got wait=-1 \(need >= 0\)"):
        lib.schedule(wait=-1, warmup=1, active=1)
    with pytest.raises(AssertionError, match=r"active=0 \(need > 0\)"):
        lib.schedule(wait=1, warmup=1, active=0)
    with pytest.raises(AssertionError, match=r"Step must be non-negative\. Got -1"):
        lib.schedule(wait=0, warmup=1, active=1)(-1)
    with pytest.warns(UserWarning, match="Profiler won't be using warmup, this can skew profiler results"):
        lib.schedule(wait=0, warmup=0, active=1)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("WARMUP", "NONE"),
        ("RECORD", "NONE"),
        pytest.param("RECORD", "WARMUP", marks=pellucid_only("PyTorch's process crashes")),
    ],
)
def test_actions_in_the_wrong_order(first, second):
    with pytest.warns(UserWarning, match=f"Incorrect schedule: {first} followed by {second}"):
        with lib.profile(activities=CPU, schedule=lambda step: Action[first if step == 0 else second]) as prof:
            prof.step()


def test_activities():
    assert lib.ProfilerActivity.CPU in lib.supported_activities()
    assert lib.kineto_available()
    for nothing in ([], ["cpu"]):
        with pytest.raises(AssertionError, match="No valid profiler activities found"):
            lib.profile(activities=nothing)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(AssertionError, match="No activities specified for the profiler"):
            lib.profile(activities=[lib.ProfilerActivity.CUDA]).start()
    prof = lib.profile(activities=[lib.ProfilerActivity.CPU, lib.ProfilerActivity.CUDA])
    with pytest.warns(UserWarning, match="CUDA is not available, disabling CUDA profiling"):
        prof.start()
    prof.stop()


def test_a_profile_that_has_not_begun():
    prof = lib.profile(activities=CPU)
    with pytest.raises(AssertionError, match="Profiler must be initialized before accessing events"):
        prof.events()
    with pytest.raises(AssertionError, match="Profiler must be initialized before getting key averages"):
        prof.key_averages()
    assert prof.get_trace_id() is None


@pytest.mark.parametrize("compressed", [True, False])
def test_a_trace_for_each_cycle(compressed, tmp_path):
    folder = tmp_path / "new" / "folder"
    plan = lib.schedule(wait=0, warmup=1, active=1, repeat=1)
    handler = lib.tensorboard_trace_handler(str(folder), worker_name="worker", use_gzip=compressed)
    with lib.profile(activities=CPU, schedule=plan, on_trace_ready=handler) as prof:
        prof.add_metadata("note", "a text")
        prof.add_metadata_json("numbers", "[1, 2]")
        run(4, prof)
    (file,) = folder.iterdir()
    assert file.name.startswith("worker.")
    assert file.name.endswith(".pt.trace.json" + (".gz" if compressed else ""))
    data = gzip.decompress(file.read_bytes()) if compressed else file.read_bytes()
    content = json.loads(data)
    assert content["note"] == "a text"
    assert content["numbers"] == [1, 2]
    assert "ProfilerStep#1" in {event["name"] for event in content["traceEvents"]}


@pellucid_only("PyTorch writes what cannot be read")
def test_metadata_must_be_json():
    with pytest.raises(ValueError, match="Expecting"):
        lib.profile(activities=CPU).add_metadata_json("key", "{a")


@pellucid_only("PyTorch says it once in a process")
def test_that_cycles_are_dropped_is_said():
    plan = lib.schedule(wait=0, warmup=1, active=1)
    with pytest.warns(UserWarning, match="Only events from the current cycle will be reported"):
        with lib.profile(activities=CPU, schedule=plan) as prof:
            run(4, prof)


def test_stacks_need_to_be_asked_for(tmp_path):
    with lib.profile(activities=CPU) as prof:
        torch.ones(2) * 2
    with pytest.raises(AssertionError, match=r"export_stacks\(\) requires with_stack=True"):
        prof.export_stacks(str(tmp_path / "stacks"))


def test_a_folder_that_cannot_be_made(tmp_path):
    (tmp_path / "file").write_text("")
    handler = lib.tensorboard_trace_handler(str(tmp_path / "file" / "folder"))
    with pytest.raises(RuntimeError, match="Can't create directory"):
        with lib.profile(activities=CPU, on_trace_ready=handler):
            torch.ones(2) * 2


def test_the_old_way_to_choose_activities():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        lib.profile(use_cuda=False)
    assert "`use_cuda` is deprecated, use `activities` argument instead" in str(caught[0].message)
