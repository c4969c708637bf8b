"""Describes the input pipelines for ``tftracer FILE --summary``."""

from __future__ import annotations

import textwrap

from tftracer.contract.input_pipelines import InputPipeline, InputPipelines
from tftracer.input_pipelines.answer import rate_text
from tftracer.trace.summary import WIDTH

#: Maximum number of listed pipelines: open ones first, and among them those that delay the training.
MAX_PIPELINES = 3


def render(pipelines: InputPipelines) -> str:
    """Return the text of the pipelines, then the note about iterators that were not examined."""
    listed = sorted(pipelines["pipelines"], key=lambda each: (not each["is_open"], each["side"] != "input"))[:MAX_PIPELINES]
    lines = [line for each in listed for line in textwrap.wrap(f"Input {each['title']}: {_text(each)}", WIDTH)]
    return "\n".join([*lines, *textwrap.wrap(pipelines["text"], WIDTH)])


def _text(pipeline: InputPipeline) -> str:
    predicted = pipeline["predicted_rate"]
    limit = f"At most {rate_text(predicted)} {pipeline['unit']}/s then." if predicted is not None else ""
    return " ".join(filter(None, [pipeline["text"], pipeline["advice"], limit]))
