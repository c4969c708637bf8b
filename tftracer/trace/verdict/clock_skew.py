"""Find by how much the clocks of a trace's processes differ at least, from tensors that arrived before they were computed.

A worker's trace of a parameter-server step also holds nodes of the servers, timed by the servers' clocks. A tensor is sent when
its op has ended: with equal clocks, its RecvTensor cannot end before the op does. A difference shorter than a transfer is not
noticed. (``job/analyses/clocks.py`` compares the traces of all processes of a job and finds more.) Loops over tensors run in
batches, so that other threads get the GIL between two batches.
"""

from __future__ import annotations

import numpy as np

from tftracer.trace.analyses.communication import transfers
from tftracer.trace.arrays.intervals import distinct, paced
from tftracer.trace.arrays.strings import StringTable, codes_in
from tftracer.trace.arrays.types import Int64
from tftracer.trace.decode.device_names import process_of
from tftracer.trace.decode.labels import Received
from tftracer.trace.model import Trace

#: Smaller differences are ignored: two readings of one clock are microseconds apart.
MIN_NS = 100_000


def clocks_apart(trace: Trace) -> dict[tuple[str, str], int]:
    """Return (process whose clock is ahead, process behind) -> minimal difference in ns, largest first; processes as ``ps/0``."""
    all_transfers = transfers(trace)
    tensors = paced(all_transfers.tensors.items())  # by the codes of their labels
    sent = [(label, r) for label, r in tensors if process_of(r.source) != process_of(r.destination)]
    if not sent:
        return {}
    devices = {device.name: code for code, device in enumerate(trace.devices)}
    source = np.array([devices.get(r.source, -1) for _, r in sent], np.int64)
    computed = _computed(trace, np.stack([source, _producers(trace, sent)], 1))
    arrived = _arrived(trace, all_transfers.node, np.array([label for label, _ in sent], np.int64))
    early = computed - arrived
    differences: dict[tuple[str, str], int] = {}
    for i in paced(np.flatnonzero(early > MIN_NS).tolist()):
        pair = process_of(sent[i][1].source), process_of(sent[i][1].destination)
        differences[pair] = max(differences.get(pair, 0), int(early[i]))
    return dict(sorted(differences.items(), key=lambda item: -item[1]))


def _producers(trace: Trace, sent: list[tuple[int, Received]]) -> Int64:
    """Return [sent] the codes of the producers' names; -1: not in the trace."""
    names = StringTable.of([received.producer for _, received in sent])
    return codes_in(trace.names, names.data, names.offsets[:-1], np.diff(names.offsets))


def _computed(trace: Trace, producer: Int64) -> Int64:
    """Return [producer] when each op, by its device and name, first had its outputs; 0: not in the trace."""
    width = len(trace.names) + 1
    wanted, position = np.unique(producer[:, 0] * width + producer[:, 1], return_inverse=True)
    timed = np.flatnonzero(trace.start >= 0)
    key = trace.device[timed].astype(np.int64) * width + trace.name[timed]
    at = np.minimum(np.searchsorted(wanted, key), len(wanted) - 1)
    is_match = wanted[at] == key
    ready = np.where(trace.op_end >= 0, trace.op_end, trace.start)[timed]
    never = np.iinfo(np.int64).max
    first = np.full(len(wanted), never)
    np.minimum.at(first, at[is_match], ready[is_match])
    first[first == never] = 0
    in_trace = (producer >= 0).all(axis=1)
    return np.where(in_trace, first[position.reshape(-1)], 0)


def _arrived(trace: Trace, nodes: Int64, labels: Int64) -> Int64:
    """Return [labels] when the last RecvTensor with each label ended."""
    nodes = nodes[trace.start[nodes] >= 0]
    order = np.argsort(labels)
    at = np.minimum(np.searchsorted(labels[order], trace.label[nodes]), len(labels) - 1)
    is_match = labels[order][at] == trace.label[nodes]
    last = np.full(len(labels), np.iinfo(np.int64).max // 2)
    last[order[distinct(at[is_match])]] = 0
    np.maximum.at(last, order[at[is_match]], trace.end[nodes][is_match])
    return last
