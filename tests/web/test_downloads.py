"""Files down and up: whole or visibly broken, never half."""

from __future__ import annotations

import contextlib
import http.client
import io
import json
import os
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from fake_source import FakeSource
from web_client import Client

from tftracer.errors import StorageError
from tftracer.web import downloads
from tftracer.web.downloads import PIECE_BYTES, file_name

BINARY = "application/octet-stream"


def test_the_session_is_saved(client: Client) -> None:
    answer = client.get("/api/session/file")
    assert (answer.status, answer.body) == (200, b"saved session")
    assert answer.headers["Content-Type"] == BINARY
    disposition = answer.headers["Content-Disposition"]
    assert disposition.startswith('attachment; filename="tftracer-train-somewhere-')
    assert disposition.endswith('.tftrace"')


def test_a_large_session_comes_in_pieces(client: Client, source: FakeSource) -> None:
    source.save_chunks = [os.urandom(100_000) for _ in range(100)]
    assert client.get("/api/session/file").body == b"".join(source.save_chunks)


def test_a_save_that_fails_at_once_is_an_error(client: Client, source: FakeSource) -> None:
    source.save_chunks = [StorageError("The disk is gone. Bring it back.")]
    answer = client.get("/api/session/file")
    assert (answer.status, answer.json["error"]) == (507, {"code": "storage", "message": "The disk is gone. Bring it back."})


def test_a_save_that_breaks_off_is_seen_to_be_broken(
    client: Client, source: FakeSource, caplog: pytest.LogCaptureFixture
) -> None:
    source.save_chunks = [b"x" * 3_000_000, StorageError("The disk is gone.")]
    with pytest.raises((http.client.IncompleteRead, ConnectionError)):
        client.get("/api/session/file")
    assert "a download broke off: The disk is gone." in caplog.text
    caplog.clear()


@pytest.mark.parametrize("hangs_longer", [False, True])
@pytest.mark.parametrize("sent", [0, PIECE_BYTES])
def test_a_server_that_stops_amid_downloads_logs_nothing_and_ends(
    client: Client, source: FakeSource, sent: int, hangs_longer: bool
) -> None:
    """Two keep all worker threads busy, for the disk hangs, before their first piece or after it; the others wait for these.

    ``hangs_longer``: than the server lives.
    """
    begun, go_on = threading.Semaphore(0), threading.Event()

    def endless() -> Iterator[bytes]:
        yield b"x" * sent
        begun.release()
        while go_on.wait(60):
            yield b"x" * 1000
        raise AssertionError("nobody let it go on")

    source.saved_bytes = endless  # type: ignore[method-assign]
    outcomes: list[object] = []

    def download() -> None:
        try:
            outcomes.append(client.get("/api/session/file").status)
        except (ConnectionError, http.client.HTTPException) as broken:
            outcomes.append(type(broken))

    readers = [threading.Thread(target=download) for _ in range(4)]
    for reader in readers:
        reader.start()
    assert all(begun.acquire(timeout=60) for _ in range(2))
    threading.Thread(target=client.server.stop).start()
    for reader in readers:  # their connections are closed, though the disk still hangs
        reader.join(60)
    if hangs_longer:
        client.server.join()
    go_on.set()
    client.server.join()
    assert len(outcomes) == 4 and 200 not in outcomes, outcomes


def test_a_session_is_loaded(client: Client, source: FakeSource) -> None:
    answer = client("POST", "/api/session/file", b"the file", Content_Type=BINARY)
    assert answer.json == {"ok": True, "runs": 1, "traces": 2, "cut": "", "damage": ""}
    assert source.loaded == [b"the file"]


def test_a_large_upload_goes_by_way_of_the_disk(client: Client, source: FakeSource, tmp_path: Path) -> None:
    big = os.urandom(5_000_000)
    connection = client.connection()
    headers = {"Authorization": f"Bearer {client.server.token}", "Content-Type": BINARY}
    connection.request("POST", "/api/session/file", io.BytesIO(big), headers, encode_chunked=True)  # without a length
    assert connection.getresponse().status == 200
    connection.close()
    assert source.loaded == [big]


def test_nothing_of_an_upload_is_left_behind(
    client: Client, source: FakeSource, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[int, str]] = []

    def load(path: str, name: str) -> object:
        seen.append((Path(path).stat().st_mode & 0o777, path))
        return {"ok": True, "runs": 0, "traces": 0, "cut": "", "damage": ""}

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(source, "load", load)
    assert client("POST", "/api/session/file", b"the file", Content_Type=BINARY).status == 200
    ((mode, path),) = seen
    assert mode == 0o600
    assert Path(path).parent == tmp_path
    client.server.stop()  # the handler has ended then
    assert not list(tmp_path.iterdir())


def test_what_the_session_refuses_is_told(client: Client) -> None:
    answer = client("POST", "/api/session/file?name=C:%5Cmine%5Cold.tftrace", b"full", Content_Type=BINARY)
    assert (answer.status, answer.code) == (507, "storage")
    assert answer.json["error"]["message"] == "old.tftrace: the disk is full. Make room."


def test_an_upload_needs_a_body_of_the_right_type(client: Client) -> None:
    assert client("POST", "/api/session/file", b"", Content_Type=BINARY).code == "bad_body"
    assert client("POST", "/api/session/file", b"x", Content_Type="multipart/form-data; boundary=b").status == 415


def test_an_upload_has_a_limit(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(downloads.SessionFileHandler, "body_limit", 1000)
    answer = client("POST", "/api/session/file", b"x" * 1001, Content_Type=BINARY)
    assert (answer.status, answer.code) == (413, "too_large")


def test_an_upload_without_a_length_has_a_limit_too(
    client: Client, source: FakeSource, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(downloads, "UPLOAD_BYTES", 1_500_000)
    connection = client.connection()
    headers = {"Authorization": f"Bearer {client.server.token}", "Content-Type": BINARY}
    with contextlib.suppress(ConnectionError, http.client.HTTPException):  # it may be told while it still sends
        connection.request("POST", "/api/session/file", io.BytesIO(bytes(5_000_000)), headers, encode_chunked=True)
        assert connection.getresponse().status >= 400
    connection.close()
    client.server.stop()
    assert not source.loaded and not list(tmp_path.iterdir())


def test_a_full_disk_is_told_when_the_upload_ends(client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "missing"))
    answer = client("POST", "/api/session/file", b"x" * 2_000_000, Content_Type=BINARY)
    assert (answer.status, answer.code) == (507, "storage")
    assert "TMPDIR" in answer.json["error"]["message"]


def test_an_upload_that_breaks_off_leaves_nothing(
    client: Client, source: FakeSource, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    connection = client.connection()
    connection.putrequest("POST", "/api/session/file")
    for name, value in [
        ("Authorization", f"Bearer {client.server.token}"),
        ("Content-Type", BINARY),
        ("Content-Length", "9999999"),
    ]:
        connection.putheader(name, value)
    connection.endheaders(b"x" * 1_000_000)
    connection.close()
    client.server.stop()
    assert not source.loaded
    assert not list(tmp_path.iterdir())


def test_a_traces_raw_bytes(client: Client, source: FakeSource) -> None:
    for query in ("", "?format=run_metadata"):
        answer = client.get(f"/api/traces/1/file{query}")
        assert answer.body == source.raw
        assert answer.headers["Content-Disposition"] == 'attachment; filename="trace-1-step-2.pb"'


@pytest.mark.parametrize(("form", "suffix"), [("chrome", ".json"), ("html", ".html")])
def test_a_trace_for_other_tools(client: Client, form: str, suffix: str) -> None:
    answer = client.get(f"/api/traces/1/file?format={form}")
    assert answer.status == 200
    assert answer.headers["Content-Disposition"] == f'attachment; filename="trace-1-step-2{suffix}"'
    if form == "chrome":
        assert json.loads(answer.body)["traceEvents"]
    if form == "html":
        assert b"<html" in answer.body
    assert len(answer.body) > 1000


def test_a_format_that_there_is_none_of(client: Client) -> None:
    answer = client.get("/api/traces/1/file?format=pdf")
    assert (answer.status, answer.code) == (400, "bad_query")
    assert "chrome" in answer.json["error"]["message"]


def test_names_that_any_system_takes() -> None:
    assert file_name("tftracer", "", "my script\u2603", "a/b\\c", '"', 3) == "tftracer-my_script_-a_b_c-_-3"
