"""TracingServer without TensorFlow: what it serves, what it survives, and what is plain misuse."""

from __future__ import annotations

import gc
import logging
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import types
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
from job_page import wait_for
from web_client import Client, a_path_of

import tftracer
from tftracer import TracingServer
from tftracer.errors import MissingTensorFlowError, UnknownError
from tftracer.session.ctrl_c_at_end import WAITS
from tftracer.session.files.saved import open_session

TESTS = Path(__file__).parent


@pytest.fixture
def made(tmp_path: Path) -> Iterator[Any]:
    """Makes servers that spool to a folder of their own and end with the test."""
    servers: list[TracingServer] = []

    def make(**options: Any) -> TracingServer:
        server = TracingServer(**{"server_port": 0, "spool_dir": tmp_path / "spool", **options})
        servers.append(server)
        return server

    yield make
    for server in servers:
        server.close()


def client_of(server: TracingServer) -> Client:
    return Client(server.web)


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]


def test_what_a_notebook_saves_holds_no_token(
    made: Any, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    shell = types.SimpleNamespace(kernel=object())
    monkeypatch.setitem(sys.modules, "IPython", types.SimpleNamespace(get_ipython=lambda: shell))
    server = made()
    [text] = warnings(caplog)
    assert server.token not in text and "once" in text
    url = re.findall(r"training at http://[^/]+(/\?token=\S+)", text)[0]
    assert client_of(server).get(url, Authorization=None).status == 302
    assert client_of(server).get(url, Authorization=None).status == 401


def test_the_url_is_logged_once(made: Any, caplog: pytest.LogCaptureFixture) -> None:
    server = made()
    assert warnings(caplog) == [f"tftracer: watch and trace this training at {server.url}"]
    assert server.url.endswith(f"/?token={server.token}")
    server.stop_web_server()
    assert server.url == ""
    server.start_web_server()
    server.start_web_server()
    assert len(warnings(caplog)) == 1
    assert client_of(server).get("/api/session").json["session"]["tftracer"] == tftracer.__version__


def test_no_page_until_it_is_asked_for(made: Any, caplog: pytest.LogCaptureFixture) -> None:
    server = made(start_web_server_on_start=False)
    assert server.url == ""
    assert not warnings(caplog)
    server.stop_web_server()
    server.join()
    server.start_web_server()
    assert server.url


def test_a_port_in_use_is_said_loudly(made: Any, caplog: pytest.LogCaptureFixture) -> None:
    first = made()
    port = first.web.port
    if port > 65_000:
        pytest.skip("no room above this port")
    second = made(server_port=port)
    assert f"PORT {port} IS IN USE" in caplog.text
    assert client_of(second).get("/api/session").status == 200


def test_without_any_port_training_goes_on(made: Any, caplog: pytest.LogCaptureFixture) -> None:
    server = made(server_ip="203.0.113.7", server_port=9999)
    assert server.url == ""
    assert "training goes on" in caplog.text
    (problem,) = [p for p in server.recorder.session()["problems"] if p["code"] == "no_page"]
    assert "server_port" in problem["message"]
    server.join()
    server.stop_web_server()


def test_a_bad_certificate_serves_nothing(made: Any, tmp_path: Path) -> None:
    server = made(certfile=tmp_path / "none.pem")
    assert server.url == ""
    assert [p["code"] for p in server.recorder.session()["problems"]] == ["no_page"]


def test_a_problem_that_is_over_is_not_shown_any_more(made: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    server = made(start_web_server_on_start=False)
    real = server.web.start

    def fail() -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(server.web, "start", fail)
    server.start_web_server()
    assert [p["code"] for p in server.recorder.session()["problems"]] == ["no_page"]
    monkeypatch.setattr(server.web, "start", real)
    server.start_web_server()
    assert server.recorder.session()["problems"] == []


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"server_port": "9999"}, TypeError),
        ({"server_port": True}, TypeError),
        ({"server_port": 70_000}, ValueError),
        ({"server_ip": None}, TypeError),
        ({"keep_traces": 0}, ValueError),
        ({"keep_traces": 2.5}, TypeError),
        ({"token": ""}, ValueError),
        ({"token": 5}, TypeError),
        ({"communication_ops": "("}, ValueError),
        ({"base_url": 3}, TypeError),
        ({"spool_dir": 3}, TypeError),
        ({"certfile": 3}, TypeError),
        ({"trace_slow": "much"}, TypeError),
        ({"trace_slow": 0.5}, ValueError),
    ],
    ids=str,
)
def test_misuse_raises(made: Any, options: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        made(**options)


@pytest.mark.parametrize(("trace_slow", "threads"), [(True, 1), (5, 1), (False, 0)])
def test_slow_steps_are_watched_unless_told_otherwise(made: Any, trace_slow: bool | float, threads: int) -> None:
    before = threading.enumerate()
    made(trace_slow=trace_slow)
    begun = [thread.name for thread in threading.enumerate() if thread not in before]
    assert begun.count("tftracer-watch") == threads


def test_the_names_of_the_original_are_there(made: Any) -> None:
    """Keyword arguments and methods of tensorflow-tracer 1.1.0."""
    server = made(server_port=0, server_ip="127.0.0.1", keep_traces=3, start_web_server_on_start=True, is_horovod=True)
    for name in ("hook", "start_web_server", "stop_web_server", "join", "save_session", "load_session"):
        assert hasattr(TracingServer, name)
    assert server.url


def test_unknown_arguments_are_ignored_with_a_warning(made: Any) -> None:
    """tensorflow-tracer took any keyword argument, and scripts of old pass some."""
    with pytest.warns(UserWarning, match="TracingServer ignores arguments that it does not know: logdir, verbose") as caught:
        server = made(start_web_server_on_start=False, verbose=True, logdir="/tmp")
    assert Path(caught[0].filename) != Path(tftracer.__file__).with_name("server.py")
    assert server.url == ""


def test_numpys_integers_are_whole_numbers(made: Any) -> None:
    server = made(server_port=np.int64(0), keep_traces=np.int32(3), start_web_server_on_start=False)
    server.trace_next(steps=np.uint8(2))


def refuse_threads(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """No thread of this name can be started, as on a machine that has no more of them."""
    start = threading.Thread.start

    def limited(thread: threading.Thread) -> None:
        if thread.name.startswith(name):
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", limited)


@pytest.mark.parametrize("name", ["tftracer-web", "tftracer"])
def test_it_ends_where_threads_could_not_be_started(name: str, made: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    refuse_threads(monkeypatch, name)
    server = made()
    assert server.url == "" and "no_page" in [p["code"] for p in server.recorder.session()["problems"]]
    server.join()
    server.stop_web_server()
    server.close()
    assert server.recorder.session()["ended_at"] is None or name == "tftracer-web"


def test_it_ends_where_its_port_was_refused(made: Any) -> None:
    server = made(server_ip="203.0.113.1")
    assert server.url == ""
    server.join()
    server.stop_web_server()
    server.close()


def test_a_part_that_does_not_end_keeps_no_other_from_its_end(made: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    server = made()

    def fail() -> None:
        raise RuntimeError("cannot end")

    monkeypatch.setattr(server.job, "stop", fail)
    monkeypatch.setattr(server.web, "stop", fail)
    server.close()
    assert server.recorder.session()["ended_at"] is not None
    monkeypatch.undo()
    server.stop_web_server()


def test_without_tensorflow_only_the_hook_is_missing(made: Any) -> None:
    pytest.importorskip("tornado")
    try:
        import tensorflow  # noqa: F401
    except ImportError:
        with pytest.raises(MissingTensorFlowError, match="TensorFlow"):
            _ = made().hook
    else:
        assert made().hook is not None


def test_saved_and_loaded(made: Any, tmp_path: Path) -> None:
    server = made(start_web_server_on_start=False)
    loaded = server.load_session(TESTS / "data/dense500_tf2.15_cpu.pb", gziped=False)
    assert (loaded["runs"], loaded["traces"]) == (1, 1)
    path = tmp_path / "session.tftrace"
    server.save_session(path)
    assert made(start_web_server_on_start=False).load_session(str(path))["traces"] == 1
    server.save_session(path)  # a script that is run twice


def test_a_loaded_trace_is_served(made: Any) -> None:
    server = made()
    server.load_session(TESTS / "data/conv_costgraph_tf2.21_cpu.pb")
    client = client_of(server)
    (run,) = client.get("/api/session").json["runs"]
    assert client.get(f"/api/traces/{run['traces'][0]['id']}/verdict").json["sentences"]
    answer = client("POST", f"/api/runs/{run['id']}/trace", {"steps": 1})
    assert (answer.status, answer.code) == (409, "unsupported")


def test_tracing_a_run_that_is_not_there(made: Any) -> None:
    server = made(start_web_server_on_start=False)
    with pytest.raises(UnknownError):
        server.trace_next(run=7)
    with pytest.raises(UnknownError, match="train_op"):
        server.trace_next(run="train_op")
    for steps in (0, 10_001):
        with pytest.raises(ValueError, match="steps"):
            server.trace_next(steps=steps)
    server.trace_next(steps=2)


def test_it_is_let_go_when_nobody_holds_it(tmp_path: Path) -> None:
    server = TracingServer(server_port=0, spool_dir=tmp_path, start_web_server_on_start=False)
    reference = weakref.ref(server)
    server.close()
    del server
    gc.collect()
    assert reference() is None


def test_the_script_ends_though_the_page_is_open(tmp_path: Path) -> None:
    """And says nothing but the URL."""
    code = f"import tftracer; server = tftracer.TracingServer(server_port=0, spool_dir={str(tmp_path)!r})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0
    assert done.stderr.count("\n") == 1
    assert "http://127.0.0.1:" in done.stderr


def test_neither_a_save_nor_the_end_of_a_script_waits_for_a_stopped_helper(tmp_path: Path) -> None:
    """Its processes (the helper, the reader of stacks) as a debugger, a full machine or Ctrl-Z leaves them."""
    code = (
        f"import sys, tftracer; server = tftracer.TracingServer(server_port=0, spool_dir={str(tmp_path / 'spool')!r})\n"
        f"trace = {str(TESTS / 'data/dense500_tf2.15_cpu.pb')!r}; server.trace_next(); server.load_session(trace)\n"
        "sys.stdin.readline(); server.load_session(trace)\n"
        f"server.save_session({str(tmp_path / 'saved.tftrace')!r}); print('saved', flush=True)"
    )
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", code], stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True) as script:
        modules = ["tftracer.engine.helper_main", "tftracer.slow.watch.outside_process"]

        def helpers() -> list[psutil.Process]:
            return [each for each in psutil.Process(script.pid).children() if set(modules) & set(each.cmdline())]

        processes = wait_for(lambda: len(helpers()) == len(modules) and helpers())
        for process in processes:
            process.suspend()
        assert script.communicate("go on\n", timeout=45)[0] == "saved\n"
        assert [each for each in processes if each.is_running() and each.status() != psutil.STATUS_ZOMBIE] == []
    (spool,) = (tmp_path / "spool").glob("*.tftrace")
    for path in (spool, tmp_path / "saved.tftrace"):
        session = open_session(path)
        traces = [trace["id"] for run in session.runs() for trace in run["traces"]]
        assert [session.trace_bytes(trace) for trace in traces] == [(TESTS / "data/dense500_tf2.15_cpu.pb").read_bytes()] * 2


@pytest.mark.parametrize("presses", [1, 2])
def test_ctrl_c_at_the_end_of_a_script_waits_for_the_session_once(tmp_path: Path, presses: int) -> None:
    code = (  # it polls: Python does not see a signal that comes just before a blocking read begins
        "import atexit, select, sys, tftracer; atexit.register(lambda: print(server.recorder.closed))\n"
        f"server = tftracer.TracingServer(server_port=0, spool_dir={str(tmp_path)!r}); stop = server.web.stop\n"
        "def ending():\n stop(); print('ending', flush=True)\n while not select.select([sys.stdin], [], [], 0.02)[0]: pass\n"
        "server.web.stop = ending"
    )
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", code], stdin=pipe, stdout=pipe, stderr=pipe, text=True) as script:
        assert script.stdout and script.stderr
        assert script.stdout.readline() == "ending\n"
        assert "http://" in script.stderr.readline()
        script.send_signal(signal.SIGINT)
        assert script.stderr.readline() == WAITS + "\n"
        if presses == 2:
            script.send_signal(signal.SIGINT)
            assert script.wait(60) == 0
        assert script.communicate("go on\n" if presses == 1 else None, timeout=60) == (f"{presses == 1}\n", "")
        assert script.returncode == 0


def test_join_keeps_the_script_until_the_page_shuts_it_down(tmp_path: Path) -> None:
    code = (
        f"import tftracer; server = tftracer.TracingServer(server_port=0, spool_dir={str(tmp_path)!r}, token='t')\n"
        "print(server.web.port, flush=True); server.join(); print('ended', flush=True)"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as script:
        assert script.stdout is not None
        port = int(script.stdout.readline())
        with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
            connection.sendall(b"POST /api/shutdown HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer t\r\n\r\n")
            assert connection.recv(100).startswith(b"HTTP/1.1 200")
        assert script.stdout.readline() == "ended\n"
        assert script.wait(60) == 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_child_does_not_keep_the_port(tmp_path: Path) -> None:
    """A data loader's process that outlives its parent would."""
    code = (
        f"import os, socket, sys, tftracer; server = tftracer.TracingServer(server_port=0, spool_dir={str(tmp_path)!r})\n"
        "port = server.web.port; (end, ended), (ready, is_ready) = os.pipe(), os.pipe(); child = os.fork()\n"
        "if not child: os.close(ended); assert server.url == ''; os.write(is_ready, b'1'); os.read(end, 1); os._exit(0)\n"
        "os.read(ready, 1); server.stop_web_server()\n"
        "try: socket.create_connection(('127.0.0.1', port)); refused = False\n"
        "except ConnectionRefusedError: refused = True\n"
        "os.close(ended); print(refused, os.waitpid(child, 0)[1])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.stdout == "True 0\n", done.stderr


def test_no_stranger_comes_in_by_the_jobs_routes(made: Any) -> None:
    """The routes that a job's page adds, walked as test_web_security.py walks the others."""
    server = made()
    client = client_of(server)
    assert server.job.pages.routes
    for pattern, _, _ in server.job.pages.routes:
        path = a_path_of(pattern)
        upgrade = {"Upgrade": "websocket", "Connection": "Upgrade"} if path.endswith(("/live", "/agents")) else {}
        for method in ("GET", "POST", "PUT", "DELETE"):
            strangers: list[dict[str, str | None]] = [
                {"Authorization": None},
                {"Authorization": "Bearer wrong"},
                {"Origin": "http://evil.example"},
                {"Host": "evil.example"},
            ]
            for headers in strangers:
                assert client(method, path, **{**upgrade, **headers}).status in (401, 403), (method, path, headers)
