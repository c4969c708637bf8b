"""The messages between the processes of a job and its hub: msgpack maps over one WebSocket; ``t`` is the kind of message.

The greeting is not encrypted. In it each end proves that it knows the token (see handshake.py): the agent first, so that an
unauthenticated client learns nothing from the hub. Every message after ``welcome`` is sealed, in both directions.

    hub    hello     {version, job, id, nonce}
    agent  join      {job, nonce, dialled, peer, certificate, proof}
    hub    welcome   {proof}                   or  refused {code}
    agent  beat      {steps, steps_per_s, mean_s, between_steps_s, traces, slow_steps, slow_text, time_s,
                     problem}   every interval_s;
                     with ``process`` in the first beat and when the identity has changed; with ``answer`` if the hub has
                     been silent for a while: it answers with its pace
    hub    pace      {interval_s}              or  refused {code}
    agent  bye       {}
    hub    prepare   {job_trace, run_title}    ->  agent  steps    {job_trace, run_title, begun, steps_per_s, servers}
    hub    trace     {job_trace, run_title, step} -> agent armed {job_trace} or late {job_trace}; later
                                               traced {job_trace, step, record} or missed {job_trace, step, why}
    hub    take_back {job_trace}
    hub    fetch     {request, trace}          ->  agent  part     {request, data, last}, error {request, message}
    hub    http      {request, method, path, headers, body} -> agent  head {request, status, headers}, part..., or error
    hub    body      {request, data, last}     after an http with ``streamed``; agent  more {request} for each body it has taken
    hub    more      {request}                 for each part it has taken
    hub    cancel    {request}
    hub    socket    {request}                 ->  agent  text     {request, data, end} (``end``: of a message), part with last
"""

from __future__ import annotations

import contextlib
from typing import Any

import msgpack

from tftracer.errors import FormatError
from tftracer.job.wire.handshake import Endpoint
from tftracer.storage import untrusted

#: The longest message during the greeting, and after it.
STRANGER_BYTES = 1 << 12
MEMBER_BYTES = 1 << 22
#: Bodies are sent in parts of this size, so that a heartbeat never waits long for one.
PART_BYTES = 1 << 18
#: Maximum number of parts that are sent before the other end has taken one of them.
PARTS_IN_FLIGHT = 4
#: A connection that has not proved that it knows the token after this time is closed.
GREETING_S = 10.0

Message = dict[str, Any]


def pack(kind: str, **fields: Any) -> bytes:
    return bytes(msgpack.packb({"t": kind, **fields}))


def unpack(data: Any) -> Message:
    """Parse a message.

    Raises FormatError if it is not one. Read its fields with ``text``, ``number`` and ``seconds``, which check them.
    """
    message = None
    with contextlib.suppress(ValueError, msgpack.UnpackException, RecursionError):
        message = msgpack.unpackb(data, strict_map_key=False) if isinstance(data, bytes) else None
    if not isinstance(message, dict) or not isinstance(message.get("t"), str):
        raise FormatError("The other end of the job does not speak tftracer's protocol.")
    return message


def text(message: Message, key: str, limit: int = 2000) -> str:
    value = message.get(key)
    return value[:limit] if isinstance(value, str) else ""


def endpoint(message: Message) -> Endpoint:
    """Return the hub's endpoint as the agent sees it, from ``join``."""
    return Endpoint(text(message, "dialled", 300), text(message, "peer", 300), text(message, "certificate", 100))


def number(message: Message, key: str) -> int:
    """Return an integer of 0 or more; 0 if the field is missing or invalid."""
    return untrusted.count(message.get(key))


def seconds(message: Message, key: str) -> float | None:
    value = untrusted.number(message.get(key))
    return value if value is not None and 0 <= value < 1e12 else None


def refusal(message: Message, dialled: str = "") -> str:
    """Return why the hub refused. The text is this process's own, because the hub may be an impostor.

    ``dialled``: the hub's address as configured here.
    """
    code = text(message, "code", 100)
    if code == "another_address" and dialled:
        return (
            f"the hub does not know {dialled} as its own address: something between passes the connection on. If that is "
            f"a tunnel, a container's port or a proxy of yours, set TFTRACER_ALLOWED_HOSTS={dialled} for the hub's process."
        )
    return {
        "wrong_token": "it has another token. Set the same TFTRACER_TOKEN for all processes of the job.",
        "another_job": "it is the hub of another job. If that is wrong, set TFTRACER_JOB for all processes.",
        "full": "it has as many processes as it can hold.",
    }.get(code, "it does not let this process in.")
