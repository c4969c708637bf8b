"""What the hub's handlers work with, as web.guard.Services is for the others. One for a TracingServer."""

from __future__ import annotations

from collections.abc import Callable

from tftracer.contract.job import Job
from tftracer.contract.live import JobChangesUpdate, JobUpdate
from tftracer.job.hub.hub import Hub
from tftracer.job.hub.page_updates import PageUpdates
from tftracer.job.hub.step_request import StepRequests
from tftracer.job.hub.strangers import Strangers
from tftracer.job.hub.traces import JobTraces
from tftracer.job.wire.hub_addresses import HubAddresses
from tftracer.web.guard import Guarded
from tftracer.web.services import Services


class JobServices:
    """``publish`` sends a message to all pages; ``has_viewers`` says whether there are any."""

    def __init__(
        self,
        hub: Hub,
        publish: Callable[[JobUpdate | JobChangesUpdate], None] = lambda message: None,
        has_viewers: Callable[[], bool] = lambda: False,
        communication_ops: str = "",
    ) -> None:
        self.hub = hub
        self.traces = JobTraces(hub, communication_ops)
        self.requests = StepRequests(hub)
        self.updates = PageUpdates(hub, publish, has_viewers)
        self.strangers = Strangers()
        self.addresses = HubAddresses()
        self.other_hub: Job | None = None  # the job as far as it is known here, if its hub is another process

    def job_message(self) -> Job | None:
        """The job; None for a process that is in none. May be called from any thread."""
        return self.hub.job_message() if self.hub.members else self.other_hub


class HubHandler(Guarded):
    """The base of the hub's handlers. Behind all checks of ``Guarded``; has the job's services beside the web server's."""

    job: JobServices

    def initialize(self, services: Services, job: JobServices) -> None:  # type: ignore[override]
        super().initialize(services)
        self.job = job
