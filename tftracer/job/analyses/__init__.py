"""The traces of one step of a job: aligned clocks, one timeline, the slowest process. Pure NumPy."""
