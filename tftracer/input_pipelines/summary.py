"""The input pipelines for ``tftracer FILE --summary``."""

from __future__ import annotations

import textwrap

from tftracer.contract.input_pipelines import InputPipeline, InputPipelines
from tftracer.input_pipelines.answer import rate_text
from tftracer.trace.summary import WIDTH

#: How many pipelines are listed; open ones that hold the training up come first.
LISTED = 3


def render(pipelines: InputPipelines) -> str:
    """ "" where nothing is known."""
    listed = sorted(pipelines["pipelines"], key=lambda each: (not each["is_open"], each["side"] != "input"))[:LISTED]
    lines = [line for each in listed for line in textwrap.wrap(f"Input {each['title']}: {said(each)}", WIDTH)]
    return "\n".join([*lines, *textwrap.wrap(pipelines["text"], WIDTH)])


def said(pipeline: InputPipeline) -> str:
    predicted = pipeline["predicted_rate"]
    most = f"At most {rate_text(predicted)} {pipeline['unit']}/s then." if predicted is not None else ""
    return " ".join(filter(None, [pipeline["text"], pipeline["advice"], most]))
