"""Compares two groups of sessions, or two traces, with tests against chance; combines ops over the traces of one run.

Pure NumPy; reads no files.
"""
