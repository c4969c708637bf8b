"""Every route of this server, in one table. Those of a job's hub are in job/routes.py and stand between these two."""

from __future__ import annotations

from typing import Any

from tftracer.contract.analyses import ANALYSES, Analysis
from tftracer.web import downloads, handlers, pages, slow_handlers, trace_handlers
from tftracer.web.guard import Guarded
from tftracer.web.live import LiveHandler

#: Pattern, handler, and what the handler is initialized with beside the services.
Route = tuple[str, type[Guarded], dict[str, Any]]


def path_of(analysis: Analysis) -> str:
    """The pattern of its path, behind the folder of the traces."""
    return f"(?P<trace>[^/]+)/{analysis.path.replace('{index}', '(?P<index>[^/]+)')}"


API: list[Route] = [
    (r"/api/session", handlers.SessionHandler, {}),
    (r"/api/session/file", downloads.SessionFileHandler, {}),
    (r"/api/runs/(?P<run>[^/]+)/steps", handlers.StepsHandler, {}),
    (r"/api/runs/(?P<run>[^/]+)/ops", trace_handlers.RunOpsHandler, {}),
    (r"/api/runs/(?P<run>[^/]+)/trace", handlers.TraceRequestHandler, {}),
    (r"/api/runs/(?P<run>[^/]+)/stalls", slow_handlers.RunStallsHandler, {}),
    (r"/api/runs/(?P<run>[^/]+)/gaps", slow_handlers.GapsHandler, {}),
    (r"/api/ledger", slow_handlers.LedgerHandler, {}),
    (r"/api/input-pipelines", slow_handlers.InputPipelinesHandler, {}),
    (r"/api/memory-growth", slow_handlers.MemoryGrowthHandler, {}),
    (r"/api/stalls", slow_handlers.StallsHandler, {}),
    (r"/api/stalls/(?P<stall>[^/]+)", slow_handlers.StallHandler, {}),
    (r"/api/tracing", handlers.TracingHandler, {}),
    (r"/api/traces/(?P<trace>[^/]+)", handlers.TraceHandler, {}),
    (r"/api/traces/(?P<trace>[^/]+)/note", handlers.NoteHandler, {}),
    (r"/api/traces/(?P<trace>[^/]+)/bookmarks", handlers.BookmarksHandler, {}),
    (r"/api/traces/(?P<trace>[^/]+)/file", downloads.TraceFileHandler, {}),
    *((f"/api/traces/{path_of(analysis)}", trace_handlers.AnalysisHandler, {"analysis": analysis}) for analysis in ANALYSES),
    (r"/api/compare", trace_handlers.CompareHandler, {}),
    (r"/api/links", handlers.LinkHandler, {}),
    (r"/api/sign-out", handlers.SignOutHandler, {}),
    (r"/api/shutdown", handlers.ShutdownHandler, {}),
    (r"/api/live", LiveHandler, {}),
]
#: The last ones answer for everything else.
PAGES: list[Route] = [
    (r"/api(?:/.*)?", handlers.UnknownRoute, {}),
    (r"/login", pages.LoginHandler, {}),
    (r"/login\.css", pages.LoginStyleHandler, {}),
    (r"(?:/.*)?", pages.AppHandler, {}),
]
