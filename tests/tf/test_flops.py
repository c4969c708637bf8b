"""FLOPs of real steps against hand formulas, and against TensorFlow's own profiler where that counts."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from tftracer.trace.analyses.graph_shapes import inferred
from tftracer.trace.answers import Answers
from tftracer.trace.model import TraceContext

v1 = tf.compat.v1
BATCH, TURNS = 5, 3

#: By a part of the node's name: FLOPs of all its executions. (A fused op has the name of the last op in it.)
FORWARD = {
    "Relu": 2 * (BATCH * 8 * 8 * 4) * (3 * 3 * 3),  # SAME: what lies outside counts
    "grouped": 2 * (BATCH * 3 * 3 * 6) * (3 * 3 * 2),  # VALID, stride 2, two groups
    "depth": 2 * (BATCH * 3 * 3 * 12) * (3 * 3),
    "three": 2 * (BATCH * 4 * 4 * 4 * 5) * (2 * 2 * 2 * 3),
    "mat": 2 * BATCH * 108 * 10,
    "batch": 2 * BATCH * 12 * 9 * 12,
    "ein/Einsum": 2 * BATCH * 12 * 9 * 7,
    "inner": 2 * BATCH * 10 * 5,
    "turn": TURNS * 2 * BATCH * 10 * 10,
    "SparseTensorDenseMatMul": 2 * 3 * 6,
    "cell": 2 * BATCH * (9 + 4) * (4 * 4),
    "block": 12 * 2 * BATCH * (9 + 4) * (4 * 4),
    "gru": 2 * BATCH * ((9 + 4) * 8 + (9 + 4) * 4),
}
#: The gradients multiply as much as the op itself, once for each factor; the image of the first two convolutions needs none.
GRADIENTS = {
    "same_grad": FORWARD["Relu"],
    "grouped_grad": 2 * FORWARD["grouped"],
    "depth_grad": 2 * FORWARD["depth"],
    "three_grad": FORWARD["three"],
    "mat_grad": 2 * FORWARD["mat"],
    "batch_grad": 2 * FORWARD["batch"],
    "Einsum_grad": 2 * FORWARD["ein/Einsum"],
    "inner_grad": 2 * FORWARD["inner"],
    "turn_grad": 2 * FORWARD["turn"],
    "SparseTensorDenseMatMul_grad": FORWARD["SparseTensorDenseMatMul"],
}


@dataclass
class Step:
    answers: Answers
    flops: dict[str, float]  # by node: of all its executions
    counted: dict[str, int]  # what TensorFlow's profiler counts


def variable(name: str, *shape: int) -> Any:
    return v1.get_variable(name, shape, initializer=v1.random_normal_initializer(stddev=0.1), use_resource=True)


def model(image: Any, places: Any) -> Any:
    """A loss whose gradients reach every kind of matrix op that has one."""
    first = tf.nn.conv2d(image, variable("w1", 3, 3, 3, 4), 1, "SAME", name="same")
    hidden = tf.nn.relu(tf.nn.bias_add(first, variable("b1", 4)))
    hidden = tf.nn.conv2d(hidden, variable("w2", 3, 3, 2, 6), [1, 2, 2, 1], "VALID", name="grouped")
    hidden = tf.nn.depthwise_conv2d(hidden, variable("wd", 3, 3, 6, 2), [1, 1, 1, 1], "SAME", name="depth")
    volume = tf.reshape(image, [-1, 4, 4, 4, 3])
    three = tf.nn.conv3d(volume, variable("w3", 2, 2, 2, 3, 5), [1, 1, 1, 1, 1], "SAME", name="three")
    rows = tf.reshape(hidden, [-1, 108])
    product = tf.matmul(rows, variable("k", 108, 10), name="mat")
    sequence = tf.reshape(rows, [-1, 12, 9])
    batch = tf.matmul(sequence, sequence, transpose_b=True, name="batch")
    einsum = tf.einsum("bij,jk->bik", sequence, variable("ek", 9, 7), name="ein")
    inner = tf.function(lambda a, b: tf.matmul(a, b, name="inner"))(product, variable("fk", 10, 5))
    weights = variable("lw", 10, 10)
    _, looped = v1.while_loop(
        lambda i, _: i < TURNS, lambda i, a: (i + 1, tf.tanh(tf.matmul(a, weights, name="turn"))), [0, product], name="loop"
    )
    sparse = tf.SparseTensor(places, [1.0, 2.0, 3.0], [4, 10])
    scattered = tf.sparse.sparse_dense_matmul(sparse, variable("sd", 10, 6), name="sparse")
    sums = [tf.reduce_sum(tensor * tensor) for tensor in (three, batch, einsum, inner, looped, scattered)]
    return tf.add_n(sums), recurrent(sequence)


def recurrent(sequence: Any) -> list[Any]:
    """[BATCH, 12, 9] through cells of four units."""
    raw, zeros, of_gate = tf.raw_ops, tf.zeros([BATCH, 4]), tf.zeros([4])
    turned = tf.transpose(sequence, [1, 0, 2])
    peepholes = {"wci": of_gate, "wcf": of_gate, "wco": of_gate, "b": tf.zeros([16])}
    weights, first = variable("lstm", 13, 16), turned[0]
    cell = raw.LSTMBlockCell(x=first, cs_prev=zeros, h_prev=zeros, w=weights, **peepholes, name="cell")
    steps = tf.constant(12, tf.int64)
    block = raw.BlockLSTM(seq_len_max=steps, x=turned, cs_prev=zeros, h_prev=zeros, w=weights, **peepholes, name="block")
    gates = {"w_ru": variable("gates", 13, 8), "w_c": variable("candidate", 13, 4)}
    gru = raw.GRUBlockCell(x=first, h_prev=zeros, **gates, b_ru=tf.zeros([8]), b_c=of_gate, name="gru")
    return [cell.h, block.h, gru.h]


@pytest.fixture(scope="module")
def step() -> Step:
    with tf.Graph().as_default() as graph, v1.Session(graph=graph) as session:
        image, places = v1.placeholder(tf.float32, [None, 8, 8, 3]), v1.placeholder(tf.int64, [3, 2])
        loss, others = model(image, places)
        train = v1.train.AdamOptimizer(0.01).minimize(loss)
        session.run(v1.global_variables_initializer())
        metadata, options = v1.RunMetadata(), v1.RunOptions(trace_level=v1.RunOptions.FULL_TRACE, output_partition_graphs=True)
        feed = {image: np.ones((BATCH, 8, 8, 3)), places: [[0, 0], [1, 2], [3, 1]]}
        session.run([train, others], feed, options, metadata)
        counted = profiled(graph, metadata)
    answers = Answers(metadata.SerializeToString(), TraceContext())
    flops: dict[str, float] = defaultdict(float)
    for node in np.flatnonzero(answers.arithmetic.is_matrix).tolist():
        flops[answers.trace.names[answers.trace.name[node]]] += float(answers.arithmetic.flops[node])
    return Step(answers, flops, counted)


def profiled(graph: Any, metadata: Any) -> dict[str, int]:
    """What TensorFlow's profiler counts, by node."""
    options = v1.profiler.ProfileOptionBuilder(v1.profiler.ProfileOptionBuilder.float_operation()).with_empty_output().build()
    left, counted = [v1.profiler.profile(graph, metadata, cmd="scope", options=options)], {}
    while left:
        scope = left.pop()
        left += scope.children
        if scope.float_ops:
            counted[scope.name] = int(scope.float_ops)
    return counted


def test_every_matrix_op_of_a_real_step_has_the_flops_of_its_formula(step: Step) -> None:
    found = step.answers.arithmetic
    assert not np.isnan(found.flops).any()
    assert not np.isnan(found.bytes).any()
    gradients = {name: flops for name, flops in step.flops.items() if "grad" in name}
    forward = {name: flops for name, flops in step.flops.items() if "grad" not in name}
    for part, flops in FORWARD.items():
        assert sum(forward.pop(name) for name in list(forward) if name.endswith(part)) == flops, part
    for part, flops in GRADIENTS.items():
        mine = [name for name in gradients if f"{part}/" in name]
        assert sum(gradients.pop(name) for name in mine) == flops, part
    assert not forward
    assert not gradients


def test_shapes_inferred_from_the_graph_are_those_that_ran() -> None:
    """Profiles record no shapes: here they are inferred as for them, and compared with those that session.run records."""
    with tf.Graph().as_default() as graph, v1.Session(graph=graph) as session:
        loss, others = model(variable("image", BATCH, 8, 8, 3), tf.constant([[0, 0], [1, 2], [3, 1]], tf.int64))
        train = v1.train.AdamOptimizer(0.01).minimize(loss)
        session.run(v1.global_variables_initializer())
        metadata, options = v1.RunMetadata(), v1.RunOptions(trace_level=v1.RunOptions.FULL_TRACE, output_partition_graphs=True)
        session.run([train, others], None, options, metadata)
    answers, tensors = Answers(metadata.SerializeToString(), TraceContext()), inferred(list(metadata.partition_graphs))
    trace, outputs, found = answers.trace, answers.outputs, answers.arithmetic
    wrong, right, of_matrix_ops = [], 0, 0
    for node, slot, code in zip(outputs.node.tolist(), outputs.slot.tolist(), outputs.shape.tolist()):
        node_name = trace.names[trace.name[node]]
        made = tensors[node_name].outputs if node_name in tensors else []
        if slot < len(made) and made[slot].shape is not None:
            same = made[slot].shape == outputs.shapes.dims[code]
            right, of_matrix_ops = right + same, of_matrix_ops + bool(same and found.is_matrix[node])
            wrong += [] if same else [(node_name, trace.ops[trace.op[node]], made[slot].shape)]
    assert wrong == []
    assert right > 0.7 * len(outputs.node)
    assert of_matrix_ops > 0.7 * found.is_matrix.sum()


def test_tensorflows_profiler_counts_the_same_where_it_counts(step: Step) -> None:
    """docs/analyses.rst lists what it leaves out; of convolutions' gradients it takes the image's size by the strides."""
    by_image = {name for name in step.flops if "grouped_grad" in name}
    both = set(step.flops) & set(step.counted) - by_image
    assert {"grouped", "three", "depth", "mat", "batch", "gradients/mat_grad/MatMul"} <= both
    assert {name: step.flops[name] for name in both} == {name: step.counted[name] for name in both}
    assert {step.counted[name] for name in by_image} == {2 * (BATCH * 8 * 8 / 4) * (3 * 3 * 2 * 6)}
    silent = set(step.flops) - set(step.counted)
    for part in ("Relu", "ein/Einsum", "turn", "inner", "SparseTensorDenseMatMul", "cell", "block", "gru"):
        assert any(name.endswith(part) for name in silent), part
    for part in ("Conv3DBackpropFilterV2", "DepthwiseConv2dNativeBackpropInput", "batch_grad/MatMul"):
        assert any(name.endswith(part) for name in silent), part
