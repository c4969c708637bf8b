"""Summarizes a session in one page of text (``tftracer FILE --summary``), or as JSON."""

from __future__ import annotations

import contextlib
import re
import textwrap
import time
from collections.abc import Callable
from typing import Any

from tftracer.contract.input_pipelines import InputPipeline, InputPipelines
from tftracer.contract.ledger import Ledger, LedgerPart
from tftracer.contract.memory_growth import ProcessMemory
from tftracer.contract.session import Run, Session, TraceRecord
from tftracer.contract.stalls import GapProfile, StallList
from tftracer.display.escaped_lines import without_breaks
from tftracer.errors import TracerError
from tftracer.input_pipelines.answer import rate_text
from tftracer.ledger.parts_of_wall_time import long_duration
from tftracer.session.answers import SessionSource
from tftracer.session.steps.percentile_sketch import ERROR
from tftracer.session.steps.statistics import total_s
from tftracer.session.traces.other_traces import MAX_BYTES_AT_ONCE, OtherTraces, newest_that_fit, readable
from tftracer.slow.answer import summary as slow_summary
from tftracer.trace import summary as trace_summary
from tftracer.trace.answers import Answers
from tftracer.trace.summary import WIDTH, shortened, table
from tftracer.trace.units import duration
from tftracer.trace.verdict.rules.between_steps import SAMPLED
from tftracer.trace.verdict.verdict import headline

_SESSION = (
    "host",
    "pid",
    "rank",
    "command",
    "tensorflow",
    "tftracer",
    "started_at",
    "ended_at",
    "steps_lost",
    "cut",
    "damage",
    "problems",
)
_RUN = ("id", "title", "steps", "mean_s", "p50_s", "p95_s", "p99_s", "max_s", "between_steps_s")
_TRACE = ("id", "step", "started_at", "duration_s", "nodes", "state", "headline", "note")
_UNKNOWN = "-"
NO_TRACE = "No step was traced. What a step consists of: tftracer run --trace 3 SCRIPT, or Trace on the page while a script runs."
#: A rare run has one step, or at most FEW_STEPS steps and at most RARE_SHARE times the steps of the run with the most steps.
#: MIN_JOINED or more rare runs share one row.
FEW_STEPS, RARE_SHARE, MIN_JOINED = 5, 0.01, 3
#: At most this many traces of each run, the newest, have their headlines computed again.
MAX_RECOMPUTED = 20
#: Maximum numbers of listed items of each part of the ledger; of pipelines: open ones first, and among them those that delay the
#: training; and of growths of the memory, the newest first.
MAX_ITEMS, MAX_PIPELINES, MAX_GROWTHS = 3, 3, 3


def summarize(source: SessionSource) -> dict[str, Any]:
    """Return ``session``, ``ledger``, ``input_pipelines``, ``memory_growth``, ``runs`` with ``traces``, and one trace, for JSON.

    The run that took the most time comes first. ``trace``: the number of the newest trace of the first run that has one; None,
    with an empty ``verdict``, if there is none.
    """
    session, slow = source.session(), source.all_stalls()
    runs = sorted(source.runs(), key=total_s, reverse=True)
    selected = _newest_ready_trace(runs)
    detail: dict[str, Any] = {"verdict": []}
    if selected is not None:

        def answers(number: int) -> Answers:
            return Answers(source.trace_bytes(number), source.trace_context(number), trace_id=number)

        other_traces = OtherTraces(source, answers)
        detail = trace_summary.summarize(answers(selected), other_traces.of(selected, "verdict"))
        detail["recomputed"] = _recomputed(runs, answers, other_traces)
    summaries = [_run(run, slow, source.gaps(run["id"])) for run in runs]
    return {
        "session": _selected_fields(session, _SESSION),
        "ledger": source.ledger(),
        "input_pipelines": source.input_pipelines(),
        "memory_growth": source.memory_growth(),
        "runs": summaries,
        "trace": selected,
        **detail,
    }


def render(summary: dict[str, Any]) -> str:
    """Return the summary for a terminal, without colours. It ends with a line break."""
    summary = without_breaks(summary)
    parts = [_head(summary["session"]), _problems(summary["session"]), ledger_text(summary["ledger"])]
    parts += [pipelines_text(summary["input_pipelines"]), memory_text(summary["memory_growth"])]
    parts += [_runs(summary["runs"])]
    recomputed = summary.get("recomputed", {})
    parts += [slow_summary.render(run, recomputed) for run in summary["runs"]]
    parts += [_traces(run, recomputed) for run in summary["runs"]]
    if summary["trace"] is None:
        parts.append(NO_TRACE)
    else:
        parts.append(f"Trace {summary['trace']}: " + trace_summary.render(summary).rstrip())
    return "\n\n".join(filter(None, parts)) + "\n"


def _recomputed(runs: list[Run], answers: Callable[[int], Answers], other_traces: OtherTraces) -> dict[int, str]:
    """Return trace -> its headline as computed now.

    Covers only the newest traces of each run, up to ``MAX_BYTES_AT_ONCE`` together.
    """
    result = {}
    for run in runs:
        newest = readable(trace for trace in run["traces"] if trace["headline"])[-MAX_RECOMPUTED:]
        for trace in newest_that_fit(newest, MAX_BYTES_AT_ONCE):
            with contextlib.suppress(TracerError):
                result[trace["id"]] = headline(answers(trace["id"]).verdict(other_traces=other_traces.of(trace["id"], "verdict")))
    return result


def _without_numbers(text: str) -> str:
    """Return a headline without its numbers and sampled lines, which differ a little each time they are computed."""
    return re.sub(r"[\d.,]+", "", text.partition(SAMPLED)[0])


def _newest_ready_trace(runs: list[Run]) -> int | None:
    """Return the newest trace of the first run that has one. ``runs``: the one that took the most time comes first."""
    for run in runs:
        ready = [trace for trace in run["traces"] if trace["state"] == "ready"]
        if ready:
            return max(ready, key=lambda trace: trace["started_at"])["id"]
    return None


def _selected_fields(message: Session | Run | TraceRecord, names: tuple[str, ...]) -> dict[str, Any]:
    return {name: value for name, value in message.items() if name in names}


def _run(run: Run, slow: StallList, gaps: GapProfile) -> dict[str, Any]:
    """Return the summary of a run. ``slow``: the slow steps of all runs."""
    slow_steps = slow_summary.slow_steps(run, slow, gaps)
    return {**_selected_fields(run, _RUN), "slow_steps": slow_steps, "traces": [_trace(trace) for trace in run["traces"]]}


def _trace(trace: TraceRecord) -> dict[str, Any]:
    return {**_selected_fields(trace, _TRACE), "findings": [finding["message"] for finding in trace["findings"]]}


def _head(session: dict[str, Any]) -> str:
    parts = [
        session["command"],
        f"on {session['host']}" if session["host"] else "",
        time.strftime("%Y-%m-%d %H:%M", time.localtime(session["started_at"])) if session["started_at"] else "",
        f"TensorFlow {session['tensorflow']}" if session["tensorflow"] else "",
    ]
    return shortened(", ".join(filter(None, parts)), 2 * WIDTH)


def _problems(session: dict[str, Any]) -> str:
    """Return what went wrong in the tracer or ended the script, a paragraph for each problem."""
    messages = [problem["message"] for problem in session["problems"]]
    return "\n".join(textwrap.fill(message, WIDTH, initial_indent="! ", subsequent_indent="  ") for message in messages)


def ledger_text(ledger: Ledger) -> str:
    """Return the text of the ledger; "" if it is not known."""
    if not ledger["parts"]:
        return ""
    rows = [["Wall time", long_duration(ledger["duration_s"]), "100.0%"]]
    rows += [[part["name"], long_duration(part["duration_s"]), f"{part['permille'] / 10:.1f}%"] for part in ledger["parts"]]
    head, *lines = table(rows).splitlines()
    lines = [shortened(f"{line}  {_items(part)}".rstrip(), WIDTH) for line, part in zip(lines, ledger["parts"])]
    text = " ".join(filter(None, [ledger["text"], ledger["advice"], *ledger["doubts"]]))
    return "\n".join([head, *lines, *textwrap.wrap(text, WIDTH)])


def _items(part: LedgerPart) -> str:
    about = "about " if part["kind"] == "python" else ""
    return ", ".join(f"{item['name']} {about}{long_duration(item['duration_s'])}" for item in part["items"][:MAX_ITEMS])


def pipelines_text(pipelines: InputPipelines) -> str:
    """Return the text of the pipelines, then the note about iterators that were not examined."""
    listed = sorted(pipelines["pipelines"], key=lambda each: (not each["is_open"], each["side"] != "input"))[:MAX_PIPELINES]
    lines = [line for each in listed for line in textwrap.wrap(f"Input {each['title']}: {_pipeline(each)}", WIDTH)]
    return "\n".join([*lines, *textwrap.wrap(pipelines["text"], WIDTH)])


def _pipeline(pipeline: InputPipeline) -> str:
    predicted = pipeline["predicted_rate"]
    limit = f"At most {rate_text(predicted)} {pipeline['unit']}/s then." if predicted is not None else ""
    return " ".join(filter(None, [pipeline["text"], pipeline["advice"], limit]))


def memory_text(memory: ProcessMemory) -> str:
    """Return the text of the proven growths, followed by the reason if the memory is not known; "" if there is neither."""
    texts = [" ".join(filter(None, [each["text"], each["advice"], *each["doubts"]])) for each in memory["growths"][:MAX_GROWTHS]]
    return "\n".join(line for text in [*texts, memory["text"]] for line in textwrap.wrap(text, WIDTH))


def _runs(runs: list[dict[str, Any]]) -> str:
    rows = [["Run", "steps", "p50", "p99", "max", "traces"]]
    rare = [run for run in runs if _is_rare(run, runs)]
    for run in [run for run in runs if len(rare) < MIN_JOINED or run not in rare]:
        times = [_seconds(run[name]) for name in ("p50_s", "p99_s", "max_s")]
        steps = f"{run['steps']:,}" if run["steps"] else _UNKNOWN
        rows.append([shortened(run["title"], WIDTH - 50), steps, *times, f"{len(run['traces']):,}"])
    if len(rare) >= MIN_JOINED:
        longest = max(run["max_s"] or 0.0 for run in rare)
        steps = sum(run["steps"] for run in rare)
        rows.append([f"{len(rare):,} runs of one or few steps", f"{steps:,}", "", "", _seconds(longest), "0"])
    if not runs:
        return "No run was recorded."
    has_percentiles = any(run["p99_s"] for run in runs)
    return table(rows) + (f"\nPercentiles are of all untraced steps, right to {ERROR:.0%}." if has_percentiles else "")


def _is_rare(run: dict[str, Any], runs: list[dict[str, Any]]) -> bool:
    """Return whether a run has few steps and neither traces nor slow steps, like one of a function's many signatures."""
    few = min(FEW_STEPS, RARE_SHARE * max(each["steps"] for each in runs))
    return 0 < run["steps"] <= max(1, few) and not run["traces"] and not run["slow_steps"]["count"]


def _traces(run: dict[str, Any], recomputed: dict[int, str]) -> str:
    if not run["traces"]:
        return ""
    lines = (_line(trace, recomputed.get(trace["id"], "")) for trace in run["traces"])
    return "\n".join([f"Traces of {shortened(run['title'], WIDTH - 12)}", *lines])


def _line(trace: dict[str, Any], recomputed: str) -> str:
    """Return the lines about a trace. ``recomputed``: its headline as computed now; "" if it was not computed."""
    stored = trace["headline"] or next(iter(trace["findings"]), "")
    text = recomputed or stored
    if recomputed and not _without_numbers(recomputed).startswith(_without_numbers(stored)):
        text += f" (When it was recorded, the headline was: {stored})"
    step = f"step {trace['step']:,}" if trace["step"] else ""
    start = f"  {trace['id']:>4}  {step:<12} {_seconds(trace['duration_s']):>8}  "
    note = f" ({trace['note']})" if trace["note"] else ""
    return textwrap.fill(text + note or _UNKNOWN, WIDTH, initial_indent=start, subsequent_indent=" " * len(start))


def _seconds(value: float | None) -> str:
    return duration(value * 1e9) if value else _UNKNOWN
