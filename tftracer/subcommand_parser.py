"""Shared by all subcommands: a parser that suggests corrections, and the handling of Ctrl-C."""

from __future__ import annotations

import argparse
import contextlib
import difflib
import os
import signal
import socket
import sys
import threading
from collections.abc import Iterator, Sequence
from types import FrameType
from typing import Any, NoReturn

from tftracer.terminal import RED, coloured, printable

#: Exit code for a wrong command line.
USAGE = 2
#: Exit code of a program that was ended by Ctrl-C: 128 + SIGINT.
INTERRUPTED = 130
#: Seconds after Ctrl-C until the process is forced to end, because DuckDB's statements and waiting threads do not react to
#: Ctrl-C.
GRACE_S = 0.5


def suggestion(word: str, known: Sequence[str]) -> str:
    """Return " Did you mean 'export'?", or ""."""
    close = difflib.get_close_matches(word, known, n=1)
    return f" Did you mean {close[0]!r}?" if close else ""


class Parser(argparse.ArgumentParser):
    """Suggests a correction for a misspelt option.

    Accepts no abbreviated options, because a later version may have a similar option.
    """

    def __init__(self, prog: str, description: str, usage: str | None = None, epilog: str | None = None) -> None:
        super().__init__(prog, usage, description, epilog, allow_abbrev=False)
        self._given: Sequence[str] = ()

    @property
    def options(self) -> list[str]:
        return [option for action in self._actions for option in action.option_strings if option.startswith("--")]

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        self._given = self._given or list(args or sys.argv[1:])  # may be called more than once for one command line
        return super().parse_known_args(args, namespace)

    def error(self, message: str) -> NoReturn:
        given = [word.partition("=")[0] for word in self._given if word.startswith("--")]
        hint = next((suggestion(word, self.options) for word in given if len(word) > 2 and word not in self.options), "")
        self.print_usage(sys.stderr)
        self.exit(USAGE, f"{coloured(f'{self.prog}:', RED, sys.stderr)} {printable(message)}.{hint}\n")


@contextlib.contextmanager
def ended_by_interrupt() -> Iterator[None]:
    """After Ctrl-C, raise KeyboardInterrupt at the end of the block, even if a library raises another error or ignores it.

    If the block does not end within ``GRACE_S``, the process exits with 130: Python runs signal handlers only between two
    instructions of the main thread, which may wait in a library for minutes.
    """
    if threading.current_thread() is not threading.main_thread() or signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        yield
        return
    interrupted = threading.Event()

    def interrupt(number: int, frame: FrameType | None) -> NoReturn:
        interrupted.set()
        raise KeyboardInterrupt

    signals_in, signals_out = socket.socketpair()
    signals_out.setblocking(False)
    done = threading.Event()

    def listen() -> None:
        while signals := signals_in.recv(64):
            if signal.SIGINT in signals and not done.wait(GRACE_S):
                _exit_now()

    threading.Thread(target=listen, name="tftracer-interrupt", daemon=True).start()
    previous_descriptor = signal.set_wakeup_fd(signals_out.fileno(), warn_on_full_buffer=False)
    previous_handler = signal.signal(signal.SIGINT, interrupt)
    try:
        yield
        done.set()
    except BaseException:
        if interrupted.is_set():
            raise KeyboardInterrupt from None
        raise
    finally:
        signal.signal(signal.SIGINT, previous_handler)
        signal.set_wakeup_fd(previous_descriptor)
    if interrupted.is_set():
        raise KeyboardInterrupt


def _exit_now() -> None:
    with contextlib.suppress(Exception):
        sys.stdout.flush()
    os._exit(INTERRUPTED)
