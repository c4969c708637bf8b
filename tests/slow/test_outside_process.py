"""How often the process outside wakes."""

from __future__ import annotations

import mmap
import os
import threading

from tftracer.slow.watch.outside_process import LATE_NS, TICK_NS, Pulse, name_at
from tftracer.slow.watch.stack_samples import StackSample
from tftracer.slow.watch.thread_counters import ThreadState
from tftracer.slow.watch.times_of_samples import PULSE_BYTES, SampleClock, write_beat


def test_it_wakes_ten_times_a_second_at_most_twice_as_often_and_when_the_pulse_is_late() -> None:
    memory = mmap.mmap(-1, PULSE_BYTES)
    pulse = Pulse(memory, ThreadState(os.getpid()), SampleClock())
    ms = 1_000_000
    for number, at in enumerate((50 * ms, 100 * ms)):
        write_beat(memory, threading.get_native_id(), number, at)
    pulse.look(110 * ms)
    assert pulse.next_look_ns(110 * ms) == 100 * ms + LATE_NS  # just when it would be late
    assert pulse.next_look_ns(100 * ms) == 100 * ms + TICK_NS
    assert pulse.next_look_ns(205 * ms) == 205 * ms + TICK_NS // 2


def test_a_thread_has_no_name_that_its_number_had_long_before() -> None:
    second = 1_000_000_000
    dumps = [(StackSample(0, {}), {5: "an ended thread"})]
    assert name_at(dumps, 5, 10 * second) == ("", False)
    assert name_at(dumps, 5, second) == ("an ended thread", False)
    assert name_at([*dumps, (StackSample(10 * second, {}), {5: "ranker"})], 5, 10 * second) == ("ranker", True)
