"""Findings about a step of a job: missing processes, unknown clocks, and the findings of its processes' traces."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from tftracer.contract.basics import Finding
from tftracer.job.analyses.clocks import Clock
from tftracer.job.analyses.collectives import MISSING, Collectives
from tftracer.job.analyses.process_traces import ProcessTrace
from tftracer.trace.units import duration
from tftracer.trace.verdict.findings import GRAVITY

#: Limits: processes that are listed by name; messages of one finding.
MAX_NAMES, MAX_MESSAGES = 10, 3
#: Findings of single traces that are not true for the merged trace, whose clocks are aligned.
NOT_MERGED = frozenset(("clocks_apart",))
#: The merged trace has the nodes of its traces but not their graphs.
NO_GRAPHS: Finding = {
    "code": "no_partition_graph",
    "severity": "info",
    "message": "Over several processes, edges come from the ops' labels: control edges of other devices and the slots of "
    "outputs are missing.",
    "remedy": "Open one process's own trace for the path along its partition graphs.",
}


def missing_processes(missing: Mapping[str, str]) -> list[Finding]:
    """Return the finding about processes without a trace; [] if none is missing. ``missing``: title -> why."""
    if not missing:
        return []
    reasons = "; ".join(f"{title}: {why}" for title, why in sorted(missing.items())[:20])
    count = "One of the requested processes is" if len(missing) == 1 else f"{len(missing):,} of the requested processes are"
    return [
        {
            "code": "missing_ranks",
            "severity": "warning",
            "message": f"{count} not in this trace. {reasons}",
            "remedy": "Trace the step again when all processes are connected.",
        }
    ]


def clock_findings(titles: Sequence[str], clocks: Sequence[Clock], shared: Sequence[str], matched: Collectives) -> list[Finding]:
    """Return the findings about the clocks' offsets. ``titles``, ``clocks``, ``shared``: [owners]; the first is the reference."""
    if len(clocks) < 2:
        return []
    unknown = [title for title, clock in zip(titles, clocks) if not np.isfinite(clock.sigma_ns)]
    comparable = [clock for clock in clocks[1:] if np.isfinite(clock.sigma_ns)]
    findings = [_unknown_clocks(unknown)] if unknown else []
    one_clock = len({*shared}) == 1 and not any(clock.offset_ns for clock in comparable)
    if comparable and not one_clock:
        findings.append(_known_clocks(comparable, matched))
    return findings


def _known_clocks(comparable: Sequence[Clock], matched: Collectives) -> Finding:
    largest = max(abs(clock.offset_ns) for clock in comparable)
    error = 2 * max(clock.sigma_ns for clock in comparable)
    lengths = (matched.end - matched.start)[matched.end != MISSING]
    coarse = bool(len(lengths)) and error > 0.1 * float(lengths.min())
    if largest <= error:
        message = f"The processes' clocks agree within {duration(largest + error)}."
    else:
        message = f"The processes' clocks differ by up to {duration(largest)} (± {duration(error)}). Times are aligned."
    if coarse:
        message += " For the shortest collective this error is large: it is uncertain which process came first to it."
    remedy = "Trace a few more steps of the job: they make the clock estimates more precise." if coarse else ""
    return {"code": "clock_skew", "severity": "warning" if coarse else "info", "message": message, "remedy": remedy}


def _unknown_clocks(titles: Sequence[str]) -> Finding:
    return {
        "code": "clock_unknown",
        "severity": "warning",
        "message": f"Nothing in this step relates the clock of {_listed(titles)} to the others: its times are shown as recorded.",
        "remedy": "Trace a step in which all ranks communicate.",
    }


def process_findings(traces: Sequence[ProcessTrace]) -> list[Finding]:
    """Combine the findings of the processes' traces: one per code, which names the processes; most severe first."""
    messages: dict[str, dict[str, list[str]]] = {}  # code -> message -> titles
    most_severe: dict[str, Finding] = {}
    for trace in traces:
        for finding in (f for f in trace.findings if f["code"] not in NOT_MERGED):
            messages.setdefault(finding["code"], {}).setdefault(finding["message"], []).append(trace.title)
            worst = most_severe.setdefault(finding["code"], finding)
            if GRAVITY[finding["severity"]] < GRAVITY[worst["severity"]]:
                most_severe[finding["code"]] = finding
    merged: list[Finding] = [{**f, "message": _by_process(messages[code], len(traces))} for code, f in most_severe.items()]
    return sorted(merged, key=lambda f: GRAVITY[f["severity"]])


def _by_process(messages: Mapping[str, Sequence[str]], traces: int) -> str:
    if len(messages) == 1:
        ((message, titles),) = messages.items()
        return f"{'All processes' if len(titles) == traces > 1 else _listed(titles)}: {message}"
    named = [f"{_listed(titles)}: {message}" for message, titles in messages.items()]
    more = len(named) - MAX_MESSAGES
    return " ".join([*named[:MAX_MESSAGES], *([f"And {more:,} more."] if more > 0 else [])])


def _listed(titles: Sequence[str]) -> str:
    more = len(titles) - MAX_NAMES
    return ", ".join([*titles[:MAX_NAMES], *([f"{more:,} more"] if more > 0 else [])])
