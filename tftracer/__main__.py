"""The ``tftracer`` command, and ``python -m tftracer``."""

from __future__ import annotations

try:
    import os
    import signal
    import sys
except KeyboardInterrupt:
    raise SystemExit(130) from None


def main() -> int:
    """Run the command and return its exit code.

    While modules are imported, Ctrl-C ends the process: there is nothing to clean up.
    """
    before = signal.getsignal(signal.SIGINT)
    if before is signal.default_int_handler:
        signal.signal(signal.SIGINT, lambda number, frame: os._exit(130))
    from tftracer import cli

    signal.signal(signal.SIGINT, before)
    return cli.main()


if __name__ == "__main__":
    sys.exit(main())
