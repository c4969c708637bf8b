"""Reports garbage collections and the state of the host once a second."""

from __future__ import annotations

from collections import deque

from tftracer.slow.watch.find_slow_turns import SlowTurnFinder
from tftracer.slow.watch.gc_pauses import GcPauses
from tftracer.slow.watch.host_counters import HostCounters, HostReading
from tftracer.slow.watch.watched_threads import WatchedThreads
from tftracer.slow.watch_results import GcPause, HostChange, HostSample, SlowRecords

#: Minimum duration of a collection that is reported.
REPORTED_NS = 1_000_000
#: Maximum number of collections that are reported each second; if there are more, only the longest are.
MAX_PAUSES = 50
#: Maximum number of readings of the machine that are kept; there is one a second.
MAX_READINGS = 120


def report_collections(gc: GcPauses, records: SlowRecords) -> None:
    """Record the longest collections since the last report, in order of time."""
    gc.settle()
    pauses = [gc.unreported.popleft() for _ in range(len(gc.unreported))]
    long = [pause for pause in pauses if pause.end_ns - pause.start_ns >= REPORTED_NS]
    longest = sorted(long, key=lambda pause: pause.start_ns - pause.end_ns)[:MAX_PAUSES]
    for pause in sorted(longest, key=lambda pause: pause.start_ns):
        records.add(GcPause(pause.start_ns, pause.end_ns, pause.generation))


class HostReadings:
    """The newest readings of the machine's counters: one each second, and one at the end of each slow turn."""

    def __init__(self) -> None:
        self._readings: deque[HostReading] = deque(maxlen=MAX_READINGS)

    def read(self, host: HostCounters, after_ns: int) -> None:
        """Read the counters, unless a reading was taken at ``after_ns`` or later."""
        if not self._readings or self._readings[-1].at_ns < after_ns:
            self._readings.append(host.read(None))

    def change(self, host: HostCounters, start_ns: int, end_ns: int) -> HostChange | None:
        """Return the change from the reading before a span to the reading after it; None if one of them is missing."""
        before = after = None
        for reading in reversed(self._readings):
            after = reading if reading.at_ns >= end_ns else after
            if reading.at_ns <= start_ns:
                before = reading
                break
        return host.change(before, after) if before and after else None


class HostReports:
    def __init__(self, records: SlowRecords, steps: SlowTurnFinder, threads: WatchedThreads) -> None:
        self._records = records
        self._finder = steps
        self._threads = threads
        self._before: HostReading | None = None
        self._native_id: int | None = None
        self._steps_before = 0

    def report(self, host: HostCounters, training: list[int]) -> None:
        """Report the last second, if steps ended in it. ``training``: threads that have run steps."""
        thread = max(training, key=lambda thread: self._finder.sums(thread).steps, default=0)
        native_id, steps_now = self._threads.native_ids.get(thread), self._finder.sums(thread).steps
        after = host.read(native_id)
        if self._before is not None and native_id == self._native_id and steps_now > self._steps_before:
            self._records.add(HostSample(after.at_ns, host.change(self._before, after)))
        self._before, self._native_id, self._steps_before = after, native_id, steps_now
