"""Reads from the memory of another process which thread holds Python's lock.

Python stores a pointer to the thread state of the lock's last holder and, directly after it, whether the lock is taken. The
address differs between releases and is not documented. The training finds the address once, by comparing values (``LockPlace``).
The watching process (outside_process.py) then reads it 10 to 20 times a second (``LockReader``). Tested with Python 3.9 to 3.13.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import struct
import sys
import threading
from bisect import bisect_left
from collections import deque

#: Number of bytes of a thread state that are searched.
THREAD_BYTES = 256
WORD = struct.calcsize("P")
#: Formats of the pointer to the holder, and of whether the lock is taken.
HOLDER, TAKEN = struct.Struct("P"), struct.Struct("i")
NUMBER = struct.Struct("L")  # the format of a thread's id
RTLD_DL_SYMENT = 1
#: Maximum number of readings that are kept: those of two minutes.
MAX_READINGS = 2400
#: Maximum number of attempts to open the memory. At first the process may not have allowed it yet.
TRIES = 100


class LockPlace:
    """Finds where this process stores the holder of its lock. Two threads call ``narrow``: only one place fits both."""

    def __init__(self) -> None:
        #: Possible (address of the pointer to the holder, offset of the thread's id).
        self._possible: set[tuple[int, int]] | None = None

    @property
    def place(self) -> tuple[int, int] | None:
        """(address of the pointer to the holder's thread state, offset of the thread's id in a thread state); None if not
        found."""
        return next(iter(self._possible)) if self._possible and len(self._possible) == 1 else None

    def narrow(self) -> None:
        """Keep only the places that show the calling thread as the holder, because it holds the lock now."""
        with contextlib.suppress(AttributeError, OSError, ValueError):
            fits = _places_of_this_thread()
            self._possible = fits if self._possible is None else self._possible & fits


def _places_of_this_thread() -> set[tuple[int, int]]:
    if sys.platform != "linux":
        return set()
    base = ctypes.addressof(ctypes.c_char.in_dll(ctypes.pythonapi, "_PyRuntime"))
    size = _size_of_symbol(base)  # reading beyond it would crash the process if that memory is freed
    own = ctypes.PYFUNCTYPE(ctypes.c_void_p)(("PyThreadState_Get", ctypes.pythonapi))()
    runtime, thread = ctypes.string_at(base, size), ctypes.string_at(own, THREAD_BYTES)  # without releasing the lock
    last = len(runtime) - WORD - TAKEN.size
    places = [at for at in _positions(runtime, HOLDER.pack(own)) if at <= last and TAKEN.unpack_from(runtime, at + WORD)[0] == 1]
    id_offsets = _positions(thread, NUMBER.pack(threading.get_ident()))
    return {(base + place, id_offset) for place in places for id_offset in id_offsets}


class _Symbol(ctypes.Structure):
    """Elf64_Sym."""

    _fields_ = (
        ("name", ctypes.c_uint32),
        ("info", ctypes.c_ubyte),
        ("other", ctypes.c_ubyte),
        ("section", ctypes.c_uint16),
        ("value", ctypes.c_uint64),
        ("size", ctypes.c_uint64),
    )


def _size_of_symbol(address: int) -> int:
    """Return the size in bytes of the variable at an address; 0 if not known. Raises ``AttributeError`` without glibc."""
    information, symbol = (ctypes.c_void_p * 4)(), ctypes.POINTER(_Symbol)()
    success = ctypes.CDLL(None).dladdr1(ctypes.c_void_p(address), information, ctypes.byref(symbol), RTLD_DL_SYMENT)
    is_variable = success and symbol and information[3] == address  # information[3]: address of the nearest symbol
    return int(symbol.contents.size) if is_variable else 0


def _positions(data: bytes, value: bytes) -> list[int]:
    """Return the positions of the words in ``data`` that equal ``value``."""
    positions, at = [], data.find(value)
    while at >= 0:
        if at % WORD == 0:
            positions.append(at)
        at = data.find(value, at + 1)
    return positions


class LockReader:
    """Reads which thread holds the lock of another process. This process must be allowed to read its memory."""

    def __init__(self, pid: int) -> None:
        self._path = f"/proc/{pid}/mem"
        self._memory = -1
        self._tries = TRIES
        self._place: tuple[int, int] | None = None
        self._holders: deque[tuple[int, int]] = deque(maxlen=MAX_READINGS)  # (time, thread); 0: no thread

    def begin(self, address: int, id_offset: int) -> None:
        """Set the place to read. ``address`` and ``id_offset``: ``LockPlace.place`` of that process."""
        self._place = address, id_offset

    def read(self, now_ns: int) -> None:
        if self._place is None or not self._tries:
            return
        address, id_offset = self._place
        try:
            if self._memory < 0:
                self._tries -= 1
                self._memory = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
            data = os.pread(self._memory, WORD + TAKEN.size, address)
            thread = 0
            if TAKEN.unpack_from(data, WORD)[0]:
                (thread,) = NUMBER.unpack(os.pread(self._memory, NUMBER.size, HOLDER.unpack_from(data)[0] + id_offset))
            self._holders.append((now_ns, thread))
        except (OSError, struct.error):
            pass  # not allowed yet, or the thread has just ended

    def holders(self, start_ns: int, end_ns: int) -> list[tuple[int, int]]:
        """Return (time, id of the thread that held the lock; 0: none) of each reading within a span."""
        first, end = bisect_left(self._holders, (start_ns, 0)), bisect_left(self._holders, (end_ns + 1, 0))
        return [self._holders[index] for index in range(first, end)]
