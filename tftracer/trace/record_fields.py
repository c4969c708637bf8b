"""The fields of a TraceRecord that come from the trace's contents. A trace that cannot be read is kept and marked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tftracer.errors import HelperError
from tftracer.memory_limit import memory_errors
from tftracer.trace.model import TraceContext

if TYPE_CHECKING:
    from tftracer.trace.answers import Answers
    from tftracer.trace.model import Watched

#: Codes of findings for traces whose contents are not known.
UNREADABLE, NOT_ANALYZED = "unreadable", "not_summed_up"


def read_contents(raw: bytes, context: TraceContext) -> dict[str, Any]:
    """Compute ``nodes``, ``devices``, ``findings``, ``headline`` and ``state`` of a TraceRecord in this thread."""
    try:
        from tftracer.trace.answers import Answers

        with memory_errors(len(raw)):
            return contents_of(Answers(raw, context))
    except HelperError as error:
        return unfinished(error)
    except Exception as error:  # the trace stays downloadable and the session usable
        return broken(error)


def contents_of(answers: Answers, watched: Watched | None = None) -> dict[str, Any]:
    """Compute the fields of ``read_contents`` from ``answers``, without reading the graph, the memory or the layout.

    ``watched``: as for ``Answers.verdict``. Raises the errors of ``Answers``.
    """
    from tftracer.trace.analyses.physical_devices import physical_devices
    from tftracer.trace.verdict.verdict import headline

    trace = answers.trace
    return {
        "nodes": trace.n,
        "devices": [device.key for device in physical_devices(trace)],
        "findings": answers.findings(),
        "headline": headline(answers.verdict(watched)),
        "state": "ready",
    }


def broken(error: Exception) -> dict[str, Any]:
    """Return the fields of ``read_contents`` for a trace that cannot be read."""
    message = f"This trace cannot be read ({type(error).__name__}: {error})."
    return _fields_without_contents(UNREADABLE, message, "Download it as RunMetadata and report it, with the file.", "broken")


def unfinished(error: Exception) -> dict[str, Any]:
    """Return the fields of ``read_contents`` for a trace whose reader failed; the trace itself may be fine."""
    return _fields_without_contents(
        NOT_ANALYZED, str(error), "Open the trace to try again. Or save the session and open it elsewhere.", "ready"
    )


def _fields_without_contents(code: str, message: str, remedy: str, state: str) -> dict[str, Any]:
    finding = {"code": code, "severity": "error", "message": message, "remedy": remedy}
    return {"nodes": None, "devices": [], "findings": [finding], "headline": "", "state": state}
