"""Slow steps: the watch that finds them, their causes, their records, and the texts about them."""
