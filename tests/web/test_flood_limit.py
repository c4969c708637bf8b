"""Strangers who flood the port are served one after another, at a bounded rate; whoever has the token gets through."""

from __future__ import annotations

import contextlib
import socket
import ssl
from collections.abc import Callable, Iterator

import pytest
from web_client import Client, serving

from tftracer.web import flood_limit
from tftracer.web.credentials import Access, HostNames, agent_credential
from tftracer.web.flood_limit import peer_of

pytestmark = pytest.mark.usefixtures("no_stray_logs")

NEVER = 1e-6  # a second
Limit = Callable[..., Client]


@pytest.fixture
def limited(monkeypatch: pytest.MonkeyPatch) -> Iterator[Limit]:
    """A server with limits of the test's own."""
    with contextlib.ExitStack() as stack:

        def serve(**limits: float) -> Client:
            for name, value in limits.items():
                monkeypatch.setattr(flood_limit, name, value)
            return stack.enter_context(serving())

        yield serve


@pytest.fixture
def connect() -> Iterator[Callable[..., socket.socket]]:
    """Connections that are closed at the end."""
    with contextlib.ExitStack() as stack:

        def connected(client: Client, data: bytes = b"", source: str = "127.0.0.1") -> socket.socket:
            address = ("127.0.0.1", client.server.port)
            one = stack.enter_context(socket.create_connection(address, timeout=60, source_address=(source, 0)))
            one.sendall(data)
            return one

        yield connected


def request(client: Client, path: str = "/api/session", *headers: str) -> bytes:
    return "\r\n".join([f"GET {path} HTTP/1.1", f"Host: {client.host}", *headers, "", ""]).encode()


def read_all(connection: socket.socket) -> bytes:
    """Until the server closes it."""
    received = b""
    with contextlib.suppress(ConnectionResetError):
        while data := connection.recv(1 << 16):
            received += data
    return received


def has_data(connection: socket.socket) -> bool:
    connection.setblocking(False)
    try:
        return bool(connection.recv(1, socket.MSG_PEEK))
    except BlockingIOError:
        return False
    finally:
        connection.settimeout(60)


@pytest.mark.parametrize("path", ["/api/session", "/", "/login.css", "/?token=wrong", "/login"])
def test_a_stranger_gets_one_answer_for_each_connection(client: Client, connect: Callable[..., socket.socket], path: str) -> None:
    answer = read_all(connect(client, 3 * request(client, path)))
    assert answer.count(b"HTTP/1.1 ") == 1
    assert b"\r\nConnection: close\r\n" in answer


def test_who_is_let_in_keeps_the_connection(client: Client) -> None:
    connection = client.connection()
    for _ in range(3):
        connection.request("GET", "/api/session", headers={"Authorization": f"Bearer {client.server.token}"})
        assert connection.getresponse().read()
        assert connection.sock is not None
    connection.close()


def test_a_browser_that_is_let_in_gets_through_a_flood(limited: Limit, connect: Callable[..., socket.socket]) -> None:
    client = limited(STRANGER_BURST=5, STRANGERS_PER_S=NEVER)
    flood = [connect(client, request(client)) for _ in range(40)]
    answers = [read_all(one) for one in flood[:5]]
    assert all(answer.startswith(b"HTTP/1.1 401") for answer in answers)
    assert client.get("/api/session", **client.signed_in()).status == 200
    assert client.get("/api/session").status == 200
    assert client.get(f"/?token={client.server.token}", Authorization=None).status == 302
    assert not any(has_data(one) for one in flood[5:])  # they wait their turn


def test_a_right_token_gets_in_whatever_others_guess(limited: Limit, connect: Callable[..., socket.socket]) -> None:
    """From the same address, and by the same ways."""
    client = limited(STRANGER_BURST=30, STRANGERS_PER_S=NEVER)
    for guess in range(10):
        assert client.get("/api/session", Authorization=f"Bearer {guess}").status == 401
        assert client.get(f"/?token={guess}", Authorization=None).status == 401
        crossing = {"Authorization": None, "Sec_Fetch_Site": "cross-site", "Sec_Fetch_Mode": "navigate"}
        assert client.get(f"/?token={guess}", **crossing).status == 401
    connect(client, request(client, "/?token=1"))
    assert client.get("/api/session").status == 200
    assert client.get(f"/?token={client.server.token}", Authorization=None).status == 302


def test_600_half_open_requests_lock_nobody_out(client: Client, connect: Callable[..., socket.socket]) -> None:
    for number in range(600):
        connect(client, b"" if number % 2 else b"GET / HTTP/1.1\r\nHost: loc")
    assert client.get("/api/session").status == 200


def test_logins_that_never_end_lock_nobody_out(limited: Limit, connect: Callable[..., socket.socket]) -> None:
    client = limited(MAX_STRANGERS=4, STRANGER_BURST=100, STRANGERS_PER_S=1000)
    head = f"POST /login HTTP/1.1\r\nHost: {client.host}\r\nContent-Length: 99\r\n".encode()
    kind = b"Content-Type: application/x-www-form-urlencoded\r\n\r\n"
    held = [connect(client, head + kind) for _ in range(8)]
    for one in held[:4]:  # the oldest make room
        assert read_all(one) == b""
    assert client.get("/api/session", Authorization=None).status == 401


@pytest.mark.parametrize("sent", [b"", b"GET / HTTP/1.1\r\nHost: loc"])
def test_who_sends_no_head_is_dropped(limited: Limit, connect: Callable[..., socket.socket], sent: bytes) -> None:
    assert read_all(connect(limited(HEAD_S=0.01), sent)) == b""


def test_who_does_not_end_a_request_is_dropped(limited: Limit, connect: Callable[..., socket.socket]) -> None:
    client = limited(STRANGER_S=0.01)
    head = f"POST /login HTTP/1.1\r\nHost: {client.host}\r\nContent-Length: 99\r\n"
    assert read_all(connect(client, f"{head}Content-Type: application/x-www-form-urlencoded\r\n\r\n".encode())) == b""


def test_an_endless_head_is_dropped(limited: Limit, connect: Callable[..., socket.socket]) -> None:
    client = limited(MAX_HEAD_BYTES=1000)
    assert read_all(connect(client, b"GET / HTTP/1.1\r\nX: " + b"x" * 2000)) == b""


def test_a_head_in_very_many_pieces_is_dropped(limited: Limit, connect: Callable[..., socket.socket]) -> None:
    one = connect(limited(MAX_HEAD_PIECES=1), b"GET / HTTP/1.1\r\n")
    assert read_all(one) == b""


def test_a_large_head_counts_as_several_requests(limited: Limit, connect: Callable[..., socket.socket]) -> None:
    client = limited(STRANGER_BURST=5, STRANGERS_PER_S=NEVER)
    assert read_all(connect(client, request(client, "/", "X: " + 60_000 * "x"))).startswith(b"HTTP/1.1 401")
    waiting = connect(client, request(client))
    assert client.get("/api/session").status == 200
    assert not has_data(waiting)


def test_200_signed_in_pages_connect_at_once_through_one_proxy(client: Client, connect: Callable[..., socket.socket]) -> None:
    """All connections are there before any of them sends its request."""
    names = {"Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": 22 * "A" + "=="}
    headers = [*(f"{name}: {value}" for name, value in names.items()), f"Authorization: Bearer {client.server.token}"]
    pages = [connect(client) for _ in range(200)]
    for page in pages:
        page.sendall(request(client, "/api/live", *headers))
    assert all(page.recv(12) == b"HTTP/1.1 101" for page in pages)
    assert not [page for page in pages if page.recv(1) == b""]


def test_one_peer_takes_no_more_than_its_places(limited: Limit, connect: Callable[..., socket.socket]) -> None:
    client = limited(MAX_ARRIVALS_OF_PEER=3)
    other = connect(client, b"GET", "127.0.0.3")
    crowd = [connect(client, b"GET", "127.0.0.2") for _ in range(5)]
    assert [read_all(one) for one in crowd[:2]] == [b"", b""]
    for one in [other, *crowd[2:]]:
        one.sendall(f" /login HTTP/1.1\r\nHost: {client.host}\r\n\r\n".encode())
        assert read_all(one).startswith(b"HTTP/1.1 401")


def test_when_all_places_are_taken_the_largest_crowd_makes_room(limited: Limit, connect: Callable[..., socket.socket]) -> None:
    client = limited(MAX_ARRIVALS=4)
    other = connect(client, b"GET", "127.0.0.3")
    crowd = [connect(client, b"GET", "127.0.0.2") for _ in range(3)]
    connect(client, b"GET", "127.0.0.4")
    assert read_all(crowd[0]) == b""
    other.sendall(f" /login HTTP/1.1\r\nHost: {client.host}\r\n\r\n".encode())
    assert read_all(other).startswith(b"HTTP/1.1 401")


def test_peers_take_turns(limited: Limit, connect: Callable[..., socket.socket]) -> None:
    client = limited(STRANGER_BURST=1, STRANGERS_PER_S=2)
    crowd = [connect(client, request(client), "127.0.0.2") for _ in range(50)]
    assert read_all(connect(client, request(client), "127.0.0.3")).startswith(b"HTTP/1.1 401")
    assert not has_data(crowd[-1])


def test_who_has_gone_takes_no_turn(limited: Limit, connect: Callable[..., socket.socket]) -> None:
    client = limited(STRANGER_BURST=1, STRANGERS_PER_S=1)
    assert read_all(connect(client, request(client))).startswith(b"HTTP/1.1 401")
    for _ in range(200):
        connect(client, request(client)).close()
    assert read_all(connect(client, request(client))).startswith(b"HTTP/1.1 401")  # not 200 s later


def test_accepting_pauses_and_goes_on(limited: Limit, connect: Callable[..., socket.socket]) -> None:
    client = limited(ACCEPT_BURST=1, ACCEPTS_PER_S=100)
    for _ in range(30):
        connect(client)
    assert client.get("/api/session").status == 200


def test_connections_with_the_token_cost_nothing(limited: Limit) -> None:
    client = limited(ACCEPT_BURST=1, ACCEPTS_PER_S=NEVER, STRANGER_BURST=1, STRANGERS_PER_S=NEVER)
    for _ in range(20):
        assert client.get("/api/session").status == 200


def test_under_tls_they_get_back_what_they_spent(
    limited: Limit, certificate: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("ACCEPT_BURST", "STRANGER_BURST"):
        monkeypatch.setattr(flood_limit, name, 1)
    for name in ("ACCEPTS_PER_S", "STRANGERS_PER_S"):
        monkeypatch.setattr(flood_limit, name, NEVER)
    context = ssl.create_default_context(cafile=certificate[0])
    with serving(certfile=certificate[0], keyfile=certificate[1]) as client:
        for _ in range(5):
            with (
                socket.create_connection(("127.0.0.1", client.server.port), timeout=60) as plain,
                context.wrap_socket(plain, server_hostname="127.0.0.1") as stream,
            ):
                stream.sendall(request(client, "/api/session", f"Authorization: Bearer {client.server.token}"))
                assert stream.recv(100).startswith(b"HTTP/1.1 200")


def test_a_head_may_come_in_pieces(client: Client, connect: Callable[..., socket.socket]) -> None:
    whole = request(client, "/api/session", f"Authorization: Bearer {client.server.token}", "Connection: close")
    one = connect(client)
    for at in range(0, len(whole), 7):
        one.sendall(whole[at : at + 7])
    assert read_all(one).startswith(b"HTTP/1.1 200")


def test_those_who_wait_do_not_keep_the_server_from_stopping(limited: Limit, connect: Callable[..., socket.socket]) -> None:
    client = limited(STRANGER_BURST=1, STRANGERS_PER_S=NEVER)
    waiting = [connect(client, request(client)) for _ in range(5)] + [connect(client)]
    assert client.get("/api/session").status == 200
    client.server.stop()
    assert [read_all(one) for one in waiting[1:]] == [b""] * 5


ACCESS = Access("a+b&c", HostNames("127.0.0.1", "host"), 1)
COOKIE = f"{ACCESS.cookie_name}={ACCESS.logins.cookie}"


@pytest.mark.parametrize(
    ("head", "has_credential"),
    [
        ("GET / HTTP/1.1\r\nAuthorization: Bearer a+b&c\r\n\r\n", True),
        ("GET / HTTP/1.1\r\nauthorization:bearer  a+b&c \r\n\r\n", True),
        ("GET / HTTP/1.1\nAuthorization: Bearer a+b&c\n\n", True),
        ("GET / HTTP/1.1\r\nAuthorization: Bearer a+b&d\r\n\r\n", False),
        ("GET / HTTP/1.1\r\nX-Authorization: Bearer a+b&c\r\n\r\n", False),
        (f"GET / HTTP/1.1\r\nCookie: x=1; {COOKIE}; y\r\n\r\n", True),
        (f"GET / HTTP/1.1\r\nCookie: x=1\r\nCookie: {COOKIE}\r\n\r\n", True),
        (f"GET / HTTP/1.1\r\nCookie: {COOKIE}x\r\n\r\n", False),
        ("GET /?token=a%2Bb%26c HTTP/1.1\r\n\r\n", True),
        ("GET /runs/1?x=y&token=a%2Bb%26c&z HTTP/1.1\r\n\r\n", True),
        ("GET /?token=a%2Bb HTTP/1.1\r\n\r\n", False),
        ("GET /?token=x&token=a%2Bb%26c HTTP/1.1\r\n\r\n", True),
        ("GET / HTTP/1.1\r\n\r\nAuthorization: Bearer a+b&c\r\n\r\n", False),
        (f"GET / HTTP/1.1\r\nCookie: x={COOKIE}\r\n\r\n", False),
        (f"GET / HTTP/1.1\r\nCookie: x{COOKIE};{COOKIE}\r\n\r\n", True),
        ("GET /?xtoken=a%2Bb%26c HTTP/1.1\r\n\r\n", False),
        ("GET / HTTP/1.1\r\n\r\nGET /?token=a%2Bb%26c HTTP/1.1\r\n\r\n", False),
        (f"GET / HTTP/1.1\r\nAuthorization: tftracer-agent {agent_credential('a+b&c', 'nonce')}\r\n\r\n", True),
        (f"GET / HTTP/1.1\r\nAuthorization: tftracer-agent {agent_credential('other', 'nonce')}\r\n\r\n", False),
        ("GET / HTTP/1.1\r\nAuthorization: tftracer-agent a+b&c\r\n\r\n", False),
        ("\r\n\r\n", False),
        ("\xff\x00", False),
    ],
)
def test_credentials_are_seen_in_a_head(head: str, has_credential: bool) -> None:
    assert ACCESS.has_credential(head.encode("latin-1")) is has_credential


def test_a_network_of_ipv6_is_one_peer() -> None:
    assert peer_of("2001:db8::1") == peer_of("2001:db8::ffff:1") == peer_of("2001:db8:0:0:1::2")
    assert peer_of("2001:db8::1") != peer_of("2001:db8:0:1::1")
    assert peer_of("::ffff:192.0.2.1") == peer_of("192.0.2.1") != peer_of("192.0.2.2")
    assert peer_of("fe80::1%eth0") == peer_of("fe80::2")
    assert peer_of("not one") == "not one"
