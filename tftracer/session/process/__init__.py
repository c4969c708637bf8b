"""What is known of the process that recorded a session: its rank, processor and GPUs, and its end."""
