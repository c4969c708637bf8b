"""Parses device names in all the schemes that TensorFlow has used.

    /job:worker/replica:0/task:1/device:CPU:0      ops of a CPU; `/job:localhost/replica:0/task:0/cpu:0` before 1.4
    /job:localhost/replica:0/task:0/device:GPU:0   launches on the host
    /gpu:0/stream:12                               kernels of one stream, up to 1.4
    /device:GPU:0/stream:14<MemcpyH2D>             copies of one stream, after 1.4
    /device:GPU:0/stream:all, /gpu:0/memcpy        repeat what the single streams hold
    /device:GPU:0/sync                             the host waits for the GPU

Any other name is shown unchanged.
"""

from __future__ import annotations

import functools
import re
from typing import Any

from tftracer.trace.model import Device, DeviceKind

_JOB = re.compile(r"/job:([^/]+)")
_TASK = re.compile(r"/task:([0-9]{1,9})")
_UNIT = re.compile(r"/(?:device:)?([A-Za-z_][A-Za-z_]*):([0-9]{1,9})(?=/|$)")
_STREAM = re.compile(r"/stream:([^/<]+)(?:<([^<>]*)>)?$")
_NUMBER = re.compile(r"[0-9]{1,9}")
_NOT_UNITS = {"job", "replica", "task", "stream"}
_KIND_ORDER = tuple(DeviceKind)


@functools.lru_cache(maxsize=4096)
def parse_device(name: str) -> Device:
    """Parse a device name of step_stats. Never fails: an unknown name has the kind UNKNOWN, and is its own title."""
    unit, index = _unit(name)
    job, task = _match(_JOB, name), _match(_TASK, name)
    kind, stream, detail = _line(name, unit)
    if kind is DeviceKind.UNKNOWN:
        return Device(name, name or "(no name)", kind, job, int(task or -1), index, parent=name)
    part = f"{unit}:{index}" if unit else ""
    parent = f"/device:{part}" if unit == "GPU" else name
    return Device(
        name=name,
        title=_title(job, task, part, stream, detail),
        kind=kind,
        job=job,
        task=int(task or -1),
        index=index,
        stream=stream,
        parent=parent,
        repeats=kind is DeviceKind.REPEAT,
    )


def process_of(name: str) -> str:
    """Return the process that a device belongs to, such as ``ps/0``."""
    device = parse_device(name)
    return f"{device.job}/{device.task}"


def sort_key(device: Device) -> tuple[Any, ...]:
    """Return the key of the display order: hosts by job and task; each GPU's launches, streams and copies; repeating devices.

    Streams are in the order of their numbers.
    """
    number = int(device.stream) if _NUMBER.fullmatch(device.stream) else -1
    gpu = device.parent.startswith("/device:GPU:")
    unit = (device.index, _KIND_ORDER.index(device.kind), device.job, device.task)
    host = (device.job, device.task, _KIND_ORDER.index(device.kind), device.index)
    return (device.repeats, gpu, unit if gpu else host, number, device.stream, device.name)


def _match(pattern: re.Pattern[str], name: str) -> str:
    match = pattern.search(name)
    return match.group(1) if match else ""


def _unit(name: str) -> tuple[str, int]:
    """Return (unit, number), such as (`GPU`, 0); ("", -1) if there is no unit. The last one counts: a job may be called `gpu`."""
    units = [(u, n) for u, n in _UNIT.findall(name) if u.lower() not in _NOT_UNITS]
    if not units:
        return "", -1
    unit, number = units[-1]
    return unit.upper() if unit.islower() else unit, int(number)


def _line(name: str, unit: str) -> tuple[DeviceKind, str, str]:
    """Return (kind, stream, detail) of a device name. The detail is the text in angle brackets, or ``sync``."""
    stream = _STREAM.search(name)
    if stream:
        number, detail = stream.group(1), stream.group(2) or ""
        if number == "all":
            return DeviceKind.REPEAT, number, detail
        copies = detail.lower().startswith(("memcpy", "memset"))
        return (DeviceKind.MEMCPY if copies else DeviceKind.STREAM), number, detail
    tail = name.rsplit("/", 1)[-1]
    if tail == "memcpy":
        return DeviceKind.REPEAT, tail, ""
    if tail == "sync":
        return DeviceKind.SYNC, "", tail
    kinds = {"CPU": DeviceKind.CPU, "GPU": DeviceKind.GPU, "TPU": DeviceKind.TPU}
    return kinds.get(unit, DeviceKind.UNKNOWN), "", ""


def _title(job: str, task: str, unit: str, stream: str, detail: str) -> str:
    owner = "" if job in ("", "localhost") else f"{job}/{task}" if task else job
    line = "" if not stream else stream if stream == "memcpy" else "all streams" if stream == "all" else f"stream {stream}"
    note = detail if not stream else f"({detail})" if detail else ""
    return " ".join(part for part in (owner, unit, line, note) if part)
