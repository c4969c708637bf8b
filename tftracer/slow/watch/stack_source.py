"""The watch's source of stacks and counters: a process that reads them from outside, or else this process itself.

Only the watch's thread uses it.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from time import perf_counter_ns
from typing import Any, NamedTuple

from tftracer.slow.cause.blamed_code import has_users_code
from tftracer.slow.cause.frame_names import FrameNames
from tftracer.slow.cause.observed import LockHolder, Span
from tftracer.slow.watch.outside_client import CannotWatch, OutsideProcess, Question
from tftracer.slow.watch.stack_samples import shares
from tftracer.slow.watch.stacks_from_inside import InsideStacks
from tftracer.slow.watch.system_calls import WAITS
from tftracer.slow.watch.thread_counters import Counters
from tftracer.slow.watch.thread_times_in_span import NAMES
from tftracer.slow.watch_results import FoldedStack

#: Counters are read more often during this time after the beginning of a turn that takes too long.
CLOSELY_NS = 5_000_000_000
#: Time between two answers; with more than MANY open questions, SEVERAL answers are given out at once.
ANSWERS_APART_NS, MANY, SEVERAL = 150_000_000, 100, 3
LESS = "Stacks are read inside of the training, less often, and not while Python's lock is held, because {}."
USED_UP = "Its stacks were not read: reading stacks had used its share of a CPU."


class Answer(NamedTuple):
    """The answer to the question with this number."""

    number: int
    raw: dict[str, Any]
    doubt: str  # why stacks are missing; "" if none are


class StackSource:
    """Starts the process outside and sends it questions; without it, uses ``InsideStacks`` and reads the counters itself.

    ``lock``: where this process stores the holder of Python's lock (``LockPlace.place``); None: not known.
    """

    def __init__(self, lock: tuple[int, int] | None = None) -> None:
        self.problem = ""  # why stacks are not read from outside
        self._outside: OutsideProcess | None = None
        self._inside = InsideStacks()
        self._counters: Counters | None = None
        self._answers: list[Answer] = []
        self._next_answer_ns = 0  # the earliest time of the next answer
        self._is_hurried = False  # whether all answers are given out at once
        self._threads: tuple[list[int], ...] = ([], [], [])
        self._questions: dict[int, Question] = {}
        try:
            self._outside = OutsideProcess()
            if lock:
                self._outside.read_lock(lock)
        except (CannotWatch, OSError) as error:
            self._fall_back(str(error))

    def watch(self, natives: list[int], ours: list[int], others: list[int]) -> None:
        """Set the threads to watch, by native id. ``ours``: threads of the tracer. ``others``: other Python threads."""
        if (natives, ours, others) == self._threads:
            return
        self._threads = natives, ours, others
        if self._outside:
            self._outside.watch(natives, ours, others)
        elif self._counters:
            self._counters.watch(natives, ours, others)

    def beat(self, native: int, number: int) -> None:
        """Report a beat: the watch's thread begins the sleep with this number (times_of_samples.py)."""
        if self._outside:
            self._outside.beat(native, number)

    def tick(self, now_ns: int, overdue: dict[int, int], has_collected: bool) -> None:
        """Sample, and read counters as needed. ``overdue``: thread whose turn takes too long -> when the turn began.

        ``has_collected``: whether a garbage collection has just ended: then nothing is sampled.
        """
        if not has_collected:
            self._inside.tick(now_ns, overdue)
        if self._outside and any(now_ns - begun_ns < CLOSELY_NS for begun_ns in overdue.values()):
            self._outside.overdue()
        elif self._counters:
            self._counters.read(now_ns)

    def ask(self, number: int, question: Question) -> None:
        """Send a question. ``answers`` returns the answer later."""
        if self._outside:
            self._questions[number] = question
            spans = question.spans
            inside = [] if question.profile else self._inside.samples_between(spans[0][0], spans[-1][1])
            self._outside.ask(number, question, inside)
        elif self._counters:
            self._answers.append(self._answer_inside(number, question))

    def hurry(self) -> None:
        """Request all outstanding answers now, because the session ends or is saved."""
        self._is_hurried = True
        if self._outside:
            self._outside.hurry()

    def begin_profile(self, until_ns: int) -> None:
        """Sample until a time, even if no turn is slow. The process outside samples all the time anyway."""
        if self._counters:
            self._inside.begin_profile(until_ns)

    def answers(self) -> list[Answer]:
        """Return answers that have arrived.

        Half a minute's answers may arrive at once. Explaining them all would keep Python's lock from the training for seconds, so
        they are given out one after the other.
        """
        answers, self._answers = self._answers, []
        if self._outside:
            for raw in self._outside.answers(self._allowed_answers()):
                self._next_answer_ns = perf_counter_ns() + ANSWERS_APART_NS
                if self._questions.pop(int(raw["id"]), None) is not None:
                    answers.append(Answer(int(raw["id"]), raw, ""))
                if raw["broken"]:
                    self._outside.ended = str(raw["broken"])
            if self._outside.ended and not self._outside.has_answers:
                self._fall_back(self._outside.ended)
        return answers

    def _allowed_answers(self) -> int:
        if not self._questions:
            self._is_hurried = False
        if self._is_hurried:
            return len(self._questions) + 1
        if len(self._questions) > MANY:
            return SEVERAL
        return int(perf_counter_ns() >= self._next_answer_ns)

    def stop(self) -> None:
        if self._outside:
            self._outside.stop()
        self._outside = self._counters = None

    def after_fork(self) -> None:
        if self._outside:
            self._outside.close_pipes()
        self._outside = self._counters = None

    def _fall_back(self, why: str) -> None:
        """Read stacks and counters inside this process from now on, and answer the open questions there."""
        outside, self._outside = self._outside, None
        self.problem = LESS.format(why)
        self._counters = Counters(os.getpid())
        self._counters.watch(*self._threads)
        if outside:
            with contextlib.suppress(Exception):
                outside.stop()
        questions, self._questions = self._questions, {}
        for number, question in questions.items():
            self.ask(number, question)

    def _answer_inside(self, number: int, question: Question) -> Answer:
        inside, counters, (thread, native, spans, clocked, is_profile) = self._inside, self._counters, question
        assert counters is not None
        counters.read(perf_counter_ns(), at_once=True)
        if is_profile:
            return Answer(number, {"spans": [inside.profile(thread, spans)]}, "")
        raw = {
            "usual": counters.usual(native, max((end for _, end in spans), default=0)),
            "spans": [
                {
                    **shares(inside.samples_between(*span), thread, *span),
                    **counters.within(native, *span),
                    "waits_for": counters.waits_for(native, *span),
                    "late": [],
                    "holders": [],
                }
                for span in spans
            ],
            "clocked": counters.added(native, clocked),
        }
        return Answer(number, raw, USED_UP if inside.used_up else "")


def span_of(
    raw: dict[str, Any],
    length_ns: int,
    thread: int,
    names: FrameNames,
    thread_names: Mapping[int, str],
    ours: frozenset[int],
) -> Span:
    """Convert one span of an answer. ``ours``: threads of the tracer, whose stacks are left out."""
    other_stacks = [
        _folded(_name(other, thread_names), stack, seconds, times, names)
        for other, stack, seconds, times in raw["others"]
        if other not in ours
    ]
    return Span(
        length_s=length_ns * 1e-9,
        stacks=tuple(
            _folded(thread_names.get(thread, ""), stack, seconds, times, names) for stack, seconds, times in raw["stacks"]
        ),
        other_stacks=tuple(stack for stack in other_stacks if has_users_code([stack])),
        watch_delay_s=sum(end - start for start, end, _ in raw["late"]) * 1e-9,
        holders=tuple(
            LockHolder(
                name if is_sure else thread_names.get(holder) or name,
                "training" if holder == thread else "tracer" if holder in ours else "other",
                names.stack(stack),
            )
            if holder
            else None
            for holder, name, is_sure, stack in raw["holders"]
        ),
        lock_readings=raw.get("lock_readings"),
        waits_for=WAITS.get(raw.get("waits_for", ""), ""),
        other_holder_share=_other_holder_share(raw.get("lock_held_by", ()), {0, thread, *ours}),
        samples=int(raw.get("samples", 0)),
        **_numbers(raw),
    )


def with_collections(span: Span, thread: int, names: Mapping[int, str], collected: Mapping[int, float], is_inside: bool) -> Span:
    """Return a span with its garbage collections. ``collected``: thread -> seconds, the most seconds first.

    Inside a step, TensorFlow's threads may call Python functions. These wait for a collection on any thread.
    """
    all_s, longest = sum(collected.values()), next(iter(collected), thread)
    gc_s = all_s if is_inside else collected.get(thread, 0.0)
    collected_by = names.get(longest, "") if is_inside and longest != thread else ""
    return replace(span, gc_s=gc_s, collected_by=collected_by, others_gc_s=all_s - gc_s)


def _numbers(raw: dict[str, Any]) -> dict[str, Any]:
    return {name: raw.get(name) for name in NAMES}


def _other_holder_share(holders: Sequence[int], not_others: set[int]) -> float | None:
    """Return the share of the readings in which another thread of the script held the lock; None without readings."""
    return sum(each not in not_others for each in holders) / len(holders) if holders else None


def _folded(thread: str, stack: Any, seconds: float, times: int, names: FrameNames) -> FoldedStack:
    return FoldedStack(thread, names.stack(stack), times, seconds)


def _name(thread: int, names: Mapping[int, str]) -> str:
    return names.get(thread) or f"thread {thread}"
