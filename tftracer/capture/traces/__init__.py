"""Traced steps: which steps are requested, and what is recorded with them. Runs on the training's threads."""
