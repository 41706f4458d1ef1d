"""`torch.profiler`: profiles of programs that go in steps. What a profile is made of is in `pellucid.autograd.profiler`."""

from pellucid.autograd.profiler import kineto_available, record_function
from pellucid.autograd.profiler_util import DeviceType
from pellucid.profiler.profiler import profile, tensorboard_trace_handler
from pellucid.profiler.schedules import ProfilerAction, ProfilerActivity, schedule, supported_activities

__all__ = [
    "DeviceType",
    "ProfilerAction",
    "ProfilerActivity",
    "kineto_available",
    "profile",
    "record_function",
    "schedule",
    "supported_activities",
    "tensorboard_trace_handler",
]
