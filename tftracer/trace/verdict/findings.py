"""Findings: their severities, and the texts for the decoders' notes (``Trace.notes``)."""

from __future__ import annotations

from typing import Literal

from tftracer.contract.basics import Finding
from tftracer.trace.model import OPS_LEFT_OUT

Severity = Literal["info", "warning", "error"]
#: The order of severities: the gravest is 0.
GRAVITY: dict[Severity, int] = {"error": 0, "warning": 1, "info": 2}

#: Code for a trace from a file that was cut off. If parts are missing, that is because the file was cut off, and not because of
#: the step.
TRACE_CUT = "trace_cut"

#: Findings for the decoders' notes: code -> (severity, message, remedy).
NOTES: dict[str, tuple[Severity, str, str]] = {
    "bad_times": (
        "warning",
        "Some nodes have invalid times (before the step, or too long); they are left out of the timeline and are not counted.",
        "Trace another step. If the finding comes again, the machine's clock may have been set while the step ran.",
    ),
    "communication_ops_unused": (
        "warning",
        "The pattern communication_ops could not be used: the ops that it names do not count as communication.",
        "Use a pattern without look-around, back references and large repeats.",
    ),
    OPS_LEFT_OUT: (
        "warning",
        "TensorFlow's profiler recorded only the ops that take long: after a function's first steps it leaves out those that it "
        "has found to be cheap (some microseconds), unless all ops are requested. The time of the missing ops shows as idle.",
        "Trace the step on tftracer's live page, which asks for all ops. Or profile one of the function's first "
        "steps, or with host_tracer_level=3 (TensorFlow 2.20 and 2.21 ignore it).",
    ),
    "profiler_errors": (
        "warning",
        "TensorFlow's profiler reported errors: the trace may lack what they name.",
        "Fix what they name. libcupti: install it for TensorFlow's CUDA version (pip install nvidia-cuda-cupti-cu12) or put "
        "its folder on LD_LIBRARY_PATH. Privileges: NVreg_RestrictProfilingToAdminUsers=0, or CAP_SYS_ADMIN.",
    ),
    "profiler_warnings": (
        "info",
        "TensorFlow's profiler reported warnings.",
        "See whether what they name matters for this trace.",
    ),
    "no_scheduled": (
        "info",
        "No op has a valid scheduling time: scheduling delays are unknown, and time spent waiting for a thread shows as idle.",
        "Record the step again with TensorFlow 2.12 or later, which writes these times.",
    ),
}


def finding(code: str, severity: Severity, message: str, remedy: str) -> Finding:
    return {"code": code, "severity": severity, "message": message, "remedy": remedy}
