"""Loops that do not call a session: eager loops, Keras's, and the time in which they wait for data. On the training's threads."""
