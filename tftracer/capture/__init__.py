"""Code that runs on the training's threads: the hook, wrappers of sessions and functions, the queue of steps, requests for
traces.

The rest of tftracer does not import TensorFlow, except roof/ and timeline.py.
"""
