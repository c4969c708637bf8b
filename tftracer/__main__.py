"""``python -m tftracer`` is the ``tftracer`` command."""

from __future__ import annotations

import sys

from tftracer.cli import main

sys.exit(main())
