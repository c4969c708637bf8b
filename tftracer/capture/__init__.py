"""What runs on the training's threads: the hook, calls of sessions and functions, the queue of steps, requests for traces.

TensorFlow is imported here, and only when it is needed by roof/, timeline.py and trace/decode/descriptors.py's ``extract``.
"""
