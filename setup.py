"""tftracer's packaging. TensorFlow is not a dependency: users have their own build of it, and viewing needs none."""

import re
from pathlib import Path

from setuptools import find_packages, setup

ROOT = Path(__file__).parent
VERSION = re.search(r'__version__ = "([^"]+)"', (ROOT / "tftracer/version.py").read_text(encoding="utf-8")).group(1)

setup(
    name="tftracer",
    version=VERSION,
    description="A live tracing server for TensorFlow graph-mode training: which op holds the step back?",
    long_description=(ROOT / "README.rst").read_text(encoding="utf-8") if (ROOT / "README.rst").exists() else "",
    long_description_content_type="text/x-rst",
    license="Apache-2.0",
    packages=find_packages(include=["tftracer", "tftracer.*"]),
    package_data={"tftracer": ["py.typed", "static/**/*", "static/*", "trace/decode/*.binpb", "autostart/*.py"]},
    python_requires=">=3.9",
    install_requires=[
        "tornado>=6.1",
        "msgpack>=1.0",
        "protobuf>=3.20.3",
        "numpy>=1.22",
        "zstandard>=0.19",
    ],
    # Never pyarrow: its newest refuses the NumPy that TensorFlow 2.15 needs. DuckDB writes Parquet from NumPy itself.
    extras_require={"tables": ["duckdb>=1.0"], "fleet": ["duckdb>=1.0", "distributed>=2023.5"]},
    entry_points={"console_scripts": ["tftracer = tftracer.cli:main"]},
    classifiers=[
        "Intended Audience :: Developers",
        "Programming Language :: Python :: 3",
        "Topic :: Scientific/Engineering :: Artificial Intelligence",
        "Topic :: Software Development :: Debuggers",
    ],
)
