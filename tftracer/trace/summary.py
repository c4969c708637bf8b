"""One trace as a page of text (``tftracer FILE --summary``) or as JSON.

``summarize`` collects the answers and computes nothing itself; ``render`` formats them for a terminal.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tftracer.contract.trace import DeviceBudget
from tftracer.trace.analyses.budget import PART_TITLES, PARTS
from tftracer.trace.units import byte_size, duration

if TYPE_CHECKING:
    from tftracer.trace.answers import Answers

TOP = 10
WIDTH = 100


def summarize(answers: Answers, other_traces: Sequence[Mapping[str, Any]] = ()) -> dict[str, Any]:
    """Return the summary as JSON-serializable values: verdict, budget, top ops, critical path, links, findings. None: not known.

    ``other_traces``: as for ``Answers.verdict``.
    """
    trace, context = answers.trace, answers.context
    path = answers.critical_path()
    ops = answers.ops("type")
    communication, budget = answers.communication(), answers.budget()
    return {
        "title": context.title,
        "step": context.step,
        "step_ns": float(trace.duration_ns) if trace.n else None,
        "nodes": trace.n,
        "devices": [{"name": d.name, "title": d.title, "kind": d.kind.value} for d in trace.devices],
        "verdict": answers.verdict(other_traces=other_traces)["sentences"],
        "budget": {"whole": budget["whole"], "devices": budget["devices"]},
        "ops": {"total_ns": ops["total_ns"], "rows": ops["rows"][:TOP]},
        "longest_ops": answers.ops("name")["rows"][:TOP],
        "critical_path": {
            "length_ns": path["length_ns"],
            "busy_ns": path["busy_ns"],
            "steps": len(path["steps"]) + path["left_out"],
            "edges": path["edges"],
            "by_op": path["by_op"][:TOP],
        },
        "communication": {
            "total_ns": communication["total_ns"],
            "exposed_ns": communication["exposed_ns"],
            "links": communication["links"][:TOP],
            "collectives": communication["collectives"][:TOP],
        },
        "findings": answers.findings(),
    }


def render(summary: dict[str, Any]) -> str:
    """Format the summary for a terminal: at most WIDTH columns, no colours. Ends with a line break."""
    parts = [_head(summary), _verdict(summary), _budget(summary), _ops(summary), _path(summary), _links(summary)]
    return "\n\n".join(part for part in [*parts, _findings(summary)] if part) + "\n"


def _head(summary: dict[str, Any]) -> str:
    title = summary["title"] or "A traced step"
    step = f", step {summary['step']:,}" if summary["step"] is not None else ""
    if not summary["nodes"]:
        return f"{shortened(title, WIDTH - 50)}{step}: no op was recorded"
    count = len(summary["devices"])
    devices = f"{count} device{'s' if count != 1 else ''}"
    return f"{shortened(title, WIDTH - 50)}{step}: {duration(summary['step_ns'])}, {summary['nodes']:,} nodes on {devices}"


def _verdict(summary: dict[str, Any]) -> str:
    lines = []
    for number, sentence in enumerate(summary["verdict"], 1):
        lines += textwrap.wrap(sentence["text"], WIDTH, initial_indent=f"{number}. ", subsequent_indent="   ")
        lines += textwrap.wrap(sentence["advice"], WIDTH, initial_indent="   → ", subsequent_indent="     ")
    return "\n".join(lines)


def _budget(summary: dict[str, Any]) -> str:
    if not summary["nodes"]:
        return ""
    budgets: list[DeviceBudget] = [summary["budget"]["whole"], *summary["budget"]["devices"]]
    if len(budgets) == 2:  # one device: its budget is the same as the whole step's
        budgets = [{**budgets[0], "title": "first op to last"}]
    used = [p for p in [*PARTS, "hidden_communication"] if any(b["parts_ns"][p] for b in budgets)]
    step = summary["step_ns"] or 1.0  # first op to last; the verdict's shares are of the call, which may be longer
    rows = [[f"Budget of {duration(step)}", *(shortened(b["title"], 20) for b in budgets)]]
    for part in used:
        mark = " (under compute)" if part == "hidden_communication" else ""
        shares = [_share(b["parts_ns"][part], step) for b in budgets]
        rows.append([PART_TITLES[part] + mark, *shares])
    return table(rows)


def _share(ns: float | None, step: float) -> str:
    return "unknown" if ns is None else f"{duration(ns)} {ns / step:4.0%}"


def _ops(summary: dict[str, Any]) -> str:
    rows = [["Op type", "count", "total", "share", "mean", "longest"]]
    for row in summary["ops"]["rows"]:
        times = (duration(row["total_ns"]), f"{row['share']:.1%}", duration(row["mean_ns"]), duration(row["max_ns"]))
        rows.append([shortened(row["key"], 40), f"{row['count']:,}", *times])
    return table(rows) if len(rows) > 1 else ""


def _path(summary: dict[str, Any]) -> str:
    path = summary["critical_path"]
    if not path["steps"]:
        return ""
    sources = {"partition_graph": "partition graphs", "function_graph": "the function's definition", "labels": "labels"}
    edges = sources.get(path["edges"], "no edges known")
    line = f"Critical path: {path['steps']:,} ops, {duration(path['busy_ns'])} of work in {duration(path['length_ns'])} ({edges})"
    top_ops = ", ".join(f"{r['key']} {r['share']:.0%}" for r in path["by_op"][:5])
    return f"{line}\n  {shortened(top_ops, WIDTH - 2)}"


def _links(summary: dict[str, Any]) -> str:
    titles = {d["name"]: d["title"] for d in summary["devices"]}
    rows = [["Link", "messages", "bytes", "on the wire", "waited for"]]
    for link in summary["communication"]["links"]:
        ends = (titles.get(link["source"], link["source"]), titles.get(link["destination"], link["destination"]))
        times = (duration(link["wire_ns"]), duration(link["waited_ns"]))
        rows.append([shortened(" → ".join(ends), 50), f"{link['messages']:,}", byte_size(link["bytes"]), *times])
    return table(rows) if len(rows) > 1 else ""


def _findings(summary: dict[str, Any]) -> str:
    lines = []
    for finding in summary["findings"]:
        lines += textwrap.wrap(f"! {finding['message']}", WIDTH, subsequent_indent="  ")
        lines += textwrap.wrap(f"  → {finding['remedy']}", WIDTH, subsequent_indent="    ")
    return "\n".join(lines)


def table(rows: list[list[str]]) -> str:
    """Format a table. The first column is aligned to the left, the others to the right."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return "\n".join(
        "  ".join([row[0].ljust(widths[0]), *(cell.rjust(w) for cell, w in zip(row[1:], widths[1:]))]).rstrip() for row in rows
    )


def shortened(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"
