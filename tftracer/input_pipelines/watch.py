"""Looks into the script's dataset iterators once a second, in the training process, on the thread ``tftracer-input``.

It keeps weak references to iterators, taken at their creation. A look holds only the iterator's resource, for some 25 µs: if the
script drops the iterator meanwhile, it is freed on this thread. The training's threads only append to a queue. They wait neither
for this thread nor for a look, because TensorFlow's look takes no lock that ``next`` holds while it waits.
"""

from __future__ import annotations

import os
import sys
import threading
import time
import weakref
from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tftracer.errors import FormatError
from tftracer.input_pipelines import dataset_code, model_proto
from tftracer.input_pipelines.answer import limiting_name
from tftracer.input_pipelines.limiting_stage import MIN_LOOKS, flow_of
from tftracer.input_pipelines.saved_pipelines import (
    MAX_BYTES,
    MAX_HISTORY,
    MAX_LOOKS,
    MAX_PIPELINES,
    Moment,
    Pipeline,
    PipelineFacts,
    Reading,
)
from tftracer.input_pipelines.waits import Ledger, StepWaits

LOOK_S = 1.0
HISTORY_S = 10.0
#: Looks may take this share of a core; costly ones become rarer.
MAX_SHARE = 0.001
FREE_S = 0.05  # CPU time before MAX_SHARE applies: the first look of a process alone takes 10 ms
MAX_NEW = 4  # maximum number of new iterators that are added in one round
JOIN_S = 1.0
_STAT = Path("/proc/stat")


@dataclass
class Watched:
    """An iterator, and what looks at it have shown."""

    iterator: weakref.ref[Any]
    title: str
    steps: tuple[dataset_code.Transformation, ...]
    waits: StepWaits
    earlier: tuple[Reading, ...] = ()  # looks at the iterator of the previous epoch
    looks: deque[Reading] = field(default_factory=lambda: deque(maxlen=MAX_LOOKS))
    history: list[Moment] = field(default_factory=list)
    unseen: str = ""  # why it cannot be looked into, as in ``PipelineFacts.unseen``; "" if it can

    def pipeline(self) -> Pipeline:
        is_enough = len(self.looks) >= MIN_LOOKS or len(self.looks) > len(self.earlier)
        looks = tuple(self.looks) if is_enough else self.earlier
        return Pipeline(self.title, self.steps, looks, tuple(self.history), self.iterator() is not None)


class Pipelines:
    """The pipelines of this process. ``add`` and ``add_unseen`` run on the training's threads, ``facts`` on the writer's."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._new: deque[weakref.ref[Any]] = deque(maxlen=4 * MAX_NEW)
        self._watched: OrderedDict[str, Watched] = OrderedDict()  # by title, the newest last
        self._unseen: dict[str, None] = {}
        self._datasets: weakref.WeakKeyDictionary[Any, list[dataset_code.Transformation]] = weakref.WeakKeyDictionary()
        self._lock = threading.Lock()  # guards the fields that the writer reads
        self._arrived = threading.Event()
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self._pid = os.getpid()
        self._cost_s = 0.0

    def add(self, iterator: Any) -> None:
        """Add a dataset's new iterator."""
        self._new.append(weakref.ref(iterator))
        self._arrived.set()
        if self._thread is None and not self._stopping.is_set():
            self._thread = threading.Thread(target=self._run, name="tftracer-input", daemon=True)
            try:
                self._thread.start()
            except RuntimeError:  # too many threads
                self.add_unseen("failed")

    def add_unseen(self, code: str) -> None:
        """Report an iterator that cannot be looked into. ``code``: as in ``PipelineFacts.unseen``."""
        self._unseen[code] = None

    def stop(self) -> None:
        self._stopping.set()
        self._arrived.set()
        thread = self._thread
        if thread is not None and os.getpid() == self._pid and thread is not threading.current_thread():
            thread.join(JOIN_S)

    def facts(self) -> PipelineFacts | None:
        """Return the facts; None if no iterator was looked into or reported."""
        with self._lock:
            known = [each.pipeline() for each in reversed(self._watched.values())]
            pipelines = tuple(each for each in known if each.looks)
            unseen = {**self._unseen, **{each.unseen: None for each in self._watched.values() if each.unseen}}
        return PipelineFacts(pipelines, tuple(unseen), self._cost_s) if pipelines or unseen else None

    # ------------------------------------------------------------------------------------- on the thread tftracer-input

    def _run(self) -> None:
        pause, start = LOOK_S / 4, time.monotonic()
        while not self._stopping.wait(pause):
            try:
                for reference in [self._new.popleft() for _ in range(len(self._new))][-MAX_NEW:]:
                    self._take(reference)
                began = time.thread_time()
                open_iterators = self._round()
            except Exception as error:  # an unknown TensorFlow
                self.add_unseen(f"failed: {type(error).__name__}: {error}"[:300])
                return
            spent = time.thread_time() - began
            self._cost_s += spent
            # New iterators are looked into more often, because an epoch may be short.
            is_new = any(len(each.looks) <= MIN_LOOKS for each in open_iterators)
            pause = LOOK_S / 4 if is_new else LOOK_S
            if self._cost_s > FREE_S + MAX_SHARE * (time.monotonic() - start):
                pause = max(pause, spent / MAX_SHARE)
            if not open_iterators:
                self._arrived.wait()
            self._arrived.clear()

    def _round(self) -> list[Watched]:
        """Look into the iterators that still exist, except those that cannot be looked into; return them."""
        look = _model_reader()
        if look is None:
            self.add_unseen("old")
            return []
        open_iterators = [each for each in list(self._watched.values()) if not each.unseen and each.iterator() is not None]
        for each in open_iterators:
            self._look(each, look)
        for each in open_iterators:
            self._remember(each)
        return open_iterators

    def _take(self, reference: weakref.ref[Any]) -> None:
        """Add an iterator. It replaces that of the previous epoch over the same dataset."""
        iterator = reference()
        if iterator is None:
            return
        dataset = getattr(iterator, "_dataset", None)
        del iterator
        steps = self._steps_of(dataset)
        title = dataset_code.title_of(steps)
        key = " ".join([title, *(step.place for step in steps)])
        with self._lock:
            earlier = self._watched.pop(key, None)
            if earlier:
                earlier.waits.end()
            looks, history = (earlier.pipeline().looks, earlier.history) if earlier else ((), [])
            self._watched[key] = Watched(reference, title, tuple(steps), StepWaits(title, self._ledger), looks, history=history)
            while len(self._watched) > MAX_PIPELINES:
                self._watched.popitem(last=False)

    def _steps_of(self, dataset: Any) -> list[dataset_code.Transformation]:
        """Return the dataset's transformations, read once for each dataset."""
        if dataset is None:
            return []
        if dataset not in self._datasets:
            self._datasets[dataset] = dataset_code.steps_of(dataset)
        return self._datasets[dataset]

    def _look(self, watched: Watched, look: Callable[[Any], bytes]) -> None:
        resource = getattr(watched.iterator(), "_iterator_resource", None)
        if resource is None:
            return
        if not hasattr(resource, "numpy"):
            watched.unseen = "function"
            return
        try:
            raw = look(resource)
        except Exception as error:
            is_off = type(error).__name__ == "NotFoundError"
            watched.unseen = "autotune" if is_off else f"failed: {type(error).__name__}: {error}"[:300]
            return
        finally:
            del resource
        if len(raw) > MAX_BYTES:
            watched.unseen = "large"
            return
        try:
            seen = Reading(time.time(), time.process_time(), _idle_s(), *self._ledger.input_waits(), raw, model_proto.read(raw))
        except FormatError:
            watched.unseen = "failed"
            return
        with self._lock:
            if not watched.looks or seen.model.progress() != watched.looks[-1].model.progress():
                watched.looks.append(seen)
        watched.waits.look(seen)

    def _remember(self, watched: Watched) -> None:
        """Add a moment to the history every ``HISTORY_S``. If the history is full, drop every second moment."""
        current = watched.pipeline()
        if not current.looks or (watched.history and current.looks[-1].at < watched.history[-1].at + HISTORY_S):
            return
        flow = flow_of(current)
        if flow is None:
            return
        with self._lock:
            watched.history.append(Moment(current.looks[-1].at, flow.rate, flow.wait, limiting_name(current, flow)))
            if len(watched.history) > MAX_HISTORY:
                del watched.history[1::2]


def _idle_s() -> float | None:
    """Return the idle time of all cores; None on other systems than Linux."""
    try:
        with _STAT.open("rb", buffering=0) as file:
            _, _, _, _, idle, waiting, *_ = file.read(256).split()
        return (int(idle) + int(waiting)) / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError):
        return None


def _model_reader() -> Callable[[Any], bytes] | None:
    """Return TensorFlow's op behind ``tf.data.experimental.get_model_proto``; None if this TensorFlow has no such op."""
    ops = sys.modules.get("tensorflow.python.ops.gen_experimental_dataset_ops")
    op = getattr(ops, "iterator_get_model_proto", None)
    return None if op is None else lambda resource: bytes(op(resource).numpy())
