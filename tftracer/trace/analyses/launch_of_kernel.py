"""Finds the host's node that launched each GPU kernel or copy: from the profile, or by the name of the op."""

from __future__ import annotations

import numpy as np

from tftracer.trace.analyses.physical_devices import on_stream, runs_on
from tftracer.trace.arrays.groups import last_in_groups
from tftracer.trace.arrays.intervals import distinct
from tftracer.trace.arrays.types import Int32, Int64
from tftracer.trace.model import DeviceKind, NodeKind, Trace


def launch_of(trace: Trace) -> Int32:
    """Return [n] the host's node that launched each kernel or copy, -1 if not known.

    Profiles record it. Otherwise a kernel has its op's name (up to a ``:``), and its launch is the last execution of that op that
    began before the kernel, or else the first execution. O(k log n) for k kernels; one Python iteration per distinct name on a
    stream.
    """
    if trace.launch is not None:
        return np.where(trace.counted, trace.launch, -1).astype(np.int32)
    result = np.full(trace.n, -1, np.int32)
    kernels = np.flatnonzero(on_stream(trace))
    may_launch = runs_on(trace, DeviceKind.GPU, DeviceKind.CPU) | (trace.kind == NodeKind.LAUNCH)
    hosts = np.flatnonzero(trace.counted & may_launch)
    if not len(kernels) or not len(hosts):
        return result
    code = _op_name_codes(trace, kernels, hosts)
    has_host = code >= 0
    kernels, code = kernels[has_host], code[has_host]
    hosts = hosts[np.lexsort((trace.start[hosts], trace.name[hosts]))]
    last = last_in_groups(trace.name[hosts], trace.start[hosts], code, trace.start[kernels])
    result[kernels] = hosts[np.where(last >= 0, last, np.searchsorted(trace.name[hosts], code))]
    return result


def _op_name_codes(trace: Trace, kernels: Int64, hosts: Int64) -> Int32:
    """Return for each kernel the name code of the op that launched it; -1 if no host node has that name."""
    by_name = {trace.names[c]: c for c in distinct(trace.name[hosts]).tolist()}
    translation = np.full(max(len(trace.names), 1), -1, np.int32)
    for code in distinct(trace.name[kernels]).tolist():
        name = trace.names[code]
        translation[code] = by_name.get(name, by_name.get(name.split(":", 1)[0], -1))
    return translation[trace.name[kernels]]
