"""The runs of this process: finds the run that a step belongs to, and holds the number of its steps.

Methods may be called from any thread. Normally only the thread that stores the steps calls them; training threads call them only
while traces are requested.
"""

from __future__ import annotations

import contextlib
import threading
import weakref
from collections import Counter
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any

from tftracer.capture.steps import run_identity
from tftracer.capture.steps.run_identity import RunIdentity
from tftracer.run_handle import RunHandle

#: Maximum number of separate runs. All later ones share one, "everything after the first ... runs".
MAX_RUNS = 2000
#: Maximum number of combinations of fetched and fed objects whose run is found by the objects' ids, without reading names.
MAX_CACHED = 4096


@dataclass(eq=False)
class RunFamily:
    """Runs that differ only in their RunOptions, wherever the script calls them. A compiled function has only ``plain``."""

    identity: RunIdentity
    plain: RunHandle  # the run without RunOptions; nearly all steps belong to it
    steps: int = 0  # number of finished and counted steps; in a synchronous training it is the same on all ranks
    has_debug_watches: bool = False  # whether tfdbg watched the last step
    requested_step: int = 0  # number of the step that the job's page wants traced; 0: none
    variants: dict[str, RunHandle] = field(default_factory=dict)  # text of the RunOptions -> the run with them

    def handles(self) -> list[RunHandle]:
        return [self.plain, *self.variants.values()]


class RunRegistry:
    def __init__(self) -> None:
        self._object_key = run_identity.ObjectKeys()
        #: Ids of fetched and fed objects -> their family, and weak references, which remove the entry when an object is deleted.
        self._cache: dict[Hashable, tuple[RunFamily, list[weakref.ref[Any]]]] = {}
        self._families: dict[Hashable, RunFamily] = {}  # by RunIdentity.key; functions by number; the overflow family by "rest"
        self._run_count = 0
        self._titles: Counter[str] = Counter()
        self._lock = threading.Lock()

    def family(self, fetches: Any, feeds: Any) -> RunFamily:
        key = self._object_key(fetches, feeds)
        cached = self._cache.get(key)
        return self._find_or_add(key, fetches, feeds) if cached is None else cached[0]

    def families(self) -> list[RunFamily]:
        with self._lock:
            return list(self._families.values())

    def find(self, title: str) -> RunFamily | None:
        return next((family for family in self.families() if family.plain.title == title), None)

    def run(self, family: RunFamily, options: Any) -> RunHandle:
        """Return the run of ``family`` with these options; the plain run if they are None or empty.

        ``options``: RunOptions, or the string that replaces them (``PARTIAL_RUN``).
        """
        if options is None or not (isinstance(options, str) or options.ByteSize()):
            return family.plain
        text = run_identity.options_text(options)
        if not text:
            return family.plain
        handle = family.variants.get(text)
        if handle is None:
            with self._lock:
                handle = family.variants.get(text) or self._new_variant(family, text)
        return handle

    def add_function(self, title: str, fetches: tuple[str, ...], feeds: tuple[str, ...], origin: str) -> RunFamily:
        """Add a compiled function and return its family, which has one run.

        ``fetches``: the function's name and place, as the only element. ``feeds``: its arguments. ``origin``: where it is
        defined, or what made it.
        """
        with self._lock:
            if self._run_count >= MAX_RUNS:
                return self._overflow_family()
            family = RunFamily(RunIdentity(fetches, feeds), self._new_handle(title, fetches, feeds, ""))
            family.plain.definition = origin
            self._families["function", self._run_count] = family
            return family

    def _find_or_add(self, key: Hashable, fetches: Any, feeds: Any) -> RunFamily:
        """Find the family by the names of the tensors, or make it, and store it under ``key``."""
        identity = run_identity.describe(fetches, feeds)
        with self._lock:
            family = self._families.get(identity.key) or self._new_family(identity)
        self._remember(key, family, run_identity.leaves(fetches, feeds))
        return family

    def _new_family(self, identity: RunIdentity) -> RunFamily:
        """Make a family; return the overflow family if there are MAX_RUNS runs.

        Callers of this method, ``_new_variant``, ``_new_run``, ``_new_handle`` and ``_overflow_family`` must hold the lock.
        """
        if self._run_count >= MAX_RUNS:
            return self._overflow_family()
        family = self._families[identity.key] = RunFamily(identity, self._new_run(identity, ""))
        return family

    def _new_variant(self, family: RunFamily, options: str) -> RunHandle:
        if self._run_count >= MAX_RUNS:
            return self._overflow_family().plain
        handle = family.variants[options] = self._new_run(family.identity, options)
        handle.refusal = run_identity.refusal_of(options)
        return handle

    def _new_run(self, identity: RunIdentity, options: str) -> RunHandle:
        handle = self._new_handle(identity.title(options), identity.fetches, identity.feeds, options)
        handle.is_session = True
        return handle

    def _new_handle(self, title: str, fetches: tuple[str, ...], feeds: tuple[str, ...], options: str) -> RunHandle:
        self._run_count += 1
        self._titles[title] += 1  # each title must be unique, because traces of a run are requested by its title
        if self._titles[title] > 1:
            title += f" ({self._titles[title]})"
        return RunHandle(title, fetches, feeds, options)

    def _overflow_family(self) -> RunFamily:
        rest = self._families.get("rest")
        if rest is None:
            rest = RunFamily(RunIdentity((), ()), RunHandle(f"everything after the first {MAX_RUNS} runs", (), (), ""))
            self._families["rest"] = rest
        return rest

    def _remember(self, key: Hashable, family: RunFamily, objects: list[Any]) -> None:
        if len(self._cache) >= MAX_CACHED:
            self._cache.clear()

        def drop(_: Any) -> None:  # called when an object is deleted, because a new object may get its id
            self._cache.pop(key, None)

        with contextlib.suppress(TypeError):  # one object cannot have weak references: the run is looked up by name at each step
            self._cache[key] = family, [weakref.ref(leaf, drop) for leaf in objects]
