"""A zlib stream whose parts are deflated by a thread of its own while the next ones are made: zlib lets go of the GIL."""

from __future__ import annotations

import zlib
from concurrent.futures import Future, ThreadPoolExecutor, wait
from types import TracebackType

#: A page that is written in a moment: a higher level saves a tenth of the size and takes four times as long.
_LEVEL = 1
#: Bytes that take as long to deflate as a thread to wake up.
_ENOUGH = 1 << 14

_HEADER = b"\x78\x01"
_END = b"\x03\x00"  # a last block, empty


class Deflated:
    """A context manager; the caller's thread adds the parts and takes the stream, in the ``with`` statement."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, "deflate")
        self._waiting: list[bytes] = []  # parts of one kind, too small yet to wake the thread for
        self._dense = False  # which kind
        self._parts: list[Future[bytes]] = []
        self._sum = zlib.adler32(b"")  # the thread's

    def __enter__(self) -> Deflated:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._thread.shutdown(cancel_futures=True)

    def add(self, part: bytes, dense: bool = False) -> None:
        """``dense``: hardly anything in it repeats (times), so that is not looked for: it would take three times as long."""
        if part and dense is not self._dense:
            self._start()
            self._dense = dense
        self._waiting.append(part)
        if len(part) >= _ENOUGH:
            self._start()

    def _start(self) -> None:
        parts, self._waiting = self._waiting, []
        strategy = zlib.Z_HUFFMAN_ONLY if self._dense else zlib.Z_DEFAULT_STRATEGY
        if parts:
            self._parts.append(self._started(parts, strategy))

    def _started(self, parts: list[bytes], strategy: int) -> Future[bytes]:
        try:
            return self._thread.submit(self._deflate, parts, strategy)
        except RuntimeError:  # Python is ending (an atexit function writes a page) and starts no thread any more
            wait(self._parts)
            done: Future[bytes] = Future()
            done.set_result(self._deflate(parts, strategy))
            return done

    def _deflate(self, parts: list[bytes], strategy: int) -> bytes:
        deflater = zlib.compressobj(_LEVEL, zlib.DEFLATED, -zlib.MAX_WBITS, zlib.DEF_MEM_LEVEL, strategy)
        for part in parts:
            self._sum = zlib.adler32(part, self._sum)
        return b"".join([*map(deflater.compress, parts), deflater.flush(zlib.Z_FULL_FLUSH)])

    def stream(self) -> bytes:
        self._start()
        parts = [part.result() for part in self._parts]
        return b"".join([_HEADER, *parts, _END, self._sum.to_bytes(4, "big")])
