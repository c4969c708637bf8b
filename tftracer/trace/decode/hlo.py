"""XLA's modules in a profile (the plane ``/host:metadata``): the text of an HLO op, and the TensorFlow op that it comes from.

A module is parsed when one of its ops is needed. A module that cannot be read counts as missing.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from google.protobuf.message import DecodeError

from tftracer.trace.arrays.strings import Hasher
from tftracer.trace.arrays.types import Int64
from tftracer.trace.decode.private_messages import BYTES, INT, Schema, message_classes
from tftracer.trace.decode.xplane_reader import Space, decoded
from tftracer.trace.decode.xplane_stats import Stat, alike

PLANE = "/host:metadata"
#: Maximum number of lines in the text of an HLO op and the computations that it calls.
MAX_LINES = 400

#: Parts of hlo.proto and xla_data.proto.
_SCHEMA: Schema = {
    "HloProto": [("module", 1, "Module", False)],
    "Module": [("name", 1, BYTES, False), ("computations", 3, "Computation", True)],
    "Computation": [
        ("name", 1, BYTES, False),
        ("instructions", 2, "Instruction", True),
        ("id", 5, INT, False),
        ("root", 6, INT, False),
    ],
    "Instruction": [
        ("name", 1, BYTES, False),
        ("opcode", 2, BYTES, False),
        ("shape", 3, "Shape", False),
        ("metadata", 7, "OpMetadata", False),
        ("fusion_kind", 11, BYTES, False),
        ("custom_call_target", 28, BYTES, False),
        ("id", 35, INT, False),
        ("operands", 36, INT, True),
        ("called", 38, INT, True),
        ("window", 15, "Window", False),
        ("convolution", 16, "Convolution", False),
        ("dot", 30, "Dot", False),
    ],
    "Window": [("dimensions", 1, "WindowDimension", True)],
    "WindowDimension": [("base_dilation", 6, INT, False)],
    "Convolution": [("kernel_output", 4, INT, False)],
    "Dot": [("contracting", 1, INT, True)],
    "Shape": [("element_type", 2, INT, False), ("dimensions", 3, INT, True), ("tuple", 4, "Shape", True)],
    "OpMetadata": [
        ("op_type", 1, BYTES, False),
        ("op_name", 2, BYTES, False),
        ("source_file", 3, BYTES, False),
        ("source_line", 4, INT, False),
    ],
}
#: Names of element types, by their numbers in xla_data.proto (PrimitiveType).
_TYPES = [
    "?", "pred", "s8", "s16", "s32", "s64", "u8", "u16", "u32", "u64", "f16", "f32", "f64", "tuple", "opaque", "c64", "bf16",
    "token", "c128", "f8e5m2", "f8e4m3fn", "s4", "u4",
]  # fmt: skip
TUPLE = 13


@functools.lru_cache(maxsize=1)
def hlo_messages() -> dict[str, Any]:
    return message_classes("tftracer.hlo", _SCHEMA)


@dataclass
class Module:
    """One compiled program."""

    instructions: dict[str, Any] = field(default_factory=dict)  # by name
    by_id: dict[int, Any] = field(default_factory=dict)
    computations: dict[int, Any] = field(default_factory=dict)

    def op_name(self, hlo_op: str) -> str:
        """Return the TensorFlow op that an HLO op comes from, ``model/dense/MatMul``; "" if not known."""
        instruction = self.instructions.get(hlo_op)
        return decoded(instruction.metadata.op_name) if instruction is not None else ""

    def text(self, hlo_op: str) -> str:
        """Return an HLO op and the computations that it calls, as XLA prints them; "" if it is not in the module."""
        instruction = self.instructions.get(hlo_op)
        if instruction is None:
            return ""
        lines = [self._line(instruction)]
        for number in instruction.called:
            computation = self.computations.get(number)
            if computation is not None:
                lines += ["", f"%{decoded(computation.name)} {{", *self._body(computation), "}"]
        return "\n".join(lines[:MAX_LINES] + ["..."] * (len(lines) > MAX_LINES))

    def _body(self, computation: Any) -> Iterator[str]:
        for instruction in computation.instructions:
            root = "ROOT " if instruction.id == computation.root else ""
            yield f"  {root}{self._line(instruction)}"

    def _line(self, instruction: Any) -> str:
        operands = ", ".join(
            f"%{decoded(operand.name)}" for number in instruction.operands if (operand := self.by_id.get(number)) is not None
        )
        text = f"%{decoded(instruction.name)} = {shape_text(instruction.shape)} {decoded(instruction.opcode)}({operands})"
        metadata = instruction.metadata
        extras = {
            "kind": decoded(instruction.fusion_kind),
            "custom_call_target": decoded(instruction.custom_call_target),
            "calls": ", ".join(
                f"%{decoded(called.name)}" for number in instruction.called if (called := self.computations.get(number))
            ),
            "op_name": decoded(metadata.op_name),
            "source": f"{decoded(metadata.source_file)}:{metadata.source_line}" if metadata.source_file else "",
        }
        return text + "".join(f", {name}={value}" for name, value in extras.items() if value)


#: Stats of the events that run an HLO op.
HLO_STATS = ("hlo_op", "hlo_module", "program_id")


def hlo_ops(stats: dict[str, Stat], rows: Int64) -> tuple[Int64, list[tuple[str, str, int]]]:
    """Return ([rows] index of the op that each of these rows of ``stats`` ran, (op, module, program) of the distinct ops)."""
    op, module, program = (stats[name].only(rows) for name in HLO_STATS)
    hasher = Hasher.random()
    group, first = alike(op.keys(hasher), module.keys(hasher), program.number.view(np.uint64))
    return group, [(op.text(row), module.text(row), int(program.number[row])) for row in first.tolist()]


def hlo_kind(hlo_op: str) -> str:
    """Return an HLO op's name without numbers: `fusion` for `fusion.12`, `MatMul` for `MatMul_1.2`."""
    return _without_number(_without_number(hlo_op, "."), "_")


def _without_number(name: str, separator: str) -> str:
    head, _, number = name.rpartition(separator)
    return head if head and number.isdecimal() else name


def shape_text(shape: Any, depth: int = 0) -> str:
    """Format a shape: ``f32[32,10]``, ``(f32[2], s32[])``."""
    if shape.element_type == TUPLE and depth < 4:
        return "(" + ", ".join(shape_text(part, depth + 1) for part in shape.tuple) + ")"
    name = _TYPES[shape.element_type] if 0 <= shape.element_type < len(_TYPES) else "?"
    return f"{name}[{','.join(map(str, shape.dimensions))}]"


class Modules:
    """The modules of a profile, by the program's number, or by name for events without a number."""

    def __init__(self, space: Space) -> None:
        plane = space.plane(PLANE)
        self._raw: dict[int, bytes] = {}
        self._ids: dict[str, int] = {}
        self._parsed: dict[int, Module] = {}
        for number, metadata in plane.metadata.items() if plane else ():
            contents = [stat.bytes_value for stat in metadata.stats if stat.bytes_value]
            if contents:
                self._raw[number] = contents[0]
                self._ids[decoded(metadata.name).rpartition("(")[0]] = number  # the name in the profile is ``name(number)``

    def module(self, program: int, name: str) -> Module | None:
        number = program if program in self._raw else self._ids.get(name)
        if number is None:
            return None
        if number not in self._parsed:
            self._parsed[number] = _module(self._raw[number])
        return self._parsed[number]

    def name_of(self, program: int, module: str, hlo_op: str, op_name: str = "") -> str:
        """Return a node's name, ``scope/hlo_op``. The scope is the TensorFlow op that the HLO op comes from, else the module."""
        hlo_module = self.module(program, module)
        scope = (hlo_module.op_name(hlo_op) if hlo_module else "") or op_name or module
        return f"{scope}/{hlo_op}" if scope else hlo_op


def _module(raw: bytes) -> Module:
    try:
        proto = hlo_messages()["HloProto"].FromString(raw).module
    except DecodeError:
        return Module()
    module = Module()
    for computation in proto.computations:
        module.computations[computation.id] = computation
        for instruction in computation.instructions:
            module.instructions.setdefault(decoded(instruction.name), instruction)
            module.by_id[instruction.id] = instruction
    return module
