"""The subcommands of ``tftracer``: each is a module with ``SUMMARY``, ``parser()`` and ``main(arguments, say)``.

``cli.py`` finds the modules here by name. A subcommand imports what it needs only when it is called.
"""

from __future__ import annotations
