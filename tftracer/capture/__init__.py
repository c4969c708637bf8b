"""What runs on the training's threads: hook, queue of steps, requests for traces, run identity; and the watch over slow steps.

TensorFlow is imported here, and only when it is needed by roof/, timeline.py and trace/decode/descriptors.py's ``extract``.
"""
