"""The subcommands of ``tftracer``: each is a module with ``SUMMARY``, ``parser()`` and ``main(arguments, say)``.

``cli.py`` finds them here by name; a subcommand imports what it needs when it runs.
"""

from __future__ import annotations
