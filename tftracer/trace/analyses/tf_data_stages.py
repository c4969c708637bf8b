"""The stages of tf.data in a profile, and the stage that a step waits for.

A stage is identified by its path, ``Root, Prefetch, Map``; the stages that it reads from are below it. A profile has only
the executions that began during the profile. A stage that works ahead in its own thread has often begun before: then its
execution is missing, and its path is known from the stages below it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from tftracer.trace.arrays.intervals import Cover, concatenated, distinct, is_in
from tftracer.trace.arrays.types import Bool, Int64
from tftracer.trace.decode.profile_host import TF_DATA
from tftracer.trace.decode.xplane_reader import STAGE
from tftracer.trace.model import Trace

Path = tuple[str, ...]
#: A stage waits for its inputs if they run for this share of its time.
INPUTS_SHARE = 0.5
#: A stage that only forwards elements needs less than this for each element. If it forwards fewer elements
#: than one per FORWARD_NS of its time, it waits for its inputs.
FORWARD_NS = 1_000_000
_NUMBER = re.compile(r"\[\d+\]")
#: Stages that only forward elements that another thread has produced.
_FORWARDING_FROM_THREAD = re.compile(r"Prefetch|Root|Model|PrivateThreadPool|MaxIntraOpParallelism")
#: Stages whose function runs in other threads, which also read the inputs.
_PARALLEL = re.compile(r"Parallel|MapAndBatch")
#: All stages that only forward elements.
FORWARDING = re.compile(
    rf"(?:{_FORWARDING_FROM_THREAD.pattern}|Shuffle|\w*Repeat|\w*Take|\w*Skip|Zip|Concatenate|Enumerate|Options|Shard)"
)


@dataclass(frozen=True)
class AwaitedStage:
    """The stage that a step waits for."""

    path: Path
    began_before: bool  # it began before the profile: its time is not recorded, and it is only the most likely stage
    cover: Cover  # when it ran; if it began before, when the stage that waits for it ran
    inputs_ns: int | None  # the longest execution of a stage below it; None: no such execution is recorded


@dataclass(frozen=True)
class Stages:
    """All stages of a trace, including executions outside the step.

    ``nodes``: path -> executions (ascending), empty for a stage that is only known from the stages below it.
    """

    trace: Trace
    members: Bool  # [n] all nodes of tf.data: stages, and the ops of its functions
    nodes: dict[Path, Int64] = field(default_factory=dict)

    @classmethod
    def of(cls, trace: Trace) -> Stages:
        members = trace.on_devices_where(lambda device: device.name == TF_DATA)
        rows = np.flatnonzero(members)
        paths = {code: path_of(trace.names[code]) for code in distinct(trace.name[rows]).tolist()}
        rows_of: dict[Path, list[Int64]] = {}
        for code, path in paths.items():
            for depth in range(1, len(path) + 1):
                rows_of.setdefault(path[:depth], [])
            if path:
                rows_of[path].append(rows[trace.name[rows] == code])
        nodes = {path: np.sort(concatenated(parts)) for path, parts in rows_of.items()}
        return cls(trace, members, nodes)

    @cached_property
    def roots(self) -> Int64:
        """The executions of the outermost stages in the step."""
        return concatenated([rows[self.trace.counted[rows]] for path, rows in self.nodes.items() if len(path) == 1])

    @cached_property
    def waited_for(self) -> Int64:
        """The roots that an op of the step called. Calls by other threads, or for later steps, are no wait."""
        if not self.trace.known_edges or not len(self.roots):
            return self.roots[:0]
        stage, waiter = self.trace.known_edges
        is_op = self.trace.counted[waiter] & ~self.members[waiter]
        return self.roots[is_in(self.roots, stage[is_op])]

    @cached_property
    def works_in_background(self) -> Bool:
        """[n] whether a node is tf.data's work in the background: all its nodes except the roots that the step waits for."""
        result = self.members.copy()
        result[self.waited_for] = False
        return result

    @cached_property
    def ops(self) -> Bool:
        """[n] whether a node is an op that a function of tf.data runs, such as that of a map or filter."""
        if not self.nodes:
            return self.members
        is_op = np.array([not name.startswith(STAGE) for name in self.trace.names] or [True])
        result: Bool = self.members & is_op[self.trace.name]
        return result

    def cover(self, path: Path) -> Cover:
        rows = self.nodes[path]
        return Cover.of(self.trace.start[rows], self.trace.end[rows])

    def inputs(self, path: Path) -> list[Path]:
        """Return the paths of the stages that a stage reads from."""
        return [other for other in self.nodes if len(other) == len(path) + 1 and other[: len(path)] == path]

    def awaited_stage(self, wait: Cover) -> AwaitedStage | None:
        """Return the stage that the step waited for during most of ``wait``; None if the profile has no stages."""
        path = max((p for p in self.nodes if len(p) == 1), key=lambda p: (self.cover(p) & wait).length, default=None)
        return self._lowest_awaited(path, self.cover(path) & wait) if path is not None else None

    def _lowest_awaited(self, path: Path, ran: Cover) -> AwaitedStage:
        """Go down from ``path`` to the lowest stage that ran for most of the wait. Return it, or the stage that it waits for.

        ``ran``: when the stage ``path`` ran during the wait.
        """
        busiest = self._busiest_input(path, ran)
        if busiest is not None:
            return self._lowest_awaited(*busiest)
        inputs = self.inputs(path)
        waits = _FORWARDING_FROM_THREAD.fullmatch(path[-1]) or (
            _PARALLEL.match(path[-1]) and not any(len(self.nodes[p]) for p in inputs)
        )
        if not waits and FORWARDING.fullmatch(path[-1]):
            forwarded = sum(int(ran.contains(self.trace.start[self.nodes[other]]).sum()) for other in inputs)
            waits = forwarded * FORWARD_NS < ran.length
        return self._begun_before(path, ran) if waits else AwaitedStage(path, False, ran, self._longest_input(path))

    def _begun_before(self, path: Path, ran: Cover) -> AwaitedStage:
        """Find the stage that ``path`` waits for: the first stage, from ``path`` downwards, that does work and has fast inputs,
        or that has no input or several. If the inputs of a stage ran for most of the time, continue with the busiest input."""
        inputs = self.inputs(path)
        only_input = inputs[0] if len(inputs) == 1 else None
        inputs_ns = self._longest_input(path)
        has_fast_inputs = inputs_ns is not None and inputs_ns < INPUTS_SHARE * ran.length
        if only_input is None or (has_fast_inputs and not FORWARDING.match(path[-1])):
            return AwaitedStage(path, True, ran, inputs_ns)
        busiest = self._busiest_input(only_input, ran)
        return self._lowest_awaited(*busiest) if busiest is not None else self._begun_before(only_input, ran)

    def _busiest_input(self, path: Path, ran: Cover) -> tuple[Path, Cover] | None:
        """Return the input that runs longest, if the inputs run for most of the time."""
        below = {other: self.cover(other) & ran for other in self.inputs(path)}
        if not below or sum(cover.length for cover in below.values()) < INPUTS_SHARE * ran.length:
            return None
        return max(below.items(), key=lambda item: item[1].length)

    def _longest_input(self, path: Path) -> int | None:
        longest = [self._longest(other) for other in self.inputs(path)]
        return max((length for length in longest if length is not None), default=None)

    def _longest(self, path: Path) -> int | None:
        """Return the longest execution; for a stage that only forwards elements and has none, the longest of its inputs."""
        rows = self.nodes[path]
        if len(rows):
            return int((self.trace.end[rows] - self.trace.start[rows]).max())
        return self._longest_input(path) if FORWARDING.match(path[-1]) else None


def path_of(name: str) -> Path:
    """Parse ``Iterator::Root::Interleave[2]::Map`` into (Root, Interleave, Map); () for an op.

    Also () for the Generator that a distribution strategy adds per device: it reads from the dataset itself and is no stage.
    """
    path = tuple(_NUMBER.sub("", name[len(STAGE) :]).split("::")) if name.startswith(STAGE) else ()
    return () if path[-1:] == ("Generator",) and path[-2:-1] != ("FlatMap",) else path
