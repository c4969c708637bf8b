"""All routes of this server. Those of a job's hub (job/routes.py) come between ``API`` and ``PAGES``."""

from __future__ import annotations

from typing import Any

from tftracer.contract.analyses import ANALYSES, Analysis
from tftracer.web import downloads, handlers, login_handlers, pages, trace_handlers
from tftracer.web.base_handler import Guarded
from tftracer.web.live_sockets import LiveHandler

#: Pattern, handler, and the handler's arguments other than the services.
Route = tuple[str, type[Guarded], dict[str, Any]]


def path_of(analysis: Analysis) -> str:
    """Return the pattern of an analysis's path below ``/api/traces/``."""
    return f"(?P<trace>[^/]+)/{analysis.path.replace('{index}', '(?P<index>[^/]+)')}"


API: list[Route] = [
    (r"/api/session", handlers.SessionHandler, {}),
    (r"/api/session/file", downloads.SessionFileHandler, {}),
    (r"/api/runs/(?P<run>[^/]+)/steps", handlers.ReadHandler, {"method": "step_times", "packed": True}),
    (r"/api/runs/(?P<run>[^/]+)/ops", trace_handlers.RunOpsHandler, {}),
    (r"/api/runs/(?P<run>[^/]+)/trace", handlers.TraceRequestHandler, {}),
    (r"/api/runs/(?P<run>[^/]+)/stalls", handlers.ReadHandler, {"method": "run_stalls"}),
    (r"/api/runs/(?P<run>[^/]+)/gaps", handlers.GapsHandler, {"method": "gaps"}),
    (r"/api/ledger", handlers.ReadHandler, {"method": "ledger"}),
    (r"/api/input-pipelines", handlers.ReadHandler, {"method": "input_pipelines"}),
    (r"/api/memory-growth", handlers.ReadHandler, {"method": "memory_growth"}),
    (r"/api/stalls", handlers.ReadHandler, {"method": "all_stalls"}),
    (r"/api/stalls/(?P<stall>[^/]+)", handlers.ReadHandler, {"method": "stall"}),
    (r"/api/tracing", handlers.TracingHandler, {}),
    (r"/api/traces/(?P<trace>[^/]+)", handlers.ReadHandler, {"method": "trace_record", "packed": False}),
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
#: The last routes match everything else.
PAGES: list[Route] = [
    (r"/api(?:/.*)?", handlers.UnknownRoute, {}),
    (r"/login", login_handlers.LoginHandler, {}),
    (r"/login\.css", login_handlers.LoginStyleHandler, {}),
    (r"(?:/.*)?", pages.AppHandler, {}),
]
