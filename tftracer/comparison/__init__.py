"""Two groups of sessions beside each other, with what chance alone explains; two traces; ops over the traces of one run.

Pure NumPy; reads no files.
"""
