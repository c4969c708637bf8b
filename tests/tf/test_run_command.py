"""``tftracer run``: its own options, Python's, what it prints and where, and the page that it keeps."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import textwrap
import urllib.request
from pathlib import Path

import pytest
from tf.traced_scripts import RUN, environment, outcome, run, run_both, runs_of, sessions, start

from tftracer.session.files.saved import open_session
from tftracer.session.summary_of_session import render, summarize

pytestmark = pytest.mark.tf

STEPS = """
import tensorflow as tf
@tf.function
def step(x):
    return x * 2.0
for _ in range(5):
    step(tf.constant(1.0))
"""


def script(folder: Path, text: str, name: str = "train.py") -> str:
    (folder / name).write_text(text, encoding="utf-8")
    return name


def assert_opens(url: str) -> None:
    """The page answers; its URL logs in with a cookie."""
    with urllib.request.build_opener(urllib.request.HTTPCookieProcessor()).open(url) as page:
        assert "tftracer" in page.read().decode()


def test_code_on_the_command_line_that_ends_at_once(tmp_path: Path) -> None:
    code = STEPS + "import os, sys, time\nprint(sys.argv, flush=True)\nos._exit(4)\n"
    traced = run_both(tmp_path, "-c", code, "-c", "--x", cwd=tmp_path)
    assert (traced.code, traced.output) == (4, "['-c', '-c', '--x']\n")


def test_under_pytest_the_url_is_on_stderr_although_every_test_passes(tmp_path: Path) -> None:
    name = script(tmp_path, f"def test_training():\n{textwrap.indent(STEPS, '    ')}", "test_train.py")
    traced = run(tmp_path, "-m", "pytest", "-q", "-p", "no:cacheprovider", name, cwd=tmp_path)
    assert (traced.code, "1 passed" in traced.output) == (0, True), traced
    assert traced.url
    assert "watch and trace" not in traced.output


def test_a_script_of_another_library_is_told_why_nothing_was_recorded(tmp_path: Path) -> None:
    (tmp_path / "jax").mkdir()
    (tmp_path / "jax" / "__init__.py").write_text("")
    traced = run_both(tmp_path, script(tmp_path, "import jax\n"), cwd=tmp_path)
    assert "jax.profiler.start_trace" in traced.errors
    assert "tftracer" not in run_both(tmp_path, script(tmp_path, "import json\n"), cwd=tmp_path).errors


UNATTENDED = {
    "functions": """
@tf.function
def step(x):
    return tf.reduce_sum(tf.matmul(x, x))
x = tf.ones((64, 64))
run = lambda: step(x)
""",
    "sessions": """
tf = tf.compat.v1
tf.disable_eager_execution()
product = tf.reduce_sum(tf.matmul(tf.ones((64, 64)), tf.ones((64, 64))))
session = tf.Session()
run = lambda: session.run(product)
""",
}


@pytest.mark.parametrize("kind", UNATTENDED)
def test_unattended_traces_are_in_the_session(kind: str, tmp_path: Path) -> None:
    """The script goes on until it has them: how soon they come depends on the machine."""
    waiting = """
from tftracer.record_all_sessions import injected_server
for number in range(1_000_000):
    run()
    if number % 100 == 0 and sum(len(run["traces"]) for run in injected_server().recorder.runs()) >= 3:
        break
"""
    name = script(tmp_path, f"import tensorflow as tf\n{UNATTENDED[kind]}{waiting}")
    traced = run(tmp_path, "--port", "0", "--trace", "3", "--from", "50", "--output", "s.tftrace", name)
    assert traced.code == 0 and "were traced" not in traced.errors, traced.errors
    (of_run,) = (each["traces"] for each in open_session(tmp_path / "s.tftrace").runs() if each["traces"])
    assert len(of_run) == 3 and all(trace["asked_by"] == "user" and trace["step"] >= 50 for trace in of_run)


def test_options_of_python_and_a_script_from_stdin(tmp_path: Path) -> None:
    traced = run_both(tmp_path, "-O", "-W", "error", "-", "--", "a", cwd=tmp_path, typed="import sys; print(sys.argv, sys.flags)")
    assert traced.output.startswith("['-', '--', 'a']")
    assert "optimize=1" in traced.output


def test_a_script_that_is_missing(tmp_path: Path) -> None:
    traced = run_both(tmp_path, "nowhere.py", cwd=tmp_path)
    assert traced.code == 2
    assert "can't open file" in traced.errors
    assert "tftracer:" not in traced.errors


def test_wrong_options_are_refused_before_the_script_runs(tmp_path: Path) -> None:
    name = script(tmp_path, "print('it runs')")
    for wrong, words in (
        (["--port", "70000"], "from 0 to 65535"),
        (["--prot", "1"], "unrecognized"),
        (["--keep-traces=0"], "from 1"),
    ):
        refused = run(tmp_path, *wrong, name)
        assert (refused.code, refused.output) == (2, "")
        assert words in refused.errors
    assert "give the script to run" in run(tmp_path).errors


def test_a_script_without_tensorflow_is_left_alone(tmp_path: Path) -> None:
    done = run(tmp_path, script(tmp_path, "import sys\nprint('tftracer.server' in sys.modules)\n"))
    assert done == (0, "False\n", "")


def test_the_session_is_saved_where_it_was_asked_for(tmp_path: Path) -> None:
    name = script(tmp_path, STEPS + "import sys\nsys.exit(7)\n")
    done = run(tmp_path, "--output", "s.tftrace", name)
    assert done.code == 7
    assert f"the session is in {tmp_path / 's.tftrace'} " in done.errors
    assert runs_of(tmp_path / "s.tftrace") == {"step": 5}


def test_each_rank_saves_a_file_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name = script(tmp_path, STEPS)
    monkeypatch.setenv("OMPI_COMM_WORLD_SIZE", "2")
    for rank, saved in (("0", "s.tftrace"), ("1", "s-rank-1.tftrace")):
        monkeypatch.setenv("OMPI_COMM_WORLD_RANK", rank)
        done = run(tmp_path, "--output", "s.tftrace", name)
        assert f"the session is in {tmp_path / saved} " in done.errors
        assert runs_of(tmp_path / saved) == {"step": 5}


def test_sessions_of_old_scripts_and_a_tracer_of_the_scripts_own(tmp_path: Path) -> None:
    text = """
import tftracer
server = tftracer.hook_inject()
import tensorflow.compat.v1 as tf
assert tftracer.hook_inject() is server
tf.disable_eager_execution()
total = tf.reduce_sum(tf.ones((2, 2)), name="total")
with tf.Session() as session:
    for _ in range(4):
        session.run(total)
"""
    done = run(tmp_path, "--output", "s.tftrace", script(tmp_path, text))
    assert done.code == 0, done.errors
    assert runs_of(tmp_path / "s.tftrace") == {"total": 4}
    assert len(sessions(tmp_path)) == 1


def test_what_is_printed_goes_to_stderr_whatever_the_script_logs(tmp_path: Path) -> None:
    text = """
import logging.config, sys
logging.basicConfig(stream=sys.stdout, level=logging.ERROR)
sys.stderr = sys.stdout
import tensorflow as tf
logging.config.dictConfig({"version": 1, "root": {"level": "CRITICAL"}})
print(tf.constant(1).numpy())
"""
    done = run(tmp_path, script(tmp_path, text))
    assert (done.code, done.output) == (0, "1\n")
    assert done.url
    assert "no optimizer's step in eager code has ended: nothing was recorded" in done.errors


def test_the_page_stays_until_ctrl_c_and_the_exit_code_is_the_scripts(tmp_path: Path) -> None:
    job = start(tmp_path, [*RUN[:-2], "--port=0", "--stay", script(tmp_path, STEPS + "import sys\nsys.exit(3)\n")])
    assert job.stderr is not None
    errors = ""
    while "the page stays at" not in errors:
        errors += job.stderr.readline()
    url = errors.split("the page stays at ")[1].split()[0]
    token = url.split("token=")[1]
    request = urllib.request.Request(url.split("?")[0] + "api/session", headers={"Authorization": f"Bearer {token}"})
    with urllib.request.urlopen(request) as answer:
        assert json.load(answer)["session"]["ended_at"]  # no trace is offered that can never come
    assert_opens(url)
    job.send_signal(signal.SIGINT)
    assert outcome(job).code == 3


def test_a_process_that_the_script_starts_has_a_page_from_its_first_step(tmp_path: Path) -> None:
    script(tmp_path, STEPS + "input()\n", "worker.py")
    name = script(tmp_path, "import subprocess, sys\nsys.exit(subprocess.call([sys.executable, 'worker.py']))\n", "start.py")
    job = start(tmp_path, [*RUN, name])
    assert job.stderr is not None
    worker_line = None
    while not worker_line:
        worker_line = re.search(r"^tftracer \(worker\.py, process \d+\): watch .* at (http\S+)$", job.stderr.readline().strip())
    assert_opens(worker_line[1])
    ended = outcome(job, "enough\n")
    assert ended.code == 0, ended.errors
    assert re.search(r"^tftracer:   worker\.py, process \d+: /.*\.tftrace$", ended.errors, re.MULTILINE)
    assert sessions(tmp_path) == [{"step": 5}]


def test_another_sitecustomize_still_runs(tmp_path: Path) -> None:
    script(tmp_path, "print('the site of the user')", "sitecustomize.py")
    name = script(tmp_path, "import sitecustomize; print(sitecustomize.__file__)")
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    done = run(tmp_path, name, PYTHONPATH=path)
    twice = "the site of the user\n" * 2  # of the command, and of the script's process
    assert done.output == f"{twice}{tmp_path / 'sitecustomize.py'}\n", done.errors


def test_a_file_called_run_is_opened_as_a_session(tmp_path: Path) -> None:
    (tmp_path / "run").write_bytes(b"no session")
    command = [sys.executable, "-m", "tftracer", "run", "--summary"]
    done = subprocess.run(command, cwd=tmp_path, env=environment(tmp_path), capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "'run'" in done.stderr


HANGING = """
import threading
import tensorflow as tf
from tftracer.capture.traces import shared_profiles
original = shared_profiles.bindings()
collecting = threading.Event()
class Bindings:
    def __getattr__(self, name):
        return getattr(original, name)
    class ProfilerSession:
        def __init__(self):
            self.real = original.ProfilerSession()
        def start(self, *arguments):
            self.real.start(*arguments)
        def export_to_tb(self):
            collecting.set()
            threading.Event().wait()
shared_profiles.bindings = Bindings
@tf.function
def step(x):
    return x * 2.0
while not collecting.is_set():
    step(tf.constant(1.0))
print("ends", flush=True)
"""


def test_a_profile_whose_collection_never_ends_does_not_hold_the_end_of_the_script(tmp_path: Path) -> None:
    traced = run(tmp_path, "--trace", "1", "--from", "20", script(tmp_path, HANGING), cwd=tmp_path)
    assert (traced.code, traced.output) == (0, "ends\n"), traced
    assert "within 5 s of the end of the script" in traced.errors


def test_the_error_that_ended_a_script_is_told_with_its_session(tmp_path: Path) -> None:
    name = script(tmp_path, STEPS + "raise ValueError('labels out\\nof range')\n")
    traced = run(tmp_path, name, cwd=tmp_path)
    assert traced.code == 1
    (file,) = (tmp_path / "spool").glob("*.tftrace")
    summary = summarize(open_session(file))
    (problem,) = summary["session"]["problems"]
    assert problem["message"] == "The script ended with ValueError: labels out of range"
    assert "\n! The script ended with ValueError: labels out of range\n" in render(summary)
