"""Run as a folder, ``python vision``."""

import sys
from pathlib import Path

import tensorflow as tf


@tf.function
def step(x):
    return x + 1.0


print(sys.argv, __name__, __package__, Path(sys.path[0]).name, [float(step(tf.constant(1.0))) for _ in range(3)])
