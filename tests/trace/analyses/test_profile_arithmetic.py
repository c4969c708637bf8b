"""FLOPs and bytes of profiles: what XLA compiled, and shapes that the profiler noted."""

from __future__ import annotations

import gzip
import lzma
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from traces import CPU, N, make_trace

from tftracer.trace.analyses.profile_arithmetic import arithmetic_of_profile
from tftracer.trace.answers import Answers
from tftracer.trace.decode.hlo import Module, hlo_messages
from tftracer.trace.decode.hlo_work import computed
from tftracer.trace.decode.profile_tensors import parsed
from tftracer.trace.model import Calls, Computed, Tensor, TraceContext

DATA = Path(__file__).parents[2] / "data" / "xspace"
STREAM = "/device:GPU:0/stream:7"
FLOAT, HALF, STRING, RESOURCE = 1, 19, 7, 20


def profile(name: str) -> Answers:
    raw = (DATA / name).read_bytes()
    packed = {".gz": gzip.decompress, ".xz": lzma.decompress}.get(Path(name).suffix)
    return Answers(packed(raw) if packed else raw, TraceContext())


def test_what_xla_compiled_has_the_flops_of_its_module() -> None:
    """A convnet on [32, 28, 28, 1]: two convolutions and a dense layer, forward and backward."""
    answers = profile("xla_cpu_tf2.21.xplane.pb.gz")
    trace, found = answers.trace, answers.arithmetic
    flops = sorted(found.flops[found.is_matrix & trace.counted].tolist())
    first, second, dense = 2 * (32 * 26 * 26 * 16) * 9, 2 * (32 * 11 * 11 * 32) * (9 * 16), 2 * 32 * 800 * 10
    image = (
        2 * (32 * 13 * 13 * 16) * (9 * 32)
    )  # the gradient of the second one's image as XLA computes it: over what is padded, too
    assert flops == sorted([first, first, second, second, image, dense, dense, dense])
    compiled = np.flatnonzero(np.char.startswith([device.name for device in trace.devices], "/host:CPU/XLA"))
    nodes = np.isin(trace.device, compiled)
    assert not np.isnan(found.bytes[nodes]).any()
    assert (found.dtype[found.is_matrix & nodes] == FLOAT).all()


def test_what_a_library_computes_for_xla_is_unknown() -> None:
    answers = profile("gpu_mi300_excerpt.xplane.pb.gz")
    found, ops = answers.arithmetic, answers.trace.ops
    custom = np.array([op == "cudnn-conv" for op in ops])[answers.trace.op]
    assert custom.any()
    assert np.isnan(found.flops[custom]).all()
    assert (found.flops[~custom & ~np.isnan(found.flops)] == 0).all()


@pytest.mark.parametrize("name", ["eager_tf2.21.xplane.pb"])
def test_matrix_ops_without_shapes_are_unknown(name: str) -> None:
    answers = profile(name)
    found = answers.arithmetic
    assert found.is_matrix.any()
    assert np.isnan(found.flops[found.is_matrix]).all()
    assert answers.ops("type")["rows"]


@pytest.mark.parametrize("version", ["2.15", "2.21"])
def test_shapes_of_a_function_are_inferred_from_its_graph(version: str) -> None:
    """A loop with a branch: in each of three turns [2, 2] times [2, 2], by the shape of the function's argument."""
    answers = profile(f"partitioned_tf{version}.xplane.pb.xz")
    found = answers.arithmetic
    assert found.flops[found.is_matrix].tolist() == [2 * 2 * 2 * 2] * 3
    assert found.bytes[found.is_matrix].tolist() == [4 * 3 * 4] * 3
    assert (found.dtype[found.is_matrix] == FLOAT).all()
    assert not np.isnan(found.bytes[answers.trace.counted]).any()


def test_a_kernels_shapes_are_those_of_the_op_that_launched_it() -> None:
    nodes = [
        N("y", "MatMul", 0, 5),
        N("y:MatMul", "MatMul", 5, 9, STREAM),
        N("y:MatMul", "MatMul", 10, 14, STREAM),
        N("z", "MatMul", 20, 25),
        N("lost:MatMul", "MatMul", 30, 35, STREAM),
        N("add", "AddV2", 40, 45),
        N("apply", "ResourceApplyAdam", 50, 55),
        N("text", "AsString", 60, 65),
    ]
    trace = replace(make_trace(nodes), launch=np.array([-1, 0, 0, -1, -1, -1, -1, -1]))
    product = [Tensor(HALF, (4, 6)), Tensor(HALF, (6, 2))]
    gradient = [Tensor(RESOURCE, ())] * 3 + [Tensor(FLOAT, (10,))]
    inputs = [product, [Tensor(FLOAT, (5, 5)), Tensor(FLOAT, (5,))], gradient, [Tensor(STRING, (3,))]]
    outputs = {0: [Tensor(HALF, (4, 2))], 5: [Tensor(FLOAT, (5, 5))], 7: [Tensor(STRING, (3,))]}
    calls = Calls(inputs, np.array([-1, 0, 0, -1, 0, 1, 2, 3]), outputs, [], np.full(8, -1))
    found = arithmetic_of_profile(trace, calls)
    assert found.flops[:3].tolist() == [0, 48, 48]  # 2 * 4 * 2 * 6, shared by its kernels
    assert found.bytes[:3].tolist() == [0, 44, 44]
    assert np.isnan(found.flops[[3, 4]]).all()
    assert found.bytes[[5, 6]].tolist() == [4 * (25 + 5 + 25), 7 * 40]
    assert np.isnan(found.bytes[7])
    assert found.dtype[[1, 5, 6]].tolist() == [HALF, FLOAT, FLOAT]


def test_a_product_without_its_output_is_known_by_the_size_that_both_factors_share() -> None:
    trace = make_trace([N("y", "MatMul", 0, 5, CPU), N("x", "fusion", 6, 9), N("w", "fusion", 10, 12)])
    hlo = [Computed(12.0, 34.0, FLOAT), Computed(None, None, 0)]
    calls = Calls([[Tensor(FLOAT, (4, 6)), Tensor(FLOAT, (2, 6))]], np.array([0, -1, -1]), {}, hlo, np.array([-1, 0, 1]))
    found = arithmetic_of_profile(trace, calls)
    assert found.flops[:2].tolist() == [96, 12]
    assert (found.bytes[1], found.is_matrix.tolist()) == (34, [True, True, True])
    assert np.isnan([found.bytes[0], found.flops[2], found.bytes[2]]).all()


@pytest.mark.parametrize(
    ("text", "tensors"),
    [
        ("(float[32,10];;half[])", [Tensor(FLOAT, (32, 10)), Tensor(RESOURCE, ()), Tensor(HALF, ())]),
        ("[4,384,1]", [Tensor(0, (4, 384, 1))]),
        ("()", []),
        ("", []),
        ("(float[?,3])", [Tensor(0, None)]),
        (f"(float[{'9' * 40}])", [Tensor(FLOAT, None)]),
        (f"(float[{'1,' * 50}1])", [Tensor(FLOAT, None)]),
    ],
)
def test_shapes_as_the_profiler_writes_them(text: str, tensors: list[Tensor]) -> None:
    assert parsed(text) == tensors


def test_a_module_that_calls_itself_is_unknown() -> None:
    messages = hlo_messages()
    fusion = messages["Instruction"](name=b"fusion", opcode=b"fusion", id=1, called=[7, 7])
    module = Module({"fusion": fusion}, {1: fusion})
    module.computations[7] = messages["Computation"](id=7, instructions=[fusion] * 50)
    assert computed(module, "fusion").flops is None
    large = messages["Instruction"](name=b"dot", opcode=b"dot", id=2, operands=[2])
    large.shape.dimensions.extend([1 << 62] * 1000)
    large.shape.element_type = 11
    assert computed(Module({"dot": large}, {2: large}), "dot")[:2] == (np.inf, np.inf)
