"""One trace as one HTML file: the same viewer as the page, with its answers inside. It asks nobody for anything.

Script, style and data are in the file; a content security policy forbids any request. The script and the data are deflated and
in base64, which a few lines in the page undo: nothing of a trace is ever parsed as HTML or as script.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import html
import os
import platform
import re
import zlib
from collections.abc import Mapping
from importlib import resources
from typing import IO, Any

import msgpack

from tftracer.errors import StorageError
from tftracer.export import tables
from tftracer.export.details import node_details
from tftracer.trace.answers import Answers
from tftracer.version import __version__
from tftracer.web.messages import Embedded, Run, Session, SessionMessage, TraceRecord

#: A page that is written in a moment: a higher level saves a tenth of the size and takes four times as long.
_LEVEL = 1

#: Of the tables that have a row for each name or tensor, the page carries the longest: all 8,009 would be most of its size.
_ROWS = 500

_REST_OF_POLICY = "style-src 'unsafe-inline'; img-src data: blob:; font-src data:"

#: The front-end inflates data and script itself; this starts the script.
_LOADER = """(async()=>{const b=atob(document.getElementById("tftracer-script").textContent.trim());\
const u=Uint8Array.from(b,c=>c.charCodeAt(0));\
const s=new Blob([u]).stream().pipeThrough(new DecompressionStream("deflate"));\
const e=document.createElement("script");e.textContent=await new Response(s).text();document.body.append(e)})()\
.catch(e=>{document.getElementById("app").textContent="This page needs a browser of 2023 or later ("+e+")."})"""


def write_html(answers: Answers, record: TraceRecord, file: IO[bytes], session: SessionMessage | None = None) -> None:
    """Write the page. ``record`` is the trace's, ``session`` the session that it belongs to (default: one of its own)."""
    message = session or session_of(record)
    title = html.escape(f"{answers.context.title or 'session.run'} · step {record['step']} · tftracer")
    script, digest = _bundle()
    policy = f"default-src 'none'; script-src '{_hash(_LOADER)}' '{digest}'; {_REST_OF_POLICY}"
    parts = [
        "<!doctype html>\n",
        '<html lang="en"><head><meta charset="utf-8">\n',
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n',
        '<meta name="viewport" content="width=device-width, initial-scale=1"><meta name="referrer" content="no-referrer">\n',
        f"<title>{title}</title>\n<style>{_style()}</style></head>\n",
        f'<body><div id="app"></div>\n<noscript>{title}: this page needs JavaScript.</noscript>\n',
        '<script type="application/octet-stream" id="tftracer-data">',
        _packed(embedded(answers, record, message)),
        f'</script>\n<script type="application/octet-stream" id="tftracer-script">{script}</script>\n',
        f"<script>{_LOADER}</script>\n</body></html>\n",
    ]
    for part in parts:
        file.write(part.encode("utf-8"))


def embedded(answers: Answers, record: TraceRecord, session: SessionMessage) -> Embedded:
    """What the page carries: each answer under the path that the live page asks for, as msgpack.

    What ``node_details`` has of each node is left out of the others, and long lists are columns: the page puts them together
    (frontend/src/client/details.ts and tables.ts).
    """
    asked: dict[str, Mapping[str, Any]] = {
        "timeline": _drawn(answers, record["id"]),
        "verdict": answers.verdict(),
        "ops?by=type": answers.ops("type"),
        "ops?by=name": tables.op_statistics(answers, "name", _ROWS),
        "ops?by=scope": tables.op_statistics(answers, "scope", _ROWS),
        "breakdown": answers.breakdown(),
        "critical-path": tables.critical_path_of(answers),
        "memory": tables.memory_use(answers, _ROWS),
        "communication": answers.communication(),
        "scheduling": answers.scheduling(),
        "cost": answers.cost(),
    }
    packed = {name: msgpack.packb(answer, use_bin_type=True) for name, answer in asked.items()}
    return {"session": session, "trace": record, "answers": packed, "node_details": node_details(answers)}


#: The timeline's columns that are those of node_details, in another order.
_OF_NODES = frozenset(["start", "duration", "delay", "name", "op", "kind", "critical", "names", "ops"])


def _drawn(answers: Answers, trace_id: int) -> dict[str, Any]:
    timeline = {name: value for name, value in answers.timeline().items() if name not in _OF_NODES}
    return {**timeline, "trace_id": trace_id}


def _packed(message: Embedded) -> str:
    return base64.b64encode(zlib.compress(msgpack.packb(message, use_bin_type=True), _LEVEL)).decode("ascii")


# ------------------------------------------------------------------------------------------------------------ the bundle


@functools.lru_cache(maxsize=1)
def _bundle() -> tuple[str, str]:
    """The script, deflated in base64, and its hash for the content security policy: as the build of the page leaves them."""
    digest, script = _asset("standalone.script").splitlines()
    return script, digest


def _hash(script: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(script.encode("utf-8")).digest()).decode("ascii")


@functools.lru_cache(maxsize=1)
def _style() -> str:
    """In a style element nothing but its own end tag is special."""
    return re.sub(r"</(?=style)", r"<\\/", _asset("standalone.css"), flags=re.IGNORECASE)


def _asset(name: str) -> str:
    try:
        return resources.files("tftracer").joinpath("static", name).read_text(encoding="utf-8")
    except OSError as error:
        raise StorageError(
            f"{name} is missing in tftracer/static: the package is incomplete. Install it again, or run `make frontend`"
        ) from error


# ------------------------------------------------------------------------------------- a trace that belongs to no session


def describe(answers: Answers) -> TraceRecord:
    """The record of a trace that no session recorded: a Timeline's, or a single file's."""
    trace, context = answers.trace, answers.context
    return {
        "id": 1,
        "run_id": 1,
        "step": context.step or 1,
        "started_at": trace.origin_ns / 1e9,
        "duration_s": context.step_s if context.step_s is not None else trace.duration_ns / 1e9,
        "median_s": context.median_s,
        "nodes": trace.n,
        "bytes": len(trace.raw),
        "stored_bytes": len(trace.raw),
        "devices": [device.name for device in trace.devices if not device.repeats],
        "asked_by": "script",
        "findings": answers.findings(),
        "headline": answers.verdict()["sentences"][0]["text"],
        "note": "",
        "state": "ready",
    }


def session_of(record: TraceRecord) -> SessionMessage:
    """A session that consists of this one trace."""
    run: Run = {
        "id": record["run_id"],
        "title": "session.run",
        "origin": "",
        "fetches": [],
        "feeds": [],
        "options": "",
        "steps": 1,
        "mean_s": record["duration_s"],
        "p50_s": record["duration_s"],
        "p95_s": record["duration_s"],
        "min_s": record["duration_s"],
        "max_s": record["duration_s"],
        "last_s": record["duration_s"],
        "first_run_at": record["started_at"],
        "last_run_at": record["started_at"],
        "pending_traces": 0,
        "between_steps_s": None,
        "traced_overhead_s": None,
        "recent_s": [],
        "traces": [record],
    }
    session: Session = {
        "id": "timeline",
        "host": platform.node(),
        "pid": os.getpid(),
        "rank": None,
        "place": {"rank": None, "size": None, "local_rank": None, "role": "", "task": None, "launcher": ""},
        "tensorflow": "",
        "tftracer": __version__,
        "python": platform.python_version(),
        "command": "",
        "gpus": None,
        "started_at": record["started_at"],
        "ended_at": record["started_at"] + record["duration_s"],
        "active": False,
        "trace_all": False,
        "live": False,
        "file": "",
        "steps_lost": 0,
        "hook_cost_s": None,
        "problems": [],
        "cut": "",
    }
    return {"session": session, "runs": [run]}
