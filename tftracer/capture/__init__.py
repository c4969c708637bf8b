"""Code that runs on the training's threads: the hook, wrappers of sessions and functions, the queue of steps, requests for
traces.

Only this package imports TensorFlow; also, where needed, roof/, timeline.py and trace/decode/descriptors.py's ``extract``.
"""
