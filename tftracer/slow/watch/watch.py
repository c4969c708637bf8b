"""The thread ``tftracer-watch``: finds the causes of slow turns of the training loop, and their periods.

    watch = SlowWatch(queue, 3.0, expected_traces)
    watch.start()
    watch.stop()    # later; then the results are in ``queue.slow``

A *turn* of the loop lasts from the end of one step to the end of the next step. A *slow step* is a turn that takes much longer
than usual, in the step or before it. A *stall* is the report of one of these two sides of a turn, with its cause.

On a training thread, the watch costs one dict assignment when a step begins and one when it ends (``StepQueue.under_way``). Slow
turns are found on the thread that counts steps (find_slow_turns.py). A process outside answers questions about what happened in a
slow turn (stack_source.py); if it cannot read this process, this process takes samples itself. A part of the watch (stacks, the
host) that fails is switched off and reported.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from time import perf_counter_ns
from typing import Any, NamedTuple

from tftracer.run_handle import RunHandle
from tftracer.slow.cause.blamed_code import has_users_code, waits_for_thread, without_steps, without_tracer
from tftracer.slow.cause.explain_slow_turn import explain
from tftracer.slow.cause.frame_names import FrameNames
from tftracer.slow.cause.observed import Observed, Span
from tftracer.slow.watch.capture_protocols import ExpectedTraceRequests, WatchedQueue
from tftracer.slow.watch.find_slow_turns import SlowTurnFinder
from tftracer.slow.watch.function_times import with_functions
from tftracer.slow.watch.gap_profiles import GapProfiles
from tftracer.slow.watch.gc_pauses import GcPauses
from tftracer.slow.watch.host_counters import HostCounters
from tftracer.slow.watch.outside_client import Question
from tftracer.slow.watch.periods_of_run import RunPeriods
from tftracer.slow.watch.read_lock_holder import LockPlace
from tftracer.slow.watch.report_gc_and_host import HostReadings, HostReports, report_collections
from tftracer.slow.watch.slow_turn import SlowTurn, sides
from tftracer.slow.watch.stack_source import Answer, StackSource, span_of, with_collections
from tftracer.slow.watch.thread_clocks import with_own_times
from tftracer.slow.watch.thread_counters import RATES
from tftracer.slow.watch.times_of_samples import sleeps
from tftracer.slow.watch.watched_threads import WatchedThreads
from tftracer.slow.watch_results import HostChange, Stall

TICK_S, SECOND_NS = 0.05, 1_000_000_000
#: Time limits at the end, in seconds: for the thread to end, for answers, and to report slow turns without answers.
JOIN_S, FINISH_S, WITHOUT_STACKS_S = 8.0, 3.0, 1.0
#: Maximum number of slow turns with an unanswered question; then the oldest is explained without stacks.
MAX_QUESTIONS = 200
PATIENCE_NS = 60 * SECOND_NS  # time limit for an answer
MAX_STACKS = 50  # maximum number of distinct stacks in the record of a slow step
#: A thread other than the main thread is idle if it waits for another thread for this share of a slow turn's samples.
IDLE = 0.5
TOO_MANY = "Its stacks were not read: too many steps were slow at once."
NO_ANSWER = "Its stacks were not read: the process that reads them did not answer."


class PendingTurn(NamedTuple):
    turn: SlowTurn  # a question about it is open
    at_ns: int  # when the question was asked


class SlowWatch:
    """Watches one queue. A turn is slow if it takes more than ``factor`` times the median, and more than 20 ms longer than it."""

    def __init__(self, queue: WatchedQueue, factor: float, expected_traces: ExpectedTraceRequests) -> None:
        self._queue = queue
        self._records = queue.slow
        self._finder = SlowTurnFinder(factor)
        self._expected_traces = expected_traces
        self._threads = WatchedThreads()
        self._names = FrameNames()
        self._gc: GcPauses | None = None
        self._host: HostCounters | None = None
        self._readings = HostReadings()
        self._host_reports = HostReports(self._records, self._finder, self._threads)
        self._lock_place = LockPlace()
        self._source: StackSource | None = None
        self._gaps = GapProfiles(queue, self._finder)
        self._questions: dict[int, PendingTurn] = {}
        self._last_question = 0
        self._patience_ns = PATIENCE_NS  # time for an answer, before a turn is explained without it
        self._periods: dict[RunHandle, RunPeriods] = {}
        self._next_second_ns = 0
        self._threads_known = 0
        self._stopping = False
        self._report_requested = threading.Event()
        self._pid = os.getpid()
        self._thread: threading.Thread | None = None

    # ------------------------------------------------------------------------------------------------ starting, ending

    def start(self) -> None:
        self._gc = GcPauses(self._queue.under_way)
        self._gc.install()
        self._host = HostCounters()
        self._lock_place.narrow()  # and again on the watch's thread: only the right place fits both threads
        self._expected_traces.set_steps(self._finder)
        self._queue.slow_step_watch = self._finder
        self._queue.thread_clocks.start()
        self._thread = threading.Thread(target=self._run, name="tftracer-watch", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Report the slow turns that have ended, and stop. A second call does nothing."""
        thread = self._thread
        if thread is None or os.getpid() != self._pid:
            return
        is_other_thread = thread is not threading.current_thread()
        if is_other_thread:
            with contextlib.suppress(Exception):  # the watch must stop anyway
                self.report_pending()
        self._thread, self._stopping = None, True
        if is_other_thread:
            thread.join(JOIN_S)
        self._release()

    def after_fork(self) -> None:
        """Release everything in a forked child: the thread and the process outside belong to the parent."""
        self._stopping = True
        self._thread = None
        self._queue.slow_step_watch = None
        if self._source:
            self._source.after_fork()
        self._source = None
        self._release()

    @property
    def pending(self) -> int:
        """The number of slow turns and requests for reports that are not done yet."""
        is_reading_profile = self._source is not None and self._gaps.is_reading
        return len(self._finder.slow_turns) + len(self._questions) + is_reading_profile + self._report_requested.is_set()

    def report_pending(self, timeout_s: float = FINISH_S) -> bool:
        """Wait until the slow turns so far are reported, after ``timeout_s`` without stacks. Return whether they are."""
        self._queue.count_steps()
        self._report_requested.set()
        for self._patience_ns, wait_s in ((PATIENCE_NS, timeout_s), (0, WITHOUT_STACKS_S), (PATIENCE_NS, 0.0)):
            until = time.monotonic() + wait_s
            while self.pending and self._thread and self._thread.is_alive() and time.monotonic() < until:
                time.sleep(TICK_S / 2)
        return not self._questions and not self._finder.slow_turns

    def _finish(self) -> None:
        """Report the slow turns since the last tick, without waiting for answers. (``report_pending`` waits for them.)"""
        self._queue.count_steps()
        self._ask_about_slow_turns(perf_counter_ns())
        for number in list(self._questions):
            self._explain(number, None, NO_ANSWER)
        self._expected_traces.cancel()
        if self._gc:
            report_collections(self._gc, self._records)

    def _stop_source(self) -> None:
        source, self._source = self._source, None
        if source:
            with contextlib.suppress(Exception):
                source.stop()

    def _release(self) -> None:
        self._stop_source()
        if self._gc:
            self._gc.remove()
        if self._host:
            self._host.close()
        self._queue.thread_clocks.stop()

    # ----------------------------------------------------------------------------------------- the watch's own thread

    def _run(self) -> None:
        try:
            self._try_part("stacks", self._start_source)
            native = threading.get_native_id()
            for number, sleep in enumerate(itertools.cycle(sleeps())):
                if self._stopping or self._queue.off:
                    break
                if self._source:
                    self._try_part("stacks", self._source.beat, native, number)
                sleep(TICK_S)
                self._tick(perf_counter_ns())
            if self._stopping or not self._queue.off:
                self._finish()
        except Exception as error:
            self._say("slow_steps", f"Slow steps are not looked for any more: {type(error).__name__}: {error}.")
            self._queue.slow_step_watch = None
            self._release()
        finally:
            self._expected_traces.cancel()

    def _start_source(self) -> None:
        self._lock_place.narrow()
        self._source = StackSource(self._lock_place.place)
        self._source.watch(*self._threads.natives_by_role(self._queue.under_way))

    def _tick(self, now_ns: int) -> None:
        if self._source:
            self._try_part("stacks", self._sample_overdue_turns, now_ns)
        if self._gc:
            self._gc.settle()
        if self._finder.slow_turns:
            self._ask_about_slow_turns(now_ns)
        if self._report_requested.is_set():
            if self._source:
                self._try_part("stacks", self._gaps.end_first, now_ns, self._source, self._threads, self._gc)
                self._try_part("stacks", self._source.hurry)
            self._report_requested.clear()
        if self._questions or self._gaps.is_reading:
            self._take_answers(now_ns)
        if self._periods:
            self._expected_traces.update([expected for periods in self._periods.values() for expected in periods.expected()])
        if now_ns >= self._next_second_ns or len(self._queue.under_way) != self._threads_known:
            self._threads_known = len(self._queue.under_way)
            self._next_second_ns = now_ns + SECOND_NS
            self._each_second(now_ns)

    def _sample_overdue_turns(self, now_ns: int) -> None:
        assert self._source is not None
        overdue = self._finder.overdue(now_ns)
        if overdue:
            self._queue.count_steps()  # an overdue turn may have ended meanwhile
            overdue = self._finder.overdue(now_ns)
        self._source.tick(now_ns, overdue, self._gc is not None and self._gc.has_just_ended(now_ns))

    def _ask_about_slow_turns(self, now_ns: int) -> None:
        while self._finder.slow_turns:
            turn = self._finder.slow_turns[0]
            self._last_question += 1
            number, native = self._last_question, self._threads.native_ids.get(turn.thread)
            self._questions[number] = PendingTurn(turn, now_ns)
            self._finder.slow_turns.popleft()
            if self._source is None or native is None:
                self._explain(number, None, "")
            else:
                self._try_part("stacks", self._source.ask, number, Question(turn.thread, native, turn.spans, turn.clocked))
            if len(self._questions) > MAX_QUESTIONS:  # explain the oldest first, because periods need the order
                self._explain(next(iter(self._questions)), None, TOO_MANY)

    def _take_answers(self, now_ns: int) -> None:
        answers: list[Answer] = []
        if self._source:
            self._try_part("stacks", lambda: answers.extend(self._source.answers() if self._source else []))
            if self._source and self._source.problem:
                self._say("slow_stacks", self._source.problem)
        for answer in answers:
            if answer.number in self._questions:
                self._explain(answer.number, answer.raw, answer.doubt)
            else:
                self._gaps.take(answer, self._names)
        for number, question in list(self._questions.items()):
            if now_ns - question.at_ns > self._patience_ns or self._source is None:
                self._explain(number, None, NO_ANSWER)

    def _each_second(self, now_ns: int) -> None:
        for thread, native_id in self._threads.refresh(list(self._queue.under_way)):
            self._forget(thread, native_id)
        if self._gc:
            report_collections(self._gc, self._records)
        if self._host:
            self._try_part("host", self._host_reports.report, self._host, list(self._queue.under_way))
            self._read_host(now_ns)
        for run, periods in self._periods.items():
            waiting = [question.turn.step for question in self._questions.values() if question.turn.run is run]
            periods.passed_before([*waiting, *self._finder.undecided(run)], self._records)
        if self._source:
            self._source.watch(*self._threads.natives_by_role(self._queue.under_way))
            self._try_part("stacks", self._gaps.each_second, now_ns, self._source, self._queue.under_way, self._threads, self._gc)
            if not self._questions:
                self._take_answers(now_ns)

    def _read_host(self, after_ns: int) -> None:
        if self._host:
            self._try_part("host", self._readings.read, self._host, after_ns)

    def _forget(self, thread: int, native_id: int | None) -> None:
        """Forget a thread that has ended. Another thread may already have its id."""
        if self._host and native_id:
            self._host.close_thread(native_id)
        self._finder.forget(thread)
        self._queue.under_way.pop(thread, None)
        self._queue.thread_clocks.forget(thread)

    # ------------------------------------------------------------------------------------------------------ explaining

    def _explain(self, number: int, raw: dict[str, Any] | None, doubt: str) -> None:
        try:
            slow_turn = self._questions[number].turn
            observed = self._observed(slow_turn, raw, doubt)
            for turn in sides(slow_turn):
                self._report(turn, observed)
        finally:
            del self._questions[number]

    def _report(self, turn: SlowTurn, observed: Observed) -> None:
        """Report a slow turn, or one of its sides."""
        host = self._host_within(turn)
        observed = replace(
            observed,
            between=observed.between if turn.step_ns > turn.start_ns else Span(0.0),
            inside=observed.inside if turn.end_ns > turn.step_ns else Span(0.0),
        )
        span = observed.side(turn.is_inside)
        if not turn.is_inside and span.stacks and not has_users_code(span.stacks):
            return  # a prompt, or a notebook between two cells
        parts, cause, others, doubt, place = explain(turn, replace(observed, others_share=host.others_share if host else None))
        if (cause.kind in ("wait", "unknown") and self._waits_for_work(turn, span)) or turn.may_be_cost_of_tracing(cause):
            return
        start, end = (turn.step_ns, turn.end_ns) if turn.is_inside else (turn.start_ns, turn.step_ns)
        stall = Stall(
            run=turn.run,
            step=turn.step,
            call=turn.call,
            inside=turn.is_inside,
            thread=self._threads.names.get(turn.thread, ""),
            start_ns=start,
            end_ns=end,
            expected_s=(turn.usual_inside_ns if turn.is_inside else turn.usual_ns - turn.usual_inside_ns) * 1e-9,
            cause=cause,
            stacks=span.stacks[:MAX_STACKS],
            other_stacks=span.other_stacks[:MAX_STACKS],
            gc_s=span.gc_s,
            host=host,
            is_traced=turn.is_traced,
            parts=parts,
            doubt=doubt,
            thread_id=turn.thread,
            others=others,
            others_gc_s=span.others_gc_s,
            of_other_signature=turn.of_other_signature,
            place=place,
        )
        self._records.add(stall)
        if turn.is_traced:
            self._expected_traces.count_traced_slow_step(turn.run)
        self._periods.setdefault(turn.run, RunPeriods(turn.run)).add(stall, self._records)

    def _waits_for_work(self, turn: SlowTurn, span: Span) -> bool:
        """Return whether a thread other than the main thread was idle (the queue that it fills was full), or not seen at all."""
        main = threading.main_thread().ident or 0
        is_helper = turn.thread != main and self._finder.sums(main).steps > 0
        return is_helper and not turn.is_inside and waits_for_thread(span.stacks) >= IDLE * span.sampled_s

    def _observed(self, turn: SlowTurn, raw: dict[str, Any] | None, doubt: str) -> Observed:
        raw = raw or {"usual": {}, "spans": [{"stacks": [], "others": [], "late": [], "holders": []}] * 2}
        spans, names = [], self._threads.names_at(turn.end_ns)
        ours = self._threads.ours_at(turn.start_ns)
        for raw_span, (start, end), is_inside in zip(raw["spans"], turn.spans, (False, True)):
            collected = self._gc.by_thread(start, end) if self._gc else {}
            span = span_of(raw_span, end - start, turn.thread, self._names, names, ours)
            spans.append(with_collections(span, turn.thread, names, collected, is_inside))
        stacks = without_tracer(spans[0].stacks)
        if self._queue.sees_all_sessions and not turn.has_other_steps:
            stacks = without_steps(stacks)
        between = replace(spans[0], stacks=stacks, clocked=Span(**raw["clocked"]) if raw.get("clocked") else None)
        rates: dict[str, Any] = {f"usual_{name}": raw["usual"].get(name) for name in (*RATES, "lock_wait")}
        between, inside = with_own_times(between, spans[1], turn, self._queue.thread_clocks)
        lines, runs_script = self._gaps.usual_lines.get(turn.run, frozenset()), turn.run.has_python
        runs_script |= turn.run.is_session and not self._queue.sees_all_sessions  # other hooks' code is a part of the step
        between, inside, may_call = with_functions(between, inside, turn, self._queue.function_times, self._names)
        rates |= {"usual_lines": lines, "may_call_python": may_call, "runs_script": runs_script}
        return Observed(between, inside, **rates, doubt=doubt)

    def _host_within(self, turn: SlowTurn) -> HostChange | None:
        """Return the change of the machine's counters from before a turn until after it; None if not known."""
        if self._host is None:
            return None
        self._read_host(turn.end_ns)
        return self._readings.change(self._host, turn.start_ns, turn.end_ns) if self._host else None

    # ------------------------------------------------------------------------------------------------------ failures

    def _try_part(self, name: str, work: Callable[..., object], *arguments: Any) -> None:
        """Call ``work`` for one part of the watch. If it raises, switch the part off."""
        try:
            work(*arguments)
        except Exception as error:
            self._part_failed(name, error)

    def _part_failed(self, name: str, error: Exception) -> None:
        if name == "stacks":
            self._stop_source()
        elif name == "host" and self._host:
            self._host.close()
            self._host = None
        self._say(f"slow_{name}", f"{LACKS[name]}: {type(error).__name__}: {error}. Training goes on.")

    def _say(self, code: str, message: str) -> None:
        self._queue.other_problems[code] = message


#: Part of the watch -> what is missing without it.
LACKS = {
    "stacks": "Slow steps have no lines any more",
    "host": "What the machine did during slow steps is not known any more",
}
