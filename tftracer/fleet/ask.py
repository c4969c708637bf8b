"""Asks a fleet: DuckDB in this process, or Dask's workers, each with DuckDB on partitions of its own."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from tftracer.errors import StorageError, TracerError, UnsupportedError
from tftracer.fleet.answer import Fleet, merged
from tftracer.fleet.partial import Found, partial
from tftracer.scripting.partitions import Partition, chunks, partitions

#: In one piece: about 100 MB while it is worked on.
CHUNK_ROWS = 400_000
CONNECT_S = 30


def ask(folder: str, scheduler: str = "", most: int = 10, chunk_rows: int = CHUNK_ROWS) -> Fleet:
    """``scheduler``: the address of a Dask scheduler, whose workers see the folder under the same path.

    A worker that is lost is no loss: others do its part again. ``StorageError`` where the folder or the scheduler cannot be read
    or reached, ``UnsupportedError`` where a package is missing.
    """
    exported = partitions(Path(folder))
    pieces = chunks(exported.whole, chunk_rows)
    found = list(_on_workers(scheduler, pieces) if scheduler else map(partial, pieces))
    partials, unreadable = [one for each in found for one in each.partials], [text for each in found for text in each.left_out]
    if not partials:
        raise StorageError(f"{folder}: no partition can be read. {unreadable[0]}")
    return merged(partials, len(exported.whole) - len(unreadable), [*exported.left_out, *unreadable], most)


def _on_workers(scheduler: str, pieces: Sequence[Sequence[Partition]]) -> Iterable[Found]:
    try:
        from distributed import Client
    except ImportError:
        raise UnsupportedError(
            "--scheduler needs Dask's distributed, which is not installed: pip install tftracer[fleet]"
        ) from None
    try:
        client = Client(scheduler, timeout=CONNECT_S)
    except (OSError, ValueError) as error:
        raise StorageError(f"{scheduler}: no Dask scheduler can be reached there ({error}).") from error
    with client:
        futures = client.map(partial, pieces, threads=1, pure=False)
        return _gathered(client, futures)


def _gathered(client: Any, futures: Sequence[Any]) -> list[Found]:
    try:
        results: list[Found] = client.gather(futures)
        return results
    except TracerError:
        raise
    except Exception as error:
        raise StorageError(
            f"The workers did not answer: {error}. Each needs tftracer[fleet] and the folder under the same path."
        ) from error
