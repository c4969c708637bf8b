"""The physical devices and the processes behind a trace's device names.

One GPU shows up under several names (launches, streams, copies); ``Device.parent`` ties them together. Pure.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tftracer.trace.arrays.intervals import distinct
from tftracer.trace.arrays.types import Bool, Int32, Int64
from tftracer.trace.model import Device, DeviceKind, NodeKind, Trace

#: Where kernels and copies of a GPU are recorded, as opposed to their launches on the host.
ON_DEVICE = (DeviceKind.STREAM, DeviceKind.MEMCPY)


@dataclass(frozen=True)
class Group:
    """The devices that are one piece of hardware, or one process."""

    key: str
    title: str
    codes: list[int]  # into Trace.devices
    job: str
    task: int
    kind: DeviceKind


def physical_devices(trace: Trace) -> list[Group]:
    """One group for each physical device, in the order of first appearance.

    A stream's name tells no job: it belongs to the one process with such a GPU; where several have one, it is on its own.
    """
    places: dict[str, list[tuple[str, int]]] = {}
    for device in trace.devices:
        if device.job and (device.job, device.task) not in places.setdefault(_parent(device), []):
            places[_parent(device)].append((device.job, device.task))
    codes: dict[tuple[str, tuple[str, int]], list[int]] = {}
    for code, device in enumerate(trace.devices):
        there = places.get(_parent(device), [])
        place = there[0] if not device.job and len(there) == 1 else (device.job, device.task)
        codes.setdefault((_parent(device), place), []).append(code)
    return [_group(key, [trace.devices[c] for c in members], members) for (key, _), members in codes.items()]


def _parent(device: Device) -> str:
    return device.parent or device.name


def _group(key: str, devices: list[Device], codes: list[int]) -> Group:
    hosts = [d for d in devices if d.kind not in (*ON_DEVICE, DeviceKind.REPEAT, DeviceKind.SYNC)]
    named = hosts[0] if hosts else None
    title = named.title if named else key.rsplit("/device:", 1)[-1]
    place = next((d for d in devices if d.job), devices[0])
    kind = DeviceKind.GPU if any(d.kind in (DeviceKind.GPU, *ON_DEVICE) for d in devices) else devices[0].kind
    return Group(named.name if named else key, title, codes, place.job, place.task, kind)


def processes(trace: Trace) -> list[Group]:
    """One group for each job and task; a device whose name tells none belongs to the only process, or is its own."""
    groups = physical_devices(trace)
    places = list(dict.fromkeys((g.job, g.task) for g in groups if g.job))
    members: dict[tuple[str, int], list[Group]] = {}
    for group in groups:
        place = (group.job, group.task) if group.job or len(places) != 1 else places[0]
        members.setdefault(place, []).append(group)
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
    """[n] the counted nodes of a group."""
    selected = np.zeros(max(len(trace.devices), 1), bool)
    selected[group.codes] = True
    return selected[trace.device] & trace.counted


def runs_on(trace: Trace, *kinds: DeviceKind) -> Bool:
    """[n] what ran on devices of these kinds, counted or not."""
    return _of_kinds(trace, kinds)[trace.device]


def on_stream(trace: Trace) -> Bool:
    """[n] kernels and copies that were recorded on a GPU's streams."""
    result: Bool = runs_on(trace, *ON_DEVICE) & trace.counted
    return result


def kernels(trace: Trace) -> Bool:
    """[n] kernels alone: neither copies nor launches."""
    result: Bool = on_stream(trace) & (trace.kind == NodeKind.COMPUTE)
    return result


def _of_kinds(trace: Trace, kinds: tuple[DeviceKind, ...]) -> Bool:
    """[devices] which of them are of these kinds."""
    return np.array([device.kind in kinds for device in trace.devices] or [False])


def launch_of(trace: Trace) -> Int32:
    """[n] the node on the host that launched each kernel or copy, -1 where none is known.

    A profile tells it. Else a kernel carries its op's name (up to a ``:``); of several executions of one op it is the last that
    began before the kernel did. O(k log n) for k kernels; a Python turn for each distinct name on a stream.
    """
    if trace.launch is not None:
        return np.where(trace.counted, trace.launch, -1).astype(np.int32)
    result = np.full(trace.n, -1, np.int32)
    kernels = np.flatnonzero(on_stream(trace))
    hosts = np.flatnonzero(trace.counted & _on_gpu_host(trace))
    if not len(kernels) or not len(hosts):
        return result
    code = _base_codes(trace, kernels, hosts)
    has_device = code >= 0
    kernels, code = kernels[has_device], code[has_device]
    order = np.lexsort((trace.start[hosts], trace.name[hosts]))
    hosts = hosts[order]
    stride = trace.duration_ns + 1
    host_key = trace.name[hosts].astype(np.int64) * stride + trace.start[hosts]
    at = np.searchsorted(host_key, code.astype(np.int64) * stride + trace.start[kernels], "right") - 1
    first = np.searchsorted(trace.name[hosts], code, "left")
    result[kernels] = hosts[np.maximum(at, first)]
    return result


def _on_gpu_host(trace: Trace) -> Bool:
    """[n] nodes that may launch: ops of a GPU, or (recorded on the CPU) ops marked as launches."""
    result: Bool = runs_on(trace, DeviceKind.GPU, DeviceKind.CPU) | (trace.kind == NodeKind.LAUNCH)
    return result


def _base_codes(trace: Trace, kernels: Int64, hosts: Int64) -> Int32:
    """For each kernel, the name code of the op that launched it; -1 where no host node has that name."""
    by_name = {trace.names[c]: c for c in distinct(trace.name[hosts]).tolist()}
    translation = np.full(max(len(trace.names), 1), -1, np.int32)
    for code in distinct(trace.name[kernels]).tolist():
        name = trace.names[code]
        translation[code] = by_name.get(name, by_name.get(name.split(":", 1)[0], -1))
    return translation[trace.name[kernels]]
