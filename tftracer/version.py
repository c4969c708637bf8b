"""The version; the only place that defines it."""

__version__ = "2.0.0"
