"""Calls as scripts made them with tensorflow-tracer 1.1.0: its classes, their methods, and the names of their arguments."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from recording import RAW

import tftracer
from tftracer import Timeline, TracingServer

#: Every public signature of tensorflow-tracer 1.1.0, with all of its arguments by name; "PATH" stands for a file.
OF_TIMELINE = {
    "visualize": {"output_file": "PATH", "device_pattern": ".*"},
    "step_time": {"device_search_pattern": "CPU"},
    "communication_elapsed_time": {"device_search_pattern": "CPU", "exclude_pattern": "GPU"},
    "communication_time": {"device_search_pattern": "CPU", "exclude_pattern": "GPU"},
    "computation_time": {"device_search_pattern": "CPU", "exclude_pattern": "GPU"},
    "to_pickle": {"pickle_file_name": "PATH"},
}
OF_SERVER: dict[str, dict[str, Any]] = {
    "save_session": {"filename": "PATH"},
    "load_session": {"filename": "PATH", "gziped": False},
    "stop_web_server": {},
    "start_web_server": {},
}


def filled(arguments: Mapping[str, Any], path: Path) -> dict[str, object]:
    return {name: str(path) if value == "PATH" else value for name, value in arguments.items()}


@pytest.mark.parametrize("method", OF_TIMELINE)
def test_methods_of_a_timeline(method: str, tmp_path: Path) -> None:
    timeline = Timeline(run_metadata=RAW, comm_op_name="RecvTensor")
    getattr(timeline, method)(**filled(OF_TIMELINE[method], tmp_path / "file"))


def test_a_timeline_from_a_pickle(tmp_path: Path) -> None:
    old_name: Any = {"pickle_file_name": str(tmp_path / "step.pickle")}
    Timeline(RAW).to_pickle(**old_name)
    again = Timeline.from_pickle(**old_name, comm_op_name="RecvTensor")
    assert again.step_time() == Timeline(RAW).step_time() and again.wall_clock_elapsed == 0.0


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TracingServer]:
    options = {"start_web_server_on_start": True, "server_port": 0, "server_ip": "127.0.0.1", "keep_traces": 5}
    server = TracingServer(**options, spool_dir=tmp_path_factory.mktemp("spool"))  # type: ignore[arg-type]
    yield server
    server.close()


def test_methods_of_a_server(server: TracingServer, tmp_path: Path) -> None:
    for method, arguments in OF_SERVER.items():
        getattr(server, method)(**filled(arguments, tmp_path / "session"))


def test_both_names_of_an_argument_are_one_too_many(server: TracingServer) -> None:
    with pytest.raises(TypeError, match="both 'path' and its old name 'filename'"):
        server.save_session(path="a", filename="b")  # type: ignore[call-arg]


def test_the_names_that_scripts_import() -> None:
    for name in ("Timeline", "TracingServer", "hook_inject", "__version__"):
        assert hasattr(tftracer, name)
