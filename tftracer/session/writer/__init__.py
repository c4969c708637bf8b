"""Background threads: one counts and writes steps, one stores traces, one has them analyzed."""
