"""The facts about a process's pipelines. Each write to the session's file adds a whole record; only the newest one counts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

from tftracer.errors import FormatError
from tftracer.input_pipelines import model_proto
from tftracer.input_pipelines.dataset_code import Transformation
from tftracer.storage.spool import NewRecord
from tftracer.storage.tftrace_format import INPUT_PIPELINES
from tftracer.storage.untrusted import (
    Fields,
    count,
    duration,
    duration_or_none,
    fields_of,
    items,
    moment,
    number,
    readers,
    text,
    texts,
    tuple_of,
)

MAX_PIPELINES = 8
MAX_LOOKS = 10
MAX_HISTORY = 100
#: Maximum bytes of one look, enough for 1,500 stages of 60 to 170 bytes, as recorded. A larger pipeline is not looked at again.
MAX_BYTES = 1 << 18


@dataclass(frozen=True)
class Reading:
    """What one look at an iterator showed: the state of its pipeline."""

    at: float  # epoch seconds
    cpu_s: float  # CPU time of the process
    idle_s: float | None  # idle time of all cores of the machine together
    waited_s: float  # total time so far that calls of ``next`` between steps waited for an element, over all iterators
    waits: int  # number of these waits
    raw: bytes  # a ModelProto
    model: model_proto.Model


@dataclass(frozen=True)
class Moment:
    """What the looks of the ten seconds before ``at`` showed."""

    at: float
    rate: float  # elements a second
    wait: float | None  # share of the time in which the training waited
    stage: str  # name of the limiting stage; "" if not known


@dataclass(frozen=True)
class Pipeline:
    title: str
    steps: tuple[Transformation, ...]  # from the last transformation to the sources
    looks: tuple[Reading, ...]  # the newest looks that saw progress, at most MAX_LOOKS, oldest first
    history: tuple[Moment, ...]
    is_open: bool  # whether its iterator still exists


@dataclass(frozen=True)
class PipelineFacts:
    pipelines: tuple[Pipeline, ...]  # the newest first
    unseen: tuple[str, ...]  # why iterators were not looked into: keys of ``answer.UNSEEN``, or "failed: ValueError: ..."
    cost_s: float  # processor time of all looks


def record(facts: PipelineFacts) -> NewRecord:
    pipelines = [
        {
            "title": each.title,
            "steps": [asdict(step) for step in each.steps],
            "looks": [(look.at, look.cpu_s, look.idle_s, look.waited_s, look.waits, look.raw) for look in each.looks],
            "history": [(past.at, past.rate, past.wait, past.stage) for past in each.history],
            "is_open": each.is_open,
        }
        for each in facts.pipelines
    ]
    return NewRecord(INPUT_PIPELINES, {"pipelines": pipelines, "unseen": list(facts.unseen), "cost_s": facts.cost_s})


_short = partial(text, limit=300)
_KINDS: Fields = {"str": _short, "float": duration}


def _looks(given: Any) -> tuple[Reading, ...]:
    looks = []
    for each in items(given)[:MAX_LOOKS]:
        at, cpu_s, idle_s, waited_s, waits, raw = (*items(each), *[None] * 6)[:6]
        if isinstance(raw, bytes) and len(raw) <= MAX_BYTES:
            try:
                times = moment(at), duration(cpu_s), duration_or_none(idle_s), duration(waited_s)
                looks.append(Reading(*times, count(waits), raw, model_proto.read(raw)))
            except FormatError:
                continue
    return tuple(looks)


def _history(given: Any) -> tuple[Moment, ...]:
    rows = [(*items(each), *[None] * 4)[:4] for each in items(given)[:MAX_HISTORY]]
    return tuple(Moment(moment(at), duration(rate), number(wait), _short(stage)) for at, rate, wait, stage in rows)


_steps = tuple_of(Transformation, 200, _KINDS)
_FACTS = readers(
    PipelineFacts,
    kinds=_KINDS,
    pipelines=tuple_of(Pipeline, MAX_PIPELINES, _KINDS, steps=_steps, looks=_looks, history=_history),
    unseen=lambda given: tuple(texts(given)[:10]),
)


def read(meta: Mapping[str, Any]) -> PipelineFacts:
    """Return the facts in a record of a file. Files are untrusted, so the types are checked."""
    return PipelineFacts(**fields_of(dict(meta), _FACTS))
