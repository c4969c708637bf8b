"""The subcommands of ``tftracer``, a module each with ``SUMMARY``, ``parser()`` and ``main(arguments, say)``.

``cli.py`` finds them here by their names; what each needs is imported when it runs.
"""

from __future__ import annotations
