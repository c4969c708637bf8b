"""Measures how many ops a profile lacks because TensorFlow considers them cheap.

The profiler records all ops at level 3. At level 2 it leaves out ops that usually take a few microseconds.
"""

from __future__ import annotations

from tftracer.trace.arrays.intervals import Cover, distinct
from tftracer.trace.decode.executed_graph import ran_and_left_out
from tftracer.trace.decode.profile_graph import partition_graphs
from tftracer.trace.decode.profile_host import TF_DATA
from tftracer.trace.decode.profile_nodes import of_kinds
from tftracer.trace.decode.profile_steps import Step
from tftracer.trace.decode.profile_threads import Owner, Owners
from tftracer.trace.decode.xplane_reader import HOST, PARTITIONS_PLANE, TURN, Plane, Space
from tftracer.trace.model import Trace
from tftracer.trace.units import percent

_SCHEDULING = ("ExecutorState::ScheduleReady", "ExecutorState::Process Scheduled")


def leaves_out_cheap_ops(host: Plane) -> bool:
    """Return whether the profile was taken at level 2: level 3 has events for the scheduling of ops."""
    names = {name for name, _ in host.kind_names.values()}
    return TURN in names and not any(name.startswith(_SCHEDULING) for name in names)


def recorded_part(trace: Trace, space: Space, step: Step | None, origin: int) -> str:
    """Return ``269 of 2,120 ops recorded, 61% of the executor's time``; a part that is not known is left out.

    ``origin``: the profile's time at the trace's time 0.
    """
    ops, time = _ops(trace, space), _time(trace, space, step, origin)
    if not (ops and time):
        return f"{ops or time} recorded" if ops or time else ""
    return f"{ops} recorded, {time}"


def _ops(trace: Trace, space: Space) -> str:
    """Return ``269 of 2,120 ops``, counted in the partition graphs; "" if there are none or no op is missing.

    A function's definition cannot be used: it has other ops than those that run.
    """
    plane = space.plane(PARTITIONS_PLANE)
    if plane is None:
        return ""
    recorded, left_out = ran_and_left_out(partition_graphs(plane), set(trace.names.texts(distinct(trace.name[trace.counted]))))
    return f"{len(recorded):,} of {len(recorded) + len(left_out):,} ops" if left_out else ""


def _time(trace: Trace, space: Space, step: Step | None, origin: int) -> str:
    """Return the share of the time of the executor's events (``ExecutorState::Process``) in which a recorded op runs."""
    host = space.plane(HOST)
    if host is None:
        return ""
    executor_events = of_kinds(host, TURN)
    owners = Owners(host, executor_events[:0], step)
    executor_events = executor_events[owners.of(executor_events) == Owner.STEP]
    running = Cover.of(host.events.start[executor_events] - origin, host.events.end[executor_events] - origin)
    ops = trace.counted & ~trace.on_devices_where(lambda device: device.name == TF_DATA)
    covered = (Cover.of(trace.start[ops], trace.end[ops]) & running).length
    return f"{percent(covered / running.length)} of the executor's time" if running.length else ""
