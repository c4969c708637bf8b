from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from tftracer.trace.arrays.strings import StringTable
from tftracer.trace.decode.labels import (
    Label,
    copied_bytes,
    kernel_name,
    label_inputs,
    op_spans,
    parse_input,
    parse_label,
    parse_received,
    split_parentheses,
)

PS, WORKER = "/job:ps/replica:0/task:0/device:CPU:0", "/job:worker/replica:0/task:0/device:CPU:0"

names = st.text(st.sampled_from("ab/_:^0129"), min_size=1, max_size=8)
prefixes = st.sampled_from(["", "[cpu 1.3MB 1.3MB] ", "p = "])
texts = st.one_of(
    st.builds(
        lambda prefix, name, op, inputs, tail: f"{prefix}{name} = {op}({', '.join(inputs)}){tail}",
        prefixes,
        names,
        st.sampled_from(["MatMul", "_Send", ""]),
        st.lists(names, max_size=4),
        st.sampled_from(["", " trailing", ")"]),
    ),
    st.text(st.sampled_from("a =(),^:0"), max_size=14),
)


def test_a_label() -> None:
    assert parse_label("MatMul_17 = MatMul(Relu_16, w:1, ^c)") == Label("MatMul_17", "MatMul", ("Relu_16", "w:1", "^c"))
    assert parse_label("[cpu 1.3MB 1.3MB] a/b = AddV2()") == Label("a/b", "AddV2", ())
    assert parse_label("kernel details") == Label()


def test_an_input() -> None:
    assert parse_input("x") == ("x", 0, False)
    assert parse_input("x:12") == ("x", 12, False)
    assert parse_input("^x") == ("x", -1, True)


def test_a_received_tensor() -> None:
    text = f"[16384B] [1.4Gb/s] edge_116_MatMul/ReadVariableOp from {PS} to {WORKER}"
    received = parse_received(text)
    assert received is not None
    assert received.bytes == 16384
    assert (received.tensor, received.producer) == ("edge_116_MatMul/ReadVariableOp", "MatMul/ReadVariableOp")
    assert (received.source, received.destination) == (PS, WORKER)
    assert parse_received(f"[4B] x from {PS} to {WORKER}").bytes == 4
    assert parse_received(f"[0.6MB] [1.9Gb/s] x from {PS} to {WORKER}").bytes == 629_146
    assert parse_received(f"[..MB] x from {PS} to {WORKER}").bytes == 0
    assert parse_received("a = RecvTensor(b)") is None


def test_copies_and_kernels() -> None:
    assert copied_bytes("MEMCPYHtoD 4096 bytes (Pageable to Device)") == 4096
    assert copied_bytes("kernel details") == 0
    assert kernel_name("kernel details", "layer/MatMul:MatMul") == ("layer/MatMul", "MatMul")
    assert kernel_name("0 (x) @@loss/Mul:Mul#id=3#", "ignored:Op") == ("loss/Mul", "Mul")
    assert kernel_name("", "plain") == ("plain", "")


def test_sizes_that_no_tensor_has_fit_a_column() -> None:
    for size in ("999999999999999999B", "999999999999999999MB"):
        received = parse_received(f"[{size}] [1.0Mb/s] edge_1_a from /job:ps/task:0 to /job:worker/task:0")
        assert received is not None and 0 <= received.bytes < 1 << 63


@given(st.lists(texts, max_size=6))
def test_all_labels_at_once_read_as_one_by_one(labels: list[str]) -> None:
    table = StringTable.of(labels)
    data = bytes(table.data)
    offset, size = op_spans(table)
    ops = [data[o : o + s].decode() for o, s in zip(offset.tolist(), size.tolist())]
    inputs = label_inputs(table, split_parentheses(table))
    read: list[list[tuple[str, int, bool]]] = [[] for _ in labels]
    for label, at, length, slot, control in zip(*(column.tolist() for column in inputs)):
        read[label].append((data[at : at + length].decode(), slot, control))
    for i, text in enumerate(labels):
        label = parse_label(text)
        if label.op and text.endswith(")"):
            assert ops[i] == label.op
            assert read[i] == [tuple(parse_input(source)) for source in label.inputs]


@given(st.text(st.sampled_from("a =()"), max_size=16))
def test_a_label_is_read_as_tensorflow_reads_it(text: str) -> None:
    match = re.match(r"(.*) = (.*?)\((.*)\)", text, re.DOTALL)
    label = parse_label(text)
    assert (label.name, label.op, ", ".join(label.inputs)) == (match.groups() if match else ("", "", ""))


def test_a_label_of_a_million_equal_signs_is_read_in_one_pass() -> None:
    assert parse_label("a = " * 1_000_000) == Label()
