"""The hub's part of the HTTP API: the job, its traces, and every process's own page, which the hub passes on.

Like web/handlers.py: the handlers check their arguments and pass them on.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from tornado.httputil import HTTPHeaders
from tornado.iostream import StreamClosedError
from tornado.websocket import WebSocketClosedError

from tftracer.contract.analyses import ANALYSES, Analysis
from tftracer.contract.encoding import encode
from tftracer.errors import TracerError, UnknownError
from tftracer.job.analyses.answers import JobAnswers
from tftracer.job.hub.connection import AgentConnection
from tftracer.job.hub.hub import MAX_PROCESSES
from tftracer.job.hub.replies import Reply, failure
from tftracer.job.hub.services import HubHandler, JobServices
from tftracer.job.saved.job import job_file
from tftracer.job.wire.protocol import Message, number
from tftracer.web.downloads import BINARY, UPLOAD_BYTES, Download, allow_upload, file_name
from tftracer.web.handlers import ApiHandler, LinkHandler, SignOutHandler
from tftracer.web.live_sockets import BrowserSocket
from tftracer.web.pages import AppHandler
from tftracer.web.refusal import Refusal
from tftracer.web.routes import Route, path_of
from tftracer.web.services import Services
from tftracer.web.static_files import Static
from tftracer.web.trace_handlers import AnalysisArguments

SLOW_READER_S = 60.0
#: The headers of a process's answer that the browser gets.
FORWARDED_HEADERS = (
    *("Content-Type", "Content-Encoding", "Content-Disposition", "Content-Length"),
    *("Etag", "Cache-Control", "Vary", "Allow", "Retry-After"),
)


class JobHandler(HubHandler, ApiHandler):
    async def get(self) -> None:
        job = self.job.job_message()
        if job is None:
            raise UnknownError("This process is in no job; docs/launching.rst says how the processes of a job find each other.")
        self.send_json(job)


class JobTraceRequestHandler(HubHandler, ApiHandler):
    """Trace the same step on all processes, or on some."""

    async def post(self) -> None:
        body = self.json() if self.body else {}
        processes, title = body.get("processes"), body.get("run_title", "")
        valid = processes is None or (isinstance(processes, list) and 0 < len(processes) <= MAX_PROCESSES)
        if not valid or not isinstance(title, str) or not all(isinstance(p, str) for p in processes or []):
            raise Refusal(400, "bad_body", 'The body must be {"processes": [ID...], "run_title": TEXT}; both may be left out.')
        self.send_json(self.job.requests.start(processes, title))


class JobTraceHandler(HubHandler, ApiHandler):
    """One traced step of the job: the state of the request; DELETE takes it back."""

    async def get(self, trace: str) -> None:
        self.send_json(self.job.hub.trace(self.number(trace, "trace")).message)

    async def delete(self, trace: str) -> None:
        self.send_json(self.job.requests.take_back(self.number(trace, "trace")))


class JobAnswerBase(HubHandler, ApiHandler):
    """Answers about one traced step of the job."""

    async def answer(self, trace: str, question: Callable[[JobAnswers], Mapping[str, Any]], packed: bool) -> None:
        encoding, trace_id = self.accepted_encoding(), self.number(trace, "trace")

        def work(answers: JobAnswers) -> Any:
            return encode(question(answers), packed, encoding)

        await self.send_body(await self.unless_gone(self.job.traces.ask(trace_id, work)))


class JobAnswerHandler(JobAnswerBase, AnalysisArguments):
    """An analysis that both a job's trace and a process's trace have."""

    def initialize(self, services: Services, job: JobServices, analysis: Analysis) -> None:  # type: ignore[override]
        super().initialize(services, job)
        self.analysis = analysis

    async def get(self, trace: str, index: str = "") -> None:
        name, arguments = self.analysis.name, self.arguments_of_analysis(index)
        await self.answer(trace, lambda answers: answers.answer(name, arguments), self.is_packed())


class JobAnalysisHandler(JobAnswerBase):
    """The clocks, collectives, links and slow processes of this step, and the slow processes of the job's latest steps."""

    async def get(self, trace: str) -> None:
        traced = self.job.hub.trace(self.number(trace, "trace"))
        steps = await self.unless_gone(self.job.traces.latest(traced))
        stragglers = await self.job.traces.work(lambda: [step.stragglers() for step in steps])
        await self.answer(trace, lambda a: a.analysis(stragglers), self.is_packed())


class JobFileHandler(HubHandler, Download):
    """The job as one file: the hub's own session, and every traced step of all ranks."""

    async def get(self) -> None:
        chunks = await job_file(self.job, self.services.source)
        name = file_name("tftracer", "job", self.job.hub.name)
        await self.send_file(f"{name}.tftrace", BINARY, chunks)


# ------------------------------------------------------------------------------------------- a process's page, passed on


class ProcessPageHandler(HubHandler, AppHandler):
    """The page of another process: this server's page with another base URL. Only its API requests are forwarded."""

    def _split(self) -> tuple[str, str]:
        """Return ``/job/processes/ID`` and the rest of the path."""
        parts = re.fullmatch(r"(/job/processes/[^/]+)(/.*)?", super().inner_path())
        return (parts[1], parts[2] or "/") if parts else ("", "/")

    def inner_path(self) -> str:
        return self._split()[1]

    def base(self) -> str:
        return self._split()[0]

    def get(self, **named: str) -> None:
        self.job.hub.connection(named["process"])
        base, rest = self._split()
        if "." not in rest.rpartition("/")[2]:
            self.services = replace(self.services, static=Static(self.services.path_prefix + base))
        super().get()


class ProcessApiHandler(HubHandler, Download):
    """Forwards an API request to one process, and its answer."""

    async def get(self, process: str, path: str) -> None:
        with contextlib.suppress(StreamClosedError):
            async with self.ask(process, path, body=self.body) as reply:
                await self.send_answer(reply)

    post = put = delete = get

    def ask(self, process: str, path: str, **body: Any) -> contextlib.AbstractAsyncContextManager[Reply]:
        connection = self.job.hub.connection(process)
        query = f"?{self.request.query}" if self.request.query else ""
        headers = dict(self.request.headers.get_all())
        return connection.ask("http", method=self.request.method, path=path + query, headers=headers, **body)

    async def send_answer(self, reply: Reply) -> None:
        self._set_head(await self.unless_gone(reply.head()))
        try:
            async for part in reply.parts():
                self.write(part)
                await self.flush()
        except TracerError as problem:  # the process has disconnected, or its answer broke off
            self.break_off(problem)

    def _set_head(self, head: Message) -> None:
        self.set_status(min(max(number(head, "status"), 200), 599))
        given = head.get("headers")
        headers = HTTPHeaders({k: v for k, v in given.items() if isinstance(v, str)} if isinstance(given, dict) else {})
        for name in FORWARDED_HEADERS:
            if name in headers:
                self.set_header(name, headers[name])

    def compute_etag(self) -> str | None:
        return None  # the process sends its own


class ProcessFileHandler(ProcessApiHandler):
    """A process's session as a file. An upload is forwarded as it arrives: the hub holds only a few parts of it."""

    body_type = BINARY
    body_limit = UPLOAD_BYTES
    _upload: Reply | None = None
    _problem: Exception | None = None  # raised once the request's body has been read

    def prepare(self) -> None:
        super().prepare()
        self._asked = contextlib.AsyncExitStack()
        if self.request.method == "POST":
            allow_upload(self.request)

    async def data_received(self, chunk: bytes) -> None:
        try:
            if self._upload is None and self._problem is None:
                self._upload = await self._asked.enter_async_context(self.ask(**self.path_kwargs, streamed=True))
        except (TracerError, Refusal) as problem:
            self._problem = problem
        if self._upload is not None:
            await self._upload.send_body(chunk)

    async def post(self, process: str, path: str) -> None:
        if self._problem is not None:
            raise self._problem
        if self._upload is None:
            raise Refusal(400, "bad_body", f"The body must be a session file, as {BINARY}.")
        async with self._asked:
            with contextlib.suppress(StreamClosedError):
                await self._upload.send_body(b"", last=True)
                await self.send_answer(self._upload)

    def on_connection_close(self) -> None:
        super().on_connection_close()
        if self._upload is not None:
            self._upload.put(failure(0, "The browser disconnected."))
            self._closing = asyncio.ensure_future(self._asked.aclose())


class ProcessLiveHandler(HubHandler, BrowserSocket):
    """Forwards a process's live messages."""

    _task: asyncio.Task[None] | None = None

    def open(self, *arguments: str, **named: str) -> None:
        super().open(*arguments, **named)
        self._task = asyncio.ensure_future(self._forward(named["process"]))

    def on_close(self) -> None:
        super().on_close()
        if self._task is not None:
            self._task.cancel()

    async def _forward(self, process: str) -> None:
        try:
            async with self.job.hub.connection(process).ask("socket") as reply:
                async for text in reply.messages():
                    await asyncio.wait_for(self.write_message(text), SLOW_READER_S)
        except (TracerError, Refusal, WebSocketClosedError, StreamClosedError, asyncio.TimeoutError):
            pass
        self.close(1001, "the process has disconnected")


def routes(job: JobServices) -> list[Route]:
    """Return the hub's routes, which must come before the catch-all routes."""
    trace_path = r"/api/job/traces/(?P<trace>[^/]+)"
    process_path = r"/job/processes/(?P<process>[^/]+)"
    with_job = {"job": job}
    return [
        (r"/api/job", JobHandler, with_job),
        (r"/api/job/agents", AgentConnection, with_job),
        (r"/api/job/trace", JobTraceRequestHandler, with_job),
        (r"/api/job/file", JobFileHandler, with_job),
        (trace_path, JobTraceHandler, with_job),
        *(
            (f"/api/job/traces/{path_of(analysis)}", JobAnswerHandler, {**with_job, "analysis": analysis})
            for analysis in ANALYSES
            if analysis.of_job
        ),
        (rf"{trace_path}/analysis", JobAnalysisHandler, with_job),
        (rf"{process_path}/api/live", ProcessLiveHandler, with_job),
        (rf"{process_path}/api/links", LinkHandler, {}),
        (rf"{process_path}/api/sign-out", SignOutHandler, {}),
        (rf"{process_path}(?P<path>/api/session/file)", ProcessFileHandler, with_job),
        (rf"{process_path}(?P<path>/api/.*)", ProcessApiHandler, with_job),
        (rf"{process_path}(?:/.*)?", ProcessPageHandler, with_job),
    ]
