"""Prints what threads other than its own import while it trains, until a line is typed."""

import sys
import threading
import time

imported = []


class Finder:
    def find_spec(self, name, path=None, target=None):
        thread = threading.current_thread()
        if thread is not threading.main_thread():
            imported.append(f"{thread.name}: {name}")


sys.meta_path.insert(0, Finder())

import tensorflow as tf  # noqa: E402  the finder has to be there before


@tf.function
def step(x):
    return tf.reduce_sum(tf.matmul(x, x))


def train(ended):
    x = tf.ones((64, 64))
    number = 0
    while not ended.is_set():
        number += 1
        step(x)
        if number % 100 == 0:
            time.sleep(0.2)  # a slow turn, so that the watch works


ended = threading.Event()
typed = threading.Thread(target=lambda: (sys.stdin.readline(), ended.set()), name="typed")
typed.start()
train(ended)
typed.join()
print("\n".join(imported))
