"""A script with ``if __name__ == "__main__"`` that imports its neighbours, reads its own source, and ends with a message."""

import atexit
import sys
from pathlib import Path

import tensorflow as tf
from vision import layers


@tf.function
def train_step(x):
    return layers.double(x)


def main():
    atexit.register(print, "goodbye")
    print(__name__, __file__, sys.argv, Path.cwd(), sys.path[0])
    print(sys.modules["__main__"].__file__, __spec__, sys.flags.optimize)
    print(len(Path(__file__).read_text().splitlines()), train_step(tf.constant(2.0)).numpy())
    print(sys.stdin.readline().strip())
    for _ in range(9):
        train_step(tf.constant(1.0))
    sys.exit("nothing left to do")


if __name__ == "__main__":
    main()
