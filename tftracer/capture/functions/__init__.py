"""Compiled functions: their calls, names, signatures, definitions, graphs and traces. On the training's threads."""
