"""What a trace's record says of its contents, from the engine; a trace that it cannot read is kept and marked."""

from __future__ import annotations

from typing import Any

from tftracer.trace.model import TraceContext


def summarize(raw: bytes, context: TraceContext) -> dict[str, Any]:
    """``nodes``, ``devices``, ``findings``, ``headline`` and ``state`` of a TraceRecord."""
    try:
        from tftracer.trace import answers  # NumPy-heavy: not for those who only list sessions

        nodes, devices, findings, headline = answers.record_summary(answers.Answers(raw, context))
    except Exception as error:  # whatever it is, the trace stays downloadable and the session usable
        finding = {
            "code": "unreadable",
            "severity": "error",
            "message": f"This trace cannot be read ({type(error).__name__}: {error}).",
            "remedy": "Download it as RunMetadata and report it, with the file.",
        }
        return {"nodes": 0, "devices": [], "findings": [finding], "headline": "", "state": "broken"}
    return {"nodes": nodes, "devices": devices, "findings": findings, "headline": headline, "state": "ready"}
