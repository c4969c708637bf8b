"""The watch over a loop of named steps, without TensorFlow: real stalls of each kind, and what can go wrong."""

from __future__ import annotations

import gc
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator

import numpy as np
import pytest
from job_page import wait_for

from tftracer.capture.function_runs import FunctionRuns
from tftracer.capture.host_signals import HostSignals
from tftracer.capture.stall_watch import StallWatch
from tftracer.capture.step_queue import StepQueue
from tftracer.slow.recorded import GapProfile, GcPause, HostSample, Period, SlowRecord, Stall

WARM_UP = 25
STALL_S = 0.4
GARBAGE = [(number, [number]) for number in range(400_000)]


class Loop:
    """A training of steps named "train", and the records of the watch over it."""

    def __init__(self) -> None:
        self.queue = StepQueue()
        self.records: list[SlowRecord] = []
        self.watch = StallWatch(self.queue, 3.0)
        self._functions = FunctionRuns(self.queue)
        self._run = self._functions.named("train")
        self.steps = 0

    def step(self, inside: Callable[[], object] = lambda: None) -> int:
        """Returns its number."""
        with self._functions.calls.step(self._run):
            inside()
        self.steps += 1
        return self.steps

    def warm_up(self, steps: int = WARM_UP) -> None:
        for _ in range(steps):
            self.step()
        self.queue.settle()  # as the writer does, ten times a second

    def stall(self, step: int, inside: bool) -> Stall:
        """The stall of this step, as soon as it is reported."""

        def find() -> Stall | None:
            self.queue.settle()
            self.records += self.queue.slow.take()
            stalls = [record for record in self.records if isinstance(record, Stall)]
            return next((stall for stall in stalls if (stall.step, stall.inside) == (step, inside)), None)

        stall = wait_for(find, lambda: (step, inside, self.records))
        assert isinstance(stall, Stall)
        return stall


@pytest.fixture
def loop() -> Iterator[Loop]:
    made = Loop()
    made.watch.start()
    yield made
    made.watch.stop()


def sleeps() -> None:
    time.sleep(STALL_S)


def waits_for_a_lock() -> None:
    lock, is_held = threading.Lock(), threading.Event()

    def hold() -> None:
        with lock:
            is_held.set()
            time.sleep(STALL_S)

    threading.Thread(target=hold).start()
    is_held.wait()
    with lock:
        pass


def sorts() -> None:
    end, values = time.thread_time() + STALL_S, np.random.default_rng(0).random(60_000).tolist()
    while time.thread_time() < end:  # of CPU: on a busy machine it takes longer
        sorted(values)


def uses_numpy() -> None:
    end, values = time.thread_time() + STALL_S, np.random.default_rng(0).random((500, 500))
    while time.thread_time() < end:  # of CPU: on a busy machine it takes longer
        np.sort(values, axis=1)


def collects() -> None:
    end = time.thread_time() + STALL_S
    while time.thread_time() < end:  # of CPU: on a busy machine it takes longer
        gc.collect()


KINDS: list[tuple[Callable[[], None], str]] = [
    (sleeps, "wait"),
    (waits_for_a_lock, "wait"),
    (sorts, "python"),
    (uses_numpy, "python"),
    (collects, "gc"),
]


def check(stall: Stall, function: str, kind: str) -> None:
    assert stall.cause.kind == kind, stall
    assert (stall.end_ns - stall.start_ns) * 1e-9 >= STALL_S and stall.thread == "MainThread"
    frame = stall.cause.frame
    if kind == "gc" and frame is None:  # a collection can keep the watch from looking until it is over
        assert stall.gc_s > 0.5 * (stall.end_ns - stall.start_ns) * 1e-9
        return
    assert frame is not None and (frame.function, frame.file) == (function, __file__), stall
    assert stall.stacks[0].frames[0].file != "" and stall.sampled_s > 0


def test_each_kind_is_caught_at_its_first_occurrence_inside_and_between(loop: Loop) -> None:
    loop.warm_up()
    expected = []
    for kind, cause in KINDS:
        expected.append((loop.step(kind), True, kind.__name__, cause))
        loop.warm_up(3)
        kind()
        expected.append((loop.step(), False, kind.__name__, cause))
        loop.warm_up(3)
    for step, inside, function, cause in expected:
        check(loop.stall(step, inside), function, cause)
    assert not loop.queue.problems()


def test_regular_stalls_and_what_the_host_did_are_told(loop: Loop) -> None:
    loop.warm_up(39)
    steps = []
    for _ in range(3):
        steps.append(loop.step(collects))
        loop.warm_up(39)
    for step in steps:
        loop.stall(step, inside=True)

    def periods() -> list[Period]:
        loop.records += loop.queue.slow.take()
        return [record for record in loop.records if isinstance(record, Period)]

    wait_for(periods)
    assert [(period.steps, period.occurrences, period.next_step) for period in periods()] == [(40, 3, 160)]

    def found_pauses() -> list[GcPause]:
        loop.records += loop.queue.slow.take()
        return [record for record in loop.records if isinstance(record, GcPause)]

    wait_for(lambda: any(pause.inside for pause in found_pauses()))
    pauses = found_pauses()
    assert pauses and all(pause.end_ns - pause.start_ns >= 1_000_000 for pause in pauses)
    assert any(pause.inside and pause.thread == "MainThread" for pause in pauses)

    def host() -> HostSample | None:
        loop.step(lambda: time.sleep(0.01))
        loop.queue.settle()
        loop.records += loop.queue.slow.take()
        return next((record for record in loop.records if isinstance(record, HostSample)), None)

    sample = wait_for(host)
    assert sample.change.seconds > 0 and sample.gc_s >= 0


def test_a_trace_that_is_expected_is_not_waited_for_once_the_watch_has_ended(loop: Loop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tensorflow", sys)  # there is something to trace with
    loop.warm_up(39)
    for _ in range(3):
        loop.stall(loop.step(sleeps), inside=True)
        loop.warm_up(39)
    wait_for(lambda: loop.queue.requests.slow_path)
    loop.watch.stop()
    assert not loop.queue.requests.slow_path


def test_the_switch_interval_is_the_scripts_after_a_stall(loop: Loop) -> None:
    before = sys.getswitchinterval()
    loop.warm_up()
    seen = []

    def inside() -> None:
        wait_for(lambda: seen.append(sys.getswitchinterval()) or sys.getswitchinterval() < before)

    loop.stall(loop.step(inside), inside=True)
    wait_for(lambda: sys.getswitchinterval() == pytest.approx(before))


def test_the_time_between_steps_is_sampled_when_asked(loop: Loop) -> None:
    loop.warm_up()
    loop.queue.settle()
    loop.queue.slow.profile_requested.set()

    wait_for(lambda: loop.queue.slow.run_profiled)  # it has begun, in the time before the first of these
    for _ in range(6):
        sleeps()
        loop.step(lambda: time.sleep(0.02))
    loop.watch.stop()  # it hands over what it has
    assert not loop.queue.slow.profile_requested.is_set()
    (profile,) = [record for record in loop.queue.slow.take() if isinstance(record, GapProfile)]
    assert profile.asked_by_user and profile.steps >= 5 and profile.between_s > profile.inside_s > 0
    assert profile.run.title == "train" and profile.samples > 10
    stack = profile.stacks[0]
    assert [frame.function for frame in stack.frames].count("sleeps") == 1
    assert sum(stack.seconds for stack in profile.stacks) == pytest.approx(profile.between_s - profile.gc_s)
    assert stack.seconds > 0.5 * profile.between_s


def test_steps_that_ended_before_the_sampling_began_are_no_part_of_it(loop: Loop) -> None:
    loop.warm_up()
    for _ in range(20):  # nobody counts these before it begins
        time.sleep(0.01)
        loop.step()
    loop.queue.slow.profile_requested.set()
    wait_for(lambda: loop.queue.slow.run_profiled)
    for _ in range(3):
        gc.collect()
        loop.step()
    loop.watch.stop()
    (profile,) = [record for record in loop.queue.slow.take() if isinstance(record, GapProfile)]
    assert profile.steps == 3 and 0 < profile.gc_s < profile.between_s


def test_a_thread_that_ended_leaves_nothing_to_its_successor(loop: Loop) -> None:
    def train() -> None:
        loop.warm_up()

    for _ in range(2):
        thread = threading.Thread(target=train)
        thread.start()
        thread.join()
        loop.queue.settle()
        wait_for(lambda ident=thread.ident: ident not in loop.queue.under_way)


def test_a_part_that_fails_is_off_and_says_so(loop: Loop, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("no /proc today")

    monkeypatch.setattr(HostSignals, "read", fail)
    wait_for(lambda: "slow_host" in loop.queue.problems())
    loop.warm_up()
    stall = loop.stall(loop.step(collects), inside=True)
    assert stall.cause.kind == "gc" and stall.host is None
    assert "no /proc today" in loop.queue.problems()["slow_host"]


def test_a_python_that_has_no_stacks_has_times_still(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(sys, "_current_frames")
    loop = Loop()
    loop.watch.start()
    loop.warm_up()
    stall = loop.stall(loop.step(sleeps), inside=True)
    assert (stall.cause.kind, stall.stacks, stall.sampled_s) == ("unknown", (), 0)
    assert "_current_frames" in loop.queue.problems()["stacks"]
    loop.watch.stop()


def test_a_step_in_a_generator_that_is_left_is_no_trouble(loop: Loop) -> None:
    def batches() -> Iterator[int]:
        for number in range(3):
            loop.step()
            yield number

    loop.warm_up()
    suspended = batches()
    next(suspended)
    sleeps()
    next(suspended)
    stall = loop.stall(loop.steps, inside=False)
    assert stall.cause.frame is not None and stall.cause.frame.function == "sleeps"


SCRIPT = """
import gc, os, sys, threading, time
from tftracer.recorder import Recorder
from tftracer.capture.function_runs import FunctionRuns

recorder = Recorder(spool_dir=sys.argv[1], slow_factor=3.0).start()
functions = FunctionRuns(recorder.queue)
def step(inside=lambda: None):
    with functions.calls.step(functions.named("train")):
        inside()
for _ in range(30):
    step()
recorder.flush()
def until_sampled():
    while sys.getswitchinterval() > 0.001:
        time.sleep(0.001)
"""


def run_script(folder: object, text: str) -> subprocess.CompletedProcess[str]:
    script = SCRIPT + textwrap.dedent(text)
    return subprocess.run([sys.executable, "-c", script, str(folder)], capture_output=True, text=True, timeout=300)


def test_an_interpreter_that_ends_while_stacks_are_sampled(tmp_path: object) -> None:
    done = run_script(
        tmp_path,
        """
        begin = functions.calls.step(functions.named("train"))
        begin.__enter__()
        until_sampled()
        """,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_forked_child_does_not_sample_for_its_parent(tmp_path: object) -> None:
    done = run_script(
        tmp_path,
        """
        def fork():
            until_sampled()
            child = os.fork()
            if not child:
                names = [thread.name for thread in threading.enumerate()]
                fine = sys.getswitchinterval() > 0.001 and "tftracer-watch" not in names
                fine = fine and not any("gc_pauses" in str(getattr(back, "__func__", back).__code__) for back in gc.callbacks)
                step(lambda: time.sleep(0.1))
                os._exit(0 if fine else 3)
            assert os.waitpid(child, 0)[1] == 0
        step(fork)
        recorder.close()
        stalls = [record for record in recorder.queue.slow.take() if type(record).__name__ == "Stall"]
        print(sys.getswitchinterval() > 0.001, recorder.queue.slow_steps.found)
        """,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "True deque([], maxlen=1000)\n", "")
