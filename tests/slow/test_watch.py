"""The watch over a loop of named steps, without TensorFlow: real slow steps of each kind, and what can go wrong."""

from __future__ import annotations

import ctypes
import gc
import os
import queue
import re
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import psutil
import pytest
from job_page import wait_for

from tftracer.capture.function_runs import FunctionRuns
from tftracer.capture.steps.queue import StepQueue
from tftracer.capture.traces.trace_expected_slow_steps import ExpectedTraces
from tftracer.run_handle import RunHandle
from tftracer.slow.watch.find_slow_turns import SlowTurnFinder
from tftracer.slow.watch.gap_profiles import FIRST_NS, SHORTEST_NS
from tftracer.slow.watch.host_counters import HostCounters
from tftracer.slow.watch.periods_of_run import RunPeriods
from tftracer.slow.watch.py_spy_windows import FIRST_RATE
from tftracer.slow.watch.stack_source import StackSource
from tftracer.slow.watch.watch import NO_ANSWER, SlowWatch
from tftracer.slow.watch_results import GapProfile, GcPause, HostSample, Period, SlowRecord, SlowRecords, Stall

WARM_UP = 25
STALL_S = 0.8
GARBAGE = [(number, [number]) for number in range(400_000)]


class Loop:
    """A training of steps named "train", and the records of the watch over it."""

    def __init__(self) -> None:
        self.queue = StepQueue()
        self.records: list[SlowRecord] = []
        self.watch = SlowWatch(self.queue, 3.0, ExpectedTraces(self.queue.requests, self.queue.count_steps))
        self._functions = FunctionRuns(self.queue)
        self._run = self._functions.named_step("train")
        self.steps = 0

    def step(self, inside: Callable[[], object] = lambda: None) -> int:
        """Returns its number."""
        with self._functions.calls.step(self._run):
            inside()
        self.steps += 1
        return self.steps

    def enqueue(self) -> None:
        """A step of another run, on a thread of its own."""
        with self._functions.calls.step(self._functions.named_step("enqueue")):
            pass

    def warm_up(self, steps: int = WARM_UP) -> None:
        for _ in range(steps):
            self.step()
        self.queue.count_steps()  # as the writer does, ten times a second

    def stall(self, step: int, inside: bool) -> Stall:
        """The stall of this step, as soon as it is reported."""

        def find() -> Stall | None:
            assert "slow_steps" not in self.queue.other_problems, self.queue.other_problems
            self.queue.count_steps()
            self.records += self.queue.slow.take()
            stalls = [record for record in self.records if isinstance(record, Stall)]
            return next((stall for stall in stalls if (stall.step, stall.inside) == (step, inside)), None)

        stall = wait_for(find, lambda: (step, inside, self.records))
        assert isinstance(stall, Stall)
        return stall


@pytest.fixture(params=["outside", "inside"])
def loop(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Loop]:
    """Watched from outside of the process, and from inside, where its memory may not be read."""
    if request.param == "inside":
        monkeypatch.setenv("TFTRACER_OUTSIDE", "off")
    made = Loop()
    made.watch.start()
    if request.param == "outside":
        wait_until_outside_reads(made)
    else:
        wait_for(lambda: "slow_stacks" in made.queue.problems())
    yield made
    made.watch.stop()


def wait_until_outside_reads(loop: Loop) -> None:
    """py-spy needs some time to start."""

    def look() -> object:
        loop.warm_up(40)  # a turn that begins just now
        return loop.stall(loop.step(lambda: time.sleep(0.2)), inside=True).stacks

    wait_for(look)


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
    assert stall.cause.kind == kind, str(stall)
    assert (stall.end_ns - stall.start_ns) * 1e-9 >= STALL_S and stall.thread == "MainThread"
    frame = stall.cause.frame
    if kind == "gc" and frame is None:  # a collection can keep the watch from looking until it is over
        assert stall.gc_s > 0.5 * (stall.end_ns - stall.start_ns) * 1e-9
        return
    assert frame is not None and (frame.function, frame.file) == (function, __file__), stall
    assert stall.stacks[0].frames[0].file != ""


def test_each_kind_is_caught_at_its_first_occurrence_inside_and_between(loop: Loop) -> None:
    loop.warm_up()
    expected = []
    for kind, cause in KINDS:
        expected.append((loop.step(kind), True, kind.__name__, cause))
        loop.warm_up(3)
        kind()
        expected.append((loop.step(), False, kind.__name__, cause))
        loop.warm_up(3)
    unknown = 0
    for step, inside, function, cause in expected:
        stall = loop.stall(step, inside)
        # A busy machine had no CPU for a look, or for the step, and it is said.
        if stall.cause.kind in ("unknown", "machine") or (stall.doubt and stall.cause.frame is None):
            unknown += 1
        else:
            check(stall, function, cause)
    assert unknown < len(expected) / 2
    said = " ".join(loop.queue.problems().values())
    assert "TFTRACER_OUTSIDE" in said if os.environ.get("TFTRACER_OUTSIDE") else not said


def test_regular_stalls_and_what_the_host_did_are_told(loop: Loop) -> None:
    loop.warm_up(39)
    steps = []
    for _ in range(6):
        steps.append(loop.step(collects))
        loop.warm_up(39)
    for step in steps:
        loop.stall(step, inside=True)

    def periods() -> list[Period]:
        loop.records += loop.queue.slow.take()
        return [record for record in loop.records if isinstance(record, Period)]

    wait_for(periods)
    assert {period.steps for period in periods()} == {40} and periods()[-1].occurrences >= 4

    def found_pauses() -> list[GcPause]:
        loop.records += loop.queue.slow.take()
        return [record for record in loop.records if isinstance(record, GcPause)]

    wait_for(found_pauses)
    pauses = found_pauses()
    assert pauses and all(pause.end_ns - pause.start_ns >= 1_000_000 for pause in pauses)

    def host() -> HostSample | None:
        loop.step(lambda: time.sleep(0.01))
        loop.queue.count_steps()
        loop.records += loop.queue.slow.take()
        return next((record for record in loop.records if isinstance(record, HostSample)), None)

    sample = wait_for(host)
    assert sample.change.seconds > 0


def test_a_trace_that_is_expected_is_not_waited_for_once_the_watch_has_ended(loop: Loop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tensorflow", sys)  # there is something to trace with
    loop.warm_up(39)
    for _ in range(6):
        loop.stall(loop.step(sleeps), inside=True)
        loop.warm_up(39)
    wait_for(lambda: loop.queue.requests.slow_path)
    loop.watch.stop()
    assert not loop.queue.requests.slow_path


def test_periods_wait_for_steps_of_which_it_is_not_certain_whether_they_were_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    steps, run, told = SlowTurnFinder(3.0), RunHandle("train", (), (), ""), list[int]()
    periods = RunPeriods(run)
    monkeypatch.setattr(periods, "passed", lambda passed, records: told.append(passed))
    now = 10**9
    for took_ms in (5,) * 100 + (60,) * 7 + (5,):
        run.steps += 1
        steps.step(run, 7, now, now := now + took_ms * 10**6)
    periods.passed_before(steps.undecided(run), SlowRecords())
    periods.passed_before([], SlowRecords())
    assert (run.steps, told) == (108, [105, 108])


def test_what_was_slow_is_reported_with_its_stacks_before_a_session_is_saved(loop: Loop) -> None:
    loop.warm_up()
    step = loop.step(sleeps)
    loop.watch.report_pending(timeout_s=60)
    (stall,) = [record for record in loop.queue.slow.take() if isinstance(record, Stall) and record.step == step]
    assert "did not answer" not in stall.doubt


def test_what_was_slow_is_reported_without_its_stacks_where_these_are_not_read_in_time(
    loop: Loop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A judge missed three slow steps of the last seconds in a saved session."""
    loop.warm_up()
    monkeypatch.setattr(StackSource, "answers", lambda source: [])
    step = loop.step(sleeps)
    assert loop.watch.report_pending(timeout_s=0.2)
    (stall,) = [record for record in loop.queue.slow.take() if isinstance(record, Stall) and record.step == step]
    assert stall.doubt == NO_ANSWER


def test_the_time_between_steps_is_profiled_when_asked(loop: Loop) -> None:
    loop.warm_up()
    loop.queue.slow.profile_requested.set()

    def profile() -> GapProfile | None:
        time.sleep(0.05)  # between the steps of the loop that is profiled
        loop.step(lambda: time.sleep(0.01))
        loop.queue.count_steps()
        loop.records += loop.queue.slow.take()
        return next((record for record in loop.records if isinstance(record, GapProfile)), None)

    found = wait_for(profile)
    assert not loop.queue.slow.profile_requested.is_set()
    assert found.run.title == "train" and found.samples > 4 and found.between_s > found.inside_s > 0
    sampled_s = sum(stack.seconds for stack in found.stacks)  # on a busy machine not all of the time between steps
    assert sampled_s == pytest.approx(found.samples / FIRST_RATE)
    of_loop = [stack.seconds for stack in found.stacks if "wait_for" in [frame.function for frame in stack.frames]]
    assert sum(of_loop) > 0.5 * sampled_s  # the loop also sleeps between two calls of the function
    assert any("profile" in [frame.function for frame in stack.frames] for stack in found.stacks)


def test_an_eager_loop_that_is_always_in_a_step_is_profiled_over_its_steps(loop: Loop) -> None:
    """Python code of the script runs in these steps, so their lines are asked for, though nothing passes between them."""
    loop.warm_up()
    begun_ns = time.perf_counter_ns()

    def has_lasted() -> bool:
        for _ in range(50):
            loop.step(lambda: time.sleep(0.03))
        return loop.queue.slow.run_profiled is not None and time.perf_counter_ns() - begun_ns > 3 * SHORTEST_NS

    wait_for(has_lasted)
    loop.watch.report_pending(timeout_s=60)
    (found,) = [record for record in loop.queue.slow.take() if isinstance(record, GapProfile)]
    assert found.whole_turns and found.inside_s > 4 * found.between_s and found.samples > 0
    assert "has_lasted" in [frame.function for stack in found.stacks for frame in stack.frames]


@pytest.mark.parametrize("sees_all", [False, True])
def test_a_session_s_whole_turns_are_profiled_if_hooks_run_in_its_steps(sees_all: bool) -> None:
    queue = StepQueue()
    queue.sees_all_sessions = sees_all
    watch = SlowWatch(queue, 3.0, ExpectedTraces(queue.requests, queue.count_steps))
    watch.start()
    fetches = {"train": SimpleNamespace(name="train:0")}

    def has_profile() -> bool:
        for _ in range(40):
            start = time.perf_counter_ns()
            queue.under_way[threading.get_ident()] = start
            time.sleep(0.03)
            end = time.perf_counter_ns()
            queue.under_way[threading.get_ident()] = -end
            queue.add((fetches["train"], None, None, start, end, threading.get_ident(), None))
        queue.count_steps()
        return queue.slow.run_profiled is not None

    try:
        if sees_all:  # raw calls of a session: hooks run between them
            assert not any(has_profile() for _ in range(3))
        else:
            wait_for(has_profile)
    finally:
        watch.stop()


def test_a_first_profile_of_the_time_between_steps_ends_with_its_session(loop: Loop) -> None:
    loop.warm_up()
    loop.queue.slow.profile_requested.set()
    begun_ns: list[int] = []

    def has_lasted() -> bool:
        time.sleep(0.05)  # between the steps of the loop that is profiled
        loop.step(lambda: time.sleep(0.01))
        if loop.queue.slow.run_profiled is not None and not begun_ns:
            begun_ns.append(time.perf_counter_ns())
        return bool(begun_ns) and time.perf_counter_ns() - begun_ns[0] > 2 * SHORTEST_NS  # a busy machine misses looks

    wait_for(has_lasted)
    loop.watch.report_pending(timeout_s=60)
    (found,) = [record for record in loop.queue.slow.take() if isinstance(record, GapProfile)]
    assert found.end_ns - found.start_ns < FIRST_NS and found.samples > 0
    assert "has_lasted" in [frame.function for stack in found.stacks for frame in stack.frames]


def test_a_thread_that_ended_leaves_nothing_to_its_successor(loop: Loop) -> None:
    def train() -> None:
        loop.warm_up()

    for _ in range(2):
        thread = threading.Thread(target=train)
        thread.start()
        thread.join()
        loop.queue.count_steps()
        ident = thread.ident
        wait_for(lambda: ident not in loop.queue.under_way)  # noqa: B023


@pytest.mark.parametrize("loop", ["outside"], indirect=True)  # from inside, other threads' stacks are not read
def test_a_thread_that_feeds_the_training_is_idle_where_it_waits_for_work(loop: Loop) -> None:
    wanted: queue.Queue[bool] = queue.Queue()

    def feed() -> None:
        while wanted.get():
            loop.enqueue()

    thread = threading.Thread(target=feed, daemon=True)
    thread.start()
    for _ in range(2 * WARM_UP):
        wanted.put(True)
        loop.step()
    time.sleep(STALL_S)  # the training takes nothing meanwhile
    wanted.put(True)
    loop.step()
    loop.stall(loop.step(sleeps), inside=True)
    wanted.put(False)
    thread.join()
    stalls = [record for record in loop.records if isinstance(record, Stall)]
    assert {stall.run.title for stall in stalls} == {"train"}


def test_a_part_that_fails_is_off_and_says_so(loop: Loop, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("no /proc today")

    monkeypatch.setattr(HostCounters, "read", fail)
    wait_for(lambda: "slow_host" in loop.queue.problems())
    loop.warm_up()
    stall = loop.stall(loop.step(collects), inside=True)
    assert stall.cause.kind == "gc" and stall.host is None
    assert "no /proc today" in loop.queue.problems()["slow_host"]


def test_a_process_outside_that_is_killed_is_replaced_by_stacks_from_inside(monkeypatch: pytest.MonkeyPatch) -> None:
    loop = Loop()
    loop.watch.start()
    try:
        loop.warm_up()
        (outside,) = wait_for(lambda: [child for child in psutil.Process().children() if "outside" in " ".join(child.cmdline())])
        outside.kill()
        wait_for(lambda: "slow_stacks" in loop.queue.problems())

        def found() -> Stall | None:  # the counters of the thread are read from now on
            loop.warm_up()
            stall = loop.stall(loop.step(sleeps), inside=True)
            return stall if stall.cause.kind != "unknown" else None

        check(wait_for(found), "sleeps", "wait")
    finally:
        loop.watch.stop()


TRAINING = """
import sys
sys.path[:0] = sys.argv[1:]
import test_watch
loop = test_watch.Loop()
loop.watch.start()
loop.warm_up()
print("ready", flush=True)
input()
"""


def test_nothing_is_left_of_the_process_outside_when_the_training_is_killed() -> None:
    command = [sys.executable, "-c", TRAINING, str(Path(__file__).parent), *sys.path]
    training = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert training.stdout and training.stdin
    assert training.stdout.readline() == "ready\n"
    children: list[psutil.Process] = []

    def has_begun() -> bool:
        children[:] = psutil.Process(training.pid).children(recursive=True)
        return any("py-spy" in child.name() for child in children)

    wait_for(has_begun)
    training.kill()
    training.wait()
    wait_for(lambda: not any(child.is_running() and child.status() != psutil.STATUS_ZOMBIE for child in children))
    training.stdin.close()
    training.stdout.close()


def runs_a_regular_expression() -> None:
    re.match("(a+)+b", "a" * 25)


def sleeps_in_a_c_library() -> None:
    ctypes.PyDLL(None).usleep(1_500_000)  # without letting the lock go, and without a CPU


@pytest.mark.parametrize("hold", [runs_a_regular_expression, sleeps_in_a_c_library])
def test_a_lock_of_pythons_is_blamed_on_the_thread_that_holds_it(hold: Callable[[], None]) -> None:
    loop = Loop()
    loop.watch.start()
    wait_until_outside_reads(loop)
    try:
        loop.warm_up()
        names: list[str] = []
        while len(names) < 5 and not (names and f"thread serializer, in {hold.__name__}() (test_watch.py:" in names[-1]):
            serializer = threading.Thread(target=hold, name="serializer")
            serializer.start()
            time.sleep(0.01)  # it is let run again when the other thread lets go of the lock
            step = loop.step()
            serializer.join()
            stall = loop.stall(step, inside=False)
            assert stall.cause.kind == "lock", stall
            names.append(stall.cause.name)  # without the thread, where a busy machine did not let its stack be read meanwhile
        assert len(names) < 5 and set(names[:-1]) <= {"another thread"}, names
    finally:
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
from tftracer.session.live import Recorder
from tftracer.capture.traces.trace_expected_slow_steps import ExpectedTraces
from tftracer.capture.function_runs import FunctionRuns

recorder = Recorder(spool_dir=sys.argv[1], slow_factor=3.0).start()
functions = FunctionRuns(recorder.queue)
def step(inside=lambda: None):
    with functions.calls.step(functions.named_step("train")):
        inside()
for _ in range(30):
    step()
recorder.flush()
"""


def run_script(folder: object, text: str) -> subprocess.CompletedProcess[str]:
    script = SCRIPT + textwrap.dedent(text)
    return subprocess.run([sys.executable, "-c", script, str(folder)], capture_output=True, text=True, timeout=300)


def test_an_interpreter_that_ends_while_a_step_is_slow(tmp_path: object) -> None:
    done = run_script(
        tmp_path,
        """
        begin = functions.calls.step(functions.named_step("train"))
        begin.__enter__()
        time.sleep(0.3)
        """,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_forked_child_does_not_watch_for_its_parent(tmp_path: object) -> None:
    done = run_script(
        tmp_path,
        """
        def fork():
            child = os.fork()
            if not child:
                names = [thread.name for thread in threading.enumerate()]
                fine = "tftracer-watch" not in names
                fine = fine and not gc.callbacks
                step(lambda: time.sleep(0.1))
                os._exit(0 if fine else 3)
            assert os.waitpid(child, 0)[1] == 0
        step(fork)
        recorder.close()
        print(recorder.queue.slow_step_watch.slow_turns)
        """,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "deque([], maxlen=1000)\n", "")
