"""What limits the ``tf.data`` pipelines of a process, according to TensorFlow's own model of each iterator."""

from __future__ import annotations

from typing import Literal, TypedDict


class PipelineStage(TypedDict):
    """A stage of a pipeline after TensorFlow's optimization. An element is one item that it produces: for batch, one batch."""

    depth: int  # in the tree, whose root is the last stage
    name: str
    function: str  # the function that it calls, as in the script; "" if not known
    place: str  # place of the function, such as "train.py:12"
    elements: int  # number of elements that it has produced
    element_s: float | None  # its own processing time for one element, without the overhead of calling its function
    rate: float | None  # elements per second
    busy: float | None  # mean number of threads that work for it
    parallelism: int | None  # number of parallel calls
    parallelism_max: int | None
    is_tuned: bool  # whether AUTOTUNE chooses the parallelism, or the size of the buffer
    buffered: float | None  # mean number of elements in its buffer; None: it has no buffer
    buffer_size: int | None
    capacity: float | None  # elements per second of the whole pipeline if only this stage limited it; None: not measured
    is_limiting: bool


class PipelineMoment(TypedDict):
    at: float  # epoch seconds
    rate: float  # elements per second
    wait: float | None  # as in InputPipeline
    stage: str  # name of the limiting stage; "" if not known


class InputPipeline(TypedDict):
    title: str  # "TFRecord → map(decode) → batch"
    at: float | None  # epoch seconds of the newest look that found progress; None: no look yet
    is_open: bool  # whether its iterator still exists
    elements: int
    unit: Literal["batches", "elements"]  # what an element of the pipeline is, as far as its stages show
    rate: float | None  # elements per second that the training takes
    wait: float | None  # share of the time in which the training waits for the next element
    side: Literal["input", "training", "unknown"]  # the slower side
    text: str
    advice: str
    predicted_rate: float | None  # maximum elements per second if the advice is followed
    stages: list[PipelineStage]
    history: list[PipelineMoment]


class InputPipelines(TypedDict):
    """GET /api/input-pipelines. The newest first."""

    pipelines: list[InputPipeline]
    text: str  # why some iterators were not examined, and what is known of them; "" if all were
