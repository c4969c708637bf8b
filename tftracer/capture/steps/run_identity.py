"""What identifies a run: the names of what it fetches, the names of what it feeds (not the fed values), and its RunOptions.

``ObjectKeys`` is called for every step, ``describe`` only for a step with objects that are new to the registry. Both only read
attributes of TensorFlow's objects, so this module does not need TensorFlow.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

#: A title names the first tensors, as many as fit into this many characters.
TITLE_LENGTH = 80
#: A run is identified by at most this many fetches and feeds: the first ones.
MAX_NAMES = 1000
#: Maximum depth of nested fetches. (TensorFlow refuses containers that hold themselves.)
MAX_DEPTH = 20


#: Replaces the RunOptions of a step of ``session.partial_run``, which takes no RunOptions.
PARTIAL_RUN = "partial_run"
#: Replaces tfdbg's watches in the text of a run's options, because the watches name a new folder at each step.
DEBUG_WATCHES = "tfdbg watches"
#: Beginning of the text of a run's options -> why a run with these options is not traced.
REFUSALS = {
    PARTIAL_RUN: "TensorFlow cannot trace session.partial_run: such steps are timed only.",
    DEBUG_WATCHES: (
        "Steps that tfdbg watches are not traced, because TensorFlow can abort when a step is both watched and traced. "
        "Trace them without tfdbg's hook or wrapper."
    ),
}


@dataclass(frozen=True)
class RunIdentity:
    """What identifies a run apart from its options. Makes the run's title."""

    fetches: tuple[str, ...]  # in the order of the script
    feeds: tuple[str, ...]

    @property
    def key(self) -> Hashable:
        """The key of the computation. It does not depend on the containers in which the script passes the fetches."""
        return frozenset(self.fetches), frozenset(self.feeds)

    def title(self, options: str = "") -> str:
        text = _join_names(self.fetches) or "nothing"
        if self.feeds:
            text += f" (feeding {_join_names(self.feeds)})"
        return f"{text} [{options}]" if options else text


class ObjectKeys:
    """Makes a key from the ids of what is fetched and fed. The same objects give the same key, even in new containers.

    When one of the objects (``leaves``) is deleted, a new object may get its id. So code that stores a key must then delete the
    key; run_registry.py uses weak references for this.
    """

    def __init__(self) -> None:
        self._leaf_types: set[type] = set()  # classes known not to be containers; kept because isinstance is slow

    def __call__(self, fetches: Any, feed_dict: Any) -> Hashable:
        leaf_types, kind = self._leaf_types, fetches.__class__
        key: Hashable
        if kind is list or kind is tuple:
            key = (kind, *[id(part) if part.__class__ in leaf_types else self._key_part(part, 1) for part in fetches])
        else:
            key = id(fetches) if kind in leaf_types else self._key_part(fetches, 0)
        if not feed_dict:
            return key
        return key, tuple([fed if fed.__class__ is str else id(fed) for fed in feed_dict])

    def _key_part(self, fetch: Any, depth: int) -> Hashable:
        kind = fetch.__class__
        if kind is str:
            return fetch  # type: ignore[no-any-return]
        if isinstance(fetch, (tuple, list, Mapping)):
            if depth > MAX_DEPTH:
                raise ValueError("fetches are nested too deep")
            return (kind, *[self._key_part(part, depth + 1) for part in _parts(fetch)])
        if len(self._leaf_types) < 1000:
            self._leaf_types.add(kind)
        return id(fetch)


def _parts(fetch: Any) -> list[Any]:
    return list(fetch.values()) if isinstance(fetch, Mapping) else list(fetch)


def leaves(fetches: Any, feed_dict: Any) -> list[Any]:
    """Return the objects whose ids are in a key of ``ObjectKeys``."""
    fetched = [leaf for leaf in _flatten(fetches, 0) if leaf.__class__ is not str]
    return fetched + [key for key in feed_dict or () if key.__class__ is not str]


def _flatten(fetch: Any, depth: int) -> Iterator[Any]:
    if isinstance(fetch, (tuple, list, Mapping)) and depth <= MAX_DEPTH:
        for part in _parts(fetch):
            yield from _flatten(part, depth + 1)
    else:
        yield fetch


def describe(fetches: Any, feed_dict: Any) -> RunIdentity:
    """Return the identity of the run that fetches and feeds these objects. Takes about 10 µs."""
    fetched = dict.fromkeys(_name(leaf) for _, leaf in zip(range(MAX_NAMES), _flatten(fetches, 0)))
    fed = dict.fromkeys(_name(leaf) for key in list(feed_dict or ())[:MAX_NAMES] for leaf in _flatten(key, 0))
    return RunIdentity(tuple(fetched), tuple(fed))


def _name(leaf: Any) -> str:
    """Return ``loss:0`` for a tensor, ``train`` for an operation.

    For a composite tensor (sparse, ragged), return the name of the tensor that holds its values.
    """
    if isinstance(leaf, (str, bytes)):
        text = leaf if isinstance(leaf, str) else leaf.decode("utf-8", "replace")
        return text.lstrip("^")[:1000]
    for holder in (leaf, getattr(leaf, "values", None), getattr(leaf, "flat_values", None)):
        name = getattr(holder, "name", None)
        if isinstance(name, str) and name:
            return name[:1000]
    return f"<{type(leaf).__name__}>"


def _join_names(names: tuple[str, ...]) -> str:
    shown: list[str] = []
    for name in names:
        short = shorten(name)
        if shown and len(", ".join([*shown, short])) > TITLE_LENGTH:
            break
        shown.append(short)
    more = len(names) - len(shown)
    at_least = "at least " if len(names) >= MAX_NAMES else ""
    return ", ".join(shown) + (f" and {at_least}{more} more" if more else "")


def shorten(name: str) -> str:
    """Return ``loss`` for ``loss:0``, and only the end of a long path."""
    name = name[:-2] if name.endswith(":0") else name
    while len(name) > TITLE_LENGTH // 2 and "/" in name:
        name = name.split("/", 1)[1]
    return name[-TITLE_LENGTH:]


def options_text(options: Any) -> str:
    """Return RunOptions as one line; ``""`` if they set nothing besides the options for tracing.

    ``trace_level`` and ``output_partition_graphs`` are left out: a traced step belongs to the same run as the steps around it.
    A string (``PARTIAL_RUN``) is returned unchanged.
    """
    if isinstance(options, str):
        return options
    if options is None or not options.ByteSize():
        return ""
    rest = type(options)()
    rest.CopyFrom(options)
    rest.ClearField("trace_level")
    rest.ClearField("output_partition_graphs")
    watched = has_debug_watches(rest)
    if watched:
        rest.ClearField("debug_options")
    for field, value in rest.ListFields():
        if hasattr(value, "ByteSize") and not value.ByteSize():  # when TensorFlow merges options, it leaves empty messages
            rest.ClearField(field.name)
    text = " ".join(str(rest).split())[:1000]
    return f"{DEBUG_WATCHES} {text}".strip() if watched else text


def has_debug_watches(options: Any) -> bool:
    return options is not None and len(options.debug_options.debug_tensor_watch_opts) > 0


def refusal_of(options: str) -> str:
    """Return why a run with these options (from ``options_text``) is not traced; ``""`` if it can be."""
    return next((reason for start, reason in REFUSALS.items() if options.startswith(start)), "")
