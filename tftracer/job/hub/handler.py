"""The base of the hub's handlers."""

from __future__ import annotations

from tftracer.job.hub.services import JobServices
from tftracer.web.guard import Guarded
from tftracer.web.services import Services


class HubHandler(Guarded):
    """Behind all checks of ``Guarded``; has the job's services beside the web server's."""

    job: JobServices

    def initialize(self, services: Services, job: JobServices) -> None:  # type: ignore[override]
        super().initialize(services)
        self.job = job
