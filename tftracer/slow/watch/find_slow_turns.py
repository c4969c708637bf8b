"""Finds the slow turns of a training loop: turns that take more than 3 times the median, and more than 20 ms longer.

A turn lasts from the end of one step of a thread's main run to the end of the next step. Everything in it counts: steps of other
runs (for example of an evaluation), retraced calls, callbacks, other Python code. Signatures of one function are one run here.

Other rules (twice the median, deviations, percentiles, moving averages) called 10 to 100 of 1,000 steps slow if data varied or
steps grew longer. Runs on the thread that counts steps, mostly the writer's. The watch explains the slow turns (watch.py).
"""

from __future__ import annotations

import threading
from collections import Counter, deque
from collections.abc import Iterable

from tftracer.run_handle import RunHandle
from tftracer.slow.watch.slow_limit import MIN_EXCESS_NS, NEVER, WARM_UP, UsualTime
from tftracer.slow.watch.slow_turn import OtherSteps, Save, SlowTurn, is_no_loop, tracing_of, waited_ns
from tftracer.slow.watch.stack_samples import is_within
from tftracer.slow.watch.thread_loop import NONE_YET, LoopRun, OtherRuns, RunState, Sums, ThreadLoop

#: Maximum number of slow turns that wait for the watch.
MAX_SLOW_TURNS = 1000
MAX_THREADS = 1000
#: Maximum number of runs of one thread, and of other runs within one turn, that are counted separately.
MAX_RUNS, MAX_OTHER_RUNS = 1000, 50
#: The main run is replaced if it had no step for longer than all of these: SILENT_TURNS times its median turn, SILENT_LONGEST
#: times its longest turn, and SILENT_NS.
SILENT_TURNS, SILENT_LONGEST, SILENT_NS = 20, 3, 5_000_000_000
#: Maximum number of steps of a thread whose times are kept, for the profile of the time between them.
SPANS = 20_000
#: Uncertainty of a sample's time: a sample this near to a slow turn may belong to it.
NEAR_NS = 100_000_000
#: The slow steps of a function are listed with another of its signatures if that signature has this many times as many steps.
MANY_MORE = 10


class SlowTurnFinder:
    """Finds slow turns. Call ``step`` for each counted step of a thread, in order. Methods may be called from any thread."""

    def __init__(self, factor: float) -> None:
        self.slow_turns: deque[SlowTurn] = deque(maxlen=MAX_SLOW_TURNS)
        self.runs: dict[RunHandle, RunState] = {}
        self._factor = factor
        self._threads: dict[int, ThreadLoop] = {}
        self._calls: Counter[tuple[str, ...]] = Counter()
        self._lock = threading.Lock()

    def step(
        self,
        run: RunHandle,
        thread: int,
        start_ns: int,
        end_ns: int,
        asked_by: str | None = None,
        tracer: tuple[int, int] = (0, 0),
    ) -> None:
        """Count a step. ``asked_by``: who requested its trace, if any. ``tracer``: ns of the tracer before and after the step."""
        with self._lock:
            loop = self._loop(thread)
            state = self._state(run)
            self._calls[run.fetches] += 1
            self._count(loop, state, run, thread, (start_ns, end_ns), tracer)
            state.thread = thread
            loop_run = self._loop_run(loop, run, state)
            loop_run.count(loop.turn, end_ns - start_ns)
            if self._choose_main(loop, loop_run, end_ns) is loop_run:
                self._end_turn(loop, loop_run, run, thread, (start_ns, end_ns), asked_by)
            else:
                _add_other(loop.other_runs, loop_run, run, start_ns, end_ns)
            if loop.silent is not None:
                _add_other(loop.silent[1], loop_run, run, start_ns, end_ns)
                loop.silent_tracer_ns += sum(tracer)
            if asked_by is None:
                state.inside.add(end_ns - start_ns)
            loop_run.last_end_ns, loop_run.tracings = end_ns, max(loop_run.tracings, run.tracings)
            loop.last_end_ns, loop.after_ns = end_ns, tracer[1]
            loop.tracer_ns += tracer[1]

    def waited_for_input(self, thread: int, start_ns: int, end_ns: int) -> None:
        """Report that a thread waited for the next element of a dataset, before or inside a step. Call it before the step."""
        with self._lock:
            self._loop(thread).waits.append((start_ns, end_ns))

    def saved(self, thread: int, name: str, start_ns: int, end_ns: int) -> None:
        """Report that a thread saved or restored a checkpoint. Call it before its next step."""
        with self._lock:
            self._loop(thread).saves.append(Save(name, start_ns, end_ns))

    def is_main(self, thread: int, run: RunHandle) -> bool:
        """Return whether this run is the main run of the thread's loop."""
        loop = self._threads.get(thread)
        return loop is not None and loop.main is not None and loop.main.run.fetches == run.fetches

    def sums(self, thread: int, of_run: RunHandle | None = None) -> Sums:
        """Return the sums of a thread. ``of_run``: return the sums of only this run's steps and of the times between them."""
        if of_run is not None:
            return self._state(of_run).sums
        loop = self._threads.get(thread)
        return loop.sums if loop else NONE_YET

    def gaps(self, thread: int, since_ns: int, of_run: RunHandle | None, whole_turns: bool = False) -> list[tuple[int, int]]:
        """Return (start, end) of the times between a thread's recent steps, in order, except in or near slow turns.

        ``of_run``: return only times between two steps of this run. ``whole_turns``: each time ends with the second step."""
        loop = self._threads.get(thread)
        if loop is None:
            return []
        with self._lock:
            spans = loop.spans[:]
        limit_ns = loop.main.state.turns.lowest_limit_ns if loop.main else NEVER
        # (end of a step, end or start of the next step); ``spans`` has start, end and run of each step.
        pairs = list(zip(spans[1::3], spans[4::3] if whole_turns else spans[3::3]))
        near_slow_turns = [(start - NEAR_NS, end + NEAR_NS) for start, end in pairs if end - start > limit_ns]
        usual = [
            (start, end)
            for (start, end), *runs in zip(pairs, spans[2::3], spans[5::3])
            if start >= since_ns and 0 < end - start <= limit_ns and (of_run is None or runs == [of_run.run_id] * 2)
        ]
        return [span for span in usual if not is_within(span[0], near_slow_turns) and not is_within(span[1], near_slow_turns)]

    def overdue(self, now_ns: int) -> dict[int, int]:
        """Return thread -> beginning of its current turn, for turns that are already slow, by the steps counted so far."""
        return {
            thread: main.last_end_ns
            for thread, loop in list(self._threads.items())
            if (main := loop.main)
            and main.last_end_ns
            and now_ns - main.last_end_ns - loop.tracer_ns > main.state.turns.lowest_limit_ns
        }

    def undecided(self, run: RunHandle) -> list[int]:
        """Return the numbers of the run's steps for which it is not decided yet whether they are slow."""
        return [turn.step for loop in list(self._threads.values()) for turn in list(loop.undecided) if turn.run is run]

    def forget(self, thread: int) -> None:
        """Forget a thread that has ended, because another thread may get its id."""
        with self._lock:
            self._threads.pop(thread, None)

    # -------------------------------------------------------------------------------------------------- counting a step

    def _count(
        self, loop: ThreadLoop, state: RunState, run: RunHandle, thread: int, span: tuple[int, int], tracer: tuple[int, int]
    ) -> None:
        """Add a step to the sums and to the recent spans of its thread. ``span``: start and end of the step."""
        start_ns, end_ns = span
        gap = start_ns - tracer[0] - loop.last_end_ns - loop.after_ns if loop.last_end_ns else 0
        loop.tracer_ns += tracer[0]
        is_own_gap = loop.main is None or self.is_main(thread, run) or loop.spans[-1] == run.run_id
        loop.sums, state.sums = (
            Sums(sums.steps + 1, sums.inside_ns + end_ns - start_ns, sums.between_ns + is_counted * max(0, gap))
            for sums, is_counted in ((loop.sums, True), (state.sums, is_own_gap))
        )
        loop.spans.extend((start_ns, end_ns, run.run_id))
        if len(loop.spans) > 3 * SPANS:
            del loop.spans[: SPANS // 2 * 3]

    def _loop_run(self, loop: ThreadLoop, run: RunHandle, state: RunState) -> LoopRun:
        loop_run = loop.runs.get(run.fetches)
        if loop_run is None:
            if len(loop.runs) >= MAX_RUNS:
                loop.runs.clear()
            loop_run = loop.runs[run.fetches] = LoopRun(run, state)
        elif run is not loop_run.run and run.steps > MANY_MORE * loop_run.run.steps:
            loop_run.run = run
        loop_run.steps += 1
        return loop_run

    def _choose_main(self, loop: ThreadLoop, stepped: LoopRun, now_ns: int) -> LoopRun | None:
        """Return the main run of the thread's loop: the first run that repeats, until it has no more steps. Of runs that come
        equally often, it is the run that takes more time.

        Runs that begin later are part of its turns: an evaluation may have more steps than the training.
        """
        main = loop.main
        if stepped is main:
            return main
        silent = loop.silent
        if main is not None and silent is not None and stepped is silent[0] and _was_interrupted(stepped, main):
            loop.other_runs, loop.tracer_ns = silent[1], loop.silent_tracer_ns  # the interrupted turn continues
        elif (
            main is None
            or (main.steps < WARM_UP and stepped.steps > main.steps and not is_no_loop(stepped.run))
            or is_no_loop(main.run) > is_no_loop(stepped.run)
            or stepped.replaces_main_run(main)
        ):
            stepped.last_end_ns = 0  # its turns begin now
            loop.other_runs, loop.tracer_ns = {}, 0
        elif now_ns - main.last_end_ns > _silence_ns(main):
            stepped.last_end_ns = 0
            silent, loop.silent_tracer_ns = (main, loop.other_runs), loop.tracer_ns
            loop.other_runs, loop.tracer_ns = {}, 0
        else:
            return main
        loop.silent = silent if silent is not None and silent[0] is main else None
        loop.main = stepped
        loop.undecided.clear()
        for each in loop.runs.values():
            each.begin_turns()
        return stepped

    # ---------------------------------------------------------------------------------------------------- judging a turn

    def _end_turn(
        self, loop: ThreadLoop, main: LoopRun, run: RunHandle, thread: int, span: tuple[int, int], asked_by: str | None
    ) -> None:
        """End the main run's turn, and judge whether it was slow. ``span``: start and end of the step that ends it."""
        start_ns, end_ns = span
        state = self._state(main.run)
        other_runs, tracer_ns = tuple(loop.other_runs.values()), loop.tracer_ns
        waits, saves = tuple(loop.waits), tuple(save for save in loop.saves if save.start_ns >= main.last_end_ns)
        loop.other_runs, loop.tracer_ns = {}, 0
        loop.waits.clear()
        loop.saves.clear()
        loop.turn += 1
        if not main.last_end_ns:
            return
        took, turns = end_ns - main.last_end_ns - tracer_ns, state.turns
        # A trace may double the time of a step.
        allowed = (min(state.inside.median_ns, NEVER // 4) + MIN_EXCESS_NS) if asked_by is not None else 0
        limit, lowest_limit, is_certain = turns.limit_ns, turns.lowest_limit_ns, turns.is_certain
        input_ns = waited_ns(
            waits, main.last_end_ns, start_ns, [(other.start_ns, other.end_ns) for other in other_runs if is_no_loop(other)]
        )
        is_slow = turns.judge(took, allowed)
        if is_slow or took > lowest_limit + allowed:
            step = run.steps if run is main.run else main.run.steps + 1
            inside = min(state.inside.median_ns, turns.median_ns)
            usual = inside + min(state.before.median_ns, turns.median_ns)
            other_runs = tuple(_with_usual(other, loop.runs.values(), main) for other in other_runs)
            (self.slow_turns if is_slow else loop.undecided).append(
                SlowTurn(
                    main.run, step, self._calls[run.fetches], thread, main.last_end_ns, start_ns, end_ns, tracer_ns, usual,
                    inside, limit if is_slow else lowest_limit, other_runs, tracing_of(run, main.tracings), asked_by is not None,
                    input_ns, min(state.input.median_ns, usual - inside), waited_ns(waits, start_ns, end_ns, []), saves,
                    asked_by not in (None, "slow"), main.was_traced, main.run not in (run, main.last_run),
                )
            )  # fmt: skip
        if not is_certain and turns.judge_change(took, allowed):
            self.slow_turns.extend(loop.undecided)
        if turns.is_certain:
            loop.undecided.clear()
        if asked_by == "slow":
            extra = state.traced_extra(end_ns - start_ns, is_slow)
            state.traced_extra_ns.append(extra)
            state.traced_extra_sum_ns += extra
        elif is_slow and asked_by is None:
            state.slow_inside_ns.append(end_ns - start_ns)
        main.was_traced, main.last_run = asked_by is not None, run
        if is_slow and turns.has_restarted:
            for each in (state.inside, state.before, state.input):
                each.restart()
        if asked_by is None:
            turns.add(took)
            state.before.add(took - (end_ns - start_ns))
            state.input.add(input_ns)
            main.longest_ns = max(main.longest_ns, took)

    def _state(self, run: RunHandle) -> RunState:
        state = self.runs.get(run)
        if state is None:
            inside, before, turns, waits = (UsualTime(self._factor) for _ in range(4))
            state = self.runs[run] = RunState(inside, before, turns, waits)
        return state

    def _loop(self, thread: int) -> ThreadLoop:
        loop = self._threads.get(thread)
        if loop is None:
            if len(self._threads) >= MAX_THREADS:
                self._threads.clear()
            loop = self._threads[thread] = ThreadLoop()
        return loop


def _add_other(other_runs: OtherRuns, loop_run: LoopRun, run: RunHandle, start_ns: int, end_ns: int) -> None:
    """Add a step to the other runs of a turn: to the retraced calls of its run, or to the run's other calls."""
    retraced = tracing_of(run, loop_run.tracings)
    key = run.title, bool(retraced)
    before = other_runs.get(key)
    if before is not None:
        other_runs[key] = before._replace(steps=before.steps + 1, ns=before.ns + end_ns - start_ns, end_ns=end_ns)
    elif len(other_runs) < MAX_OTHER_RUNS:
        other_runs[key] = OtherSteps(run.title, 1, end_ns - start_ns, retraced, start_ns, end_ns)


def _with_usual(other: OtherSteps, runs: Iterable[LoopRun], main: LoopRun) -> OtherSteps:
    """Return the steps of another run with their usual time in a turn."""
    loop_run = None if other.retraced else next((each for each in runs if each.run.title == other.title), None)
    return other if loop_run is None else other._replace(usual_ns=min(other.ns, loop_run.usual_ns(other.steps, main)))


def _was_interrupted(previous: LoopRun, main: LoopRun) -> bool:
    """Return whether the previous main run, which has a step again, continues: its successor is no loop, or had fewer turns."""
    return is_no_loop(main.run) > is_no_loop(previous.run) or previous.steps > main.turns


def _silence_ns(main: LoopRun) -> int:
    """Return how long the main run may have no step before it is replaced."""
    usual = min(main.state.turns.median_ns, SILENT_NS)
    return max(SILENT_NS, SILENT_TURNS * usual, SILENT_LONGEST * main.longest_ns)
