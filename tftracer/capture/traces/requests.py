"""Holds which steps are to be traced. The server's thread requests traces; the training threads claim them for their steps."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass

from tftracer.contract.session import AskedBy
from tftracer.run_handle import RunHandle

#: Maximum number of steps that can be requested at once.
MAX_STEPS = 10_000


@dataclass(eq=False)
class Claim:
    """One step that is being traced for a request."""

    handle: RunHandle | None  # None: a step of any run was requested
    asked_by: AskedBy
    is_done: bool = False  # whether ``complete`` or ``restore`` has ended the claim
    is_numbered: bool = False  # whether the step was requested by its number


class TraceRequests:
    """The open requests for traces, and the claims of steps that are being traced. Methods may be called from any thread.

    ``slow_path`` is True while traces are requested or under way, and when the tracer is off. Every step reads it once or
    twice, without a lock. ``__slots__`` saves a look-up in a dict, which would be a large part of what an untraced step reads.
    """

    __slots__ = (
        "_claimed",
        "_expected",
        "_lock",
        "_numbered",
        "_requested",
        "count_steps",
        "off",
        "slow_path",
        "steps_of_any_run",
        "trace_all",
    )

    def __init__(self) -> None:
        self.slow_path = False
        self.off = False
        self.trace_all = False  # whether all steps of all runs are to be traced
        self.steps_of_any_run = 0  # number of requested steps that may belong to any run
        self._claimed = 0  # number of claims that are not done
        self._numbered = 0  # number of run families with a step that is requested by its number
        self._requested: set[RunHandle] = set()  # runs with requested steps (``RunHandle.requested``)
        self._expected: dict[RunHandle, range] = {}  # run -> numbers of the steps that are expected to be slow
        self.count_steps: Callable[[], None] = lambda: None  # counts the steps that have ended
        self._lock = threading.Lock()

    def request(self, handle: RunHandle | None, steps: int, more: bool = False) -> None:
        """Trace the next ``steps`` steps of a run (None: of any run); 0 cancels the request. ``more``: add them to the steps that
        are requested already."""
        with self._lock:
            if more:
                steps += self.steps_of_any_run if handle is None else handle.requested
            steps = max(0, min(steps, MAX_STEPS))
            if handle is None:
                self.steps_of_any_run = steps
            else:
                self._set_requested(handle, steps)
            self._update_slow_path()

    def waiting(self) -> int:
        """Return the number of requested steps that have not begun; 0 if tracing is off."""
        if self.off:
            return 0
        with self._lock:
            return self.steps_of_any_run + sum(handle.requested for handle in self._requested)

    def set_trace_all(self, on: bool) -> None:
        with self._lock:
            self.trace_all = on
            self._update_slow_path()

    def count_numbered(self, change: int) -> None:
        """Add ``change`` (1 or -1) to the number of run families with a step that is requested by its number."""
        with self._lock:
            self._numbered += change
            self._update_slow_path()

    def expect(self, handle: RunHandle, steps: range) -> None:
        """Trace these steps of a run, by their numbers: they are expected to be slow."""
        with self._lock:
            self._expected[handle] = steps
            self._update_slow_path()

    def cancel_expected(self, handle: RunHandle, steps: range) -> None:
        """Stop expecting these steps, for example because they did not come.

        As long as any steps are expected, all steps take the slow path.
        """
        with self._lock:
            if self._expected.get(handle) == steps:
                del self._expected[handle]
                self._update_slow_path()

    def is_expected(self, handles: list[RunHandle]) -> bool:
        """Return whether some step of one of these runs is expected to be slow.

        Takes no lock, so the answer may be outdated; ``claim`` checks again.
        """
        return bool(self._expected) and any(handle in self._expected for handle in handles)

    def has_any(self, handles: list[RunHandle]) -> bool:
        """Return whether the next step of one of these runs is requested: by its run, for any run, or for all steps.

        Steps that are requested by their number or expected to be slow do not count here. Takes no lock, so the answer may be
        outdated; ``claim`` checks again.
        """
        return self.trace_all or self.steps_of_any_run > 0 or any(handle.requested > 0 for handle in handles)

    def claim(self, handles: list[RunHandle]) -> Claim | None:
        """Claim the step that is about to begin. It belongs to one of the runs ``handles``.

        Return None if the step is not to be traced.
        """
        if self.is_expected(handles):
            self.count_steps()  # so that the number of finished steps is exact
        with self._lock:
            claim = self._next_claim(handles)
            self._claimed += claim is not None
            self._update_slow_path()
            return claim

    def claim_numbered(self, handle: RunHandle) -> Claim:
        with self._lock:
            self._claimed += 1
            self._update_slow_path()
            return Claim(handle, "user", is_numbered=True)

    def complete(self, claim: Claim) -> None:
        """End the claim of a step that was traced."""
        with self._lock:
            self._finish(claim)
            self._update_slow_path()

    def restore(self, claim: Claim) -> None:
        """End the claim of a step that was not traced. If the user requested it without a step number, request another step."""
        with self._lock:
            if claim.is_done:
                return
            self._finish(claim)
            if claim.asked_by == "user" and not claim.is_numbered:
                if claim.handle is None:
                    self.steps_of_any_run += 1
                else:
                    self._set_requested(claim.handle, claim.handle.requested + 1)
            self._update_slow_path()

    def switch_off(self) -> None:
        """Switch tracing off for good. Takes no lock, because the code that failed may still hold the lock."""
        self.off = self.slow_path = True

    def _next_claim(self, handles: list[RunHandle]) -> Claim | None:
        for handle in handles:
            if handle.requested > 0:
                self._set_requested(handle, handle.requested - 1)
                return Claim(handle, "user")
        if self.steps_of_any_run > 0:
            self.steps_of_any_run -= 1
            return Claim(None, "user")
        if self.trace_all:
            return Claim(None, "global")
        for handle in handles:
            if handle in self._expected and self._take_expected(handle):
                return Claim(handle, "slow")
        return None

    def _take_expected(self, handle: RunHandle) -> bool:
        """Return whether the run's next step is expected to be slow. If it is the last expected step or later, expect no more."""
        steps, following = self._expected[handle], handle.steps + 1
        if following >= steps.stop - 1:
            del self._expected[handle]
        return following in steps

    def _finish(self, claim: Claim) -> None:
        if not claim.is_done:
            claim.is_done = True
            self._claimed -= 1

    def _set_requested(self, handle: RunHandle, steps: int) -> None:
        handle.requested = steps
        if steps:
            self._requested.add(handle)
        else:
            self._requested.discard(handle)

    def _update_slow_path(self) -> None:
        requested = self.trace_all or self.steps_of_any_run or self._requested or self._numbered or self._expected
        self.slow_path = bool(requested or self._claimed or self.off)
        if self.off:  # because ``switch_off`` takes no lock, so it may have run after the line above read ``off``
            self.slow_path = True
