"""multiprocessing: data made by forked or spawned workers, training in this process and in others."""

import multiprocessing
import os
import sys


def augment(number):
    return number * number, os.getpid() != PARENT


def train(name, queue):
    import tensorflow as tf

    @tf.function
    def step(x):
        return x * 2.0

    for _ in range(6):
        result = step(tf.constant(4.0))
    queue.put((name, float(result)))


PARENT = os.getppid() if multiprocessing.parent_process() else os.getpid()

if __name__ == "__main__":
    context = multiprocessing.get_context(sys.argv[1])
    queue = context.SimpleQueue()
    with context.Pool(2) as pool:
        print(pool.map(augment, range(4)))
    process = context.Process(target=train, args=("child", queue))
    process.start()
    print(queue.get())
    process.join()
    print(process.exitcode)
    train("parent", queue)
    print(queue.get())
