"""Traced steps: which ones are requested, and what is recorded with them. On the training's threads."""
