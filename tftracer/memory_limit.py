"""Limits the memory of tftracer's own processes, because decoding a small hostile file may take any amount of memory.

Only processes in which nothing but tftracer runs are limited, not a script that calls tftracer.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import resource
import traceback
from collections.abc import Iterator
from pathlib import Path

from tftracer.errors import HelperError

#: The environment variable with the limit in GB (10^9 bytes); "off": no limit.
VARIABLE = "TFTRACER_MEMORY_GB"
#: The default limit: this share of the memory of the machine or container, but at least MIN_BYTES.
SHARE, MIN_BYTES = 0.5, 10**9
#: glibc's option M_MMAP_THRESHOLD, and its value: freed blocks of at least this many bytes go back to the system at once.
_MMAP_THRESHOLD, LARGE = -3, 1 << 20
_ALLOCATION = re.compile("alloc|memory", re.IGNORECASE)
_CONTAINER = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


def allowed_bytes() -> int | None:
    """Return the bytes that a process may take in addition to its size at the start; None: no limit."""
    setting = os.environ.get(VARIABLE, "").strip().lower()
    if setting in ("off", "no", "0"):
        return None
    with contextlib.suppress(ValueError, OverflowError):
        if float(setting) > 0:
            return int(float(setting) * 1e9)
    memory = [size for size in (_machine_memory(), *map(_container_limit, _CONTAINER)) if size]
    return max(int(min(memory) * SHARE), MIN_BYTES) if memory else None


def limit_memory() -> None:
    """Limit this process, if the system can (Linux). Allocations beyond the limit raise MemoryError.

    Also return freed large arrays to the system at once: glibc would keep some 60 MB after decoding a large trace.
    """
    with contextlib.suppress(OSError, AttributeError):  # the C library is not glibc
        ctypes.CDLL(None).mallopt(_MMAP_THRESHOLD, LARGE)
    allowed = allowed_bytes()
    if allowed is None:
        return
    with contextlib.suppress(OSError, ValueError):
        mapped = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0]) * resource.getpagesize()
        _, hard = before = resource.getrlimit(resource.RLIMIT_AS)
        limits = [limit for limit in (*before, mapped + allowed) if limit != resource.RLIM_INFINITY]
        resource.setrlimit(resource.RLIMIT_AS, (min(limits), hard))


@contextlib.contextmanager
def without_limit() -> Iterator[None]:
    """Start processes in the block (a browser) without tftracer's limit."""
    try:
        soft, hard = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(resource.RLIMIT_AS, (hard, hard))
    except (OSError, ValueError):
        yield
        return
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


@contextlib.contextmanager
def memory_errors(size: int) -> Iterator[None]:
    """Raise HelperError if memory runs out in the block, and free the block's variables. ``size``: see ``memory_error``."""
    try:
        yield
    except Exception as problem:
        if not _is_memory_error(problem):
            raise
        traceback.clear_frames(problem.__traceback__)
        raise memory_error(size) from None


def _is_memory_error(problem: BaseException | None) -> bool:
    """Return whether this error, or an error that caused it, says that memory ran out.

    C libraries have their own errors for this.
    """
    while problem is not None:
        is_from_library = type(problem).__module__.startswith(("zstandard", "google.protobuf"))
        if isinstance(problem, MemoryError) or (is_from_library and _ALLOCATION.search(str(problem))):
            return True
        problem = problem.__cause__ or problem.__context__
    return False


def memory_error(size: int) -> HelperError:
    """Return the error to show to users. ``size``: bytes of the trace; 0: the error is not about a single trace."""
    needs = f"This trace of {size / 1e6:,.1f} MB needs" if size else "This needs"
    allowed = allowed_bytes()
    if allowed is None or resource.getrlimit(resource.RLIMIT_AS)[0] == resource.RLIM_INFINITY:
        return HelperError(f"{needs} more memory than there is. Open it on a machine with more memory.")
    more = (
        f"If you trust where it comes from, allow more: {VARIABLE}={2 * allowed / 1e9:g} in the environment, or {VARIABLE}=off."
    )
    return HelperError(f"{needs} more than {allowed / 1e9:.1f} GB of memory to decode. {more}")


def _machine_memory() -> int:
    """Return the bytes of the machine's memory; 0 if unknown."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError):
        return 0


def _container_limit(path: str) -> int:
    """Return the memory limit of the container in bytes; 0 if there is none."""
    with contextlib.suppress(OSError, ValueError):
        return int(Path(path).read_text(encoding="ascii"))
    return 0
