"""Groups a trace's devices by physical device and by process.

A GPU has several device names (launches, streams, copies); they have the same ``Device.parent``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tftracer.trace.arrays.types import Bool
from tftracer.trace.model import Device, DeviceKind, NodeKind, Trace

#: Kinds of devices on which kernels and copies of a GPU are recorded. Their launches are on devices of the host.
ON_DEVICE = (DeviceKind.STREAM, DeviceKind.MEMCPY)


@dataclass(frozen=True)
class Group:
    """The devices of one piece of hardware, or of one process."""

    key: str
    title: str
    codes: list[int]  # into Trace.devices
    job: str
    task: int
    kind: DeviceKind


def physical_devices(trace: Trace) -> list[Group]:
    """Return one group per physical device, in the order of first appearance.

    A stream's name has no job. The stream belongs to the only process that has such a GPU; if several have one, it is a group of
    its own.
    """
    processes_of: dict[str, list[tuple[str, int]]] = {}
    for device in trace.devices:
        if device.job and (device.job, device.task) not in processes_of.setdefault(_parent(device), []):
            processes_of[_parent(device)].append((device.job, device.task))
    codes: dict[tuple[str, tuple[str, int]], list[int]] = {}
    for code, device in enumerate(trace.devices):
        processes_there = processes_of.get(_parent(device), [])
        process = processes_there[0] if not device.job and len(processes_there) == 1 else (device.job, device.task)
        codes.setdefault((_parent(device), process), []).append(code)
    return [_group(key, [trace.devices[c] for c in members], members) for (key, _), members in codes.items()]


def _parent(device: Device) -> str:
    return device.parent or device.name


def _group(key: str, devices: list[Device], codes: list[int]) -> Group:
    main_devices = [d for d in devices if d.kind not in (*ON_DEVICE, DeviceKind.REPEAT, DeviceKind.SYNC)]
    main_device = main_devices[0] if main_devices else None
    title = main_device.title if main_device else key.rsplit("/device:", 1)[-1]
    with_job = next((d for d in devices if d.job), devices[0])
    kind = DeviceKind.GPU if any(d.kind in (DeviceKind.GPU, *ON_DEVICE) for d in devices) else devices[0].kind
    return Group(main_device.name if main_device else key, title, codes, with_job.job, with_job.task, kind)


def processes(trace: Trace) -> list[Group]:
    """Return one group per job and task. Devices without a job belong to the only process, or form a group of their own."""
    groups = physical_devices(trace)
    named_processes = list(dict.fromkeys((g.job, g.task) for g in groups if g.job))
    members: dict[tuple[str, int], list[Group]] = {}
    for group in groups:
        process = (group.job, group.task) if group.job or len(named_processes) != 1 else named_processes[0]
        members.setdefault(process, []).append(group)
    return [
        Group(
            f"{job}/{task}" if job else "",
            f"{job}/{task}" if job and job != "localhost" else "this process",
            [code for g in parts for code in g.codes],
            job,
            task,
            parts[0].kind,
        )
        for (job, task), parts in members.items()
    ]


def members(trace: Trace, group: Group) -> Bool:
    """Return [n] whether a node is counted and on a device of the group."""
    selected = np.zeros(max(len(trace.devices), 1), bool)
    selected[group.codes] = True
    return selected[trace.device] & trace.counted


def runs_on(trace: Trace, *kinds: DeviceKind) -> Bool:
    """Return [n] whether a node is on a device of these kinds, counted or not."""
    return trace.on_devices_where(lambda device: device.kind in kinds)


def on_stream(trace: Trace) -> Bool:
    """Return [n] whether a node is a kernel or copy on a GPU's stream."""
    return runs_on(trace, *ON_DEVICE) & trace.counted


def kernels(trace: Trace) -> Bool:
    """Return [n] whether a node is a kernel: no copy and no launch."""
    result: Bool = on_stream(trace) & (trace.kind == NodeKind.COMPUTE)
    return result
