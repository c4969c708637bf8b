"""The messages between an agent and its hub, and the proof that they belong to one job."""
