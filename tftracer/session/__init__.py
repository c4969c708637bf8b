"""What one process recorded: runs, steps and traces, in memory and on disk. Imports neither TensorFlow nor Tornado."""
