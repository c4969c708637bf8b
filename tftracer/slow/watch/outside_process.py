"""A separate process that continuously reads the training's stacks and counters from outside.

    python -m tftracer.slow.watch.outside_process PID PY_SPY PULSE_FD

The training starts it (outside_client.py) and never waits for it. It runs py-spy in windows of a minute, and reads Linux's
counters of the training's threads and the holder of Python's lock. It watches the training's pulse: a number in shared memory
that the training's watch thread writes 20 times a second. While the pulse is late, threads probably wait for the lock.

It keeps what it read in the last minutes. Each question is a line of JSON on standard input: a thread, spans of time, and the
samples that the training took itself (stacks_from_inside.py). The answer is a line of JSON. Times are nanoseconds of
CLOCK_MONOTONIC, which is also Python's perf_counter on Linux.

It imports only Python's standard library and modules of this folder, so that it starts fast and takes little memory.
"""

from __future__ import annotations

import ctypes
import json
import mmap
import os
import select
import signal
import sys
import threading
import time
from collections import deque
from itertools import takewhile
from typing import Any

from tftracer.slow.watch.py_spy_windows import PR_SET_PDEATHSIG, Dump, Windows, dump
from tftracer.slow.watch.read_lock_holder import LockReader
from tftracer.slow.watch.stack_samples import Stack, StackSample, current_stacks, shares, without_biased
from tftracer.slow.watch.thread_counters import Counters, ThreadState
from tftracer.slow.watch.times_of_samples import PULSE_BYTES, SampleClock, read_beats

#: Time between two readings of the counters; half of it while the pulse is late. The counters are also read at each message of
#: the training, which sends 20 messages a second while a turn takes too long.
TICK_NS = 100_000_000
#: The pulse is late if no beat came for this time. A beat is due every 50 ms.
LATE_NS = 110_000_000
#: While the pulse is late, py-spy reads all stacks at single moments (dumps). Minimum and average time between two dumps, number
#: of dumps that may follow each other at the minimum time, maximum number that are kept, and maximum number for one delay. While
#: Python's lock is free, the training reads stacks itself (stacks_from_inside.py), at a lower cost.
DUMPS_APART_NS, APART_NS, BURST, MAX_DUMPS, MAX_LATE = 100_000_000, 8_000_000_000, 20, 64, 3
#: The stack of the lock's holder is taken from a sample that is at most this time away.
NEAR_NS = 300_000_000
#: The name of a thread is taken from a dump that is at most this time away: later another thread may have the same id.
KNOWN_NS = 2_000_000_000
#: Maximum time that an answer waits for stacks.
PATIENCE_NS = 45_000_000_000
#: The id of the message which says that stacks cannot be read. It answers no question.
NO_QUESTION = 0


class Pulse:
    """Notes when the training's pulse was late: its thread waited for Python's lock, or for a CPU."""

    def __init__(self, memory: mmap.mmap, state: ThreadState, clock: SampleClock) -> None:
        self._clock = clock
        #: (from, until, whether the watch's thread surely waited for the lock).
        self.late: deque[tuple[int, int, bool]] = deque(maxlen=2000)
        self._memory = memory
        self._state = state
        self._beats = 0  # number of beats that were read
        self._last = 0  # time of the last beat
        self._queued_ns = 0  # how long the watch's thread had waited for a CPU at the last beat

    def look(self, now_ns: int) -> bool:
        """Read the new beats, and return whether the pulse is late now for another reason than a missing CPU."""
        thread, beats = read_beats(self._memory, self._beats)
        if beats:
            queued = self._state.queued_ns(thread)
            for number, beat in beats:
                self._clock.add(number, beat)
                if self._last and number == self._beats and beat - self._last > LATE_NS:
                    late_from = self._last + LATE_NS // 2
                    self.late.append((late_from, beat, queued - self._queued_ns < (beat - late_from) // 2))
                self._beats, self._last = number + 1, beat
            self._queued_ns = queued
        return bool(self._last and now_ns - self._last > LATE_NS) and self._state.letter(thread) != "R"

    def next_look_ns(self, now_ns: int) -> int:
        """Return when to look again: when the pulse would become late, but not before half a tick, nor after a tick, from now."""
        return min(max(self._last + LATE_NS, now_ns + TICK_NS // 2), now_ns + TICK_NS)

    def late_within(self, start_ns: int, end_ns: int) -> list[tuple[int, int, bool]]:
        newest_first = takewhile(lambda late: late[1] > start_ns, reversed(self.late))
        return [(max(start_ns, a), min(end_ns, b), sure) for a, b, sure in newest_first if a < end_ns][::-1]


class Outside:
    def __init__(self, pid: int, py_spy: str, pulse_fd: int) -> None:
        self._pid = pid
        self._py_spy = py_spy
        self._counters = Counters(pid)
        self._clock = SampleClock()
        self._windows = Windows(pid, py_spy, self._clock)
        self._pulse = Pulse(mmap.mmap(pulse_fd, PULSE_BYTES, access=mmap.ACCESS_READ), ThreadState(pid), self._clock)
        self._waiting: list[dict[str, Any]] = []  # questions without an answer
        self._input = b""
        self._dumps: deque[Dump] = deque(maxlen=MAX_DUMPS)
        self._lock = LockReader(pid)
        self._dumping: threading.Thread | None = None
        self._dumps_while_late = 0  # number of dumps since the pulse became late
        self._has_reported_broken = False
        self._credit = float(BURST)  # number of dumps that may be started now; it grows by one in APART_NS
        self._dumped_ns = self._credited_ns = time.perf_counter_ns()

    def run(self) -> None:
        """Read counters and stacks, and answer questions, until the training ends."""
        os.set_blocking(0, False)
        poll = select.poll()
        poll.register(0, select.POLLIN | select.POLLHUP)
        now = due = time.perf_counter_ns()
        while os.getppid() == self._pid:
            for _ in poll.poll(max(0.0, (due - now) / 1e6)):
                if not self._read():
                    return
            now = time.perf_counter_ns()
            self._counters.read(now)
            self._lock.read(now)
            is_late = self._pulse.look(now)
            self._dumps_while_late = self._dumps_while_late if is_late else 0
            if is_late and self._dumps_while_late < MAX_LATE:
                self._dumps_while_late += self._begin_dump(now)
            self._windows.tick(now)
            self._answer(now)
            now = time.perf_counter_ns()
            due = self._pulse.next_look_ns(now)

    def _read(self) -> bool:
        """Read the messages that have arrived; return False at the end of the input."""
        try:
            data = os.read(0, 1 << 20)
        except BlockingIOError:
            return True
        if not data:
            return False
        *lines, self._input = (self._input + data).split(b"\n")
        for line in lines:
            message = json.loads(line)
            if "threads" in message:
                self._counters.watch(message["threads"], message["ours"], message["others"])
            elif "lock" in message:
                self._lock.begin(*message["lock"])
                self._counters.lock = message["lock"][0]
            elif "hurry" in message:
                for waiting in self._waiting:
                    waiting["hurry"] = True
            elif "overdue" not in message:  # "overdue" is sent only so that the counters are read
                message["came_ns"] = time.perf_counter_ns()
                self._waiting.append(message)
        return True

    def _begin_dump(self, now_ns: int) -> bool:
        """Start a dump of all stacks if the limits allow it. Return whether it was started."""
        self._credit = min(float(BURST), self._credit + (now_ns - self._credited_ns) / APART_NS)
        self._credited_ns = now_ns
        is_free = self._dumping is None or not self._dumping.is_alive()
        may_begin = is_free and self._credit >= 1 and now_ns - self._dumped_ns >= DUMPS_APART_NS and not self._windows.broken
        if may_begin:
            self._credit -= 1
            self._dumped_ns = now_ns
            self._dumping = threading.Thread(target=self._dump, daemon=True)
            self._dumping.start()
        return may_begin

    def _dump(self) -> None:
        new = dump(self._pid, self._py_spy, self._clock)
        if new is not None:
            self._dumps.append(new)

    def _answer(self, now_ns: int) -> None:
        if self._windows.broken and not self._has_reported_broken:
            self._has_reported_broken = True
            self._print({"id": NO_QUESTION, "broken": self._windows.broken})
        read_until = self._windows.read_until_ns()
        for question in list(self._waiting):
            until = question["spans"][-1][1] if question["spans"] else 0
            is_old = now_ns - int(question["came_ns"]) > PATIENCE_NS
            if until <= read_until or is_old or self._windows.broken:
                self._waiting.remove(question)
                self._print(self._answer_to(question, now_ns))
            else:
                self._windows.hurry(until, now_ns, "hurry" in question)

    def _answer_to(self, question: dict[str, Any], now_ns: int) -> dict[str, Any]:
        thread, native = int(question["thread"]), int(question["native"])
        spans = [(int(start), int(end)) for start, end in question["spans"]]
        answer: dict[str, Any] = {"id": question["id"], "broken": self._windows.broken}
        if question.get("profile"):
            answer["spans"] = [self._windows.profile(thread, spans)]
            return answer
        answer["usual"] = self._counters.usual(native, now_ns)
        inside = [
            StackSample(at, {owner: tuple(map(tuple, stack)) for owner, stack in stacks}) for at, stacks in question["inside"]
        ]
        answer["spans"] = [self._span(thread, native, start, end, inside) for start, end in spans]
        answer["clocked"] = self._counters.added(native, question["clocked"])
        return answer

    def _span(self, thread: int, native: int, start: int, end: int, inside: list[StackSample]) -> dict[str, Any]:
        dumps = list(self._dumps)
        late = self._pulse.late_within(start, end)
        outside = [*self._windows.samples_between(start, end), *(sample for sample, _ in dumps if start <= sample.at_ns <= end)]
        samples = sorted([*outside, *without_biased(inside, outside, thread, late)], key=lambda sample: sample.at_ns)
        current = [sample._replace(stacks=stacks) for sample, stacks in zip(samples, current_stacks(samples))]
        waits = self._counters.wants_lock(native, start, end)
        # When the thread waited for the lock: at readings of its state, or else while the pulse was late.
        waited = [(at, at) for at, wants_lock in waits or () if wants_lock] or [(since, until) for since, until, _ in late]
        # The thread held Python's lock during a delay of the pulse if all readings in it show the thread as the holder.
        held_by_thread = [(a, b) for a, b, _ in late if {holder for _, holder in self._lock.holders(a, b)} == {thread}]
        holders = self._lock.holders(start, end) or self._lock.holders(start - TICK_NS, end + TICK_NS)
        return {
            **shares(samples, thread, start, end, held_by_thread),
            **self._counters.within(native, start, end),
            "waits_for": self._counters.waits_for(native, start, end),
            "late": late,
            "lock_readings": None if waits is None else len(waits),
            "lock_held_by": [holder for _, holder in holders],
            "holders": [
                [holder, *name_at(dumps, holder, at), _nearest_stack(current, at, holder)]
                for since, until in waited
                for at, holder in self._lock.holders(since, until)
            ],
        }

    def _print(self, answer: dict[str, Any]) -> None:
        data = memoryview(json.dumps(answer).encode() + b"\n")
        while data:
            data = data[os.write(1, data) :]


def name_at(dumps: list[Dump], thread: int, at_ns: int) -> tuple[str, bool]:
    """Return (name of a thread in the nearest dump, or ""; whether that dump is near enough to be sure).

    A later thread may get the id of a thread that has ended.
    """
    near = ((abs(sample.at_ns - at_ns), names[thread]) for sample, names in dumps if thread in names)
    away_ns, name = min((each for each in near if each[0] <= KNOWN_NS), default=(0, ""))
    return name, bool(name) and away_ns <= NEAR_NS


def _nearest_stack(samples: list[StackSample], at_ns: int, thread: int) -> Stack:
    near = [sample for sample in samples if thread in sample.stacks and abs(sample.at_ns - at_ns) <= NEAR_NS]
    return min(near, key=lambda sample: abs(sample.at_ns - at_ns)).stacks[thread] if near else ()


def main() -> None:
    pid, py_spy, pulse = int(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C in a terminal is meant for the training
    if os.getppid() == pid:
        Outside(pid, py_spy, pulse).run()


if __name__ == "__main__":
    main()
