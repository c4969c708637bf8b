"""Finds ops that waited for a thread, and the op whose end they waited for. Pure NumPy, O(n log n).

RunMetadata has scheduling times but no threads (``thread_id`` is 0, or a row number that TensorFlow's timeline.py wrote), so
threads are inferred: an op starts on the thread of its process that became free last (arrays/intervals.py). It waited
for that thread if it was scheduled before the thread became free. An op that started late while threads were free did not wait
for a thread.

Profiles (XSpace) have threads, but no times at which ops were ready: an op that started right after another one on its thread is
assumed to have waited for it.

Asynchronous ops (transfers, collectives, iterators, queues, calls of functions) are started by a thread but hold none while they
run. Kernels and copies on a GPU's streams have no thread.
"""

from __future__ import annotations

import re

import numpy as np

from tftracer.trace.analyses import physical_devices
from tftracer.trace.arrays.groups import last_in_groups
from tftracer.trace.arrays.intervals import concatenated, running_and_predecessors
from tftracer.trace.arrays.types import Bool, Int64
from tftracer.trace.model import Device, DeviceKind, NodeKind, Trace

ASYNCHRONOUS = re.compile(
    r"(OneShot|MultiDevice)?Iterator\w*|((?!Queue(De|En)queue|Barrier)\w)*(Queue(De|En)queue|Barrier)\w*|(Stage|Unstage)\w*"
    r"|\w*PartitionedCall|(Stateless)?_?(If|While|Case)|RemoteCall|SymbolicGradient"
)
#: A thread takes its next op within this time: TensorFlow needs 0.3 to 4 µs.
NEXT_OP_NS = 20_000
_HOSTS = (DeviceKind.CPU, DeviceKind.GPU, DeviceKind.TPU, DeviceKind.UNKNOWN)


def waits_for_threads(trace: Trace) -> tuple[Int64, Int64]:
    """Return (nodes that waited for a thread, the node whose end each waited for); each node at most once.

    A node waited for the previous node on its thread. If that one ended more than NEXT_OP_NS before the node started, something
    else held the thread. Then the node waited for the node of its process that ended last before it started.
    """
    if trace.source == "xspace":
        return _right_after(trace)
    nodes: list[Int64] = []
    before: list[Int64] = []
    for member in _processes(trace):
        of_process = trace.counted & member[trace.device]
        node, previous = _previous(trace, of_process)
        waited = (trace.scheduled[node] >= 0) & (trace.end[previous] > trace.scheduled[node])
        node, previous = node[waited], previous[waited]
        late = np.flatnonzero(trace.start[node] - trace.end[previous] > NEXT_OP_NS)
        previous[late] = _ended_last(trace, np.flatnonzero(of_process), node[late])[0]
        nodes.append(node)
        before.append(previous)
    return concatenated(nodes), concatenated(before)


def _right_after(trace: Trace) -> tuple[Int64, Int64]:
    """Do the same for known threads. A node waited if it started within NEXT_OP_NS of the previous node's end on its thread."""
    on_host = trace.on_devices_where(_is_host)
    nodes = np.flatnonzero(trace.counted & on_host & ~_asynchronous(trace) & (trace.kind != NodeKind.INPUT))
    nodes = nodes[np.lexsort((trace.start[nodes], trace.end[nodes]))]
    thread = np.unique(trace.thread[nodes], return_inverse=True)[1].reshape(-1)
    at = last_in_groups(thread, trace.end[nodes], thread, trace.start[nodes])
    previous = nodes[at]
    waited = (at >= 0) & (trace.start[nodes] - trace.end[previous] <= NEXT_OP_NS) & (previous != nodes)
    return nodes[waited], previous[waited]


def _ended_last(trace: Trace, among: Int64, nodes: Int64) -> tuple[Int64, Bool]:
    """Return (the node of ``among`` that had ended last when each of ``nodes`` started, whether there is one)."""
    by_end = among[np.lexsort((trace.start[among], trace.end[among]))]
    position = np.searchsorted(trace.end[by_end], trace.start[nodes], "right") - 1
    return by_end[position], position >= 0


def _processes(trace: Trace) -> list[Bool]:
    """Return for each process an array [devices]: whether a device's ops run on the threads of the process."""
    members = []
    for process in physical_devices.processes(trace):
        member = np.zeros(len(trace.devices), bool)
        member[[code for code in process.codes if _is_host(trace.devices[code])]] = True
        members.append(member)
    return members


def _is_host(device: Device) -> bool:
    return device.kind in _HOSTS and not device.repeats


def _previous(trace: Trace, of_process: Bool) -> tuple[Int64, Int64]:
    """Return (node, the node before it on its thread) of one process; the first nodes of threads are left out."""
    asynchronous = _asynchronous(trace)
    synchronous = np.flatnonzero(of_process & ~asynchronous)
    synchronous = synchronous[np.argsort(trace.start[synchronous], kind="stable")]
    if not len(synchronous):
        return synchronous, synchronous
    ends = np.maximum(trace.end[synchronous], trace.start[synchronous] + 1)  # no interval may be empty
    before = running_and_predecessors(trace.start[synchronous], ends)[1]
    later = np.flatnonzero(before >= 0)
    started = np.flatnonzero(of_process & asynchronous)
    ended, waited = _ended_last(trace, synchronous, started)
    return np.concatenate([synchronous[later], started[waited]]), np.concatenate([synchronous[before[later]], ended[waited]])


def _asynchronous(trace: Trace) -> Bool:
    """Return [n] whether an op holds no thread while it runs."""
    result: Bool = trace.op_types_where(ASYNCHRONOUS.fullmatch)[trace.op] | (trace.kind == NodeKind.COMMUNICATION)
    return result
