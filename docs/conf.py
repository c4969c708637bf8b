"""Sphinx configuration: ``make docs``."""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "docs"))
project = "tftracer"
copyright = "the tftracer authors"
release = re.search(r'"([^"]+)"', (ROOT / "tftracer/version.py").read_text(encoding="utf-8").split("__version__")[1]).group(1)
extensions = ["sphinx.ext.autodoc", "sphinx.ext.napoleon", "shown"]
autodoc_mock_imports = ["tensorflow"]
autodoc_member_order = "bysource"
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = f"tftracer {release}"
