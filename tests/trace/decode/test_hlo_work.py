"""What an op of XLA computes, by hand."""

from __future__ import annotations

import pytest

from tftracer.trace.decode.hlo import Module, hlo_kind, hlo_messages
from tftracer.trace.decode.hlo_work import computed


def test_ops_that_differ_in_their_numbers_alone_are_of_one_type() -> None:
    names = ("fusion", "fusion.12", "MatMul.2", "MatMul_1.2", "all-reduce-start.1", "conv2d_1.2.clone")
    assert [hlo_kind(name) for name in names] == ["fusion", "fusion", "MatMul", "MatMul", "all-reduce-start", "conv2d_1.2.clone"]


@pytest.mark.parametrize("dilation", [1, 2])
def test_the_zeros_of_a_transposed_convolutions_input_are_no_work(dilation: int) -> None:
    """[1, 8, 8, 3] from a kernel [3, 3, 5, 3]; with stride 2 the input is dilated, three of four of its elements are zeros."""
    instruction = hlo_messages()["Instruction"]
    kernel, image, result = (instruction(id=number) for number in (1, 2, 3))
    kernel.shape.dimensions.extend([3, 3, 5, 3])
    result.opcode, result.name = b"convolution", b"convolution.1"
    result.shape.dimensions.extend([1, 8, 8, 3])
    result.operands.extend([2, 1])
    result.convolution.kernel_output = 3
    for _ in range(2):
        result.window.dimensions.add(base_dilation=dilation)
    module = Module({"convolution.1": result}, {1: kernel, 2: image, 3: result})
    assert computed(module, "convolution.1").flops == 2 * (8 * 8 * 3) * (3 * 3 * 5) / dilation**2
