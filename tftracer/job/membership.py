"""Lets a TracingServer take part in a job: this process may be the job's hub, and it joins the hub if there is one.

May be used from any thread. Never raises into a training script.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from tftracer.contract.job import Job
from tftracer.contract.live import JobChangesUpdate, JobUpdate
from tftracer.job.agent.agent import Agent
from tftracer.job.agent.discovery import PORT, OwnPage, Plan, make_plan
from tftracer.job.hub.hub import Hub
from tftracer.job.hub.services import JobServices
from tftracer.job.routes import routes
from tftracer.job.saved.job import load_job
from tftracer.job.saved.profile_of_hosts import load_hosts
from tftracer.job.wire.accepted_addresses import HubAddresses, digest_of_file
from tftracer.session.files.saved import SavedSession
from tftracer.web.app import JobPages

if TYPE_CHECKING:
    from tftracer.session.live import Recorder
    from tftracer.web.app import WebServer


def port_of(server_port: int, local_rank: int | None) -> int:
    """Return the port to use: the default port plus the local rank; any other port unchanged.

    So the process with local rank 0 of each host has the expected port.
    """
    return server_port + local_rank if server_port == PORT and local_rank and local_rank < 10_000 else server_port


class JobMembership:
    """A process's part in its job: ``attach`` it to the web server that has its ``pages``, then ``start`` it."""

    def __init__(self, recorder: Recorder, hub: str = "", shared_token: bool = False) -> None:
        """hub: host:port or URL, as in TFTRACER_HUB; shared_token: the user set the token, so the hub may have the same."""
        session = recorder.session()
        self._recorder = recorder
        try:
            self.plan = make_plan(session["place"], os.environ, hub, shared_token)
        except ValueError as problem:
            recorder.add_problem("job", f"This process is not on its job's page. {problem}")
            self.plan = Plan("", False, (), (), shared_token)
        self._web: WebServer | None = None
        self._agent: Agent | None = None
        self.hub = Hub(session["id"], self.plan.job)
        self._job = JobServices(self.hub, self._publish, self._has_viewers, recorder.communication_ops)

    @property
    def pages(self) -> JobPages:
        """The hub's part of the web server."""
        return JobPages(routes(self._job), self._job.job_message, self.hub.connected, self._job.strangers.__len__)

    def attach(self, web: WebServer) -> None:
        """Give the hub the address of its web server. ``web``: the server of ``pages``."""
        self._web = web
        self.hub.path = web.path
        self.hub.address = lambda: web.address
        self._job.addresses = self._addresses(web)

    def _publish(self, message: JobUpdate | JobChangesUpdate) -> None:
        if self._web is not None:
            self._web.publish(message)

    def _has_viewers(self) -> bool:
        return self._web is not None and self._web.has_browsers

    def _addresses(self, web: WebServer) -> HubAddresses:
        addresses = HubAddresses(certificate=digest_of_file(web.options.certfile))
        addresses.know(target.host for target in (*self.plan.given, *self.plan.guessed))
        addresses.allow(os.environ.get("TFTRACER_ALLOWED_HOSTS", ""))
        addresses.behind(web.options.base_url)
        return addresses

    def start(self) -> None:
        """Start to join the job's hub; the agent joins again after each lost connection. A second call makes it try now."""
        if self._web is None:
            return
        self._job.addresses = self._addresses(self._web)  # the certificate may have been renewed since the last start
        if self.plan.has_no_job:
            return
        if self._agent is None:
            self._agent = Agent(self._recorder, self.plan, self._own_page, self._web.token, self._hub_changed)
            self._agent.start()
        else:
            self._agent.wake()

    def stop(self) -> None:
        if self._agent is not None:
            self._agent.stop()
        self._job.traces.close()

    def _own_page(self) -> OwnPage | None:
        web = self._web
        if web is None or not web.running:
            return None
        return OwnPage(web.options.ip, web.port, bool(web.options.certfile), web.path, web.token)

    def _hub_changed(self, job: Job | None) -> None:
        """Handle that this process has joined a hub in another process, or has lost it (None). Called on the agent's thread."""
        self._job.other_hub = job
        message = self._job.job_message()
        if message is not None:
            self._publish({"type": "job", "payload": message})


def saved_job_pages(path: str, source: SavedSession) -> JobPages:
    """Return the pages of the job in a session file, or of the hosts of a profile in a folder; no pages if there is no job."""
    job = JobServices(Hub("", ""))
    has_job = load_hosts(job, source, path) or load_job(job, path)
    return JobPages(routes(job), job.job_message) if has_job else JobPages()
