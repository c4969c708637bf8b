"""Computes what a job's processes sent each other in a step: links and tensors, over the traces of all processes.

A worker's trace contains what it received and what the servers received from it, so one link appears in several traces: its
messages, bytes and times are added up. Waiting time is the part of a transfer in which the receiver computes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import numpy as np

from tftracer.contract.job import JobTensor
from tftracer.contract.trace import Link, Sentence, Transfer
from tftracer.job.analyses.merged import Merged
from tftracer.job.analyses.process_traces import ProcessTrace
from tftracer.trace.analyses.communication import computing
from tftracer.trace.answers import Answers
from tftracer.trace.arrays.types import Int64
from tftracer.trace.decode.device_names import parse_device
from tftracer.trace.units import byte_size, duration

MAX_TENSORS = 5000


def links_and_tensors(
    sources: Sequence[ProcessTrace], answers: Sequence[Answers], merged: Merged
) -> tuple[list[Link], list[JobTensor]]:
    """Return the links, sorted by waiting time, and the longest transfers. Nodes and times are those of the merged trace."""
    links: dict[tuple[str, str], Link] = {}
    tensors: list[JobTensor] = []
    for i, source in enumerate(sources):
        if not (source.trace.bytes_moved > 0).any():
            continue
        answer, first = answers[i].communication(), merged.first_node[i]
        for link in answer["links"]:
            key = (link["source"], link["destination"])
            longest = link["longest"] + first
            links[key] = _sum(links[key], link) if key in links else {**link, "longest": longest}
        waited = _waited(answers[i], answer["transfers"])
        tensors += [_job_tensor(t, w, first, merged.trace.start) for t, w in zip(answer["transfers"], waited.tolist())]
    longest_first = sorted(tensors, key=lambda t: t["start_ns"] - t["end_ns"])
    return sorted(links.values(), key=lambda link: -link["waited_ns"]), longest_first[:MAX_TENSORS]


def _waited(answers: Answers, transfers: Sequence[Transfer]) -> Int64:
    """Return for each transfer the ns in which the receiving process computed nothing, as for links."""
    trace, computed = answers.trace, computing(answers.trace, answers.activities)
    nodes = np.array([t["node"] for t in transfers], np.int64)
    start, end = trace.start[nodes], trace.end[nodes]
    to = [t["destination"] for t in transfers]
    waited = end - start
    for device in set(to) & set(computed):
        to_device = np.array([destination == device for destination in to], np.bool_)
        waited[to_device] -= computed[device].within(start[to_device], end[to_device])
    return waited


def _job_tensor(transfer: Transfer, waited_ns: int, first: int, start: Int64) -> JobTensor:
    """Convert a transfer of one trace to the merged trace's node and times."""
    node = transfer["node"] + first
    shift = float(start[node]) - transfer["start_ns"]
    moved = {"node": node, "start_ns": transfer["start_ns"] + shift, "end_ns": transfer["end_ns"] + shift}
    return cast("JobTensor", {**transfer, **moved, "waited_ns": float(waited_ns)})


def _sum(first: Link, second: Link) -> Link:
    total = first.copy()
    for name in ("messages", "bytes", "wire_ns", "waited_ns"):
        total[name] += second[name]
    total["mean_bandwidth"] = total["bytes"] * 1e9 / total["wire_ns"] if total["wire_ns"] else 0.0
    return total


def slow_link(link: Link, step: float) -> Sentence:
    """Return the sentence for a link that slows the step down. ``step``: the step's length in ns, summed over the processes."""
    waited, sent = duration(link["waited_ns"]), byte_size(link["bytes"])
    source, destination = parse_device(link["source"]).title, parse_device(link["destination"]).title
    return {
        "code": "link",
        "text": f"{destination} waited {waited} for {sent} from {source}, doing nothing else.",
        "advice": "Send less (larger batches, smaller tensors), spread the variables over more servers, or use a faster network.",
        "share": min(link["waited_ns"] / step, 1.0),
        "numbers": {"waited_ns": link["waited_ns"], "bytes": link["bytes"]},
        "evidence": {"nodes": [link["longest"]], "tab": "communication"},
    }
