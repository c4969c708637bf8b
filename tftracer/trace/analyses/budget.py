"""The step's budget: how each device, and the whole step, spent its time. The parts add up to exactly 100%.

Every moment of the step belongs to the first part in this list that applies to the device at that moment:

1. ``compute``: an op or a kernel runs.
2. ``python``: a Python function of the step runs (``tf.py_function``, ``tf.numpy_function``), and no compute. The trace
   does not say whether the function computes or waits.
3. ``exposed_communication``: a transfer or a collective runs, and none of the above. (``hidden_communication``, communication at
   the same time as compute, is given separately: it is already part of ``compute``.)
4. ``copies``: a copy between host and device, or on the device.
5. ``input``: an op of the input pipeline runs, such as IteratorGetNext or a queue's dequeue, which usually means that it waits.
   Work of tf.data in its own threads, for later steps, is not counted.
6. ``launch_gap``: on a GPU, none of the above while the host launches an op of the GPU.
7. ``scheduling``: none of the above, but an op is scheduled and has not started. If no op of the device has a scheduling time,
   this part is unknown, and its time counts as ``idle``.
8. ``idle``: the rest.

For the whole step, a part applies if it applies to any device. Without kernels in the trace (no CUPTI) a GPU's launches count as
its work. Devices that only repeat the nodes of other devices are left out. Everything is O(n log n) in NumPy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, reduce

import numpy as np

from tftracer.contract.basics import Finding
from tftracer.contract.trace import Budget, DeviceBudget
from tftracer.trace.analyses import physical_devices
from tftracer.trace.analyses.op_kinds import PYTHON_OPS
from tftracer.trace.analyses.physical_devices import Group
from tftracer.trace.analyses.tf_data_stages import Stages
from tftracer.trace.arrays.intervals import Cover
from tftracer.trace.arrays.types import Bool, Int64
from tftracer.trace.decode.profile_host import TF_DATA
from tftracer.trace.model import UNKNOWN_TIME, DeviceKind, NodeKind, Trace

#: The names of the parts that users see.
PART_TITLES = {
    "compute": "compute",
    "python": "Python functions",
    "exposed_communication": "exposed communication",
    "hidden_communication": "hidden communication",
    "copies": "copies",
    "input": "input",
    "launch_gap": "launch gap",
    "scheduling": "waiting to be scheduled",
    "idle": "idle",
}
KINDS_OF_WORK = ("compute", "communication", "copies", "input", "python", "launches", "waiting")  # fields of Activity
PARTS = ("compute", "python", "exposed_communication", "copies", "input", "launch_gap", "scheduling", "idle")


@dataclass(frozen=True)
class Activity:
    """The times at which a device, a process or the whole step did each kind of work; they may overlap."""

    compute: Cover
    communication: Cover
    copies: Cover
    input: Cover
    python: Cover  # the part of ``input`` in which Python functions of the step run, not functions of tf.data
    launches: Cover
    waiting: Cover  # some op is scheduled and not started
    has_scheduling: bool  # whether any op has a scheduling time

    @cached_property
    def busy(self) -> Cover:
        return self.compute | self.communication | self.copies | self.input


def activity(trace: Trace, group: Group) -> Activity:
    """Return the activity of one physical device."""
    nodes_of_group = np.flatnonzero(physical_devices.members(trace, group) & ~_is_background(trace, group))
    kind, device = trace.kind[nodes_of_group], trace.device[nodes_of_group]
    start, end, scheduled = trace.start[nodes_of_group], trace.end[nodes_of_group], trace.scheduled[nodes_of_group]
    launch = _launches(trace, group)[device] & (kind != NodeKind.COMMUNICATION)
    waited = (scheduled != UNKNOWN_TIME) & (scheduled < start)

    def cover(selected: Bool) -> Cover:
        return Cover.of(start[selected], end[selected])

    return Activity(
        compute=cover(((kind == NodeKind.COMPUTE) | (kind == NodeKind.CONTROL) | (kind == NodeKind.LAUNCH)) & ~launch),
        communication=cover(kind == NodeKind.COMMUNICATION),
        copies=cover((kind == NodeKind.COPY) & ~launch),
        input=cover((kind == NodeKind.INPUT) & ~launch),
        python=cover((kind == NodeKind.INPUT) & _python_functions(trace, nodes_of_group)),
        launches=cover(launch),
        waiting=Cover.of(scheduled[waited], start[waited]),
        has_scheduling=bool((scheduled != UNKNOWN_TIME).any()),
    )


def _python_functions(trace: Trace, nodes: Int64) -> Bool:
    """Return [nodes] whether each is a Python function of the step itself, not one of tf.data."""
    is_python = trace.op_types_where(PYTHON_OPS.__contains__)[trace.op[nodes]]
    return is_python & ~Stages.of(trace).ops[nodes] if is_python.any() else is_python


def _is_background(trace: Trace, group: Group) -> Bool:
    """Return [n] whether a node is work of tf.data in its own threads, for later steps."""
    if not any(trace.devices[code].name == TF_DATA for code in group.codes):
        return np.zeros(trace.n, bool)
    return Stages.of(trace).works_in_background


def _launches(trace: Trace, group: Group) -> Bool:
    """Return [devices] whether a device's ops are launches, because their kernels are in the trace."""
    result = np.zeros(len(trace.devices), bool)
    if any(trace.devices[c].kind in physical_devices.ON_DEVICE for c in group.codes):
        result[[c for c in group.codes if trace.devices[c].kind is DeviceKind.GPU]] = True
    return result


def combined(parts: Sequence[Activity]) -> Activity:
    """Combine the activity of several devices as if they were one."""
    if len(parts) == 1:
        return parts[0]

    def union(name: str) -> Cover:
        return reduce(lambda a, b: a | b, (getattr(p, name) for p in parts), Cover.empty())

    compute, communication, copies, inputs, python, launches, waiting = map(union, KINDS_OF_WORK)
    return Activity(compute, communication, copies, inputs, python, launches, waiting, any(p.has_scheduling for p in parts))


def parts_of(activity: Activity, step_ns: int) -> dict[str, float]:
    """Return each part in nanoseconds; all but ``hidden_communication`` add up to ``step_ns``.

    Without scheduling times ``scheduling`` is 0.
    """
    cover_of_part = {
        "compute": activity.compute,
        "python": activity.python,
        "exposed_communication": activity.communication,
        "copies": activity.copies,
        "input": activity.input,
        "launch_gap": activity.launches,
        "scheduling": activity.waiting,
    }
    step = Cover.span(0, step_ns)
    result, taken, covered = {}, Cover.empty(), 0
    for name, cover in cover_of_part.items():
        taken = taken | (cover & step)
        result[name] = float(taken.length - covered)
        covered = taken.length
    result["idle"] = float(step_ns - covered)
    result["hidden_communication"] = float((activity.communication & activity.compute & step).length)
    return result


def device_budget(name: str, title: str, activity: Activity, step_ns: int) -> DeviceBudget:
    busy = float((activity.busy & Cover.span(0, step_ns)).length)
    parts: dict[str, float | None] = {**parts_of(activity, step_ns)}
    if not activity.has_scheduling:
        parts["scheduling"] = None
    return {"device": name, "title": title, "parts_ns": parts, "busy_ns": busy}


@dataclass(frozen=True)
class Activities:
    """The activity of every physical device of a trace, for the budget, communication and the verdict."""

    groups: list[Group]
    each: list[Activity]  # of each group
    whole: Activity  # of all groups together

    def of_process(self, process: Group) -> Activity:
        """Return the activity of one process."""
        codes = set(process.codes)
        return combined([a for g, a in zip(self.groups, self.each) if codes.issuperset(g.codes)])


def activities(trace: Trace) -> Activities:
    groups = physical_devices.physical_devices(trace)
    each = [activity(trace, g) for g in groups]
    return Activities(groups, each, combined(each))


def budget(trace: Trace, findings: list[Finding], computed: Activities | None = None) -> Budget:
    """Compute the budget of each physical device and of the whole step."""
    computed = computed or activities(trace)
    step = trace.duration_ns
    return {
        "step_ns": float(step),
        "whole": device_budget("", "the whole step", computed.whole, step),
        "devices": [device_budget(g.key, g.title, a, step) for g, a in zip(computed.groups, computed.each)],
        "findings": findings,
    }
