"""The graph of what ran: what stands between an op that ran and what it reads, and did not run itself, is passed over.

TensorFlow's profiler leaves out ops, and the optimizer fuses and removes some.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from tftracer.trace.decode.descriptors import message_class
from tftracer.trace.decode.expansion import Expansion

#: So many nodes that did not run are passed on the way from one that did to what it reads.
MAX_PASSED = 1000
SENDS, RECEIVES = (b"_Send", b"_HostSend", b"_SendV2"), (b"_Recv", b"_HostRecv", b"_RecvV2")


def read_by(
    key: str,
    inputs: Mapping[str, list[str]],
    executed: Mapping[str, tuple[str, str]],
    key_of: Callable[[str], str],
    expansion: Expansion,
) -> Iterator[str]:
    """What a node reads among what ran, as a NodeDef's inputs; as far as ``expansion`` has room.

    inputs: key of a node -> what it reads, as a NodeDef has it. executed: key -> (name, device) of what ran.
    key_of: makes keys of names.
    """
    left: list[tuple[str, bool]] = []
    seen = {key}
    if expansion.admits(len(inputs[key])):
        left += [(text, text.startswith("^")) for text in reversed(inputs[key])]
    while left and len(seen) < MAX_PASSED:
        text, control = left.pop()
        name, _, slot = text.lstrip("^").partition(":")
        source = key_of(name)
        if source in executed:
            ran = executed[source][0]
            if not expansion.admits(0, len(ran)):
                return
            yield f"^{ran}" if control else ran + (f":{slot}" if slot and slot != "0" else "")
        elif source in inputs and source not in seen:
            seen.add(source)
            if not expansion.admits(len(inputs[source])):
                return
            left += [(behind, control or behind.startswith("^")) for behind in reversed(inputs[source])]


def of_partitions(graphs: list[Any], executed: Mapping[str, tuple[str, str]], expansion: Expansion) -> Any:
    """One GraphDef of a function's partition graphs, of the nodes that ran. A _Recv reads the _Send of its tensor."""
    nodes = [node for graph in graphs for node in graph.node]
    sends = {channel(node): node.name for node in nodes if node.op.encode() in SENDS}
    inputs: dict[str, list[str]] = {}
    for node in nodes:
        send = sends.get(channel(node), "") if node.op.encode() in RECEIVES else ""
        inputs[node.name] = [send, *node.input] if send else list(node.input)
    result = message_class("GraphDef")()
    for node in nodes:
        ran = executed.get(node.name) or executed.get(_result_name(node))
        if ran is not None:
            result.node.add(name=ran[0], op=node.op, device=ran[1], input=read_by(node.name, inputs, executed, str, expansion))
    return result


def _result_name(node: Any) -> str:
    """TensorFlow 2.15 runs the result ``identity_RetVal`` as ``identity_retval_RetVal``; "" of all else."""
    return f"{node.name.removesuffix('_RetVal')}_retval_RetVal" if node.op == "_Retval" else ""


def channel(node: Any) -> tuple[bytes, bytes, bytes]:
    """What a _Send and its _Recv have in common."""
    return node.attr["tensor_name"].s, node.attr["send_device"].s, node.attr["recv_device"].s
