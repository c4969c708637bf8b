"""What a profile (XSpace) does not tell, where RunMetadata would."""

from __future__ import annotations

from collections.abc import Iterator

from tftracer.contract.basics import Finding
from tftracer.trace.model import Trace
from tftracer.trace.verdict.finding import finding


def profile_findings(trace: Trace) -> Iterator[Finding]:
    if not trace.n:
        return
    if trace.load_graph is None:
        yield finding(
            "no_function_graph",
            "info",
            "The profile holds no graph: which op reads which is unknown, and the critical path follows times and threads alone.",
            "Eager code and JAX have none. Compiled functions (tf.function, Keras) that are traced on tftracer's live page do.",
        )
    elif trace.has_definitions:
        yield finding(
            "function_graph",
            "info",
            "Dependencies are read from the function's definition. Ops that TensorFlow added while it optimized the function "
            "have none, and of ops that it fused the inputs are shown together.",
            "Trace with its graph, on the run's page, collects the graph that ran. tftracer run keeps it from the first call on.",
        )
    yield finding(
        "profile_limits",
        "info",
        "A profile has no scheduling times, no outputs of ops, and of a CPU no memory: delays, tensors and most of memory are "
        "unknown.",
        "Traces of session.run alone have them.",
    )
