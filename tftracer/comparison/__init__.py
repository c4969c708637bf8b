"""Two groups of sessions beside each other, with what chance alone explains. Pure NumPy; reads no files."""
