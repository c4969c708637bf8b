"""Find the gaps and errors of a trace, with remedies. Every answer and every export carries these findings.

Sources are the trace's columns, the decoder's notes (``Trace.notes``: a code of ``findings.NOTES``, or ``code: details``) and the
TraceContext. A cause is named only where one of these sources shows it.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tftracer.contract.basics import Finding
from tftracer.trace.analyses import communication, physical_devices
from tftracer.trace.analyses.launch_of_kernel import launch_of
from tftracer.trace.model import MAX_COLLECTED_NODES, UNKNOWN_TIME, NodeKind, Trace, TraceContext
from tftracer.trace.units import duration
from tftracer.trace.verdict.clock_skew import clocks_apart
from tftracer.trace.verdict.findings import GRAVITY, NOTES, TRACE_CUT, finding
from tftracer.trace.verdict.no_gpu_kernels import gpu_findings

#: Up to this share of kernels without a launch of their name, there is no finding: TensorFlow's own copies have no launch.
UNMATCHED_SHARE = 0.1

TRACE_AGAIN = (
    "Trace a step that computes something. Since TensorFlow 2.1 the RunMetadata of eager code and of tf.function is empty: trace "
    "them on the live page, or open a profile of them (.xplane.pb)."
)
PROFILE_AGAIN = (
    "Trace another step. TensorFlow's profiler serves one user at a time: end other profiles (TensorBoard's callback, "
    "tf.profiler). The coordinator of parameter servers computes nothing itself: trace its workers."
)

#: Codes of findings that already say, with a fitting remedy, that the file's format has no graph and no scheduling times.
FORMATS_WITHOUT_GRAPH = frozenset(("timeline_json",))


def findings_of(trace: Trace, context: TraceContext) -> list[Finding]:
    """Return all findings, the gravest first, one per code: findings of the file's reader replace those of this module."""
    is_profile = trace.source == "xspace"
    is_cut = any(f["code"] == TRACE_CUT for f in context.findings)
    graph_expected = not is_profile and not any(f["code"] in FORMATS_WITHOUT_GRAPH for f in context.findings)
    findings = [
        *context.findings,
        *_empty_or_truncated(trace, context),
        *(() if is_cut else gpu_findings(trace, context)),
        *(() if is_cut else _kernels(trace)),
        *_hidden_devices(context),
        *(_graph(trace, context) if graph_expected else ()),
        *(profile_findings(trace) if is_profile else ()),
        *(() if is_cut else _transfers(trace)),
        *_clocks(trace),
        *_times(trace, graph_expected),
        *_decoder_notes(trace),
    ]
    by_code = {f["code"]: f for f in reversed(findings)}
    return sorted((f for f in findings if by_code[f["code"]] is f), key=lambda f: GRAVITY[f["severity"]])


def _empty_or_truncated(trace: Trace, context: TraceContext) -> Iterator[Finding]:
    if trace.n == 0 and context.distributed and context.trace_level not in ("", "FULL_TRACE"):
        yield finding(
            "empty",
            "warning",
            f"The trace holds no ops: a distributed session records nothing with {context.trace_level}.",
            "Trace with trace_level=FULL_TRACE.",
        )
    elif trace.n == 0:
        remedy = PROFILE_AGAIN if trace.source == "xspace" else TRACE_AGAIN
        yield finding("empty", "warning", "The trace holds no ops: TensorFlow recorded nothing in this step.", remedy)
    if trace.n >= MAX_COLLECTED_NODES and trace.source == "run_metadata":
        yield finding(
            "truncated",
            "error",
            f"The trace is cut off: TensorFlow stops collecting at {MAX_COLLECTED_NODES:,} nodes a step. What ran after that "
            "is missing, so totals are too low and the step may look shorter than it was.",
            "Trace a smaller step: fewer iterations of a while_loop, fewer micro-batches in one session.run.",
        )


def _kernels(trace: Trace) -> Iterator[Finding]:
    kernels = physical_devices.kernels(trace)
    total = int(kernels.sum())
    if not total or not (trace.kind == NodeKind.LAUNCH).any():
        return
    unmatched = int((launch_of(trace)[kernels] < 0).sum())
    if unmatched > UNMATCHED_SHARE * total:
        yield finding(
            "unmatched_kernels",
            "info",
            f"{unmatched:,} of {total:,} kernels have a name that no op in the trace has: their time counts for the GPU, not "
            "for an op.",
            "See them on the GPU's stream lanes. Kernels of XLA clusters, for one, have names of their own.",
        )


def _hidden_devices(context: TraceContext) -> Iterator[Finding]:
    if context.device_pattern:
        yield finding(
            "devices_hidden",
            "info",
            f"The timeline shows only the devices that match {context.device_pattern!r}. The analyses cover all of them.",
            "Leave out the device pattern to see all devices.",
        )


def _graph(trace: Trace, context: TraceContext) -> Iterator[Finding]:
    if trace.partition_graphs or not trace.n:
        return
    lost = "Dependencies are read from the ops' labels, which lack the control edges that TensorFlow added itself."
    if trace.source != "run_metadata":
        why, remedy = "The file has no partition graphs.", "Open the RunMetadata itself."
    elif trace.cost_graph is not None:
        why = "TensorFlow leaves the partition graphs out when build_cost_model is set."
        remedy = "Trace without GraphOptions(build_cost_model=...) to get them."
    elif context.partition_graphs_asked is False:
        why = "The partition graphs were not asked for."
        remedy = "Trace with RunOptions(output_partition_graphs=True), as tftracer's own traces do."
    elif context.distributed:
        why = "TensorFlow returned no partition graphs for this distributed session."
        remedy = "Trace with RunOptions(output_partition_graphs=True); sessions without a grpc target always return them."
    else:
        why = "The trace has no partition graphs."
        remedy = "Trace with RunOptions(output_partition_graphs=True), as tftracer's own traces do."
    yield finding("no_partition_graph", "info", f"{why} {lost}", remedy)


def _transfers(trace: Trace) -> Iterator[Finding]:
    lost = communication.unrecorded(trace)
    if lost:
        who = "; ".join(f"{process}: {missing:,} of {total:,}" for process, (missing, total) in list(lost.items())[:10])
        yield finding(
            "unrecorded_transfers",
            "warning",
            f"Some transfers between processes are not in the trace (received by {who}). When a step starts, TensorFlow asks "
            "the processes to record transfers and does not wait until they do, so it may miss the first ones. Their time "
            "shows as idle or as waiting to be scheduled, and the links lack them.",
            "Trace another step: most traces have all transfers.",
        )


def _clocks(trace: Trace) -> Iterator[Finding]:
    apart = clocks_apart(trace)
    if apart:
        ((ahead, behind), difference_ns) = next(iter(apart.items()))
        yield finding(
            "clocks_apart",
            "warning",
            f"The clock of {ahead} is at least {duration(difference_ns)} ahead of {behind}'s: tensors arrived before they were "
            "computed. Their lanes are shifted against each other by this difference. It also changes whatever spans both: the "
            "step's duration and budget, the critical path, waits.",
            "Synchronize the machines' clocks (chrony, NTP), or trace the step on all processes from the job's page, which "
            "aligns them.",
        )


def _times(trace: Trace, scheduling_expected: bool) -> Iterator[Finding]:
    if not trace.n:
        return
    unknown = int(np.count_nonzero(~trace.drawn & (trace.kind != NodeKind.REPEAT)))
    if unknown:
        severity, message, remedy = NOTES["bad_times"]
        yield finding("bad_times", severity, f"{message} ({unknown:,} nodes.)", remedy)
    ops = trace.counted & (trace.kind != NodeKind.COMMUNICATION) & ~physical_devices.on_stream(trace)
    if scheduling_expected and ops.any() and (trace.scheduled[ops] == UNKNOWN_TIME).all():
        yield finding("no_scheduled", *NOTES["no_scheduled"])


def _decoder_notes(trace: Trace) -> Iterator[Finding]:
    for note in trace.notes:
        code, _, details = note.partition(":")
        if code in NOTES:
            severity, message, remedy = NOTES[code]
            yield finding(code, severity, f"{message} ({details.strip()})" if details.strip() else message, remedy)
        else:
            yield finding(code, "info", note, "The rest of the trace was read.")


def profile_findings(trace: Trace) -> Iterator[Finding]:
    if not trace.n:
        return
    if trace.load_graph is None:
        yield finding(
            "no_function_graph",
            "info",
            "The profile holds no graph: which op reads which is unknown, and the critical path follows times and threads alone.",
            "Eager code and JAX have no graph. Compiled functions (tf.function, Keras) that are traced on tftracer's live page "
            "have one.",
        )
    elif trace.has_definitions:
        yield finding(
            "function_graph",
            "info",
            "Dependencies are read from the function's definition. Ops that TensorFlow added while it optimized the function "
            "have no dependencies, and an op that it fused from several ops shows the inputs of all of them.",
            "Trace with its graph, on the run's page, collects the graph that ran. tftracer run keeps it from the first call on.",
        )
    yield finding(
        "profile_limits",
        "info",
        "A profile has no scheduling times, no outputs of ops, and no memory of CPUs: delays, tensors and most of memory are "
        "unknown.",
        "Only traces of session.run have them.",
    )
