"""The data in a standalone HTML page, which replaces the server."""

from __future__ import annotations

from typing import TypedDict

from tftracer.contract.basics import Column, Strings
from tftracer.contract.session import SessionMessage, TraceRecord


class Texts(TypedDict):
    """A column of texts."""

    code: Column  # index into texts
    texts: Strings


class Records(TypedDict):
    """Records as columns, one for each field."""

    numbers: dict[str, Column]  # null: NaN, or the lowest value in a column of i4
    flags: dict[str, Column]  # u1
    texts: dict[str, Texts]


class Links(TypedDict):
    """A list of NodeRefs for each record."""

    offsets: Column  # [records + 1] into ``node``
    node: Column  # -1 - i: the op named not_run[i], which was not executed


class NodeTable(TypedDict):
    """The data of every node (client/nodes.ts builds a NodeDetail from it on request), and the graph's edges."""

    nodes: int
    fields: Records
    links: dict[str, Links]
    not_run: Strings
    output_offsets: Column  # [nodes + 1] into outputs
    outputs: Records
    input_offsets: Column  # [nodes + 1] into input
    input: Column  # the nodes that each node waited for, data and control


class Embedded(TypedDict):
    """The data of a standalone HTML page (msgpack, deflated, base64): the answers that the live page requests, by their paths."""

    session: SessionMessage
    trace: TraceRecord
    answers: dict[str, bytes]  # "timeline", "verdict", "ops?by=type", ... -> msgpack body
    nodes: NodeTable
