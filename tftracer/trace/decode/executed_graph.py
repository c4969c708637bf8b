"""Builds the graph of the nodes that ran. A node that did not run is replaced by its inputs.

TensorFlow's profiler leaves out ops, and its graph optimizer fuses and removes some.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from tftracer.trace.decode.descriptors import message_class

#: Every graph may take MIN_BYTES, plus FACTOR times its own size, up to MAX_BYTES. Real steps take 2 to 20 times their size.
MIN_BYTES, FACTOR, MAX_BYTES = 64 << 20, 50, 512 << 20
#: Approximate bytes of one node, input or argument in addition to its text.
ITEM_BYTES = 300
#: At most this many nodes that did not run are skipped between a node that ran and its inputs.
MAX_SKIPPED = 1000
#: Ops that are no work for TensorFlow's executor. Profiles do not record them, except that profiles of some releases record
#: _Retval, the result of a function.
_NO_WORK = ("Const", "NoOp", "_Arg", "_Retval")
SENDS, RECEIVES = (b"_Send", b"_HostSend", b"_SendV2"), (b"_Recv", b"_HostRecv", b"_RecvV2")


class Expansion:
    """Limits the size of a graph when its references are expanded, such as nested calls.

    A file may refer to the same function any number of times at a few bytes each, so the size of the file does not limit the size
    of the graph. ``left``: the number of bytes by which the graph of a file of ``size`` bytes may still grow.
    """

    def __init__(self, size: int) -> None:
        self.left = min(MAX_BYTES, MIN_BYTES + FACTOR * size)

    def admits(self, items: int, characters: int = 0) -> bool:
        """Reserve room for items and characters. Return whether there is enough; after the first False, always False."""
        cost = ITEM_BYTES * items + characters
        self.left = self.left - cost if cost <= self.left else 0
        return self.left > 0


def executed_inputs(
    key: str,
    inputs: Mapping[str, list[str]],
    executed: Mapping[str, tuple[str, str]],
    key_of: Callable[[str], str],
    expansion: Expansion,
) -> Iterator[str]:
    """Yield the nearest nodes that ran among a node's direct and indirect inputs, as long as ``expansion`` has room.

    They have the form of NodeDef.input.

    inputs: key of a node -> its inputs as in the NodeDef. executed: key -> (name, device) of the nodes that ran. key_of: turns
    names into keys.
    """
    to_visit: list[tuple[str, bool]] = []
    seen = {key}
    if expansion.admits(len(inputs[key])):
        to_visit += [(text, text.startswith("^")) for text in reversed(inputs[key])]
    while to_visit and len(seen) < MAX_SKIPPED:
        text, control = to_visit.pop()
        name, _, slot = text.lstrip("^").partition(":")
        source = key_of(name)
        if source in executed:
            producer = executed[source][0]
            if not expansion.admits(0, len(producer)):
                return
            yield f"^{producer}" if control else producer + (f":{slot}" if slot and slot != "0" else "")
        elif source in inputs and source not in seen:
            seen.add(source)
            if not expansion.admits(len(inputs[source])):
                return
            to_visit += [(text, control or text.startswith("^")) for text in reversed(inputs[source])]


def merged_partitions(graphs: list[Any], executed: Mapping[str, tuple[str, str]], expansion: Expansion) -> Any:
    """Merge a function's partition graphs into one GraphDef of the nodes that ran. A _Recv gets its _Send as an input."""
    nodes = [node for graph in graphs for node in graph.node]
    sends = {channel(node): node.name for node in nodes if node.op.encode() in SENDS}
    inputs: dict[str, list[str]] = {}
    for node in nodes:
        send = sends.get(channel(node), "") if node.op.encode() in RECEIVES else ""
        inputs[node.name] = [send, *node.input] if send else list(node.input)
    result = message_class("GraphDef")()
    for node in nodes:
        name_and_device = executed.get(node.name) or executed.get(_result_name(node))
        if name_and_device is not None:
            name, device = name_and_device
            reads = executed_inputs(node.name, inputs, executed, str, expansion)
            result.node.add(name=name, op=node.op, device=device, input=reads)
    return result


def ran_and_left_out(graphs: list[Any], recorded: set[str]) -> tuple[set[str], set[str]]:
    """Return (recorded nodes of the partition graphs, nodes that may have run but were not recorded).

    Nodes that TensorFlow did not run do not count: constants, NoOps, folded constants, and nodes merged with an equal node.
    """
    nodes = {node.name: node for graph in graphs for node in graph.node}
    ran = {name for name, node in nodes.items() if name in recorded or _result_name(node) in recorded}
    recorded_work = {_work_of(nodes[name]) for name in ran}
    constant = {name for name, node in nodes.items() if node.op == "Const"}
    left_out = {name: node for name, node in nodes.items() if name not in ran and node.op not in _NO_WORK}
    while True:
        explained = {name for name, node in left_out.items() if _is_constant(node, constant) or _work_of(node) in recorded_work}
        if not explained:
            return ran, set(left_out)
        constant |= {name for name in explained if _is_constant(left_out[name], constant)}
        left_out = {name: node for name, node in left_out.items() if name not in explained}


def _work_of(node: Any) -> tuple[Any, ...]:
    """Return a key that is equal for nodes that compute the same."""
    attributes = sorted((name, value.SerializeToString()) for name, value in node.attr.items() if not name.startswith("_"))
    return node.op, node.device, tuple(node.input), tuple(attributes)


def _is_constant(node: Any, constant: set[str]) -> bool:
    """Return whether a node has data inputs, and all of them are in ``constant``."""
    inputs = [name.partition(":")[0] for name in node.input if not name.startswith("^")]
    return bool(inputs) and all(name in constant for name in inputs)


def _result_name(node: Any) -> str:
    """Return the name that TensorFlow 2.15 gives to a _Retval node when it runs; "" for other ops.

    ``identity_RetVal`` runs as ``identity_retval_RetVal``.
    """
    return f"{node.name.removesuffix('_RetVal')}_retval_RetVal" if node.op == "_Retval" else ""


def channel(node: Any) -> tuple[bytes, bytes, bytes]:
    """Return the key that a _Send shares with its _Recv."""
    return node.attr["tensor_name"].s, node.attr["send_device"].s, node.attr["recv_device"].s
