"""Opens the files of other tools: RunMetadata and StepStats, Timeline JSON, tfevents files, old pickles; also ``.gz``.

A file's format is recognized by its first bytes, not by its name. All files are untrusted: sizes are checked before anything is
allocated, nothing is executed, and the time is proportional to the file's size. The memory is at most forty times the
file for JSON and text, and three times the file for binary formats. A file may have at most ``MAX_BYTES``.

``session/files/imported.py`` builds a session from the result (see ``imported.py``).
"""

from __future__ import annotations

import os
import zlib
from pathlib import Path

from tftracer.errors import FormatError, StorageError, TruncatedError
from tftracer.importers import cut_imports, legacy_pickles, profile, run_metadata, tfevents, timeline_json
from tftracer.importers.imported import Imported
from tftracer.storage.plain_files import read_plain
from tftracer.trace.decode import protobuf_kinds

#: Maximum size of a file. No file of one step is larger, nor a pickled session, because it had to fit into memory.
MAX_BYTES = 4 << 30
#: Maximum size of a text, because it is parsed into objects that take many times its size.
MAX_TEXT = 1 << 30
#: A gzip file may inflate to 64 MB or 200 times its size, whichever is more. A RunMetadata inflates to 30 times its size at most.
FREE_INFLATE = 64 << 20
MAX_RATIO = 200

_CHUNK = 1 << 20
#: First bytes of other files that users often have near their traces.
_MAGIC = {
    b"\x89HDF\r\n\x1a\n": "an HDF5 file (Keras keeps weights in such files)",
    b"PK\x03\x04": "a zip archive (.keras and .npz files are such archives)",
    b"SQLite format 3\0": "an SQLite database (Nsight Systems writes such files)",
    b"PAR1": "a Parquet table",
    b"model_checkpoint_path:": "the list of a folder's checkpoints",
}
_TABLE_END = bytes.fromhex("57fb808b247547db")  # the last bytes of LevelDB's tables, the format of checkpoints
_OPENS = (
    "It opens .tftrace sessions, sessions and run metadata of tensorflow-tracer and tfvis (.pickle), RunMetadata and StepStats "
    "(.pb, .pbtxt, .json), profiles (.xplane.pb, or a log folder with them), TensorFlow's Timeline JSON, and tfevents files that "
    "hold RunMetadata"
)


def open_any(path: str | os.PathLike[str]) -> Imported:
    """Read the file at ``path``.

    Raises ``StorageError`` if it cannot be read, ``FormatError`` (``TruncatedError``, ``UnsafePickleError``) if its format is
    unknown, or if it is damaged, too large or hostile.
    """
    if Path(path).is_dir():
        return _open_folder(Path(path))
    content = _content(path)
    opened = open_bytes(content, os.fspath(path))
    for run in opened.runs:
        for trace in run.traces:
            trace.is_whole_file = trace.raw is content
    return opened


def _open_folder(folder: Path) -> Imported:
    """Read the newest profile in a folder of logs; with several hosts, the titles of steps have the hosts' names."""
    files = profile.newest_profile(folder)
    hosts = [profile.host_of(file) if len(files) > 1 else "" for file in files]
    parts = [_read_host(file, host) for file, host in zip(files, hosts)]
    return Imported("profile", [run for part in parts for run in part.runs])


def _read_host(file: Path, host: str) -> Imported:
    """Read one host's file of a profile; an error names the file."""
    try:
        return profile.read(_unpacked(_content(file)), host)
    except FormatError as error:
        raise type(error)(f"{file.name}: {error}") from error


def open_pickle(path: str | os.PathLike[str]) -> Imported:
    """Like ``open_any``, for a file that must be a pickle."""
    return legacy_pickles.read(_unpacked(_content(path)))


def open_bytes(data: bytes, name: str = "the file") -> Imported:
    """Like ``open_any``, for bytes in memory. ``name``: the name of the file in error messages."""
    data = _unpacked(data)
    if not data:
        raise FormatError(f"{name!r} is empty: there is nothing to open")
    head = data[:4096]
    if legacy_pickles.looks_like_pickle(head):
        return legacy_pickles.read(data)
    if run_metadata.looks_like_json(head):
        return run_metadata.from_json(_text(data))
    if timeline_json.looks_like_json(head):
        return timeline_json.read(_text(data))
    if tfevents.looks_like_events(head, len(data)):
        return tfevents.read(data)
    if run_metadata.looks_like_text(head):
        return run_metadata.from_text(_text(data))
    if protobuf_kinds.kind_of(data) == protobuf_kinds.XSPACE:
        return profile.read(data)
    opened = run_metadata.from_binary(data)
    if opened is None:
        cut = protobuf_kinds.cut_kind_of(data)
        if cut:
            raise cut_imports.cut_short(cut)
        raise FormatError(f"tftracer cannot open {name!r}{_known_kind(data)}. {_OPENS}")
    return opened


def _known_kind(data: bytes) -> str:
    """Return a text about a file that is recognized but has no trace; "" if it is not recognized."""
    if data.endswith(_TABLE_END):
        return ": it is the index of a checkpoint, which holds no trace of a step"
    for magic, kind in _MAGIC.items():
        if data.startswith(magic):
            return f": it is {kind}, which holds no trace of a step"
    kind = protobuf_kinds.kind_of(data)
    return f": it is {kind}; {protobuf_kinds.ADVICE[kind]}" if kind in protobuf_kinds.ADVICE else ""


def _content(path: str | os.PathLike[str]) -> bytes:
    try:
        size = Path(path).stat().st_size
        if size > MAX_BYTES:
            raise FormatError(f"{os.fspath(path)!r} has {size} bytes: more than {MAX_BYTES} are not opened")
        return read_plain(path)
    except OSError as error:
        raise StorageError(
            f"cannot read {os.fspath(path)!r}: {error.strerror or error}. Check the path and its rights"
        ) from error


def _unpacked(data: bytes) -> bytes:
    """Return the content of a gzip file, with a size limit; other files unchanged. Only one level of gzip is opened."""
    if data[:2] != b"\x1f\x8b":
        return data
    limit = min(max(FREE_INFLATE, MAX_RATIO * len(data)), MAX_BYTES)
    parts: list[bytes] = []
    size = 0
    rest = data
    while rest[:2] == b"\x1f\x8b":
        inflate = zlib.decompressobj(31)
        pending = rest
        while not inflate.eof:
            part = _inflated(inflate, pending)
            size += len(part)
            if size > limit:
                raise FormatError(f"the gzip file grows past {limit} bytes when it is unpacked: refused")
            parts.append(part)
            pending = inflate.unconsumed_tail
            if not part and not pending and not inflate.eof:
                raise TruncatedError("the gzip file is cut short, its end is missing: copy it again")
        rest = inflate.unused_data
    return b"".join(parts)


def _inflated(inflate: zlib._Decompress, data: bytes) -> bytes:
    try:
        return inflate.decompress(data, _CHUNK)
    except zlib.error as error:
        raise FormatError(f"the gzip file is broken: {error}") from error


def _text(data: bytes) -> str:
    if len(data) > MAX_TEXT:
        raise FormatError(f"a text of {len(data)} bytes: more than {MAX_TEXT} are not parsed")
    return data.decode("utf-8-sig", "replace")
