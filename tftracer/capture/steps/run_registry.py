"""The runs of this process: finds the run that a step belongs to, and holds the number of its steps.

Methods may be called from any thread. Normally the writer's thread calls them, and the training threads only while traces are
requested.
"""

from __future__ import annotations

import threading
import weakref
from collections import Counter
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any

from tftracer.capture.steps import run_identity
from tftracer.capture.steps.run_identity import RunIdentity
from tftracer.session.recorded_steps import RunHandle

#: Maximum number of separate runs. All later ones share one, "everything after the first ... runs".
MAX_RUNS = 2000
#: Maximum number of cached combinations of fetched and fed objects: for these no names are read.
MAX_CACHED = 4096


@dataclass(eq=False)
class CallSite:
    """The runs that differ only in their RunOptions, wherever the script calls them. A compiled function has only ``plain``."""

    identity: RunIdentity
    plain: RunHandle  # the run without options, which is nearly always used
    steps: int = 0  # finished and counted steps; all ranks of a synchronous training have the same number
    has_debug_watches: bool = False  # tfdbg watched its last step
    requested_step: int = 0  # the step to be traced for the job's page, 0: none
    variants: dict[str, RunHandle] = field(default_factory=dict)  # by the options' text

    def handles(self) -> list[RunHandle]:
        return [self.plain, *self.variants.values()]


class RunRegistry:
    def __init__(self) -> None:
        self._object_key = run_identity.ObjectKeys()
        self._cache: dict[Hashable, CallSite] = {}  # by the ids of what is fetched and fed, while these objects live
        self._cached_objects: dict[Hashable, list[weakref.ref[Any]]] = {}
        self._sites: dict[Hashable, CallSite] = {}
        self._runs = 0
        self._titles: Counter[str] = Counter()
        self._lock = threading.Lock()

    def site(self, fetches: Any, feeds: Any) -> CallSite:
        key = self._object_key(fetches, feeds)
        site = self._cache.get(key)
        return self._add(key, fetches, feeds) if site is None else site

    def sites(self) -> list[CallSite]:
        with self._lock:
            return list(self._sites.values())

    def find(self, title: str) -> CallSite | None:
        return next((site for site in self.sites() if site.plain.title == title), None)

    def run(self, site: CallSite, options: Any) -> RunHandle:
        """Return the run of ``site`` with these RunOptions (or the string in their place). None and empty ones are the same."""
        if options is None or not (isinstance(options, str) or options.ByteSize()):
            return site.plain
        text = run_identity.options_text(options)
        if not text:
            return site.plain
        handle = site.variants.get(text)
        if handle is None:
            with self._lock:
                handle = site.variants.get(text) or self._new_variant(site, text)
        return handle

    def add(self, title: str, fetches: tuple[str, ...], feeds: tuple[str, ...], definition: str) -> CallSite:
        """Add a run of a compiled function."""
        with self._lock:
            if self._runs >= MAX_RUNS:
                return self._overflow_site()
            site = CallSite(RunIdentity(fetches, feeds), self._new_handle(title, fetches, feeds, ""))
            site.plain.definition = definition
            self._sites["function", self._runs] = site
            return site

    def _add(self, key: Hashable, fetches: Any, feeds: Any) -> CallSite:
        identity = run_identity.describe(fetches, feeds)
        with self._lock:
            site = self._sites.get(identity.key) or self._new_site(identity)
        self._remember(key, site, run_identity.leaves(fetches, feeds))
        return site

    def _new_site(self, identity: RunIdentity) -> CallSite:
        """Make a call site. Called under the lock, like the methods below, which make at most MAX_RUNS runs."""
        if self._runs >= MAX_RUNS:
            return self._overflow_site()
        site = self._sites[identity.key] = CallSite(identity, self._new_run(identity, ""))
        return site

    def _new_variant(self, site: CallSite, options: str) -> RunHandle:
        if self._runs >= MAX_RUNS:
            return self._overflow_site().plain
        handle = site.variants[options] = self._new_run(site.identity, options)
        handle.refusal = run_identity.refusal_of(options)
        return handle

    def _new_run(self, identity: RunIdentity, options: str) -> RunHandle:
        return self._new_handle(identity.title(options), identity.fetches, identity.feeds, options)

    def _new_handle(self, title: str, fetches: tuple[str, ...], feeds: tuple[str, ...], options: str) -> RunHandle:
        self._runs += 1
        self._titles[title] += 1  # titles must differ, because runs are requested by title
        if self._titles[title] > 1:
            title += f" ({self._titles[title]})"
        return RunHandle(title, fetches, feeds, options)

    def _overflow_site(self) -> CallSite:
        rest = self._sites.get("rest")
        if rest is None:
            rest = CallSite(RunIdentity((), ()), RunHandle(f"everything after the first {MAX_RUNS} runs", (), (), ""))
            self._sites["rest"] = rest
        return rest

    def _remember(self, key: Hashable, site: CallSite, objects: list[Any]) -> None:
        if len(self._cache) >= MAX_CACHED:
            self._cache.clear()
            self._cached_objects.clear()

        def drop(_: Any) -> None:  # a new object may get the same id
            self._cache.pop(key, None)
            self._cached_objects.pop(key, None)

        try:
            self._cached_objects[key] = [weakref.ref(leaf, drop) for leaf in objects]
        except TypeError:
            return  # an object that cannot have weak references: it is looked up by its name at each step
        self._cache[key] = site
