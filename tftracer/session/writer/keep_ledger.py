"""Keeps the ledger of this process: adds up the activities in the training's queue. On the thread ``tftracer-writer``."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from time import perf_counter_ns

from tftracer.capture.steps.queue import StepQueue
from tftracer.ledger import saved_ledger as ledger_facts
from tftracer.ledger.activity import INPUT, NEXT_ELEMENT, STEPS, STOPPED, SUSPENDED, Activity
from tftracer.ledger.add_up_activities import HELPERS, UNDER_WAY, WallTimeSums
from tftracer.ledger.standstills import Standstills, process_start_ns
from tftracer.ledger.thread_cpu import OWN_PREFIX, OwnCpu, WithoutCpu
from tftracer.session.store import SessionStore
from tftracer.slow.watch_results import Stall

#: A killed process loses at most the ledger of the last LOST_S seconds or, in a long session, of LOST_SHARE of its time.
LOST_S, LOST_SHARE = 1.9, 0.005


class LedgerWriter:
    """Adds up the ledger. An error in it switches off only the ledger."""

    def __init__(self, steps: StepQueue, store: SessionStore) -> None:
        self._steps = steps
        self._store = store
        self._began_ns = perf_counter_ns()
        self._start_ns = process_start_ns()
        self._main = threading.main_thread().ident or 0
        self._wall_time: WallTimeSums | None = WallTimeSums(
            self._began_ns if self._start_ns is None else self._start_ns, self._main
        )
        self._standstills = Standstills()
        self._no_cpu = WithoutCpu()
        self._own_cpu = OwnCpu()
        self._newest: ledger_facts.LedgerFacts | None = None
        self._until = self._began_ns, 0.0  # the end of the ledger: perf_counter ns, epoch seconds
        self._is_over = False
        self._has_new_slow = False  # whether slow steps were added since the last sum; some are found only after the script's end

    def add_stops(self) -> None:
        """Add the time for which the process was stopped. Called five times a second, after the steps were counted."""
        self._guarded(self._add_stops)

    def add_slow(self, stall: Stall) -> None:
        if self._wall_time is not None:
            self._wall_time.add_slow(stall)
            self._has_new_slow = True

    def facts(self) -> ledger_facts.LedgerFacts | None:
        """Add up what is new, and return the facts."""
        self._guarded(self._add_up)
        return self._newest

    def _add_stops(self) -> None:
        if self._wall_time is not None:
            self._no_cpu.update()
            stopped = self._standstills.update()
            if stopped is not None:
                self._wall_time.add([(SUSPENDED, STOPPED, *stopped, self._main)], set())

    def _add_up(self) -> None:
        if self._wall_time is None or (self._is_over and not self._steps.activities.ended and not self._has_new_slow):
            return
        self._has_new_slow = False
        threads = threading.enumerate()
        helpers = {thread.ident or 0 for thread in threads if thread.name.startswith(HELPERS)}
        now_ns, now = self._until = self._now()
        under_way = [activity for activity in self._under_way(now_ns) if activity[4] not in helpers]
        # Activities under way were read before this, so that one that ends meanwhile is not missed.
        self._steps.count_steps()
        queue = self._steps.activities.ended
        ended = [queue.popleft() for _ in range(len(queue))]
        self._wall_time.add(ended, helpers)
        ended_starts = {(start, thread) for _, _, start, _, thread in ended}
        sums = self._wall_time.sums_until(
            now_ns, [activity for activity in under_way if (activity[2], activity[4]) not in ended_starts]
        )
        began_ns = None if self._start_ns is None else self._began_ns
        native = next((thread.native_id for thread in threads if thread.ident == self._wall_time.training), None)
        self._no_cpu.of_thread(native)
        own_s = self._own_cpu.sum_s(thread.native_id or 0 for thread in threads if thread.name.startswith(OWN_PREFIX))
        asleep_ns = self._standstills.asleep_ns
        waits = dict(self._steps.activities.step_waits)
        slow = self._wall_time.slow()
        self._newest = ledger_facts.facts_of(sums, slow, waits, now_ns, now, asleep_ns, began_ns, self._no_cpu.sum_ns, own_s)

    def _now(self) -> tuple[int, float]:
        """Return the end of the ledger (perf_counter ns, epoch seconds): now, or the end of the script if it has ended."""
        if self._is_over:
            return self._until
        ended_at = self._store.session()["ended_at"]
        now_ns, now = perf_counter_ns(), time.time()
        self._is_over = ended_at is not None
        since_end_ns = round(max(0.0, now - (ended_at or now)) * 1e9)
        end_ns = max(now_ns - since_end_ns, self._until[0])  # the end never moves back
        return end_ns, now - (now_ns - end_ns) * 1e-9

    def _under_way(self, now_ns: int) -> list[Activity]:
        """Return the activities under way, as if they ended now."""
        steps, activities = self._steps.under_way, self._steps.activities
        return [
            *((STEPS, UNDER_WAY, start, now_ns, thread) for thread, start in list(steps.items()) if start > 0),
            *((INPUT, NEXT_ELEMENT, start, now_ns, thread) for thread, start in list(activities.waiting.items()) if start),
            *((kind, name, start, now_ns, thread) for (thread, kind), (name, start) in list(activities.under_way.items())),
        ]

    def _guarded(self, work: Callable[[], None]) -> None:
        try:
            work()
        except Exception as error:
            self._wall_time = None
            self._store.problems.add("ledger", f"Where the time goes is not known any more: {type(error).__name__}: {error}.")
