"""One traced session.run without a server: times on the terminal, and a page in one HTML file.

python examples/timeline.py --output timeline.html
"""

import argparse

import tensorflow.compat.v1 as tf
from small_model import IMAGE, digits, train_op_of

from tftracer import Timeline


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", default="timeline.html")
    options = parser.parse_args()

    tf.disable_eager_execution()
    images = tf.placeholder(tf.float32, [None, IMAGE, IMAGE, 1], name="images")
    labels = tf.placeholder(tf.int32, [None], name="labels")
    train_op, _, _ = train_op_of(images, labels)
    batches = digits(64, seed=0)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for _ in range(20):  # the first steps are slower than what follows
            session.run(train_op, dict(zip((images, labels), next(batches))))
        with Timeline() as timeline:
            session.run(train_op, dict(zip((images, labels), next(batches))), **timeline.kwargs)
    print(f"step          {timeline.step_time() * 1e3:8.3f} ms")
    print(f"computation   {timeline.computation_time() * 1e3:8.3f} ms")
    print(f"communication {timeline.communication_time() * 1e3:8.3f} ms")
    timeline.visualize(output_file=options.output)
    print(f"wrote {options.output}")


if __name__ == "__main__":
    main()
