"""Finished steps: the run that each step belongs to, and the queue to the writer. Runs on the training's threads."""
