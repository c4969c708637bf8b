"""A trace that is the whole content of another tool's file: it is read there, and compressed only where it is copied."""

from __future__ import annotations

from dataclasses import dataclass

from tftracer.errors import FormatError
from tftracer.storage.file_bytes import FileBytes
from tftracer.storage.tftrace import StoredPayload, compress


@dataclass(frozen=True)
class PlainPayload(StoredPayload):
    """FormatError where the file has changed since it was opened: what is known of its content is true no more."""

    source: FileBytes
    changed_ns: int

    @classmethod
    def of(cls, file: FileBytes) -> PlainPayload:
        size = file.length()
        return cls(file, 0, size, size, None, file.changed_ns())

    def copied(self) -> bytes:
        return compress(self.raw())

    def stored(self) -> bytes:
        return self.copied()

    def is_whole(self) -> bool:
        return (self.source.length(), self.source.changed_ns()) == (self.size, self.changed_ns)

    def raw(self) -> bytes:
        data = self.source.read_at(0, self.size)
        if len(data) != self.size or not self.is_whole():
            raise FormatError(f"{self.source.name}: has changed since it was opened. Open it again.")
        return data
