"""The graph of what ran: what stands between an op that ran and what it reads, and did not run itself, is passed over.

TensorFlow's profiler leaves out ops, and the optimizer fuses and removes some.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from tftracer.trace.decode.descriptors import message_class
from tftracer.trace.decode.expansion import Expansion

#: How many nodes that did not run are followed from one that did to what it reads.
MAX_PASSED = 1000
#: Ops that an executor has no work for: they are in no profile. So are results of functions on some releases.
_NO_WORK = ("Const", "NoOp", "_Arg", "_Retval")
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


def ran_and_left_out(graphs: list[Any], recorded: set[str]) -> tuple[set[str], set[str]]:
    """(nodes of partition graphs that were recorded, nodes that may have run and were not).

    An executor has no work for constants and for NoOps. Before it runs a graph it computes what depends on constants alone, and
    of nodes that are alike it runs one.
    """
    nodes = {node.name: node for graph in graphs for node in graph.node}
    ran = {name for name, node in nodes.items() if name in recorded or _result_name(node) in recorded}
    alike = {_work_of(nodes[name]) for name in ran}
    constant = {name for name, node in nodes.items() if node.op == "Const"}
    left_out = {name: node for name, node in nodes.items() if name not in ran and node.op not in _NO_WORK}
    while True:
        known = {name for name, node in left_out.items() if _is_constant(node, constant) or _work_of(node) in alike}
        if not known:
            return ran, set(left_out)
        constant |= {name for name in known if _is_constant(left_out[name], constant)}
        left_out = {name: node for name, node in left_out.items() if name not in known}


def _work_of(node: Any) -> tuple[Any, ...]:
    """What two nodes have in common that compute the same."""
    attributes = sorted((name, value.SerializeToString()) for name, value in node.attr.items() if not name.startswith("_"))
    return node.op, node.device, tuple(node.input), tuple(attributes)


def _is_constant(node: Any, constant: set[str]) -> bool:
    inputs = [name.partition(":")[0] for name in node.input if not name.startswith("^")]
    return bool(inputs) and all(name in constant for name in inputs)


def _result_name(node: Any) -> str:
    """TensorFlow 2.15 runs the result ``identity_RetVal`` as ``identity_retval_RetVal``; "" of all else."""
    return f"{node.name.removesuffix('_RetVal')}_retval_RetVal" if node.op == "_Retval" else ""


def channel(node: Any) -> tuple[bytes, bytes, bytes]:
    """What a _Send and its _Recv have in common."""
    return node.attr["tensor_name"].s, node.attr["send_device"].s, node.attr["recv_device"].s
