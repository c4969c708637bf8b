"""What runs on the training's threads: the hook, calls of sessions and functions, the queue of steps, requests for traces.

TensorFlow is imported only here and, when it is needed, in roof/, timeline.py and trace/decode/descriptors.py's ``extract``.
"""
