"""What the web layer's tests share: a server on a real socket, a client that can send any header, and no stray log lines."""

from __future__ import annotations

import contextlib
import http.client
import json
import logging
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from fake_source import FakeSource

from tftracer.engine.engine import Engine
from tftracer.session.answers import SessionSource
from tftracer.web.app import Options, WebServer

TIMEOUT_S = 60


def a_path_of(pattern: str) -> str:
    """A path that the pattern of a route matches."""
    path = re.sub(r"\(\?P<\w+>\[\^/\]\+\)", "1", pattern)
    path = re.sub(r"\(\?P<\w+>([^|()]+)[^()]*\)", r"\1", path)  # the first alternative
    return path.replace("(?:/.*)?", "/unknown").replace(".*", "session").replace(r"\.", ".")


@dataclass
class Answer:
    status: int
    headers: http.client.HTTPMessage
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def code(self) -> str:
        return str(self.json["error"]["code"])


class Client:
    """Requests with the right token unless other headers are given; None leaves a header out."""

    def __init__(self, server: WebServer) -> None:
        self.server = server
        self.address = "127.0.0.1"
        self.host = f"{self.address}:{server.port}"

    def connection(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection(self.address, self.server.port, timeout=TIMEOUT_S)

    def __call__(self, method: str, path: str, body: Any = None, **headers: str | None) -> Answer:
        """``headers`` by keyword, underscores for dashes. A body that is not bytes is sent as JSON."""
        sent = {"Authorization": f"Bearer {self.server.token}"}
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
            sent["Content-Type"] = "application/json"
        for name, value in headers.items():
            sent.pop(name.replace("_", "-"), None)
            if value is not None:
                sent[name.replace("_", "-")] = value
        connection = self.connection()
        try:
            connection.request(method, path, body, sent)
            response = connection.getresponse()
            return Answer(response.status, response.headers, response.read())
        finally:
            connection.close()

    def get(self, path: str, **headers: str | None) -> Answer:
        return self("GET", path, **headers)

    def cookie(self) -> str:
        """Of a signed-in browser: all that other servers of this host get to see."""
        access = self.server.access()
        return f"{access.cookie_name}={access.logins.cookie}"

    def signed_in(self) -> dict[str, str | None]:
        """The headers of a signed-in browser's page."""
        return {"Authorization": None, "Cookie": self.cookie(), "Tftracer_Key": self.server.access().logins.key}


@contextlib.contextmanager
def serving(source: SessionSource | None = None, engine: Engine | None = None, **options: Any) -> Iterator[Client]:
    server = WebServer(source or FakeSource(), Options(**{"port": 0, **options}), engine=engine)
    server.start()
    try:
        yield Client(server)
    finally:
        server.stop()


@pytest.fixture
def no_stray_logs(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Whatever Tornado, asyncio or tftracer warns of without being expected fails the test; clear caplog where it is."""
    caplog.set_level(logging.INFO, "tornado")
    yield
    stray = [r for r in caplog.get_records("call") if r.levelno >= logging.WARNING]
    assert not stray, [r.getMessage() for r in stray]


@pytest.fixture
def source() -> FakeSource:
    return FakeSource()


@pytest.fixture
def client(source: FakeSource, no_stray_logs: None) -> Iterator[Client]:
    with serving(source) as made:
        yield made


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    folder = tmp_path_factory.mktemp("tls")
    cert, key = str(folder / "cert.pem"), str(folder / "key.pem")
    command = "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -addext subjectAltName=IP:127.0.0.1"
    subprocess.run([*command.split(), "-keyout", key, "-out", cert], check=True, capture_output=True)
    return cert, key
