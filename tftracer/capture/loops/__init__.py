"""Loops that do not call a session: eager loops and Keras's loops, and how long they wait for data.

Runs on the training's threads.
"""
