"""Finished steps: the run that each belongs to, and the queue to the writer. On the training's threads."""
