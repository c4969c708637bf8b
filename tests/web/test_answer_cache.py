"""Answers about traces: computed once, kept within bounds, not begun for those who went away; and all of them over HTTP."""

from __future__ import annotations

import asyncio
import threading
import zlib
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlencode

import msgpack
import pytest
import zstandard
from fake_source import DATA, FakeSource, a_trace
from hypothesis import given
from hypothesis import strategies as st
from web_client import Answer, Client, serving

from tftracer.contract import trace as messages
from tftracer.contract.analyses import ANALYSES
from tftracer.contract.encoding import encode
from tftracer.engine.bounded_cache import BoundedCache
from tftracer.engine.decoded_traces import AnswerFormat, EncodedAnswer, Question
from tftracer.engine.engine import Engine
from tftracer.storage.trace_payload import Payload, TraceKey
from tftracer.trace.model import TraceContext
from tftracer.web.answer_cache import AnswerCache
from tftracer.web.worker_threads import WorkerThreads

JSON = AnswerFormat(False, "")
TRACE = TraceKey("session", 1, 0.0, 100)
WAIT_S = 60


@given(st.lists(st.tuples(st.integers(0, 20), st.integers(0, 50)), max_size=100))
def test_what_is_kept_is_bounded_and_the_newest_is_among_it(puts: list[tuple[int, int]]) -> None:
    bounded: BoundedCache[int] = BoundedCache(5, 100)
    for key, size in puts:
        bounded.put(key, key, size)
        assert bounded.get(key) == key
        assert len(bounded) == 1 or (len(bounded) <= 5 and bounded.size <= 100)


def test_what_was_used_last_is_kept() -> None:
    bounded: BoundedCache[str] = BoundedCache(2, 100)
    bounded.put("a", "a", 1)
    bounded.put("b", "b", 1)
    bounded.get("a")
    bounded.put("c", "c", 1)
    assert [bounded.get(key) for key in "abc"] == ["a", None, "c"]


class Counter:
    """A question that waits until it may be answered, and counts how often it was."""

    def __init__(self) -> None:
        self.count = 0
        self.begun, self.may_end = threading.Event(), threading.Event()

    def answer(self) -> dict[str, Any]:
        self.count += 1
        self.begun.set()
        assert self.may_end.wait(WAIT_S)
        return {"count": self.count}


class FakeEngine(Engine):
    """Answers by the name of the question."""

    def __init__(self) -> None:
        super().__init__(lambda trace: Payload(b"", 0, TraceContext()))
        self.answers: dict[str, Callable[[], dict[str, Any]]] = {}

    def ask(self, trace: TraceKey, question: Question, answer_format: AnswerFormat) -> EncodedAnswer:
        return EncodedAnswer(encode(self.answers[question.name](), *answer_format))


def question(name: str) -> Question:
    return Question(name)


@pytest.fixture
def workers() -> Iterator[WorkerThreads]:
    made = WorkerThreads("test", 2)
    yield made
    made.stop()


def run(workers: WorkerThreads, look: Callable[[AnswerCache, FakeEngine], Any]) -> None:
    async def main() -> None:
        engine = FakeEngine()
        await asyncio.wait_for(look(AnswerCache(FakeSource(), workers, engine), engine), WAIT_S)

    asyncio.run(main())


def test_many_who_ask_at_once_are_answered_once(workers: WorkerThreads) -> None:
    async def look(answers: AnswerCache, engine: FakeEngine) -> None:
        counter = Counter()
        counter.may_end.set()
        engine.answers["count"] = counter.answer
        bodies = await asyncio.gather(*(answers.ask(TRACE, question("count"), JSON) for _ in range(20)))
        assert {body.chunks for body in bodies} == {(b'{"count":1}',)}
        assert (await answers.ask(TRACE, question("count"), JSON)).chunks == (b'{"count":1}',)

    run(workers, look)


def test_a_trace_is_read_once(workers: WorkerThreads) -> None:
    async def main() -> None:
        source = FakeSource()
        answers = AnswerCache(source, workers)
        await asyncio.gather(*(answers.ask(TRACE, question(name), JSON) for name in ("verdict", "ops", "budget")))
        assert source.reads == 1

    asyncio.run(main())


def test_a_trace_that_is_asked_about_while_it_is_checked_is_read_once_and_the_question_comes_first(
    workers: WorkerThreads,
) -> None:
    async def main() -> None:
        source, done = FakeSource(), []
        answers = AnswerCache(source, workers)

        async def check() -> None:
            assert (await answers.contents(TRACE))["nodes"] > 0
            done.append("contents")

        async def ask() -> None:
            await answers.ask(TRACE, question("timeline"), JSON)
            done.append("timeline")

        await asyncio.gather(check(), ask())
        assert (source.reads, done) == (1, ["timeline", "contents"])

    asyncio.run(main())


def test_an_answer_that_failed_is_asked_for_anew(workers: WorkerThreads) -> None:
    async def look(answers: AnswerCache, engine: FakeEngine) -> None:
        def fail() -> dict[str, Any]:
            raise ValueError("on purpose")

        engine.answers["q"] = fail
        for _ in range(2):
            with pytest.raises(ValueError, match="on purpose"):
                await answers.ask(TRACE, question("q"), JSON)
        engine.answers["q"] = lambda: {"a": 1}
        assert (await answers.ask(TRACE, question("q"), JSON)).size == 7

    run(workers, look)


def test_one_trace_keeps_one_worker_busy(workers: WorkerThreads) -> None:
    async def look(answers: AnswerCache, engine: FakeEngine) -> None:
        slow, other = Counter(), Counter()
        other.may_end.set()
        engine.answers = {"slow": slow.answer, "same trace": other.answer, "another trace": other.answer}
        first = asyncio.ensure_future(answers.ask(TRACE, question("slow"), JSON))
        await asyncio.to_thread(slow.begun.wait, WAIT_S)
        second = asyncio.ensure_future(answers.ask(TRACE, question("same trace"), JSON))
        await answers.ask(TRACE._replace(id=1, session="another"), question("another trace"), JSON)
        assert not second.done()
        slow.may_end.set()
        await asyncio.gather(first, second)

    run(workers, look)


def test_what_nobody_waits_for_is_not_begun(workers: WorkerThreads) -> None:
    async def look(answers: AnswerCache, engine: FakeEngine) -> None:
        slow, dropped, kept = Counter(), Counter(), Counter()
        dropped.may_end.set()
        kept.may_end.set()
        engine.answers = {"slow": slow.answer, "dropped": dropped.answer, "kept": kept.answer}
        first = asyncio.ensure_future(answers.ask(TRACE, question("slow"), JSON))
        await asyncio.to_thread(slow.begun.wait, WAIT_S)
        gone = asyncio.ensure_future(answers.ask(TRACE, question("dropped"), JSON))
        stays = asyncio.ensure_future(answers.ask(TRACE, question("kept"), JSON))
        goes = asyncio.ensure_future(answers.ask(TRACE, question("kept"), JSON))
        await asyncio.sleep(0)
        gone.cancel()
        goes.cancel()
        slow.may_end.set()
        await asyncio.gather(first, stays)
        assert (dropped.count, kept.count) == (0, 1)
        await answers.ask(TRACE, question("dropped"), JSON)  # who asks later is answered
        assert dropped.count == 1

    run(workers, look)


# -------------------------------------------------------------------------------------------------------------- over HTTP


def answers_of_the_table() -> Iterator[tuple[str, Any]]:
    """The path and the message of each answer that may be JSON."""
    for analysis in ANALYSES:
        path = analysis.path.format(index=3)
        if not analysis.packed:
            yield path, analysis.message
            yield from ((f"{path}?{urlencode(choice)}", analysis.message) for choice in analysis.choices() if choice)


ANSWERS = [*answers_of_the_table(), ("nodes/0", messages.NodeDetail), ("nodes/3/graph?depth=3", messages.Neighbourhood)]


@pytest.mark.parametrize(("path", "shape"), ANSWERS, ids=[path for path, _ in ANSWERS])
def test_an_analysis_is_json_or_msgpack_as_the_client_likes(client: Client, path: str, shape: Any) -> None:
    plain = client.get(f"/api/traces/1/{path}")
    packed = client.get(f"/api/traces/1/{path}", Accept="application/msgpack, application/json;q=0.5")
    assert (plain.status, packed.status) == (200, 200)
    assert plain.headers["Content-Type"].startswith("application/json")
    assert packed.headers["Content-Type"] == "application/msgpack"
    unpacked = msgpack.unpackb(packed.body)
    assert set(plain.json) == set(unpacked) == set(shape.__annotations__)
    assert {**unpacked, "slack_ns": None} == {**plain.json, "slack_ns": None}


def unpacked(answer: Answer) -> Any:
    coding = answer.headers["Content-Encoding"]
    if coding == "zstd":
        return msgpack.unpackb(zstandard.ZstdDecompressor().decompressobj().decompress(answer.body))
    return msgpack.unpackb(zlib.decompress(answer.body, 31) if coding == "gzip" else answer.body)


def test_the_timeline_in_each_encoding() -> None:
    source = FakeSource((DATA / "dense500_tf2.15_cpu.pb").read_bytes())
    with serving(source) as client:
        answers = {
            coding: client.get("/api/traces/1/timeline", Accept_Encoding=coding) for coding in ("zstd", "gzip", "identity")
        }
    assert [answer.headers["Content-Encoding"] for answer in answers.values()] == ["zstd", "gzip", None]
    timelines = [unpacked(answer) for answer in answers.values()]
    assert timelines[0] == timelines[1] == timelines[2]
    assert set(timelines[0]) == set(messages.Timeline.__annotations__)
    assert (timelines[0]["trace_id"], timelines[0]["nodes"]) == (1, 8009)
    assert source.reads == 1


def test_an_answer_is_kept_by_the_browser_and_asked_about(client: Client, source: FakeSource) -> None:
    first = client.get("/api/traces/1/verdict")
    assert first.headers["Cache-Control"] == "private, no-cache"
    again = client.get("/api/traces/1/verdict", If_None_Match=first.headers["Etag"])
    assert (again.status, again.body) == (304, b"")
    packed = client.get("/api/traces/1/verdict", If_None_Match=first.headers["Etag"], Accept="application/msgpack")
    assert packed.status == 200
    source.traces[0]["started_at"] += 1  # another file, loaded since
    assert client.get("/api/traces/1/verdict", If_None_Match=first.headers["Etag"]).status == 200


def test_the_verdict_becomes_the_headline(client: Client, source: FakeSource) -> None:
    headline = client.get("/api/traces/1/verdict").json["sentences"][0]["text"]
    assert source.traces[0]["headline"] == headline


@pytest.mark.parametrize("path", ["ops?by=size", "nodes/1/graph?depth=x", "nodes/1/graph?depth=nan", "nodes/1/graph?depth=1e999"])
def test_a_bad_query_is_400(client: Client, path: str) -> None:
    answer = client.get(f"/api/traces/1/{path}")
    assert (answer.status, answer.code) == (400, "bad_query")


def test_two_traces_are_compared(client: Client, source: FakeSource) -> None:
    source.traces.append({**a_trace(2, len(source.raw)), "started_at": 5.0})
    answer = client.get("/api/compare?a=1&b=2&by=name")
    assert set(answer.json) == set(messages.Comparison.__annotations__)
    assert {row["status"] for row in answer.json["rows"]} == {"same"}
    assert client.get("/api/compare?a=1&b=2&by=name", If_None_Match=answer.headers["Etag"]).status == 304
    assert client.get("/api/compare?a=1&b=3").status == 404
    assert client.get("/api/compare?a=1").status == 404
    assert client.get("/api/compare?a=1&b=2&by=x").status == 400


def test_bytes_that_are_no_trace_are_an_error_of_the_file() -> None:
    with serving(FakeSource(b"\xff" * 1000)) as client:
        for name in ("timeline", "verdict", "nodes/1"):
            answer = client.get(f"/api/traces/1/{name}")
            assert (answer.status, answer.code) == (400, "bad_file")
