"""Imports TensorFlow at its top, then trains in a forked daemon; two more forks end at once, by os._exit and by themselves."""

import multiprocessing
import os

import tensorflow as tf


@tf.function
def step(x):
    return x * 2.0


def train(queue):
    for _ in range(6):
        result = step(tf.constant(4.0))
    queue.put(float(result))


context = multiprocessing.get_context("fork")
queue = context.SimpleQueue()
process = context.Process(target=train, args=(queue,), daemon=True)
process.start()
print(queue.get())
process.join()
child = os.fork()
if not child:
    os._exit(5)
print(os.waitpid(child, 0)[1] >> 8)
child = os.fork()
if not child:
    raise SystemExit(6)
print(os.waitpid(child, 0)[1] >> 8)
for _ in range(3):
    step(tf.constant(1.0))
