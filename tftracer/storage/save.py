"""Writes a session's records as one closed file, atomically."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from tftracer.storage import tftrace_format as tftrace_format
from tftracer.storage.spool import NewRecord
from tftracer.storage.whole_file import replacing, writing


def stream(records: Iterable[NewRecord]) -> Iterator[bytes]:
    """Yield the file's bytes; only one record at a time is in memory."""
    counts = Counter[str]()
    yield tftrace_format.header()
    for new in records:
        counts[new.type] += 1
        yield tftrace_format.record_head(new.type, new.meta, new.stored, new.raw_size)
        if new.stored:
            yield new.stored
    yield tftrace_format.end_record(counts)


def write_whole(path: str, chunks: Iterable[bytes]) -> None:
    """Write a file atomically: ``path`` is the old file until the new one is complete and on the disk.

    Raises ``StorageError`` if it cannot be written; then the old file stays. If ``path`` is a link, the file that it leads to is
    replaced.
    """
    with writing(path, ". Nothing was saved."), replacing(Path(path).resolve()) as file:
        for chunk in chunks:
            file.write(chunk)
