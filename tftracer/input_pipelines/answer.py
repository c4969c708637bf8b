"""Describes the pipelines in words: each stage, the limiting one, and what to change. No side effects."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from tftracer.contract.input_pipelines import InputPipeline, InputPipelines, PipelineStage
from tftracer.input_pipelines.advice import COMPUTING_SHARE, Advice, advice
from tftracer.input_pipelines.dataset_code import FROM_GENERATOR, Transformation, is_distributed, kind_of
from tftracer.input_pipelines.limiting_stage import MIN_LOOKS, MIN_SHARE, WAITS, WORKS, Flow, Stage, Thread, flow_of
from tftracer.input_pipelines.saved_pipelines import Pipeline, PipelineFacts
from tftracer.trace.units import counted, percent
from tftracer.trace.units import duration as ns_text

#: Why iterators were not looked into.
UNSEEN = {
    "old": "TensorFlow tells what a pipeline does from 2.17 on; this TensorFlow is older.",
    "autotune": "A pipeline was not looked into: its autotune is off (options.autotune.enabled).",
    "session": "Iterators of sessions and Estimators cannot be looked into.",
    "function": "A dataset that is iterated within a tf.function cannot be looked into.",
    "failed": "TensorFlow could not tell what a pipeline does.",
    "large": "A pipeline has too many stages to be looked into.",
}
DISTRIBUTED = "A distribution strategy hands the elements over: TensorFlow does not tell the stages before that."
#: Only a look that is at most this old shows what the training waits for now.
RECENT_S = 15.0
#: ``what_limits`` considers only pipelines whose looks since the training took START_ELEMENTS elements span at least LOOKED_S.
LOOKED_S, START_ELEMENTS = 3.0, 3


def input_pipelines(facts: PipelineFacts | None, waited_s: float) -> InputPipelines:
    """Return the answer. ``waited_s``: how long the training waited for elements between its steps, according to the ledger."""
    if facts is None:
        return {"pipelines": [], "text": ""}
    codes = [code.partition(": ") for code in facts.unseen]
    texts = [UNSEEN[code] + (f" {detail}." if detail else "") for code, _, detail in codes if code in UNSEEN]
    if texts and waited_s > 0:
        texts.append(f"The training waited {ns_text(waited_s * 1e9)} for elements between its steps.")
    elif texts:
        texts.append("A traced step may show how long it waits for its input.")
    open_first = sorted(facts.pipelines, key=lambda each: not each.is_open)
    return {"pipelines": [_pipeline(each) for each in open_first], "text": " ".join(texts)}


def what_limits(facts: PipelineFacts | None, now: float) -> tuple[str, str]:
    """Return (what limits the training's input, what to change) if exactly one pipeline delays it; else ("", "")."""
    open_pipelines = [_without_start(each) for each in facts.pipelines if each.is_open] if facts else []
    recent = [
        _pipeline(each)
        for each in open_pipelines
        if each.looks and now - each.looks[-1].at < RECENT_S and each.looks[-1].at - each.looks[0].at >= LOOKED_S
    ]
    limited = [each for each in recent if each["side"] == "input" and any(stage["is_limiting"] for stage in each["stages"])]
    return (limited[0]["text"], limited[0]["advice"]) if len(limited) == 1 else ("", "")


def _without_start(pipeline: Pipeline) -> Pipeline:
    """Return a pipeline without the looks before the training had taken ``START_ELEMENTS`` elements.

    Until then TensorFlow builds and compiles functions, which makes the pipeline slower.
    """
    return replace(pipeline, looks=tuple(look for look in pipeline.looks if look.model.elements >= START_ELEMENTS))


def limiting_name(pipeline: Pipeline, flow: Flow | None) -> str:
    """Return the name of the limiting stage, such as "map(decode)"; "" if it is not known."""
    if flow is None or flow.limiting is None or is_distributed(pipeline.steps):
        return ""
    return _name(flow.limiting, steps_by_node(flow, pipeline.steps))


def _pipeline(pipeline: Pipeline) -> InputPipeline:
    flow = flow_of(pipeline)
    last = pipeline.looks[-1] if pipeline.looks else None
    steps = steps_by_node(flow, pipeline.steps) if flow else {}
    limiting = flow.limiting if flow and not is_distributed(pipeline.steps) else None
    change = advice(flow, limiting, steps) if flow and limiting else Advice("")
    return {
        "title": pipeline.title,
        "at": last.at if last else None,
        "is_open": pipeline.is_open,
        "elements": last.model.elements if last else 0,
        "unit": flow.unit if flow else "elements",
        "rate": flow.rate if flow else None,
        "wait": flow.wait if flow else None,
        "side": _side(flow, steps),
        "text": _text(pipeline, flow, limiting, steps),
        "advice": change.text,
        "predicted_rate": change.rate,
        "stages": [_stage(flow, each, steps.get(each.node.id), each is limiting) for each in flow.stages[:200]] if flow else [],
        "history": [{"at": each.at, "rate": each.rate, "wait": each.wait, "stage": each.stage} for each in pipeline.history],
    }


def _side(flow: Flow | None, steps: dict[int, Transformation]) -> Literal["input", "training", "unknown"]:
    if flow is None or flow.wait is None or WORKS < flow.wait < WAITS:
        return "unknown"
    if flow.wait >= WAITS:
        return "input"
    if flow.may_wait:
        return "unknown"
    return "unknown" if _python_stage(flow, steps) else "training"


def _python_stage(flow: Flow, steps: dict[int, Transformation]) -> Stage | None:
    """Return a stage that computes in Python; None if there is none. It may delay the training without a wait for input, because
    only one thread runs Python at a time.
    """

    def computes(stage: Stage) -> bool:
        step, busy = steps.get(stage.node.id), stage.busy or 0.0
        is_python = stage.node.name == "Generator" or (step is not None and step.python)
        return is_python and busy >= MIN_SHARE and flow.cpu >= COMPUTING_SHARE * min(1.0, busy)

    return next(filter(computes, flow.stages), None)


def steps_by_node(flow: Flow, steps: Sequence[Transformation]) -> dict[int, Transformation]:
    """Return node id -> the script's transformation, for kinds with the same number of stages and transformations."""
    known: dict[int, Transformation] = {}
    outer = [stage for stage in flow.stages if not stage.inner]
    stages = [stage for stage in outer if stage.calls_function or kind_of(stage.node.name) == "shuffle"]
    for kind in {kind_of(stage.node.name) for stage in stages}:
        node_ids = [stage.node.id for stage in stages if kind_of(stage.node.name) == kind]
        in_script = [step for step in steps if step.kind == kind and (step.function or kind == "shuffle")]
        if len(node_ids) == len(in_script):
            known.update(zip(node_ids, in_script))
    generators = [step for step in steps if step.name == FROM_GENERATOR]
    reads = [stage for stage in outer if stage.node.name == "FlatMap" and stage.node.id not in known]
    if len(generators) == len(reads):
        for stage, step in zip(reads, generators):
            generator = [each for each in stage.inner_stages if each.node.name == "Generator"]
            known.update({each.node.id: step for each in (stage, *generator)})
    return known


def _name(stage: Stage, steps: dict[int, Transformation]) -> str:
    step = steps.get(stage.node.id)
    if step is None or not step.function:
        return stage.node.name
    return step.call + (f" at {step.place}" if step.place else "")


def rate_text(rate: float) -> str:
    return f"{rate:,.0f}" if rate >= 99.5 else f"{rate:.3g}"


def _text(pipeline: Pipeline, flow: Flow | None, limiting: Stage | None, steps: dict[int, Transformation]) -> str:
    if flow is None:
        return "It was looked at for less than two seconds." if pipeline.looks else "It was not looked at."
    if flow.wait is None and is_distributed(pipeline.steps):
        return f"It is not known how long the training waits for input. {DISTRIBUTED}"
    if flow.wait is None and flow.rate > 0:
        is_enough = len(pipeline.looks) >= MIN_LOOKS
        why = "it pauses now and then, and most looks found an element ready for it" if is_enough else "too few looks yet"
        return f"It is not known whether the training waits: {why}."
    if flow.wait is None:
        return (_filling(flow, steps) if pipeline.is_open else "") or "The training took no element in the last seconds."
    seconds = f"{max(1.0, pipeline.looks[-1].at - pipeline.looks[0].at):.0f} s"
    waits = f"The loop that uses it waits for input {percent(flow.wait)} of the time (in the pipeline's last {seconds})"
    if flow.wait < WAITS:
        python = _python_stage(flow, steps)
        if python is not None:
            python_text = f"{_name(python, steps)} runs in Python beside it, one thread at a time"
            return f"{waits}. {python_text}: if it computes there, the training's own Python waits for it, too."
        if flow.may_wait:
            return (
                f"It is not known whether the training waits: by TensorFlow's times {percent(flow.wait)} of the time, while its "
                f"calls for the next element, of all datasets, take {percent(flow.counted_wait or 0.0)}."
            )
        return f"{waits}. The loop is the slower side then." if flow.wait <= WORKS else f"{waits}."
    if is_distributed(pipeline.steps):
        return f"{waits}. {DISTRIBUTED}"
    if limiting is None:
        return f"{waits}. Which stage limits is not known."
    name = _name(limiting, steps)
    if not flow.counted:
        return f"{waits}: {name} limits it. No stage's own work explains the time: it goes to calling this function."
    return f"{waits}: {name} limits it to {rate_text(flow.rate)} {flow.unit}/s."


def _filling(flow: Flow, steps: dict[int, Transformation]) -> str:
    """Return a sentence about a shuffle whose buffer is not full yet: until then nothing comes out; "" if there is none."""
    for stage in flow.stages:
        rate = stage.children[0].rate if stage.children else None
        step = steps.get(stage.node.id)
        if stage.node.name.startswith("Shuffle") and not stage.rate and rate and step and step.size:
            free = step.size - stage.node.buffered
            if free > 0:
                filled = f"{stage.node.buffered:,} of {counted(step.size, 'element')}"
                return f"The shuffle's buffer is filling: {filled}, {ns_text(free / rate * 1e9)} to go. Nothing comes out before."
    return ""


def _stage(flow: Flow, stage: Stage, step: Transformation | None, is_limiting: bool) -> PipelineStage:
    node, parameters = stage.node, stage.node.parameters
    size = parameters.get("buffer_size") or parameters.get("max_buffered_elements")
    calls = parameters.get("parallelism")
    buffers = node.is_async or node.buffered > 0
    return {
        "depth": stage.depth,
        "name": node.name,
        "function": step.function if step else "",
        "place": step.place if step else "",
        "elements": node.elements,
        "element_s": stage.element_s,
        "rate": stage.rate,
        "busy": stage.busy,
        "parallelism": int(stage.parallelism) if stage.parallelism is not None else None,
        "parallelism_max": _int_or_none(calls.max) if calls else None,
        "is_tuned": bool((calls and calls.tunable) or (size and size.tunable)),
        "buffered": stage.buffered if buffers else None,
        "buffer_size": _int_or_none(size.value) if size else step.size if step else None,
        "capacity": _capacity(flow, stage, is_limiting),
        "is_limiting": is_limiting,
    }


def _capacity(flow: Flow, stage: Stage, is_limiting: bool) -> float | None:
    """Return the elements per second of the whole pipeline if only this stage limited it; None: not measured."""
    if is_limiting and not flow.counted:
        return None
    pool = next((each.pool for each in flow.workers.values() if each.pool and each.pool.stages[0] is stage), None)
    thread = pool or Thread([stage, *stage.inner_stages])
    return max(1.0, thread.threads / thread.busy) * flow.rate if thread.busy > 0 and flow.rate > 0 else None


def _int_or_none(value: float) -> int | None:
    return int(value) if 0 < value < 1 << 40 else None
