"""The file that a live session appends to, so that nothing is lost when the job is killed.

When ``append`` returns, the operating system has the record, so it survives the end of the process; only a crash of the machine
can lose the last seconds. Appending is atomic for readers: a partly written record (on a full disk) is cut off again.
All methods may be called from any thread.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import os
import threading
import zlib
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from tftracer.errors import StorageError
from tftracer.storage import tftrace_format
from tftracer.storage.file_bytes import FileBytes, Handle
from tftracer.storage.tftrace_format import Record, StoredPayload
from tftracer.storage.whole_file import take_place, writing

#: Maximum size of a session that is kept in memory because no file can be written.
MEMORY_LIMIT = 64 << 20
#: The suffix of the file that will replace a spool, while it is being written.
ASIDE = ".new"
#: Bytes of a payload's first and last block together. A payload shares these blocks with other records, so they cannot be freed.
SHARED_BLOCKS_SIZE = 2 << 12
#: Maximum number of small records that wait for space on a full disk.
MAX_DEFERRED = 10_000


class NewRecord(NamedTuple):
    """A record to be written: ``stored`` is the zstd frame of its payload."""

    type: str
    meta: dict[str, Any]
    stored: bytes = b""
    raw_size: int = 0


def closed_file(records: Iterable[NewRecord]) -> Iterator[bytes]:
    """Yield the bytes of a closed file with these records; only one record at a time is in memory."""
    counts = Counter[str]()
    yield tftrace_format.header()
    for new in records:
        counts[new.type] += 1
        yield tftrace_format.record_head(*new)
        if new.stored:
            yield new.stored
    yield tftrace_format.end_record(counts)


class Disk(FileBytes):
    """A file that is written at its end and read anywhere. It is closed when nothing refers to it any more."""

    def __init__(self, path: Path) -> None:
        self.name = str(path)
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        self.handle = Handle(os.open(path, flags, 0o600))
        self.locked = lock(self.handle.fd)
        self.gives_back = punch_hole(self.handle.fd, 1 << 30, 1 << 12)  # whether the system can free parts of a file

    def write_at(self, offset: int, data: bytes) -> None:
        view = memoryview(data)
        while view:
            written = os.pwrite(self.handle.fd, view, offset)
            view, offset = view[written:], offset + written

    def truncate(self, size: int) -> None:
        os.ftruncate(self.handle.fd, size)

    def punch(self, offset: int, size: int) -> None:
        punch_hole(self.handle.fd, offset, size)

    def free(self) -> int:
        """Return the free bytes of the file system; a user's quota may be lower."""
        try:
            system = os.fstatvfs(self.handle.fd)
        except OSError:
            return 0
        return system.f_bavail * system.f_frsize

    def close(self) -> None:
        self.handle.close()


class Memory:
    """Replaces the file if none can be written."""

    name = "memory"
    locked = gives_back = False

    def __init__(self, limit: int = MEMORY_LIMIT) -> None:
        self._data = bytearray()
        self._limit = limit

    def read_at(self, offset: int, size: int) -> bytes:
        return bytes(self._data[offset : offset + size])

    def length(self) -> int:
        return len(self._data)

    def write_at(self, offset: int, data: bytes) -> None:
        if offset + len(data) > self._limit:
            raise OSError(f"no more than {self._limit >> 20} MB are kept in memory")
        self._data[offset:] = data

    def truncate(self, size: int) -> None:
        del self._data[size:]

    def punch(self, offset: int, size: int) -> None: ...

    def free(self) -> int:
        return self._limit - len(self._data)

    def close(self) -> None: ...


#: The payload of a record that could not be written.
NOWHERE = StoredPayload(Memory(), 0, 0, 0, 0)


class Spool:
    """The spool of a session. ``path`` None: in memory. Raises ``StorageError`` if the file cannot be created."""

    def __init__(self, path: Path | None, memory: Memory | None = None) -> None:
        self.path = path
        self.lock = threading.RLock()
        self._head = tftrace_format.header(spool=True)
        self.file = self._create(path, memory)
        self.size = len(self._head)
        self._counts = Counter[str]()  # number of records of each type, for the ``end`` record
        self.superfluous_bytes = 0  # bytes of records that later records have made superfluous
        self.superfluous_records = 0
        self._readers: set[object] = set()  # saves under way, which read even superfluous payloads
        self._unreleased: list[StoredPayload] = []  # payloads to release when the readers have ended
        self._deferred: deque[NewRecord] = deque(maxlen=MAX_DEFERRED)  # records that wait for space
        self._too_large = 0  # size of the largest record that did not fit; 0: there is space

    def _create(self, path: Path | None, memory: Memory | None) -> Disk | Memory:
        with writing(path):
            store = Disk(path) if path else memory or Memory()
            try:
                store.write_at(0, self._head)
            except OSError:  # the header is incomplete
                if path:
                    path.unlink(missing_ok=True)
                raise
        return store

    def append(self, new: NewRecord) -> Record:
        """Write one record. Raises ``StorageError`` if it could not be written completely; then the file is unchanged."""
        with self.lock:
            self._catch_up()
            return self._append(new)

    def write_later(self, new: NewRecord) -> None:
        """Keep a record for which there was no space: it is written before the next record."""
        with self.lock:
            self._deferred.append(new)

    def has_space(self) -> bool:
        """Return whether there is space now for the largest record that was rejected; called after a successful append."""
        if self._too_large and self.file.free() >= self._too_large:
            self._too_large = 0
        return not self._too_large

    def _append(self, new: NewRecord) -> Record:
        head = tftrace_format.record_head(*new)
        start, size = self.size, len(head) + len(new.stored)
        try:
            self.file.write_at(start, head + new.stored)
        except OSError as error:
            with contextlib.suppress(OSError):  # if this fails, the next record overwrites the rest
                self.file.truncate(start)
            self._too_large = max(self._too_large, size)
            raise StorageError(f"{self.file.name}: cannot be written ({error.strerror or error}).") from error
        if size >= self._too_large:
            self._too_large = 0
        self.size = start + size
        self._counts[new.type] += 1
        return _record(self.file, new, start, start + len(head))

    def busy(self) -> bool:
        """Return whether an append would have to wait (for a rewrite)."""
        if self.lock.acquire(blocking=False):
            self.lock.release()
            return False
        return True

    def release(self, size: int, payload: StoredPayload | None = None, records: int = 1) -> None:
        """Count ``records`` records, ``size`` bytes in all, as superfluous. Free a payload's space if the system can."""
        with self.lock:
            self.superfluous_bytes += size
            self.superfluous_records += records
            if payload and self._readers:
                self._unreleased.append(payload)
            elif payload:
                self._free(payload)

    def _free(self, payload: StoredPayload) -> None:
        if payload.source is self.file:
            self.file.punch(payload.offset, payload.size)

    def would_fit(self, new: NewRecord, released: list[StoredPayload]) -> bool:
        """Return whether a record for which there was no space would fit if these payloads were released."""
        with self.lock:
            if not released or self._readers or not self.file.gives_back:
                return False
            freed = sum(max(0, payload.size - SHARED_BLOCKS_SIZE) for payload in released if payload.source is self.file)
            return self.file.free() + freed >= len(new.stored) + SHARED_BLOCKS_SIZE

    @contextlib.contextmanager
    def payloads_kept(self) -> Iterator[None]:
        """Keep released payloads readable in this block, while the session is saved. The next append frees their space.

        Leaving the block takes no lock, because an abandoned save may be garbage-collected on the training thread.
        """
        reader = object()
        with self.lock:
            self._readers.add(reader)
        try:
            yield
        finally:
            self._readers.discard(reader)

    @property
    def kept_payloads(self) -> int:
        """Return the number of superfluous payloads whose space cannot be freed because of a reader."""
        return len(self._unreleased)

    def _catch_up(self) -> None:
        """Free payloads that waited for a reader, and write records that waited for space. The caller holds the lock."""
        while self._unreleased and not self._readers:
            self._free(self._unreleased.pop())
        while self._deferred:  # before any later record, which may refer to them
            self._append(self._deferred[0])
            self._deferred.popleft()

    def rewrite(self, new_records: Iterable[NewRecord]) -> list[Record]:
        """Replace the file atomically by a new one that has only these records. Appends wait meanwhile."""
        with self.lock:
            fresh, end, records = self._create_replacement(), len(self._head), []
            try:
                fresh.write_at(0, self._head)
                for new in new_records:
                    head = tftrace_format.record_head(*new)
                    fresh.write_at(end, head + new.stored)
                    records.append(_record(fresh, new, end, end + len(head)))
                    end = records[-1].end
                if self.path and isinstance(fresh, Disk):
                    take_place(Path(fresh.name), self.path)
                    fresh.name = str(self.path)
            except OSError as error:
                self._discard(fresh)
                raise StorageError(f"{self.file.name}: cannot be rewritten ({error.strerror or error}).") from error
            except BaseException:
                self._discard(fresh)
                raise
            self.file, self.size, self.superfluous_bytes, self.superfluous_records = fresh, end, 0, 0
            self._counts = Counter(record.type for record in records)
            self._deferred.clear()  # ``parts`` includes the deferred records
            return records

    def _create_replacement(self) -> Disk | Memory:
        if self.path is None:
            return Memory()
        aside = self.path.with_suffix(ASIDE)
        with writing(aside):
            aside.unlink(missing_ok=True)
            return Disk(aside)

    def _discard(self, fresh: Disk | Memory) -> None:
        fresh.close()
        if self.path:
            self.path.with_suffix(ASIDE).unlink(missing_ok=True)

    def leave_to_parent(self) -> None:
        """Close the parent's file in a forked child, which would otherwise keep it locked after the parent's end.

        Takes no lock, because another thread of the parent may have held it at the time of the fork.
        """
        self.file.close()

    def close(self, remove: bool = False) -> None:
        """Write the ``end`` record and unlock the file; payloads can still be read. ``remove``: delete the file instead."""
        with self.lock:
            if remove and self.path:
                self.path.unlink(missing_ok=True)
            elif isinstance(self.file, Disk):
                with contextlib.suppress(StorageError):  # a full disk: readers will see that the file was not closed
                    self._catch_up()
                    self._append(NewRecord(tftrace_format.END, {"records": dict(self._counts)}))
                unlock(self.file)


def _record(store: Disk | Memory, new: NewRecord, start: int, offset: int) -> Record:
    meta = dict(new.meta)
    crc = meta.pop("payload_crc", None)
    payload = StoredPayload(store, offset, len(new.stored), new.raw_size, zlib.crc32(new.stored) if crc is None else crc)
    return Record(new.type, meta, payload, start, offset + len(new.stored))


def lock(fd: int) -> bool:
    """Lock a file, which marks it as in use; return False if it cannot be locked."""
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def is_locked(fd: int) -> bool | None:
    """Return whether another process writes to this file; None if the file system has no locks."""
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        fcntl.flock(fd, fcntl.LOCK_UN)
    except BlockingIOError:
        return True
    except OSError:
        return None
    return False


def unlock(store: Disk) -> None:
    if store.locked:
        fcntl.flock(store.handle.fd, fcntl.LOCK_UN)


_KEEP_SIZE_PUNCH_HOLE = 0x01 | 0x02


def punch_hole(fd: int, offset: int, size: int) -> bool:
    """Free a part of a file (Linux: ext4, xfs, btrfs, tmpfs). Return False if that fails; then a later rewrite frees it."""
    try:
        fallocate = ctypes.CDLL(None, use_errno=True).fallocate
    except (OSError, AttributeError):
        return False
    fallocate.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64]
    return bool(fallocate(fd, _KEEP_SIZE_PUNCH_HOLE, offset, size) == 0)
