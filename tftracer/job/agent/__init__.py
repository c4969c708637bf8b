"""A process of a job: finds the hub, connects to it, and answers its requests."""
