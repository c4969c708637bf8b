"""No stranger gets in: every route, the WebSocket too, without a token, with a wrong one, from elsewhere, by another name."""

from __future__ import annotations

import contextlib
import re
import socket
import ssl
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from web_client import Answer, Client, a_path_of, serving

from tftracer.errors import PortError
from tftracer.web import app, login_handlers, pages
from tftracer.web.base_handler import Guarded
from tftracer.web.live_sockets import LiveHandler
from tftracer.web.routes import API, PAGES

pytestmark = pytest.mark.usefixtures("no_stray_logs")

FORM = "application/x-www-form-urlencoded"
WEBSOCKET = {
    "Upgrade": "websocket",
    "Connection": "Upgrade",
    "Sec_WebSocket_Version": "13",
    "Sec_WebSocket_Key": "dGhlIHNhbXBsZSBub25jZQ==",
}


def paths() -> Iterator[tuple[str, type[Guarded]]]:
    """One path for each route."""
    for pattern, handler, _ in [*API, *PAGES]:
        yield a_path_of(pattern), handler


#: The form is what a stranger uses to stop being one; it takes nothing but the token.
CLOSED = [
    (path, handler) for path, handler in paths() if handler not in (login_handlers.LoginHandler, login_handlers.LoginStyleHandler)
]
CALLS = [(method, path, handler) for path, handler in CLOSED for method in ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")]


def call(client: Client, method: str, path: str, handler: type[Guarded], **headers: str | None) -> Answer:
    upgrade = WEBSOCKET if handler is LiveHandler and method == "GET" else {}
    return client(method, path, **{**upgrade, **headers})


def refused(answer: Answer, status: int, code: str, handler: type[Guarded]) -> bool:
    """By an error or, where a browser comes, by the login page; a HEAD has no body to look at."""
    if answer.status != status or not answer.body:
        return answer.status == status
    if status == 401 and issubclass(handler, pages.PageHandler):
        return b'action="/login"' in answer.body
    return answer.code == code


def test_the_walk_goes_along_every_route(client: Client) -> None:
    """Each path is answered by the handler that its route names, so that none hides behind another."""
    assert {path for path, _ in paths()} >= {"/api/session", "/api/live", "/api/traces/1/cost", "/unknown"}
    table = [(re.compile(pattern), handler) for pattern, handler, _ in [*API, *PAGES]]
    for path, handler in paths():
        assert next(h for pattern, h in table if pattern.fullmatch(path)) is handler
    assert all(issubclass(handler, Guarded) for _, handler in table)


def test_no_handler_goes_around_the_checks() -> None:
    for _, handler, _ in [*API, *PAGES]:
        own = [base for base in handler.__mro__ if "prepare" in vars(base) and issubclass(base, Guarded)]
        assert Guarded in own
        assert handler.check_host is Guarded.check_host
        assert handler.check_origin_header is Guarded.check_origin_header
        if handler not in (login_handlers.LoginHandler, login_handlers.LoginStyleHandler, pages.AppHandler):
            assert handler.check_token is Guarded.check_token


def test_without_a_token(client: Client) -> None:
    for method, path, handler in CALLS:
        answer = call(client, method, path, handler, Authorization=None)
        assert refused(answer, 401, "no_token", handler), (method, path, answer)


def test_with_a_wrong_token(client: Client) -> None:
    wrong = ["Bearer wrong", "Bearer", "", f"Basic {client.server.token}", f"Bearer {client.server.token}x", "Bearer \xe4"]
    for number, (method, path, handler) in enumerate(CALLS):
        answer = call(client, method, path, handler, Authorization=wrong[number % len(wrong)])
        assert refused(answer, 401, "no_token", handler), (method, path, answer)


def test_with_a_wrong_cookie(client: Client) -> None:
    name = client.server.access().cookie_name
    for value in ("wrong", client.server.token, ""):
        answer = client.get("/api/session", Authorization=None, Cookie=f"{name}={value}")
        assert (answer.status, answer.code) == (401, "no_token")


@pytest.mark.parametrize(
    "foreign",
    [{"Origin": "http://evil.example"}, {"Origin": "null"}, {"Sec_Fetch_Site": "cross-site", "Sec_Fetch_Mode": "cors"}],
    ids=str,
)
def test_from_a_foreign_page(client: Client, foreign: dict[str, str]) -> None:
    for method, path, handler in CALLS:
        for let_in in ({}, client.signed_in()):
            answer = call(client, method, path, handler, **{**foreign, **let_in})
            assert refused(answer, 403, "foreign_origin", handler), (method, path, answer)


def test_from_another_server_on_the_same_machine(client: Client) -> None:
    answer = client("PUT", "/api/tracing", {"all": True}, Origin="http://127.0.0.1:8888", **client.signed_in())
    assert (answer.status, answer.code) == (403, "foreign_origin")


def test_by_a_foreign_name(client: Client) -> None:
    pages_of_login: list[Any] = [
        ("GET", "/login.css", login_handlers.LoginStyleHandler),
        ("POST", "/login", login_handlers.LoginHandler),
    ]
    for method, path, handler in [*CALLS, *pages_of_login]:
        answer = call(client, method, path, handler, Host=f"evil.example:{client.server.port}")
        assert refused(answer, 403, "foreign_host", handler), (method, path, answer)


def test_with_the_right_token_the_walk_is_let_in(client: Client) -> None:
    """Else the refusals above would show nothing."""
    for method, path, handler in CALLS:
        if path != "/api/shutdown":
            assert call(client, method, path, handler).status not in (401, 403), (method, path)


def test_a_cookie_lets_in_and_its_writes_need_an_origin(client: Client) -> None:
    ours = f"http://{client.host}"
    assert client.get("/api/session", **client.signed_in()).status == 200
    answer = client("PUT", "/api/tracing", {"all": True}, **client.signed_in())
    assert (answer.status, answer.code) == (403, "no_origin")
    assert client("PUT", "/api/tracing", {"all": True}, Origin=ours, **client.signed_in()).status == 200


def test_other_servers_cookies_do_no_harm(client: Client) -> None:
    cookies = f'a="b; {client.cookie()}; tftracer-1-abc=x; =; ;'
    assert client.get("/api/session", **{**client.signed_in(), "Cookie": cookies}).status == 200


def test_a_tunnels_name_and_port_are_ours(client: Client) -> None:
    origin = "http://localhost:12345"
    assert client("PUT", "/api/tracing", {"all": True}, Host="localhost:12345", Origin=origin).status == 200


# ------------------------------------------------------------------------------------------------------------- the login


def test_the_logged_url_opens_the_page(client: Client) -> None:
    first = client.get(f"/traces/1?a=b&token={client.server.token}", Authorization=None)
    key = client.server.access().logins.key
    assert (first.status, first.headers["Location"]) == (302, f"/traces/1?a=b#key={key}")
    cookie = first.headers["Set-Cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie
    assert client.server.token not in cookie
    page = client.get("/traces/1?a=b", Authorization=None, Cookie=cookie.partition(";")[0])
    assert page.status == 200
    assert page.headers["Content-Type"].startswith("text/html")


def test_a_link_on_another_page_opens_it_too(client: Client) -> None:
    """The browser keeps a strict cookie back on the redirect of a foreign link; a page of ours in between brings it along."""
    coming = {"Sec_Fetch_Site": "cross-site", "Sec_Fetch_Mode": "navigate", "Authorization": None}
    first = client.get(f"/runs/1?token={client.server.token}", **coming)
    assert first.status == 200
    assert b'content="0; url=/runs/1#key=' in first.body
    assert "Set-Cookie" in first.headers
    again = client.get("/runs/1", **coming)
    assert b'content="0; url=/runs/1"' in again.body
    assert "Set-Cookie" not in again.headers


def test_a_wrong_token_in_the_url_shows_the_login(client: Client) -> None:
    answer = client.get("/?token=wrong", Authorization=None)
    assert answer.status == 401
    assert b'action="/login"' in answer.body
    assert "Set-Cookie" not in answer.headers


@pytest.mark.parametrize("path", ["//evil.example/", "//evil.example/%2e%2e", "/\\evil.example", "/x?next=//evil.example"])
def test_the_redirect_stays_here(client: Client, path: str) -> None:
    answer = client.get(f"{path}{'&' if '?' in path else '?'}token={client.server.token}", Authorization=None)
    assert answer.status in (302, 400, 404)
    assert re.match(r"/(?![/\\])", answer.headers["Location"] or "/")


def login(client: Client, origin: str | None = None, **fields: str) -> Answer:
    body = urlencode(fields).encode()
    return client("POST", "/login", body, Content_Type=FORM, Authorization=None, Origin=origin or f"http://{client.host}")


def test_the_form_logs_in(client: Client) -> None:
    answer = login(client, token=client.server.token, next="/traces/1")
    location, _, key = answer.headers["Location"].partition("#key=")
    assert (answer.status, location) == (303, "/traces/1")
    cookie = answer.headers["Set-Cookie"].partition(";")[0]
    assert client.get("/api/session", Authorization=None, Cookie=cookie, Tftracer_Key=key).status == 200


@pytest.mark.parametrize("given", ["http://localhost:9999/?token={}", "  https://h/p/traces/1?tab=ops&token={}#x\n", " {} "])
def test_the_form_takes_the_whole_url_that_was_logged(client: Client, given: str) -> None:
    assert login(client, token=given.format(client.server.token), next="/runs/1").headers["Location"].startswith("/runs/1#key=")
    assert login(client, token=given.format("wrong")).status == 401


def test_the_page_of_the_form_leads_back_to_where_the_login_ended(client: Client) -> None:
    answer = client.get("/login?next=/runs/1%3Ftable=1", Authorization=None)
    assert answer.status == 401 and b'name="next" value="/runs/1?table=1"' in answer.body
    assert b'name="next" value="/"' in client.get("/login?next=https://evil.example", Authorization=None).body


@pytest.mark.parametrize(
    "target", ["https://evil.example", "//evil.example", "/\\evil.example", "javascript:alert(1)", "", "/a\nb"]
)
def test_the_form_leads_nowhere_else(client: Client, target: str) -> None:
    assert login(client, token=client.server.token, next=target).headers["Location"].startswith("/#key=")


def test_the_form_refuses(client: Client) -> None:
    assert login(client, token="wrong").status == 401
    assert login(client).status == 401
    assert login(client, origin="null", token=client.server.token).status == 403
    assert client("POST", "/login", b"token=x", Content_Type="text/plain", Authorization=None).status == 415
    assert client("POST", "/login", b"x" * 10_000, Content_Type=FORM, Authorization=None).status == 413
    assert client("POST", "/login", b"&" * 8_000, Content_Type=FORM, Authorization=None).status == 401


def test_what_the_form_shows_is_escaped(client: Client) -> None:
    answer = login(client, token="wrong", next='/"><script>alert(1)</script>')
    assert b"<script" not in answer.body
    assert b"<script" not in client.get('/%22%3E%3Cscript%3E?a="><script>', Authorization=None).body


# ------------------------------------------------------------------------------------------------------------ the headers


def test_headers_of_every_answer(client: Client) -> None:
    for method, path, handler in CALLS:
        if handler is LiveHandler or path == "/api/shutdown":
            continue
        headers = client(method, path, Authorization=None).headers
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert "frame-ancestors 'none'" in headers["Content-Security-Policy"]
        assert "unsafe" not in headers["Content-Security-Policy"]
        assert headers["Cross-Origin-Resource-Policy"] == "same-origin"
        assert headers["Referrer-Policy"] in ("no-referrer", "same-origin")
        assert headers["Server"] is None
        assert not [name for name in headers if name.startswith("Access-Control-")]


def test_the_page_runs_its_own_scripts_alone(client: Client) -> None:
    page = client.get("/")
    policy = page.headers["Content-Security-Policy"]
    assert "default-src 'none'; script-src 'self'; style-src 'self';" in policy
    assert f"connect-src 'self' ws://{client.host} wss://{client.host};" in policy
    assert not re.search(rb"<script(?![^>]*\bsrc=)", page.body)
    assert not re.search(rb"<style|\son\w+=", page.body)


def test_the_login_page_has_no_script_at_all(client: Client) -> None:
    login_page = client.get("/", Authorization=None)
    assert b"<script" not in login_page.body
    assert "script-src" not in login_page.headers["Content-Security-Policy"]
    assert client.get("/login.css", Authorization=None).headers["Content-Type"] == "text/css; charset=utf-8"
    assert b"<script" not in client.get("/login", Authorization=None).body


# -------------------------------------------------------------------------------------------------------------- the limits


def test_connections_are_limited(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(app, "MAX_CONNECTIONS", 3)
    request = f"GET /api/session HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {client.server.token}\r\n\r\n".encode()
    held = [socket.create_connection(("127.0.0.1", client.server.port)) for _ in range(3)]
    for one in held:  # all three are known to the server before the fourth comes
        one.sendall(request)
        assert one.recv(1000).startswith(b"HTTP/1.1 200")
    with socket.create_connection(("127.0.0.1", client.server.port), timeout=60) as fourth:
        fourth.sendall(request)
        assert fourth.recv(1) == b""
    for one in held:
        one.close()


@pytest.mark.parametrize(
    "junk", [b"\x16\x03\x01\x02\x00\x01\x00", b"GET\r\n\r\n", b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n"]
)
def test_junk_does_no_harm(client: Client, junk: bytes) -> None:
    with socket.create_connection(("127.0.0.1", client.server.port), timeout=60) as stranger:
        stranger.sendall(junk)
        stranger.shutdown(socket.SHUT_WR)
        answer = stranger.recv(100)
        assert not answer or re.match(rb"HTTP/1.1 4\d\d", answer)
    assert client.get("/api/session").status == 200


# -------------------------------------------------------------------------------------------------------------------- TLS


def test_tls(certificate: tuple[str, str]) -> None:
    cert, key = certificate
    with serving(certfile=cert, keyfile=key) as client:
        assert client.server.url.startswith(f"https://127.0.0.1:{client.server.port}/?token=")
        context = ssl.create_default_context(cafile=cert)
        with (
            socket.create_connection(("127.0.0.1", client.server.port), timeout=60) as plain,
            context.wrap_socket(plain, server_hostname="127.0.0.1") as stream,
        ):
            path = f"/?token={client.server.token}"
            stream.sendall(f"GET {path} HTTP/1.1\r\nHost: {client.host}\r\nConnection: close\r\n\r\n".encode())
            answer = b"".join(iter(lambda: stream.recv(4096), b"")).decode()
        assert answer.startswith("HTTP/1.1 302")
        assert re.search(r"Set-Cookie: .*; Secure\r\n", answer)


def test_with_tls_plain_http_gets_nothing(certificate: tuple[str, str], caplog: pytest.LogCaptureFixture) -> None:
    with serving(certfile=certificate[0], keyfile=certificate[1]) as client:
        stranger = socket.create_connection(("127.0.0.1", client.server.port), timeout=60)
        stranger.sendall(f"GET / HTTP/1.1\r\nHost: {client.host}\r\n\r\n".encode())
        with contextlib.suppress(ConnectionError):
            assert not stranger.recv(100).startswith(b"HTTP")
        stranger.close()
    caplog.clear()  # Tornado's word about the handshake


@pytest.mark.parametrize("case", ["missing", "not a certificate", "key alone", "key with a passphrase"])
def test_a_bad_certificate_never_means_plain_http(case: str, tmp_path: Path, certificate: tuple[str, str]) -> None:
    junk = tmp_path / "junk.pem"
    junk.write_text("junk")
    sealed = str(tmp_path / "sealed.pem")
    command = ["openssl", "rsa", "-aes256", "-passout", "pass:secret", "-in", certificate[1], "-out", sealed]
    subprocess.run(command, check=True, capture_output=True)
    files: dict[str, Any] = {
        "missing": {"certfile": str(tmp_path / "none.pem")},
        "not a certificate": {"certfile": str(junk)},
        "key alone": {"keyfile": certificate[1]},
        "key with a passphrase": {"certfile": certificate[0], "keyfile": sealed},  # nobody is asked for it at the terminal
    }[case]
    with pytest.raises(PortError), serving(**files):
        raise AssertionError("it serves")
