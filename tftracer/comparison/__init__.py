"""Compares two groups of sessions, or two traces, with statistical tests; combines ops over the traces of one run.

Pure NumPy; reads no files.
"""
