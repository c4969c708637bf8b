"""The state of the loop that one thread runs: its runs, their usual times, and what has passed since the last step.

slow_turn.py defines a turn and the main run of a loop.
"""

from __future__ import annotations

from array import array
from collections import deque
from dataclasses import dataclass, field
from statistics import median
from typing import NamedTuple

from tftracer.run_handle import RunHandle
from tftracer.slow.watch.slow_limit import NEVER, RECENT, UsualTime
from tftracer.slow.watch.slow_turn import OtherSteps, Save, SlowTurn, is_no_loop

#: Maximum number of waits for input, and of saves, that are kept for one turn.
MAX_TIMED = 10_000
#: Maximum number of slow steps of a run whose times are kept, to estimate how much time a trace adds to a slow step.
SLOW_STEPS = 15
#: A run replaces the main run under four conditions. It does more than evaluate, unless the main run only evaluates, too. It has
#: steps in at least the share EACH_TURN of the main run's turns, and in at least MIN_TURNS turns. It has on average at most
#: ABOUT_ONCE steps in these turns. Its steps take more than LONGER times as long as those of the main run. Otherwise the run of a
#: hook that reads the global step could stay the main run.
EACH_TURN, ABOUT_ONCE, LONGER, MIN_TURNS = 0.8, 1.2, 1.5, 10


class Sums(NamedTuple):
    """Sums over all steps so far."""

    steps: int = 0
    inside_ns: int = 0
    between_ns: int = 0


NONE_YET = Sums()


@dataclass(eq=False)
class RunState:
    """Usual times of one run, sums, and the time that traces of expected slow steps have added."""

    inside: UsualTime
    before: UsualTime  # the part of a turn before its step
    turns: UsualTime
    input: UsualTime  # waits for the next element of a dataset, in the part of a turn before its step
    sums: Sums = NONE_YET
    thread: int = 0  # the thread of its last step
    #: Durations of the steps of untraced slow turns.
    slow_inside_ns: deque[int] = field(default_factory=lambda: deque(maxlen=SLOW_STEPS))
    #: Time that tracing added to steps which were expected to be slow, estimated from untraced steps of their kind.
    traced_extra_ns: deque[int] = field(default_factory=lambda: deque(maxlen=RECENT))
    traced_extra_sum_ns: int = 0

    def traced_extra(self, inside_ns: int, is_slow: bool) -> int:
        """Estimate the ns that tracing added to a step that was expected to be slow.

        If the step was slow, but the duration of untraced slow steps is not known, return the usual duration of a step.
        """
        usual = 0 if self.inside.median_ns == NEVER else self.inside.median_ns
        if not is_slow:
            return max(0, inside_ns - usual)
        return max(0, inside_ns - int(median(self.slow_inside_ns))) if self.slow_inside_ns else usual


@dataclass(eq=False)
class LoopRun:
    """One run in the loop of a thread, with all signatures of its function together."""

    run: RunHandle  # the signature that its slow steps are listed with
    state: RunState
    steps: int = 0
    last_end_ns: int = 0
    longest_ns: int = 0  # its longest turn
    was_traced: bool = False  # whether its last step was traced
    last_run: RunHandle | None = None  # the signature of its last step
    tracings: int = 0  # number of times that TensorFlow traced its function
    #: Since the loop has its current main run: the number of turns in which this run has steps, the last such turn, the number of
    #: these steps, and their time.
    turns: int = 0
    last_turn: int = -1
    turn_steps: int = 0
    turn_ns: int = 0

    def begin_turns(self) -> None:
        self.turns, self.last_turn, self.turn_steps, self.turn_ns = 0, -1, 0, 0

    def count(self, turn: int, ns: int) -> None:
        """Count a step of the run. ``turn``: the number of the turn. ``ns``: the duration of the step."""
        self.turns += turn != self.last_turn
        self.last_turn = turn
        self.turn_steps += 1
        self.turn_ns += ns

    def replaces_main_run(self, main: LoopRun) -> bool:
        """Return whether this run meets the conditions to replace the main run (EACH_TURN and below)."""
        is_in_each_turn = self.turns >= max(MIN_TURNS, EACH_TURN * main.turns) and self.turn_steps <= ABOUT_ONCE * self.turns
        return is_in_each_turn and self.turn_ns > LONGER * main.turn_ns and is_no_loop(self.run) <= is_no_loop(main.run)

    def usual_ns(self, steps: int, main: LoopRun) -> int:
        """Return the ns that its steps, at most ``steps`` of them, usually take in a turn; 0 if many turns have no step of it."""
        if not self.turns or self.turns < EACH_TURN * main.turns or self.state.inside.median_ns == NEVER:
            return 0
        return min(steps, round(self.turn_steps / self.turns)) * self.state.inside.median_ns


OtherRuns = dict[tuple[str, bool], OtherSteps]


@dataclass(eq=False)
class ThreadLoop:
    """The loop that one thread runs."""

    runs: dict[tuple[str, ...], LoopRun] = field(default_factory=dict)
    main: LoopRun | None = None
    turn: int = 0  # the number of the main run's current turn
    last_end_ns: int = 0
    after_ns: int = 0  # time that the tracer took after the last step
    sums: Sums = NONE_YET
    other_runs: OtherRuns = field(default_factory=dict)  # steps of other runs since the main run's last step
    tracer_ns: int = 0  # time of the tracer since the main run's last step
    waits: deque[tuple[int, int]] = field(default_factory=lambda: deque(maxlen=MAX_TIMED))  # (start, end) of waits for input
    saves: deque[Save] = field(default_factory=lambda: deque(maxlen=MAX_TIMED))
    #: (previous main run, other runs since its last step), if the previous main run was replaced because it had no step for long.
    #: It may go on later: a long validation is a slow turn of the training.
    silent: tuple[LoopRun, OtherRuns] | None = None
    silent_tracer_ns: int = 0
    undecided: list[SlowTurn] = field(default_factory=list)  # turns that are slow only if the usual time has not changed
    spans: array[int] = field(default_factory=lambda: array("q"))  # start, end and run id of each recent step
