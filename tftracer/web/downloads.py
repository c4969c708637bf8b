"""Handlers for files: saving and loading a session, a trace in other tools' formats. All are streamed."""

from __future__ import annotations

import contextlib
import logging
import re
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from tornado.httputil import HTTPServerRequest
from tornado.iostream import StreamClosedError

from tftracer.contract.analyses import OTHER_TRACES_NEEDED
from tftracer.contract.encoding import WRITE_BYTES, joined
from tftracer.contract.session import Session, TraceRecord
from tftracer.errors import StorageError, TracerError
from tftracer.session.answers import SessionSource
from tftracer.storage.trace_payload import TraceKey
from tftracer.trace.decode.formats import is_xspace
from tftracer.web.ask_several_traces import other_answers
from tftracer.web.handlers import ApiHandler
from tftracer.web.refusal import Refusal
from tftracer.web.trace_handlers import TraceHandlerBase

log = logging.getLogger("tftracer")

UPLOAD_BYTES = 16 << 30
UPLOAD_S = 24 * 3600.0
BINARY = "application/octet-stream"
PIECE_BYTES = 1 << 20  # size of a piece of a saved session


#: The formats that engine/decoded_traces.py writes: their suffix and content type.
EXPORTS = {"chrome": (".json", "application/json"), "html": (".html", "text/html; charset=utf-8")}


def file_name(*parts: object) -> str:
    """Return a name that is valid in any file system and in a header."""
    return re.sub(r"[^A-Za-z0-9_.-]+", "_", "-".join(str(p) for p in parts if p != ""))[:150]


def session_file_name(session: Session) -> str:
    started = time.strftime("%Y%m%d-%H%M%S", time.localtime(session["started_at"]))
    words = session["command"].split()
    script = Path(words[0]).stem if words else ""
    rank = "" if session["rank"] is None else f"rank{session['rank']}"
    return file_name("tftracer", script, session["host"], rank, started) + ".tftrace"


def read_pieces(file: IO[bytes]) -> Iterator[bytes]:
    with file:
        while chunk := file.read(WRITE_BYTES):
            yield chunk


class Download(ApiHandler):
    """An attachment, produced piece by piece on a worker thread as the client reads it."""

    accepts_links = True

    async def send_file(self, name: str, content_type: str, chunks: Iterator[bytes]) -> None:
        first = await self.run_on_worker(next, chunks, None)  # an error in the first piece can still be sent as an error
        self.set_header("Content-Type", content_type)
        self.set_header("Content-Disposition", f'attachment; filename="{name}"')
        try:
            await self._send(first, chunks)
        except StreamClosedError:
            pass
        except Exception as problem:
            self.break_off(problem)
        finally:
            await self.run_on_worker(getattr(chunks, "close", lambda: None))

    async def _send(self, chunk: bytes | None, chunks: Iterator[bytes]) -> None:
        while chunk is not None:
            await self.services.rate_limit.wait_to_send(len(chunk))
            self.write(chunk)
            await self.flush()
            chunk = await self.run_on_worker(next, chunks, None)

    def break_off(self, problem: Exception) -> None:
        """Close the connection without the last chunk, so that the client notices that the file is incomplete."""
        expected = isinstance(problem, (TracerError, OSError))
        log.error("tftracer: a download broke off: %s", problem, exc_info=None if expected else problem)
        self.close_connection()


class SessionFileHandler(Download):
    """Saves the session (GET), or loads a file into it (POST)."""

    body_type = BINARY
    body_limit = UPLOAD_BYTES
    _upload: Upload | None = None

    def prepare(self) -> None:
        super().prepare()
        if self.request.method == "POST":
            self._upload = Upload(self.request)

    async def data_received(self, chunk: bytes) -> None:
        if self._upload is not None and self._upload.buffer(chunk):
            await self.run_on_worker(self._upload.write)

    async def get(self) -> None:
        source = self.services.source
        await self.services.rate_limit.wait_to_answer()
        session = await self.run_on_worker(source.session)
        await self.send_file(session_file_name(session), BINARY, joined(source.saved_bytes(), PIECE_BYTES))

    async def post(self) -> None:
        upload = self._upload
        if upload is None or not upload.size:
            raise Refusal(400, "bad_body", f"The body must be a session file, as {BINARY}.")
        loaded = await self.run_on_worker(upload.load, self.services.source, self._name())
        self.services.live.send_snapshots()
        self.send_json(loaded)

    def _name(self) -> str:
        """Return the name of the user's file, which the page sends."""
        given = re.split(r"[/\\\\]", self.get_query_argument("name", ""))[-1]
        return "".join(c for c in given if c.isprintable())[:200] or "The uploaded file"

    def on_connection_close(self) -> None:
        super().on_connection_close()
        self.on_finish()

    def on_finish(self) -> None:
        if self._upload is not None:
            self._upload.discard()


def allow_upload(request: HTTPServerRequest) -> None:
    """Increase the limits on a body's size and duration for this request."""
    connection = request.connection
    connection.set_max_body_size(UPLOAD_BYTES)  # type: ignore[union-attr]
    connection.set_body_timeout(UPLOAD_S)  # type: ignore[union-attr]


class Upload:
    """A body that is written to a temporary file, readable by its owner only."""

    def __init__(self, request: HTTPServerRequest) -> None:
        allow_upload(request)
        self.size = 0
        self._waiting: list[bytes] = []
        self._waiting_bytes = 0
        self._problem: OSError | None = None
        self._file: IO[bytes] | None = None

    def buffer(self, chunk: bytes) -> bool:
        """Buffer a chunk; return whether it is time to write."""
        self.size += len(chunk)
        self._waiting.append(chunk)
        self._waiting_bytes += len(chunk)
        return self._waiting_bytes >= WRITE_BYTES

    def write(self) -> None:
        """Write the buffered chunks. An error is kept until the end of the body, when the client reads the answer."""
        waiting, self._waiting, self._waiting_bytes = self._waiting, [], 0
        if self._problem is not None:
            return
        try:
            if self._file is None:
                self._file = tempfile.NamedTemporaryFile(prefix="tftracer-load-", suffix=".tftrace")  # noqa: SIM115
            self._file.writelines(waiting)
            self._file.flush()
        except OSError as problem:
            self._problem = problem

    def load(self, source: SessionSource, name: str) -> object:
        """Load the file into the session. ``name``: the user's file name, for error messages."""
        self.write()
        if self._problem is not None or self._file is None:
            raise StorageError(
                f"The file cannot be kept in {tempfile.gettempdir()} while it is loaded: {self._problem}. "
                "Make room there, or set TMPDIR to a folder with room."
            )
        try:
            return source.load(self._file.name, name)
        except TracerError as problem:
            raise type(problem)(str(problem).replace(self._file.name, name)) from problem

    def discard(self) -> None:
        if self._file is not None:
            with contextlib.suppress(OSError):
                self._file.close()
            self._file = None


class TraceFileHandler(TraceHandlerBase, Download):
    """A trace as a file: by default the RunMetadata or XSpace that TensorFlow returned, else in another tool's format."""

    async def get(self, trace: str) -> None:
        file_format = self.get_query_argument("format", "run_metadata")
        if file_format != "run_metadata" and file_format not in EXPORTS:
            formats = ", ".join(["run_metadata", *EXPORTS])
            raise Refusal(400, "bad_query", f"format must be one of {formats}; not {file_format[:50]!r}.")
        key = await self.find_trace(trace)
        record = await self.run_on_worker(self.services.source.trace_record, key.id)
        name = file_name("trace", key.id, *(("step", record["step"]) if record["step"] is not None else ()))
        if file_format == "run_metadata":
            raw = await self.run_on_worker(self.services.source.trace_bytes, key.id)
            suffix = ".xplane.pb" if is_xspace(raw) else ".pb"  # TensorFlow's tools recognize a profile by it
            await self.send_file(name + suffix, BINARY, joined([raw]))
        else:
            suffix, content_type = EXPORTS[file_format]
            file = await self.unless_gone(self.export(key, file_format, record))
            await self.send_file(name + suffix, content_type, read_pieces(file))

    async def export(self, trace: TraceKey, file_format: str, record: TraceRecord) -> IO[bytes]:
        """Export a trace. The standalone page has the verdict and the roofline, which need the run's other traces."""
        analyses = OTHER_TRACES_NEEDED if file_format == "html" else ()
        answers, other_traces = self.services.answers, await self.find_other_traces(trace, *analyses)
        return await answers.export(trace, file_format, record, await other_answers(other_traces, answers))
