"""The tftracer command, run as people run it: as a process of its own, without TensorFlow."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from job_page import wait_for
from recording import killed_before_analysis, recording, steps

from tftracer import cli, memory_limit, subcommand_parser, viewer
from tftracer.session.files.saved import open_session
from tftracer.storage import tftrace_format
from tftracer.version import __version__

DATA = Path(__file__).parent / "data"
TRACE = DATA / "conv_costgraph_tf2.21_cpu.pb"


def environment(home: Path | None = None) -> dict[str, str]:
    left_out = ("DISPLAY", "WAYLAND_DISPLAY", "TFTRACER_TOKEN", "TFTRACER_SPOOL_DIR", "XDG_CACHE_HOME")
    kept = {name: value for name, value in os.environ.items() if name not in left_out}
    return {**kept, "HOME": str(home), "TMPDIR": str(home)} if home else kept


def tftracer(*arguments: object, home: Path | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tftracer", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment(home))


@contextlib.contextmanager
def viewing(*arguments: object) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The process and its URL; ended by Ctrl-C, as people end it, and it must end well."""
    command = [sys.executable, "-m", "tftracer", *map(str, arguments)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment()) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        match = re.search(r"http://\S+", line)
        if match is None:
            process.kill()
            raise AssertionError(f"no URL in {line!r} {process.communicate()[1]}")
        try:
            yield process, match.group()
        except BaseException:
            process.kill()  # or its end would be waited for
            raise
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
        assert process.returncode == 0, said
        assert "Traceback" not in said


def get(url: str, path: str, token: str) -> bytes:
    request = urllib.request.Request(url.partition("?")[0] + path, headers={"Authorization": f"Bearer {token}"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        return bytes(answer.read())


def analyzed(url: str) -> Any:
    """What the page shows of the session, when all that is in its traces is known."""
    shown = json.loads(get(url, "api/session", "secret"))
    return shown if all(trace["state"] == "ready" for run in shown["runs"] for trace in run["traces"]) else None


def test_a_file_is_opened_shown_and_saved_again(tmp_path: Path) -> None:
    with viewing(TRACE, "--port", 0, "--no-browser", "--token", "secret") as (_, url):
        assert url.endswith("?token=secret")
        shown = wait_for(partial(analyzed, url))
        assert shown["session"]["live"] is False
        (trace,) = shown["runs"][0]["traces"]
        verdict = get(url, f"api/traces/{trace['id']}/verdict", "secret")
        again = tmp_path / "again.tftrace"
        again.write_bytes(get(url, "api/session/file", "secret"))
        request = urllib.request.Request(url.partition("?")[0] + "api/tracing", b'{"all": true}', method="PUT")
        request.add_header("Authorization", "Bearer secret")
        request.add_header("Content-Type", "application/json")
        with pytest.raises(urllib.error.HTTPError, match="409"):
            urllib.request.urlopen(request, timeout=60)
    with viewing(again, "--port", 0, "--token", "secret") as (_, url):
        reopened = json.loads(get(url, "api/session", "secret"))
        assert [trace.pop("stored_bytes") for trace in reopened["runs"][0]["traces"]] < [trace.pop("stored_bytes")]
        assert reopened["runs"] == shown["runs"]
        assert get(url, f"api/traces/{trace['id']}/verdict", "secret") == verdict


def test_a_trace_that_a_killed_job_did_not_sum_up_is_summed_up(tmp_path: Path) -> None:
    with viewing(killed_before_analysis(tmp_path), "--port", 0, "--token", "secret") as (_, url):

        def summed_up() -> Any:
            trace = json.loads(get(url, "api/traces/1", "secret"))
            return trace if trace["headline"] else None

        trace = wait_for(summed_up)
        assert trace["nodes"] > 0 and trace["devices"]


def test_the_demo_shows_a_training_with_slow_steps_and_traces() -> None:
    with viewing("demo", "--port", 0, "--no-browser", "--token", "secret") as (_, url):
        shown = json.loads(get(url, "api/session", "secret"))
        (run,) = shown["runs"]
        assert run["steps"] == 900 and len(run["traces"]) == 4
        assert json.loads(get(url, "api/traces/1/verdict", "secret"))["sentences"]


def test_the_sample_can_be_saved_and_is_small(tmp_path: Path) -> None:
    saved = tmp_path / "training.tftrace"
    assert tftracer("demo", "--save", saved).returncode == 0
    assert saved.stat().st_size < 300_000
    assert "Every 60th step" in (text := tftracer(saved, "--summary").stdout) and "save_checkpoint() (train.py:36)" in text
    failed = tftracer("demo", "--save", tmp_path / "nowhere" / "x")
    assert failed.returncode == 1 and "cannot be written" in failed.stderr


def test_it_needs_no_tensorflow(tmp_path: Path) -> None:
    """Not even where there is one: an import of it would take seconds."""
    (tmp_path / "tensorflow.py").write_text("raise SystemExit('TensorFlow was imported')")
    code = "import sys; sys.path.insert(0, sys.argv.pop(1)); from tftracer.cli import main; sys.exit(main())"
    command = [sys.executable, "-c", code, str(tmp_path), str(TRACE), "--summary"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment())
    assert (done.returncode, done.stderr) == (0, "")


def test_a_port_in_use() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        taken = other.getsockname()[1]
        with viewing(TRACE, "--port", taken) as (_, url):
            assert f":{taken}/" not in url


def test_the_page_can_shut_it_down() -> None:
    with viewing(TRACE, "--port", 0, "--token", "t") as (process, url):
        request = urllib.request.Request(url.partition("?")[0] + "api/shutdown", method="POST")
        request.add_header("Authorization", "Bearer t")
        urllib.request.urlopen(request, timeout=60).close()
        assert process.wait(60) == 0


def test_the_summary() -> None:
    done = tftracer(TRACE, "--summary")
    assert (done.returncode, done.stderr) == (0, "")
    assert "Budget" in done.stdout
    as_json = tftracer(TRACE, "--summary", "--json")
    assert as_json.returncode == 0
    assert json.loads(as_json.stdout)["verdict"][0]["text"]


def test_the_summary_shows_all_runs_and_every_trace_s_headline() -> None:
    """Two runs of 30 steps with two traces each, in the files of two recordings."""
    for version in ("2-first", "2"):
        done = tftracer(DATA / f"versions/{version}-saved.tftrace", "--summary")
        assert done.returncode == 0 and done.stderr == ""
        assert re.search(r"^Run +steps +p50 +p99 +max +traces$", done.stdout, re.MULTILINE)
        times = r" +30 +[\d.]+ [mµ]s +(-|[\d.]+ [mµ]s) +[\d.]+ m?µ?s +2$"
        assert len(re.findall(times, done.stdout, re.MULTILINE)) == 2, done.stdout
        assert "(the first that was slow: schön langsam)" in " ".join(done.stdout.split()) and "Budget" in done.stdout
        as_json = json.loads(tftracer(DATA / f"versions/{version}-saved.tftrace", "--summary", "--json").stdout)
        assert [run["steps"] for run in as_json["runs"]] == [30, 30]
        headlines = [trace["headline"] for run in as_json["runs"] for trace in run["traces"]]
        assert len(headlines) == 4 and all(headline in " ".join(done.stdout.split()) for headline in headlines)


def test_the_summary_of_a_session_in_which_nothing_was_traced(tmp_path: Path) -> None:
    with recording(tmp_path) as recorder:
        steps(recorder, 5)
    done = tftracer(recorder.session()["file"], "--summary")
    assert (done.returncode, done.stderr) == (0, "")
    assert "No step was traced" in done.stdout and re.search(r"train.* 5 +1 ms +1 ms +1 ms +0$", done.stdout, re.MULTILINE)
    as_json = json.loads(tftracer(recorder.session()["file"], "--summary", "--json").stdout)
    assert as_json["trace"] is None and as_json["verdict"] == [] and as_json["runs"][0]["p99_s"] == pytest.approx(0.001, rel=0.03)


def test_the_summary_names_a_damaged_trace(tmp_path: Path) -> None:
    path = tmp_path / "damaged.tftrace"
    session = open_session(DATA / "versions/2-saved.tftrace")
    payload = session.trace_state(session.runs()[0]["traces"][0]["id"]).payload
    data = bytearray((DATA / "versions/2-saved.tftrace").read_bytes())
    data[payload.offset + payload.size // 2] ^= 1
    path.write_bytes(data)
    done = tftracer(path, "--summary")
    assert done.returncode == 0 and "1 trace is damaged" in done.stderr and "cannot be read" in done.stdout


def test_a_summary_into_a_closed_pipe() -> None:
    command = f"{sys.executable} -m tftracer {DATA / 'dense500_tf2.15_cpu.pb'} --summary --json | head -c 1"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, timeout=120, env=environment())
    assert (done.stdout, done.stderr) == ("{", "")


@pytest.mark.parametrize(
    ("name", "content"), [("none.tftrace", None), ("junk.tftrace", b"junk"), ("empty.tftrace", b""), ("folder", b"folder")]
)
def test_what_cannot_be_opened_is_told_in_a_line(tmp_path: Path, name: str, content: bytes | None) -> None:
    path = tmp_path / name
    if content == b"folder":
        path.mkdir()
    elif content is not None:
        path.write_bytes(content)
    done = tftracer(path, "--no-browser")
    assert done.returncode == cli.FAILED
    assert done.stdout == ""
    assert done.stderr.startswith("tftracer: ")
    assert str(path) in done.stderr
    assert "Traceback" not in done.stderr


def test_a_pickle_that_would_run_something(tmp_path: Path) -> None:
    path, ran = tmp_path / "evil.pickle", tmp_path / "ran"
    path.write_bytes(b"cos\nsystem\n(S'touch " + str(ran).encode() + b"'\ntR.")
    assert tftracer(path, "--summary").returncode == cli.FAILED
    assert not ran.exists()


@pytest.mark.parametrize(
    "arguments",
    [[], ["--json", "x"], ["x", "--port", "70000"], ["x", "--port", "x"], ["x", "--token", ""], ["x", "--nope"], ["a", "b"]],
    ids=str,
)
def test_wrong_usage(arguments: list[str]) -> None:
    done = tftracer(*arguments)
    assert done.returncode == subcommand_parser.USAGE
    assert "usage: tftracer" in done.stderr


@pytest.mark.parametrize("address", ["203.0.113.7", "a..b", "nowhere.invalid"])
def test_no_port_at_all(address: str) -> None:
    done = tftracer(TRACE, "--ip", address)
    assert done.returncode == cli.NO_PORT
    assert "server_port" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_token_that_no_header_carries_is_wrong_usage() -> None:
    done = tftracer(TRACE, "--token", "t\u00f6k\u2026")
    assert (done.returncode, "token must be" in done.stderr, "Traceback" in done.stderr) == (subcommand_parser.USAGE, True, False)


def test_a_file_that_was_cut_says_what_is_missing(tmp_path: Path) -> None:
    saved = tmp_path / "session.tftrace"
    with viewing(TRACE, "--port", 0, "--token", "t") as (_, url):
        saved.write_bytes(get(url, "api/session/file", "t"))
    whole = saved.read_bytes()
    saved.write_bytes(whole + whole[len(whole) // 2 : -7])
    done = tftracer(saved, "--summary")
    assert done.returncode == 0
    assert done.stderr.startswith(f"tftracer: {saved}: ")


def test_nothing_to_recover(tmp_path: Path) -> None:
    done = tftracer("--recover", home=tmp_path)
    assert done.returncode == 0
    assert "no sessions of ended jobs" in done.stdout


def test_killed_jobs_are_listed_and_open(tmp_path: Path) -> None:
    code = (
        f"import os, tftracer; server = tftracer.TracingServer(start_web_server_on_start=False)\n"
        f"server.load_session({str(TRACE)!r}); os.kill(os.getpid(), 9)"
    )
    subprocess.run([sys.executable, "-c", code], timeout=120, env=environment(tmp_path), check=False)
    done = tftracer("--recover", home=tmp_path)
    assert done.returncode == 0
    spool = re.search(r"\S+\.tftrace", done.stdout)
    assert spool is not None, done.stdout
    assert tftracer(spool.group(), "--summary").returncode == 0


def test_version_and_help() -> None:
    assert tftracer("--version").stdout == f"tftracer {__version__}\n"
    assert "exit codes" in tftracer("--help").stdout


@pytest.mark.parametrize(
    ("variables", "arguments", "opens"),
    [
        ({"DISPLAY": ":0"}, [], True),
        ({"WAYLAND_DISPLAY": "w"}, [], True),
        ({"DISPLAY": ":0"}, ["--no-browser"], False),
        ({"DISPLAY": ":0", "SSH_CONNECTION": "a b c d"}, [], False),
        ({}, [], sys.platform == "darwin"),
    ],
)
def test_a_browser_only_where_it_is_seen(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], arguments: list[str], opens: bool
) -> None:
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "SSH_CONNECTION"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert viewer.wants_browser(cli.parser().parse_args(["file", *arguments])) is opens


def test_the_browser_is_led_there_by_a_file_that_others_cannot_read(tmp_path: Path) -> None:
    """A command line, and with it the token, would be everybody's to see."""
    browser, said = tmp_path / "browser", tmp_path / "said"
    os.mkfifo(said)
    script = 'file="${1#file://}"; (cat "$file"; echo; stat -c %a "${file%/*}") > ' + str(said)
    browser.write_text(f"#!/bin/sh\n{script}\n")
    browser.chmod(0o755)
    command = [sys.executable, "-m", "tftracer", str(TRACE), "--port", "0", "--token", "secret"]
    variables = {**environment(), "DISPLAY": ":0", "BROWSER": f"{browser} %s"}
    variables.pop("SSH_CONNECTION", None)
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=variables) as process:
        assert process.stdout is not None
        url = re.search(r"http://\S+", process.stdout.readline())
        page, mode = said.read_text().splitlines()
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0
    assert url is not None
    assert url.group() in page
    assert mode == "700"


def bomb(path: Path) -> Path:
    """A session of some kB with a trace of 600 MB."""
    records = [
        tftrace_format.record("run", {"id": 1, "title": "train_op", "fetches": ["train_op"]}),
        tftrace_format.record("trace", {"id": 1, "run_id": 1, "step": 3}, b"\x0a\xff\x01" + bytes(600_000_000)),
    ]
    path.write_bytes(tftrace_format.header() + b"".join(records))
    return path


def test_a_trace_that_needs_more_memory_than_allowed_is_told_with_the_remedy(tmp_path: Path) -> None:
    path, limit = bomb(tmp_path / "bomb.tftrace"), {memory_limit.VARIABLE: "0.5"}
    command = [sys.executable, "-m", "tftracer", str(path), "--summary"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, env={**environment(), **limit})
    assert "Traceback" not in done.stderr
    assert "needs more than 0.5 GB of memory to decode" in done.stdout + done.stderr
    assert "TFTRACER_MEMORY_GB=1" in done.stdout + done.stderr
