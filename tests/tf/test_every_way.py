"""Every way to train with tf.function and Keras under ``tftracer run``: each listed, counted, timed, and traced from its page.

``make test-versions`` runs it on other TensorFlows.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import tensorflow as tf
from tf.traced_scripts import RUN, SCRIPTS, Page, start

from tftracer.session.files.saved import SavedSession, open_session
from tftracer.trace.answers import Answers

pytestmark = pytest.mark.tf

#: Run -> (its steps in a round of the script, an op of it).
WAYS = {
    "fit: plain": (4, "MatMul"),
    "evaluate: plain": (3, "MatMul"),
    "predict: plain": (2, "MatMul"),
    "train_on_batch: batchwise": (1, "MatMul"),
    "test_on_batch: batchwise": (1, "MatMul"),
    "predict_on_batch: batchwise": (1, "MatMul"),
    "train_on_batch: eager": (1, "MatMul"),
    "fit: compiled": (4, ""),  # one XLA program
    "fit: eager": (4, "MatMul"),  # run_eagerly
    "fit: several": (2, "MatMul"),  # calls of four steps
    "train_step (8,8) (8,1)": (5, "MatMul"),
    "xla_step (8,8)": (5, ""),
    "distributed_step (8,8)": (5, "MatMul"),
    "replica_step (8,8)": (5, "MatMul"),  # strategy.run from Python
}
#: Older TensorFlows record of a program of XLA's only that it ran.
HAS_THUNKS = tuple(int(part) for part in tf.__version__.split(".")[:2]) >= (2, 18)
MAX_ROUNDS = 200


class Script:
    """every_way.py under ``tftracer run``."""

    def __init__(self, folder: Path) -> None:
        self.process = start(folder, [*RUN, "--output", str(folder / "s.tftrace"), "every_way.py"], SCRIPTS)
        self.page = Page.of(self.process)
        self.rounds = 1
        self._expect("trained")

    def _expect(self, word: str) -> None:
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == f"{word}\n"

    def again(self) -> None:
        assert self.rounds < MAX_ROUNDS, self.page.runs()
        assert self.process.stdin is not None
        self.process.stdin.write("again\n")
        self.process.stdin.flush()
        self._expect("again")
        self.rounds += 1


def trace_all(script: Script) -> None:
    """Ask for a step of every run; the process has one profiler, so they are traced one after the other."""
    while not WAYS.keys() <= script.page.runs().keys():  # they are counted ten times a second
        script.again()
    assert script.page("api/session")["session"]["active"]
    for run in script.page.runs().values():
        script.page(f"api/runs/{run['id']}/trace", {"steps": 1})
    while any(run["pending_traces"] for run in script.page.runs().values()):
        script.again()


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[SavedSession, int]]:
    """(the session, how often the script trained); one process for all that is asked of it."""
    folder = tmp_path_factory.mktemp("ways")
    script = Script(folder)
    trace_all(script)
    _, errors = script.process.communicate()
    assert script.process.returncode == 0, errors
    yield open_session(str(folder / "s.tftrace")), script.rounds


def test_each_is_listed_and_counted(session: tuple[SavedSession, int]) -> None:
    saved, rounds = session
    counted = {run["title"]: run["steps"] for run in saved.runs()}
    assert {title: counted.get(title) for title in WAYS} == {title: steps * rounds for title, (steps, _) in WAYS.items()}


def test_each_says_where_it_comes_from(session: tuple[SavedSession, int]) -> None:
    defined = {run["title"]: run["definition"] for run in session[0].runs()}
    expected = {"fit: plain": "Keras", "fit: several": "Keras, 4 batches a step", "fit: eager": "Keras, run eagerly"}
    assert {title: defined[title] for title in expected} == expected
    assert defined["train_step (8,8) (8,1)"] == "every_way.py:29"


def test_each_is_timed(session: tuple[SavedSession, int]) -> None:
    for run in session[0].runs():
        assert 0 < run["min_s"] <= run["mean_s"] <= run["max_s"] < 600, run["title"]


@pytest.mark.parametrize("title", WAYS)
def test_each_is_traced_with_its_ops_and_nothing_is_reported(session: tuple[SavedSession, int], title: str) -> None:
    saved, _ = session
    run = next(run for run in saved.runs() if run["title"] == title)
    (record,) = [trace for trace in run["traces"] if trace["asked_by"] == "user"]
    trace = Answers(saved.trace_bytes(record["id"]), saved.trace_context(record["id"])).trace
    op = WAYS[title][1]
    if op or HAS_THUNKS:
        assert trace.n > 0
    assert not op or any(name.endswith(op) for name in trace.ops), list(trace.ops)
    # On a busy machine a step may come while the profile before it is collected: it is said, and a later one is traced.
    assert {problem["code"] for problem in saved.session()["problems"]} <= {"missing_traces"}
