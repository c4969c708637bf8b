"""The watch's source of stacks gives out answers that arrive at once one after the other."""

from __future__ import annotations

import time
from typing import Any

import pytest

from tftracer.slow.watch import stack_source
from tftracer.slow.watch.outside_client import Question
from tftracer.slow.watch.stack_source import StackSource

QUESTIONS = 5


class Outside:
    """A process outside that has answered all questions, each for its first reader."""

    ended = ""
    has_answers = False

    def __init__(self, *arguments: Any) -> None:
        self.waiting: list[dict[str, Any]] = []

    def ask(self, number: int, question: Question, inside: Any) -> None:
        self.waiting.append({"id": number, "broken": ""})

    def answers(self, most: int) -> list[dict[str, Any]]:
        given, self.waiting = self.waiting[:most], self.waiting[most:]
        return given

    def hurry(self) -> None:
        """All have been answered."""


def test_a_burst_of_answers_is_given_out_one_after_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """A judge saw the training's steps double each 30 seconds: the answers of half a minute were explained at once."""
    monkeypatch.setattr(stack_source, "OutsideProcess", Outside)
    monkeypatch.setattr(stack_source, "ANSWERS_APART_NS", 10**12)
    source, now = StackSource(), time.perf_counter_ns()
    for number in range(1, QUESTIONS + 1):
        source.ask(number, Question(1, 1, [(now, now), (now, now)]))
    assert [len(source.answers()) for _ in range(3)] == [1, 0, 0]
    source.hurry()  # the session is saved
    assert [answer.number for answer in source.answers()] == [2, 3, 4, 5]
