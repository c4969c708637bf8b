"""The threads behind the training's: one counts and writes steps, one stores traces, one has them summarized."""
