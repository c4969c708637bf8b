"""What limits the ``tf.data`` pipelines of a process, as TensorFlow's own model of each iterator tells."""

from __future__ import annotations

from typing import Literal, TypedDict


class PipelineStage(TypedDict):
    """A stage of a pipeline, under its name in TensorFlow after optimization. Elements are its own: of a batch, batches."""

    depth: int  # in the tree, whose root is the last stage
    name: str
    function: str  # that it calls, as in the script; "" if not known
    place: str  # "train.py:12"
    elements: int  # that it has produced
    element_s: float | None  # its own processing time for one; not what it takes to call a function
    rate: float | None  # elements a second
    busy: float | None  # threads that work for it, on average
    parallelism: int | None  # calls at once
    parallelism_max: int | None
    is_tuned: bool  # AUTOTUNE chooses the parallelism, or the size of the buffer
    buffered: float | None  # elements in its buffer, on average; None: it has no buffer
    buffer_size: int | None
    capacity: float | None  # elements a second of the whole pipeline that this stage alone could do; None: not timed
    is_limiting: bool


class PipelineMoment(TypedDict):
    at: float
    rate: float
    wait: float | None
    stage: str


class InputPipeline(TypedDict):
    title: str  # "TFRecord → map(decode) → batch"
    at: float | None  # of the last look in which anything was done
    is_open: bool  # its iterator exists
    elements: int
    unit: Literal["batches", "elements"]  # what an element of the pipeline is, as far as its stages tell
    rate: float | None  # elements a second that the training takes
    wait: float | None  # share of the time in which the training waits for the next element
    side: Literal["input", "training", "unknown"]  # the slower one
    text: str
    advice: str
    predicted_rate: float | None  # elements a second, at most, with what is advised
    stages: list[PipelineStage]
    history: list[PipelineMoment]


class InputPipelines(TypedDict):
    """GET /api/input-pipelines. The newest first."""

    pipelines: list[InputPipeline]
    text: str  # why iterators were not looked into, and what is known of them; "" if there are none
