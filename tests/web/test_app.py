"""The HTTP API as docs/http-api.rst says it, on a real socket: what answers, and with which error what does not."""

from __future__ import annotations

import asyncio
import itertools
import json
import socket
import threading
from typing import Any

import msgpack
import pytest
from fake_source import FakeSource, a_run, a_session
from web_client import Client, serving

from tftracer.contract import session as messages
from tftracer.errors import PortError
from tftracer.web import app
from tftracer.web.app import Options, WebServer, split_base_url
from tftracer.web.ports import bind

pytestmark = pytest.mark.usefixtures("no_stray_logs")


def test_the_session(client: Client) -> None:
    answer = client.get("/api/session")
    assert answer.status == 200
    assert answer.headers["Content-Type"] == "application/json; charset=utf-8"
    assert set(answer.json) == {"session", "runs"}
    assert answer.json["session"] == a_session()
    assert set(answer.json["runs"][0]) == set(messages.Run.__annotations__) == set(a_run(1, []))


def test_step_times_are_msgpack(client: Client) -> None:
    answer = client.get("/api/runs/1/steps")
    assert answer.headers["Content-Type"] == "application/msgpack"
    assert set(msgpack.unpackb(answer.body)) == set(messages.StepTimes.__annotations__)


def test_tracing_is_asked_for_and_taken_back(client: Client, source: FakeSource) -> None:
    assert client("POST", "/api/runs/1/trace", {"steps": 3}).json == {"ok": True}
    assert client("DELETE", "/api/runs/1/trace").json == {"ok": True}
    assert client("PUT", "/api/tracing", {"all": True}).json == {"ok": True}
    assert client("PUT", "/api/tracing", {"all": False}).json == {"ok": True}
    assert source.asked == [("trace", (1, 3)), ("trace", (1, 0)), ("all", True), ("all", False)]


def test_bookmarks_are_replaced_and_checked(client: Client) -> None:
    path, good = (
        "/api/traces/1/bookmarks",
        [{"name": "a \u2603", "start_ns": 1, "end_ns": None}, {"name": "b", "start_ns": 0, "end_ns": 5.5}],
    )
    assert client("PUT", path, {"bookmarks": good}).json["bookmarks"] == good
    wrong: list[Any] = [
        None,
        {},
        [1],
        [{"name": "", "start_ns": 1, "end_ns": None}],
        [{"name": "x" * 101, "start_ns": 1, "end_ns": None}],
        [{"name": "x", "start_ns": -1, "end_ns": None}],
        [{"name": "x", "start_ns": 1e300, "end_ns": None}],
        [{"name": "x", "start_ns": 5, "end_ns": 5}],
        [{"name": "x", "start_ns": "5", "end_ns": None}],
        [{"name": "x", "start_ns": 5, "end_ns": None, "more": 1}],
        good * 51,
    ]
    for bookmarks in wrong:
        assert client("PUT", path, {"bookmarks": bookmarks}).status == 400, bookmarks
    assert client.get("/api/traces/1").json["bookmarks"] == good


def test_a_note(client: Client) -> None:
    assert client("PUT", "/api/traces/1/note", {"note": "slow \u2603"}).json["note"] == "slow \u2603"
    assert client.get("/api/traces/1").json["note"] == "slow \u2603"


def test_a_traces_record(client: Client) -> None:
    assert set(client.get("/api/traces/1").json) == set(messages.TraceRecord.__annotations__)


UNKNOWN = [
    ("GET", "/api/runs/2/steps", "unknown"),
    ("POST", "/api/runs/2/trace", "unknown"),
    ("DELETE", "/api/runs/2/trace", "unknown"),
    ("GET", "/api/runs/x/steps", "unknown"),
    ("GET", "/api/runs/-1/steps", "unknown"),
    ("GET", "/api/traces/2", "unknown"),
    ("GET", "/api/traces/2/timeline", "unknown"),
    ("GET", "/api/traces/2/verdict", "unknown"),
    ("GET", "/api/traces/2/file", "unknown"),
    ("GET", f"/api/traces/{'9' * 5000}", "unknown"),
    ("GET", "/api/traces/%D9%A3", "unknown"),
    ("PUT", "/api/traces/2/note", "unknown"),
    ("GET", "/api/traces/1/nodes/99999999", "unknown"),
    ("GET", "/api/traces/1/nodes/x", "unknown"),
    ("GET", "/api/traces/1/nope", "unknown_route"),
    ("GET", "/api/", "unknown_route"),
    ("GET", "/api", "unknown_route"),
    ("POST", "/api/nope", "unknown_route"),
    ("GET", "/assets/nope.js", "unknown_route"),
    ("GET", "/../../etc/passwd.txt", "unknown_route"),
    ("GET", "/%2e%2e/%2e%2e/version.py", "unknown_route"),
    ("GET", "/assets/%00.js", "unknown_route"),
]


@pytest.mark.parametrize(("method", "path", "code"), UNKNOWN)
def test_what_does_not_exist_is_404(client: Client, method: str, path: str, code: str) -> None:
    body: Any = {"PUT": {"note": ""}, "POST": {"steps": 1}}.get(method)
    answer = client(method, path, body)
    assert (answer.status, answer.code) == (404, code)
    assert answer.json["error"]["message"]


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("POST", "/api/session", "GET"),
        ("GET", "/api/runs/1/trace", "POST, DELETE"),
        ("POST", "/api/tracing", "PUT"),
        ("GET", "/api/tracing", "PUT"),
        ("DELETE", "/api/session/file", "GET, POST"),
        ("GET", "/api/shutdown", "POST"),
        ("POST", "/api/live", "GET"),
        ("POST", "/", "GET"),
        ("OPTIONS", "/api/session", "GET"),
    ],
)
def test_a_wrong_method_is_405_and_the_right_ones_are_named(client: Client, method: str, path: str, allowed: str) -> None:
    answer = client(method, path)
    assert (answer.status, answer.code, answer.headers["Allow"]) == (405, "wrong_method", allowed)


@pytest.mark.parametrize(
    ("method", "path"), [("POST", "/api/runs/1/trace"), ("PUT", "/api/tracing"), ("PUT", "/api/traces/1/note")]
)
@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"[]", b"null", b"{}", b'{"steps": 0, "all": 1, "note": 2}', b'{"steps": "1"}', b'{"steps": true}'],
    ids=repr,
)
def test_a_bad_body_is_400(client: Client, source: FakeSource, method: str, path: str, body: bytes) -> None:
    answer = client(method, path, body, Content_Type="application/json")
    assert (answer.status, answer.code) == (400, "bad_body")
    assert not source.asked


@pytest.mark.parametrize("body", [b"[" * 60_000, b"\xff\xfe", b'{"steps": ' + b"9" * 5000 + b"}", b'{"steps": 1e999}'])
def test_a_hostile_body_is_400(client: Client, body: bytes) -> None:
    assert client("POST", "/api/runs/1/trace", body, Content_Type="application/json").status == 400


@pytest.mark.parametrize("path", ["/api/runs/1/trace", "/api/tracing", "/api/traces/1/note", "/api/links"])
@pytest.mark.parametrize("body", [rb'{"note": "\ud800"}', rb'{"note": "", "\udfff": [1]}', rb'{"note": ["\udc00"], "steps": 1}'])
def test_half_a_surrogate_pair_is_400(client: Client, source: FakeSource, path: str, body: bytes) -> None:
    method = {"/api/tracing": "PUT", "/api/traces/1/note": "PUT"}.get(path, "POST")
    answer = client(method, path, body, Content_Type="application/json")
    assert (answer.status, answer.code) == (400, "bad_body")
    assert not source.asked


@pytest.mark.parametrize("path", ["/api/runs/%ED%A0%80/steps", "/api/compare?a=%ED%A0%80&b=1", "/%ED%A0%80", "/?token=%ED%A0%80"])
def test_half_a_surrogate_pair_in_a_url_is_no_failure(client: Client, path: str) -> None:
    assert client.get(path).status < 500


def test_a_body_of_another_type_is_415(client: Client) -> None:
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", None):
        answer = client("POST", "/api/runs/1/trace", b'{"steps": 1}', Content_Type=kind)
        assert (answer.status, answer.code) == (415, "wrong_content_type")


def test_a_body_that_is_too_large_is_413_and_never_read(client: Client) -> None:
    connection = client.connection()
    connection.putrequest("PUT", "/api/tracing")
    connection.putheader("Authorization", f"Bearer {client.server.token}")
    connection.putheader("Content-Type", "application/json")
    connection.putheader("Content-Length", str(10**9))
    connection.endheaders()
    response = connection.getresponse()  # comes though nothing of the body was sent
    assert response.status == 413
    assert json.loads(response.read())["error"]["code"] == "too_large"
    connection.close()


def test_a_body_in_chunks_is_bounded_too(client: Client) -> None:
    connection = client.connection()
    headers = {"Authorization": f"Bearer {client.server.token}", "Content-Type": "application/json"}
    chunks = itertools.repeat(b"x" * 10_000, 10)
    connection.request("PUT", "/api/tracing", chunks, headers, encode_chunked=True)
    assert connection.getresponse().status == 413
    connection.close()


def test_a_reopened_session_cannot_be_traced() -> None:
    with serving(FakeSource(live=False)) as client:
        answer = client("POST", "/api/runs/1/trace", {"steps": 1})
        assert (answer.status, answer.code) == (409, "unsupported")


def test_a_broken_trace_says_so(client: Client, source: FakeSource) -> None:
    source.traces[0]["state"] = "broken"
    answer = client.get("/api/traces/1/verdict")
    assert (answer.status, answer.code) == (409, "broken_trace")


def test_an_error_of_ours_is_logged_without_the_query(
    client: Client, source: FakeSource, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> None:
        raise RuntimeError("on purpose")

    monkeypatch.setattr(source, "session", fail)
    answer = client.get(f"/api/session?token={client.server.token}")
    assert (answer.status, answer.code) == (500, "internal")
    assert "on purpose" in caplog.text
    assert client.server.token not in caplog.text
    caplog.clear()


def test_shutdown_stops_the_web_server_alone(client: Client) -> None:
    assert client("POST", "/api/shutdown").json == {"ok": True}
    client.server.join()
    assert not client.server.running
    with pytest.raises(ConnectionError):
        client.get("/api/session")


# ----------------------------------------------------------------------------------------------------- starting, stopping


def test_it_starts_again_at_the_same_port_with_the_same_token(source: FakeSource) -> None:
    server = WebServer(source, Options(port=0))
    server.start()
    url = server.url
    server.start()  # once more is no more
    server.stop()
    assert server.url == ""
    server.stop()
    server.join()
    server.start()
    assert server.url == url
    assert Client(server).get("/api/session").status == 200
    server.stop()
    assert not source.listeners


def test_a_port_in_use_gives_way_to_the_next_free_one(source: FakeSource) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        taken = other.getsockname()[1]
        if taken > 65_000:
            pytest.skip("no room above this port")
        with serving(source, port=taken) as client:
            assert taken < client.server.port <= taken + 100
            assert client.get("/api/session").status == 200


def test_no_port_at_all_names_the_remedy() -> None:
    with pytest.raises(PortError, match="server_port"):
        bind(9999, "203.0.113.7")  # not an address of this machine
    with pytest.raises(PortError, match="server_ip"):
        bind(9999, "no such name.invalid")


def test_a_thread_that_cannot_serve_holds_up_nobody(source: FakeSource, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_files() -> None:
        raise OSError(24, "Too many open files")

    server = WebServer(source, Options(port=0))
    with monkeypatch.context() as patched:
        patched.setattr("asyncio.new_event_loop", no_files)
        with pytest.raises(OSError, match="Too many open files"):
            server.start()
    with monkeypatch.context() as patched:
        patched.setattr(app.Serving, "run", lambda self: None)
        with pytest.raises(PortError, match="ended before it accepted"):
            server.start()
    assert not server.running
    server.start()  # there are files again
    assert server.running
    server.stop()


def test_it_can_be_stopped_while_another_thread_starts_it(source: FakeSource, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a process does that ends right after its first step, which is what starts its page."""
    beginning, released = threading.Event(), threading.Event()
    new_event_loop = asyncio.new_event_loop

    def slowly() -> asyncio.AbstractEventLoop:
        beginning.set()
        assert released.wait(60)
        return new_event_loop()

    def wait(serving: app.Serving) -> None:  # the end of ``stop``
        released.set()
        serving.join()

    monkeypatch.setattr("asyncio.new_event_loop", slowly)
    monkeypatch.setattr(app.Serving, "wait", wait)
    server = WebServer(source, Options(port=0))
    threads = [threading.Thread(target=action, daemon=True) for action in (server.start, server.stop)]
    threads[0].start()
    assert beginning.wait(60)
    threads[1].start()
    for thread in threads:
        thread.join(60)
    assert not server.running and not any(thread.is_alive() for thread in threads)


def test_an_open_address_is_shown_as_one_that_can_be_reached() -> None:
    with serving(ip="0.0.0.0") as client:
        assert "0.0.0.0" not in client.server.url
        host = client.server.address.split("/")[2]
        client.address = host.partition(":")[0]
        assert client.get("/api/session", Host=host).status == 200


@pytest.mark.skipif(not socket.has_ipv6, reason="no IPv6 here")
def test_ipv6() -> None:
    try:
        bind(0, "::1")[0].close()
    except PortError:
        pytest.skip("no IPv6 here")
    with serving(ip="::1") as client:
        assert client.server.address == f"http://[::1]:{client.server.port}/"


def test_a_join_returns_when_it_is_stopped(client: Client) -> None:
    joined = threading.Thread(target=client.server.join)
    joined.start()
    client.server.stop()
    joined.join(60)
    assert not joined.is_alive()


@pytest.mark.parametrize(
    ("base_url", "expected"),
    [
        ("", ("", "")),
        ("/", ("", "")),
        ("/tracer", ("", "/tracer")),
        ("tracer/", ("", "/tracer")),
        ("/a/b/", ("", "/a/b")),
        ("https://host", ("https://host", "")),
        ("https://host:1/a/", ("https://host:1", "/a")),
    ],
)
def test_base_urls(base_url: str, expected: tuple[str, str]) -> None:
    assert split_base_url(base_url) == expected


@pytest.mark.parametrize("prefix", ["/tracer", ""], ids=["kept by the proxy", "stripped by the proxy"])
def test_behind_a_reverse_proxy(prefix: str) -> None:
    with serving(base_url="https://public.example/tracer/") as client:
        assert client.server.url == f"https://public.example/tracer/?token={client.server.token}"
        assert client.get(f"{prefix}/api/session", Host="public.example").status == 200
        page = client.get(f"{prefix}/runs/1", Host="public.example")
        assert b'<base href="/tracer/">' in page.body
        came = client.get(f"{prefix}/runs/1?token={client.server.token}", Host="public.example", Authorization=None)
        assert (came.status, came.headers["Location"].partition("#")[0]) == (302, "/tracer/runs/1")
        assert "Path=/tracer;" in came.headers["Set-Cookie"]
        origin = "https://public.example"
        assert client("PUT", f"{prefix}/api/tracing", {"all": True}, Origin=origin).status == 200  # the proxy's Host is ours
