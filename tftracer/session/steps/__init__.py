"""The step times of a run: history, percentiles, changes, and their columns in files and messages."""
