"""Finds slow steps while the training runs, and samples its stacks from outside the process."""
