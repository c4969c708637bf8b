"""Requests a trace of the same step from several processes: the hub's side.

All processes are asked first how many steps have finished. Ranks that run in lockstep get one step number, so far ahead that all
get it in time; if the request comes too late for one of them, it is taken back and a later step is tried. The workers
of a parameter-server job run at different speeds, so each traces the next step that it begins. Requests run one after another.
Runs on the server's loop.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections import Counter
from collections.abc import Mapping
from typing import Any

from tftracer.contract.job import JobTrace
from tftracer.errors import UnsupportedError
from tftracer.job.hub.hub import Hub, Member, TracedStep
from tftracer.job.wire.protocol import Message, number, seconds, text
from tftracer.session.files.reading import read_trace_record

#: How long a process may take to answer.
ANSWER_S = 3.0
#: MARGIN_S: how far ahead in time the step is selected; doubled after each try that came too late for a process. TRIES: maximum
#: number of tries.
MARGIN_S, TRIES = 0.3, 5
#: A request waits this long for earlier ones to finish. Not longer, because a step that hangs must not block all others.
WAIT_FOR_EARLIER_S = 60.0
#: The answers of ranks in lockstep differ by at most this many steps, plus the steps that run meanwhile.
LOCKSTEP_STEPS = 10


#: One question to several processes: process id -> its answer; None: it is gone.
Poll = dict[str, "asyncio.Future[Message | None]"]


def put_answer(poll: Poll, process_id: str, message: Message | None) -> None:
    """Take the first answer of a process; ignore further ones, and those of processes that were not asked."""
    answer = poll.get(process_id)
    if answer is not None and not answer.done():
        answer.set_result(message)


class StepRequests:
    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self._polls: dict[int, Poll] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._under_way: dict[int, asyncio.Event] = {}  # set when all processes are ready or missing

    def start(self, processes: list[str] | None, run_title: str) -> JobTrace:
        """Begin a request; its progress is in the job's messages. ``processes``: ids, None for all.

        Raises UnknownError if one of them is not connected, UnsupportedError if none is connected.
        """
        for process in processes or []:
            self._hub.connection(process)
        selected = processes or self._training()
        if not selected:
            raise UnsupportedError("None of the job's processes is connected, so no step can be traced.")
        traced = self._hub.new_trace(list(dict.fromkeys(selected)), run_title)
        earlier = list(self._under_way.values())
        self._under_way[traced.message["id"]] = asyncio.Event()
        task = asyncio.ensure_future(self._run(traced, earlier))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return traced.message

    def _training(self) -> list[str]:
        """Return all connected processes except parameter servers without steps, whose work is in the workers' traces.

        If there are only such servers, return all connected processes.
        """
        connected = [m for m in self._hub.members.values() if m.connection is not None]
        serving = {m.id for m in connected if m.info["place"]["role"] == "ps" and not m.info["steps"]}
        return [m.id for m in connected if m.id not in serving] or [m.id for m in connected]

    def take_back(self, trace_id: int) -> JobTrace:
        traced = self._hub.trace(trace_id)
        self._post(traced, traced.message["processes"], "take_back")
        self._add_missing(traced, dict.fromkeys(self._pending(traced), "The request was taken back."))
        return traced.message

    def _add_missing(self, traced: TracedStep, reasons: Mapping[str, str]) -> None:
        self._hub.add_missing(traced, reasons)
        self._finish(traced)

    def _finish(self, traced: TracedStep) -> None:
        """Let the next request start if no process of this one is pending any more."""
        if traced.message["state"] != "pending":
            finished = self._under_way.pop(traced.message["id"], None)
            if finished is not None:
                finished.set()

    def handle(self, member: Member, message: Message) -> None:
        traced = self._hub.traces.get(number(message, "job_trace"))
        if traced is None:
            return
        kind = message["t"]
        if kind in ("steps", "armed", "late"):
            poll = self._polls.get(traced.message["id"])
            if poll is not None:
                put_answer(poll, member.id, message)
        elif traced.message["steps"].get(member.id) != number(message, "step"):
            return  # the step was taken back
        elif kind == "traced" and isinstance(message.get("record"), dict):
            self._hub.add_record(traced, member.id, read_trace_record({**message["record"], "asked_by": "user"}))
            self._finish(traced)
        elif kind == "missed":
            self._add_missing(traced, {member.id: text(message, "why") or "Its step passed without a trace."})

    def gone(self, member: Member) -> None:
        """Mark the traces of a disconnected process as missing, unless it has connected again."""
        if self._hub.members.get(member.id, member) is member:
            self._give_up(member, f"It was {member.info['state']} before it had traced the step.")

    def reconnected(self, member: Member) -> None:
        """Handle a process that has connected again: it no longer knows the requests of the old connection."""
        self._give_up(member, "Its connection broke before it had traced the step.")

    def _give_up(self, member: Member, why: str) -> None:
        for poll in list(self._polls.values()):
            put_answer(poll, member.id, None)
        for traced in self._hub.traces.values():
            if traced.message["state"] == "pending" and member.id in self._pending(traced):
                self._add_missing(traced, {member.id: why})

    async def _run(self, traced: TracedStep, earlier: list[asyncio.Event]) -> None:
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(asyncio.gather(*(finished.wait() for finished in earlier)), WAIT_FOR_EARLIER_S)
        margin_s = MARGIN_S
        for is_last_try in [False] * (TRIES - 1) + [True]:
            states = await self._ask_progress(traced)
            if not states:
                return
            steps, step = select_steps(states, self._in_lockstep(states), margin_s)
            titles = {p: text(state, "run_title") for p, state in states.items()}
            plain_title = "One step on each of several processes" if len(steps) > 1 else "A step of one process"
            title = f"Step {step:,}" if step else plain_title
            run_title = Counter(titles.values()).most_common(1)[0][0]
            steps_so_far = traced.message["steps"]
            self._hub.update_trace(traced, step=step, steps={**steps_so_far, **steps}, title=title, run_title=run_title)
            answers = await self._ask(traced, {p: {"run_title": titles[p], "step": steps[p]} for p in steps}, "trace")
            late = [p for p in self._pending(traced) if p in steps and answers.get(p, {"t": "late"})["t"] == "late"]
            if not late:
                return
            if is_last_try:
                self._add_missing(traced, dict.fromkeys(late, "Its step had begun before the request came."))
                return
            self._post(traced, list(steps), "take_back")
            if step:  # all must trace the same step, so those that were in time trace the later step, too
                self._hub.reset_trace(traced)
            margin_s *= 2

    async def _ask_progress(self, traced: TracedStep) -> dict[str, Message]:
        """Ask each process how many steps have finished. Mark processes without an answer or without steps as missing."""
        requests = {p: {"run_title": traced.message["run_title"]} for p in self._pending(traced)}
        answers = await self._ask(traced, requests, "prepare")
        silent = dict.fromkeys((p for p in requests if p not in answers), "It did not answer in time.")
        idle = dict.fromkeys((p for p in answers if not number(answers[p], "begun")), "It has run no such step.")
        self._add_missing(traced, {**silent, **idle})
        pending = set(self._pending(traced))
        return {p: state for p, state in answers.items() if p in pending}

    async def _ask(self, traced: TracedStep, requests: dict[str, dict[str, Any]], kind: str) -> dict[str, Message]:
        if not requests:
            return {}
        trace_id = traced.message["id"]
        poll: Poll = {process_id: asyncio.get_running_loop().create_future() for process_id in requests}
        self._polls[trace_id] = poll
        for process_id, fields in requests.items():
            connection = self._hub.members[process_id].connection
            if connection is None:
                put_answer(poll, process_id, None)
            else:
                connection.post(kind, job_trace=trace_id, **fields)
        try:
            await asyncio.wait(poll.values(), timeout=ANSWER_S)
        finally:
            self._polls.pop(trace_id, None)
        return {p: message for p, answer in poll.items() if answer.done() and (message := answer.result()) is not None}

    def _post(self, traced: TracedStep, processes: list[str], kind: str) -> None:
        for process_id in processes:
            member = self._hub.members.get(process_id)
            if member is not None and member.connection is not None:
                member.connection.post(kind, job_trace=traced.message["id"])

    def _in_lockstep(self, states: dict[str, Message]) -> bool:
        """Return whether the processes run the same steps together, by their step counts. False with parameter servers."""
        launchers = [self._hub.members[p].info["place"] for p in states]
        roles = {m.info["place"]["role"] for m in self._hub.members.values()}
        if "ps" in roles or any(text(state, "servers") for state in states.values()):
            return False
        counts = [number(state, "begun") for state in states.values()]
        max_apart = LOCKSTEP_STEPS + math.ceil(_rate(states) * ANSWER_S)
        same_run = len({text(state, "run_title") for state in states.values()}) == 1
        return same_run and max(counts) - min(counts) <= max_apart and all(info["rank"] is not None for info in launchers)

    @staticmethod
    def _pending(traced: TracedStep) -> list[str]:
        message = traced.message
        settled = {*message["ready"], *message["missing"]}
        return [p for p in message["processes"] if p not in settled]


def select_steps(states: dict[str, Message], lockstep: bool, margin_s: float) -> tuple[dict[str, int], int | None]:
    """Return ``(process id -> step, the common step or None)``, far enough ahead that the request comes in time.

    ``states``: the answers to ``prepare``.
    """
    if lockstep:
        step = max(number(state, "begun") for state in states.values()) + 2 + math.ceil(_rate(states) * margin_s)
        return dict.fromkeys(states, step), step
    steps = {}
    for process_id, state in states.items():
        steps[process_id] = number(state, "begun") + 2 + math.ceil(_rate({process_id: state}) * margin_s)
    return steps, None


def _rate(states: dict[str, Message]) -> float:
    """Return the steps per second of the fastest process."""
    return min(max((seconds(state, "steps_per_s") or 0.0 for state in states.values()), default=0.0), 1e6)
