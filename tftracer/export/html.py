"""Writes one trace as one HTML file: the same viewer as the page, with the answers inside the file.

Script, style and data are in the file; a content security policy forbids any request. The script and the data are deflated and
base64-encoded, so that nothing of a trace is ever parsed as HTML or as script.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import html
import re
import zlib
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from importlib import resources
from typing import Any
from urllib.parse import urlencode

import msgpack

from tftracer.contract.analyses import ANALYSES, NO_OTHER_ANSWERS, OtherAnswers
from tftracer.contract.session import SessionMessage, TraceRecord
from tftracer.contract.standalone import Embedded
from tftracer.errors import StorageError
from tftracer.export.node_table import node_table
from tftracer.trace.answers import Answers

#: zlib's level. For 8,009 nodes, level 1 writes 5% more in two thirds of the time, and level 6 writes 5% less in more than twice
#: the time.
_LEVEL = 3

_REST_OF_POLICY = "style-src 'unsafe-inline'; img-src data: blob:; font-src data:"

#: Inflates and starts the script, which then inflates the data.
_LOADER = """(async()=>{const b=atob(document.getElementById("tftracer-script").textContent.trim());\
const u=Uint8Array.from(b,c=>c.charCodeAt(0));\
const s=new Blob([u]).stream().pipeThrough(new DecompressionStream("deflate"));\
const e=document.createElement("script");e.textContent=await new Response(s).text();document.body.append(e)})()\
.catch(e=>{document.getElementById("app").textContent="This page needs a browser of 2023 or later ("+e+")."})"""


@functools.lru_cache(maxsize=1)
def page_script() -> tuple[str, str]:
    """Return the script, deflated and base64-encoded, and its hash for the content security policy. The build makes both."""
    digest, deflated = _asset("standalone.script").splitlines()
    return deflated, digest


@functools.lru_cache(maxsize=1)
def _page_style() -> str:
    return inside_style_element(_asset("standalone.css"))


def inside_style_element(css: str) -> str:
    """Escape CSS for a style element: it may contain anything except the element's end tag."""
    return re.sub(r"</(?=style)", r"<\\/", css, flags=re.IGNORECASE)


def _asset(name: str) -> str:
    try:
        return resources.files("tftracer").joinpath("static", name).read_text(encoding="utf-8")
    except OSError as error:
        raise StorageError(
            f"{name} is missing in tftracer/static: the package is incomplete. Install it again, or run `make frontend`"
        ) from error


def page_of(answers: Answers, record: TraceRecord, session: SessionMessage, others: OtherAnswers = NO_OTHER_ANSWERS) -> list[str]:
    """Return the page in parts. ``record``, ``session``: of this trace. ``others``: the answers of the run's other traces."""
    step = f" · step {record['step']:,}" if record["step"] is not None else ""
    title = html.escape(f"{answers.context.title or 'session.run'}{step} · tftracer")
    script, digest = page_script()
    policy = f"default-src 'none'; script-src '{_hash(_LOADER)}' '{digest}'; {_REST_OF_POLICY}"
    return [
        "<!doctype html>\n",
        '<html lang="en"><head><meta charset="utf-8">\n',
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n',
        '<meta name="viewport" content="width=device-width, initial-scale=1"><meta name="referrer" content="no-referrer">\n',
        f"<title>{title}</title>\n<style>{_page_style()}</style></head>\n",
        f'<body><div id="app"></div>\n<noscript>{title}: this page needs JavaScript.</noscript>\n',
        '<script type="application/octet-stream" id="tftracer-data">',
        _data(answers, record, session, others),
        f'</script>\n<script type="application/octet-stream" id="tftracer-script">{script}</script>\n',
        f"<script>{_LOADER}</script>\n</body></html>\n",
    ]


def _data(answers: Answers, record: TraceRecord, session: SessionMessage, others: OtherAnswers) -> str:
    """Return the deflated data. A second thread deflates while the next part is built: zlib releases the GIL."""
    deflate = zlib.compressobj(_LEVEL)
    with ThreadPoolExecutor(1) as thread:
        parts = [thread.submit(deflate.compress, part) for part in _parts(answers, record, session, others)]
    deflated = b"".join([*(part.result() for part in parts), deflate.flush()])
    return base64.b64encode(deflated).decode("ascii")


def _parts(answers: Answers, record: TraceRecord, session: SessionMessage, others: OtherAnswers) -> Iterator[bytes]:
    """Yield a message of the type ``Embedded`` in parts; first its nodes, because they take longest to deflate."""
    packer = msgpack.Packer()
    yield packer.pack_map_header(len(Embedded.__annotations__))
    yield packer.pack("nodes") + packer.pack(node_table(answers))
    bodies = {path: packer.pack(answer) for path, answer in _answers(answers, record, others)}
    yield packer.pack("answers") + packer.pack(bodies)
    yield packer.pack("trace") + packer.pack(record) + packer.pack("session") + packer.pack(session)


def _answers(answers: Answers, record: TraceRecord, others: OtherAnswers) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield (path that the live page requests, answer) of each analysis, except analyses of one node, which are in the node
    table.

    Long tables are limited to their first rows: for 8,009 nodes, all rows would be most of the page's size.
    """
    answers.on_critical_path()  # the path is computed first, so that the timeline marks it
    for analysis in ANALYSES:
        if "index" in analysis.parameters:
            continue
        options: dict[str, Any] = {"other_traces": others.get(analysis.name, ())} if analysis.other_traces else {}
        if analysis.standalone_rows:
            options["limit"] = analysis.standalone_rows
        for arguments in analysis.choices():
            query = f"?{urlencode(arguments)}" if arguments else ""
            answer = getattr(answers, analysis.name)(**arguments, **options)
            yield analysis.path + query, {**answer, "trace_id": record["id"]} if "trace_id" in answer else answer


def _hash(script: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(script.encode("utf-8")).digest()).decode("ascii")
