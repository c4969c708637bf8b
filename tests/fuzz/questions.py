"""Every question that can be asked about a session, and every form in which it is written: none may raise another error than the
package's own, and all that is written is sound.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import numpy as np

from tftracer import errors
from tftracer.comparison import report as comparison_text
from tftracer.contract.analyses import ANALYSES, Analysis, Parameter
from tftracer.contract.encoding import encode, unpacked
from tftracer.engine.decoded_traces import EXPORTS
from tftracer.errors import TracerError
from tftracer.export.tables.schema import TABLES
from tftracer.scripting.compare import compare_sessions
from tftracer.scripting.session import Session
from tftracer.session import summary_of_session
from tftracer.session.files.saved import SavedSession
from tftracer.session.one_trace import session_of
from tftracer.trace.answers import Answers

_UNREADABLE = re.compile(r"This trace cannot be read \((\w+):")
#: What cannot be asked without an argument, with those that are tried; nodes by their place in the trace.
VALUES: dict[Parameter, list[Any]] = {
    "of": ["time", "memory"],
    "index": [0, 1, -1],
    "depth": [3],
    "with_slack": [False, True],
}


def ask_all(source: SavedSession) -> None:
    """Raises TracerError only where nothing can be asked at all."""
    for ask in questions_of(source):
        borne(ask)


def ask_some(source: SavedSession, one_in: int, seed: int) -> None:
    """One of ``one_in`` questions, chosen by chance: the same for the same seed."""
    chance = random.Random(seed)
    for ask in questions_of(source):
        if chance.randrange(one_in) == 0:
            borne(ask)


def questions_of(source: SavedSession) -> Iterator[Callable[[], object]]:
    source.analyze_pending()
    yield lambda: summarized(source)
    yield source.all_stalls
    with Session(source, "fuzzed") as session:
        for name in TABLES:
            yield lambda name=name: read(session, name)  # type: ignore[misc]
        yield lambda: session._repr_html_()
        yield lambda: compared(session)
    for run in source.runs():
        yield lambda run=run: source.run_stalls(run["id"])  # type: ignore[misc]
        yield lambda run=run: source.gaps(run["id"])  # type: ignore[misc]
        for record in run["traces"]:
            for finding in record["findings"]:
                assert not of_another_error(finding["message"]), finding["message"]
            yield from of_trace(source, record)


def of_another_error(message: str) -> bool:
    """A trace that nobody expected to be unreadable is kept, too, and marked with the error."""
    match = _UNREADABLE.match(message)
    return match is not None and not issubclass(getattr(errors, match[1], Exception), TracerError)


def borne(ask: Callable[[], object]) -> None:
    with suppress(TracerError):
        ask()


def summarized(source: SavedSession) -> None:
    facts = summary_of_session.summarize(source)
    json.loads(json.dumps(facts))
    summary_of_session.render(facts)


def read(session: Session, name: str) -> None:
    for column in session.table(name).select().values():
        assert isinstance(column, np.ndarray)


def compared(session: Session) -> None:
    comparison = compare_sessions([session], [session])
    comparison_text.as_text(comparison)
    json.dumps(comparison_text.as_json(comparison))
    comparison._repr_html_()


def of_trace(source: SavedSession, record: Any) -> Iterator[Callable[[], object]]:
    answers = Answers(source.trace_bytes(record["id"]), source.trace_context(record["id"]), trace_id=record["id"])
    yield lambda: answers.trace
    for analysis in ANALYSES:
        for arguments in arguments_of(analysis):
            yield lambda analysis=analysis, arguments=arguments: asked(answers, analysis, arguments)  # type: ignore[misc]
    for form in EXPORTS:
        yield lambda form=form: exported(answers, record, form)  # type: ignore[misc]


def arguments_of(analysis: Analysis) -> list[dict[str, Any]]:
    all_of: list[dict[str, Any]] = [{}]
    for name in analysis.parameters:
        values = analysis.groupings if name == "by" else VALUES[name]
        all_of = [{**arguments, name: value} for arguments in all_of for value in values]
    return all_of


def asked(answers: Answers, analysis: Analysis, arguments: dict[str, Any]) -> None:
    given = {**arguments, "index": arguments["index"] % max(answers.trace.n, 1)} if "index" in arguments else arguments
    message = getattr(answers, analysis.name)(**given)
    unpacked(b"".join(encode(message, True, "").chunks))
    if not (analysis.packed or arguments.get("with_slack")):  # JSON has no word for columns
        json.loads(b"".join(encode(message, False, "").chunks))


def exported(answers: Answers, record: Any, form: str) -> None:
    written = "".join(EXPORTS[form](answers, session_of(record), {}))
    if form == "chrome":
        events = json.loads(written.encode("utf-8", "replace"))["traceEvents"]
        assert all(event.get("ts", 0) >= 0 and event.get("dur", 0) >= 0 for event in events)
