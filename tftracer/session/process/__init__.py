"""Facts about the process that records a session: its rank, processor and GPUs."""
