"""Compiled functions: their calls, names, signatures, definitions, graphs and traces. Runs on the training's threads."""
