"""RunMetadata byte by byte, for hypothesis: what protobuf allows and TensorFlow never writes (any order, unknown fields)."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import strategies as st

Field = tuple[int, bytes]  # (field number, the field as bytes)

STEP_STATS, PARTITION_GRAPHS = 1, 3  # of RunMetadata
NAME, MEMORY, OUTPUT, LABEL, THREAD, MEMORY_STATS = 1, 6, 7, 8, 10, 12  # of NodeExecStats
TIMES = (2, 3, 4, 5, 9, 13, 14, 15, 16, 17)

EPOCH_US = 1_795_240_215_045_571


def varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def number(field: int, value: int) -> bytes:
    return varint(field << 3) + varint(value)


def message(field: int, content: bytes) -> bytes:
    return varint(field << 3 | 2) + varint(len(content)) + content


def group(field: int, content: bytes) -> bytes:
    return varint(field << 3 | 3) + content + varint(field << 3 | 4)


def run_metadata(devices: Sequence[tuple[str, Sequence[bytes]]]) -> bytes:
    """(device name, its NodeExecStats) of each entry."""
    entries = [message(1, name.encode()) + b"".join(message(2, node) for node in nodes) for name, nodes in devices]
    return message(STEP_STATS, b"".join(message(1, entry) for entry in entries))


def node(name: str = "", label: str = "", **times: int) -> bytes:
    """A node as TensorFlow writes it; times by their field numbers: ``t13=...``."""
    fields = [(NAME, message(NAME, name.encode())), (LABEL, message(LABEL, label.encode()))]
    fields += [(int(key[1:]), number(int(key[1:]), value)) for key, value in times.items()]
    return b"".join(data for _, data in sorted(fields))


text = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
labels = st.one_of(
    text,
    st.builds("{} = {}({})".format, text, st.sampled_from(["MatMul", "Add", "NoOp", ""]), text),
    st.sampled_from(["x" * 1100, "y" * 2000, "[16B] [1.0Mb/s] edge_1_a from /job:ps/task:0 to /job:worker/task:0"]),
)
integers = st.one_of(
    st.integers(0, 200),
    st.integers(EPOCH_US, EPOCH_US + 10**6),
    st.integers(EPOCH_US * 1000, EPOCH_US * 1000 + 10**9),
    st.integers(-(1 << 63), (1 << 63) - 1),
)
outputs = st.builds(lambda slot, size: number(1, slot) + message(3, message(4, number(1, size))), integers, integers)
unknown = st.one_of(
    st.builds(number, st.sampled_from([18, 30, 2000]), integers),
    st.builds(message, st.sampled_from([2, 18, 31, 70000]), st.binary(max_size=20)),  # 2: a time's number, another type
    st.builds(lambda field, data: varint(field << 3 | 1) + data, st.sampled_from([18, 99]), st.binary(min_size=8, max_size=8)),
    st.builds(lambda field, data: varint(field << 3 | 5) + data, st.sampled_from([1, 98]), st.binary(min_size=4, max_size=4)),
    st.builds(group, st.sampled_from([40, 41]), st.builds(number, st.just(5), integers)),
    st.builds(lambda inner: group(42, group(43, inner)), st.builds(message, st.just(7), st.binary(max_size=4))),
)
fields = st.one_of(
    st.builds(lambda value: (NAME, message(NAME, value.encode())), text),
    st.builds(lambda value: (LABEL, message(LABEL, value.encode())), labels),
    st.builds(lambda field, value: (field, number(field, value)), st.sampled_from((*TIMES, THREAD)), integers),
    st.builds(lambda value: (OUTPUT, message(OUTPUT, value)), outputs),
    st.builds(lambda value: (MEMORY, message(MEMORY, number(2, value))), integers),
    st.builds(lambda value: (MEMORY_STATS, message(MEMORY_STATS, number(1, value))), integers),
    st.builds(lambda value: (50, value), unknown),
)
any_order = st.builds(lambda parts: b"".join(data for _, data in parts), st.lists(fields, max_size=14))
in_order = st.builds(lambda parts: b"".join(data for _, data in sorted(parts)), st.lists(fields, max_size=14))
usual = st.builds(
    lambda name, label, start, length: node(name, label, t2=start // 1000, t13=start, t16=length, t17=start - length),
    text,
    labels,
    st.integers(EPOCH_US * 1000, EPOCH_US * 1000 + 10**9),
    st.integers(0, 10**6),
)
nodes = st.one_of(usual, in_order, any_order)
device_names = st.sampled_from(["/job:localhost/replica:0/task:0/device:CPU:0", "/job:ps/task:0/device:CPU:0", "", "X"])
others = st.one_of(
    st.just(b""),
    st.builds(lambda key, value: message(3, number(1, key) + message(2, value.encode())), integers, text),  # thread_names
    st.builds(number, st.just(9), integers),
)
entries = st.builds(
    lambda name, parts: message(1, message(1, name.encode()) + b"".join(message(2, n) + o for n, o in parts)),
    device_names,
    st.lists(st.tuples(nodes, others), max_size=12),
)
steps = st.builds(lambda parts: message(STEP_STATS, b"".join(parts)), st.lists(entries, max_size=3))
run_metadatas = st.builds(
    lambda parts: b"".join(parts),
    st.lists(
        st.one_of(steps, steps, st.just(message(PARTITION_GRAPHS, b"")), st.builds(number, st.just(77), integers)), max_size=4
    ),
)
