"""Finds slow steps while they happen, and samples stacks from outside the process."""
