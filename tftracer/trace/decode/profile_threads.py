"""Separates the ops of the traced step from other ops of a profile's host.

Each turn of TensorFlow's executor (``ExecutorState::Process``) has the step id of the function call that it works for; each
call (``FunctionRun``) creates such an id. The step owns the ids of calls on its thread, and of calls made within turns with
one of these ids. Calls by tf.data belong to the input pipeline. Ops before or after the step, and ops of other calls, are other
work: for example, another thread trains, evaluates, or saves.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Callable
from functools import cached_property

import numpy as np

from tftracer.trace.arrays.intervals import distinct, is_in
from tftracer.trace.arrays.types import Bool, Int8, Int64
from tftracer.trace.decode.profile_nodes import of_kinds, outermost
from tftracer.trace.decode.profile_steps import Step
from tftracer.trace.decode.xplane_reader import EAGER, TURN, Plane
from tftracer.trace.decode.xplane_stats import Stat, stats_of

_REMOTE = "RemoteCallOp"
_CALLS = ("FunctionRun", "InstantiatedCapturedFunction::Run", "InstantiatedCapturedFunction::RunWithBorrowedArgs")
_NO_ID = -1  # the step id of turns that work for no call
_INPUT_THREADS = "tf_data"
_REDUCE = "ReduceDatasetOp"  # a loop of the step itself; it runs on the threads of _REDUCE_THREADS
_REDUCE_THREADS = "tf_data_reduce_dataset"
_INPUT_FUNCTIONS = "tf_data_private_threadpool"  # threads that only run the functions of map, filter and similar stages
#: Ops ("name:type") that TensorFlow adds when it runs or optimizes a graph.
_ADDED = re.compile(
    r".*:(_(Device)?(Arg|Retval)|_EagerConst|_(Host)?(Send|Recv))|.*/_\d+:.*"
    r"|.*(Optimizer|ConstantFolding|MixedPrecision|unary_ops_comp).*"
)
_ROUNDS = 8  # maximum number of levels of nested calls that are followed


class Owner(enum.IntEnum):
    """The owner of an op."""

    STEP = 0
    INPUT = 1  # the input pipeline: functions that tf.data runs, for this step or for later ones
    OTHER = 2


class Owners:
    """Finds the owners of a host's events.

    ``step``: None if the profile marks no steps; then no op is other work. ``graph_names``: returns the names of all ops that the
    step may run (profile_graph.names_of_ops); none if not known.
    """

    def __init__(
        self, host: Plane, stages: Int64, step: Step | None, graph_names: Callable[[], frozenset[str]] = frozenset
    ) -> None:
        self._host, self._stages, self._step, self._graph_names = host, stages, step, graph_names
        self._turns = of_kinds(host, TURN)
        self._calls = of_kinds(host, *_CALLS)

    def of(self, rows: Int64, ids: Stat | None = None) -> Int8:
        """Return [rows] Owner values. ``ids``: the step ids of the events, if they have their own."""
        owner = np.zeros(len(rows), np.int8)
        own, of_input = self._own_and_input
        ran_for = self._turn_of(rows) if len(own) or len(of_input) else np.zeros(len(rows), np.int64)
        if ids is not None:
            ran_for = np.where(ids.has, ids.number, ran_for)
        ran_for = np.where(ran_for == _NO_ID, 0, ran_for)
        staged = (outermost(self._host, self._stages, rows) >= 0) | self._named(_INPUT_FUNCTIONS)[self._host.events.line[rows]]
        owner[is_in(ran_for, of_input) | (staged & ~is_in(ran_for, own))] = Owner.INPUT
        if self._step is not None and len(own):
            without_turn = (ran_for == 0) & (owner == Owner.STEP) & (self._host.events.line[rows] != self._step.line)
            without_turn &= ~self._is_eager(rows)
            owner[np.flatnonzero(without_turn)[self._is_of_another_call(rows[without_turn])]] = Owner.OTHER
            of_unknown_calls = (ran_for != 0) & ~is_in(ran_for, own) & (owner == Owner.STEP)
            owner[of_unknown_calls] = self._owner_of_unknown_calls
            eager = (ran_for == 0) & (self._host.events.line[rows] != self._step.line) & self._is_eager(rows)
            owner[eager & (owner == Owner.STEP)] = Owner.OTHER
        owner[self.apart(rows)] = Owner.OTHER
        return owner

    def apart(self, rows: Int64) -> Bool:
        """Return [rows] whether each is before or after the step."""
        if self._step is None:
            return np.zeros(len(rows), np.bool_)
        events = self._host.events
        return self._step.apart(events.start[rows], events.end[rows])

    def _named(self, prefix: str) -> Bool:
        """Return [lines] whether a line's name begins with ``prefix``."""
        return np.array([line.name.startswith(prefix) for line in self._host.lines] or [False])

    def _is_eager(self, rows: Int64) -> Bool:
        kinds = [number for number, (name, _) in self._host.kind_names.items() if name.startswith(EAGER)]
        return is_in(self._host.events.kind[rows], kinds)

    def _turn_of(self, rows: Int64) -> Int64:
        """Return [rows] the step id of the turn around each event, 0 for none."""
        turn = outermost(self._host, self._turns, rows)
        return np.append(self._turn_ids, 0)[turn]

    def _is_of_another_call(self, rows: Int64) -> Bool:
        """Return [rows] whether each op, which is in no recorded turn, belongs to a call of another thread.

        A profile lacks the turns that began before it, and those that had not ended when it was stopped. The step's turns begin
        in it, but the last one may end too late. So an op before the first turn of its thread belongs to another call. So do the
        ops after the last turn if they go on after the step, and all ops of a thread without turns if the first one begins
        before the step's first call. The same holds for the ops before the first turn or after the last if one of them is not in
        the step's graph.
        """
        events, turns = self._host.events, self._turns
        first, last = (np.full(len(self._host.lines), value, np.int64) for value in (np.iinfo(np.int64).max, -1))
        np.minimum.at(first, events.line[turns], events.start[turns])
        np.maximum.at(last, events.line[turns], events.end[turns])
        line = events.line[rows]
        is_after_last = events.start[rows] >= last[line]
        goes_on = np.zeros(len(self._host.lines), np.bool_)
        goes_on[line[is_after_last & self.apart(rows)]] = True
        begins_early = np.zeros(len(self._host.lines), np.bool_)
        begins_early[line[(last[line] < 0) & (events.start[rows] < self._first_call_start)]] = True
        is_before_first = (last[line] >= 0) & (events.end[rows] <= first[line])
        part = 2 * line + is_after_last
        has_others_op = np.zeros(2 * len(self._host.lines), np.bool_)
        has_others_op[part[self._is_not_in_graph(rows)]] = True
        result: Bool = is_before_first | (is_after_last & goes_on[line]) | begins_early[line] | has_others_op[part]
        return result

    def _is_not_in_graph(self, rows: Int64) -> Bool:
        """Return [rows] whether the step's graph is known and has no op of each one's name."""
        known = self._graph_names() if len(rows) else None
        if not known:
            return np.zeros(len(rows), np.bool_)
        kinds = self._host.events.kind[rows]
        names = {kind: self._host.kind_name(kind) for kind in distinct(kinds).tolist()}
        others = [kind for kind, name in names.items() if not _ADDED.fullmatch(name) and not _is_known(name, known)]
        return is_in(kinds, others)

    @cached_property
    def _first_call_start(self) -> int:
        """When the step's first call begins, in the plane's time; 0 if the step makes none."""
        starts = self._host.events.start[self._calls[self._is_steps_call]]
        return int(starts.min()) if len(starts) else 0

    @cached_property
    def _is_steps_call(self) -> Bool:
        """[calls] whether each is made by the step itself, on its thread."""
        if self._step is None:
            return np.zeros(len(self._calls), np.bool_)
        result: Bool = (self._host.events.line[self._calls] == self._step.line) & ~self.apart(self._calls)
        return result

    @cached_property
    def _owner_of_unknown_calls(self) -> Owner:
        """The owner of turns whose call is not in the profile: the owner of the RemoteCalls, which run functions with new ids."""
        remote = self._turn_of(of_kinds(self._host, _REMOTE))
        if not len(remote):
            return Owner.OTHER
        return Owner.INPUT if is_in(remote, self._own_and_input[1]).all() else Owner.STEP

    def _reduced_by(self, calls: Int64) -> Int64:
        """Return [calls] the step id of the ReduceDataset that makes each call, 0 for none."""
        parts = of_kinds(self._host, *(name for name, _ in self._host.kind_names.values() if name.startswith(_REDUCE)))
        return np.append(_ids(self._host, parts), 0)[outermost(self._host, parts, calls)]

    @cached_property
    def _turn_ids(self) -> Int64:
        return _ids(self._host, self._turns)

    @cached_property
    def _own_and_input(self) -> tuple[Int64, Int64]:
        """The ids of the step's calls, and the ids of the input pipeline's calls."""
        calls, line = self._calls, self._host.events.line[self._calls]
        staged = outermost(self._host, self._stages, calls) >= 0
        reduces = self._named(_REDUCE_THREADS)[line] & ~staged
        of_input = (self._named(_INPUT_THREADS)[line] & ~reduces) | staged
        of_step = self._is_steps_call
        if not (of_step | of_input).any():
            return calls[:0], calls[:0]
        ids, within = _ids(self._host, calls), self._turn_of(calls)
        if reduces.any():
            within = np.where(reduces, self._reduced_by(calls), within)
        own = _called_within(ids, within, of_step)
        called = _called_within(ids, within, of_input & ~of_step)
        return own, called[~is_in(called, own)]


def _is_known(op: str, known: frozenset[str]) -> bool:
    """Return whether a name, or its part in a called function, is known. ``op``: "call/dense/MatMul:MatMul"."""
    parts = op.rpartition(":")[0].split("/")
    return any("/".join(parts[first:]) in known for first in range(len(parts)))


def _called_within(ids: Int64, within: Int64, first: Bool) -> Int64:
    """Return the ids of the ``first`` calls and of all calls within their turns, directly or indirectly.

    ``ids``, ``within``: [calls] the step id of each call, and of the turn around it.
    """
    selected = first
    for _ in range(_ROUNDS):
        more = selected | is_in(within, ids[selected])
        if (more == selected).all():
            break
        selected = more
    return distinct(ids[selected])


def _ids(host: Plane, rows: Int64) -> Int64:
    return stats_of(host, rows, ["id"])["id"].number
