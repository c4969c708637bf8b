"""A Horovod script as people write one: Keras, and a step of its own. It knows nothing of tftracer."""

import horovod.tensorflow as horovod
import horovod.tensorflow.keras as hvd
import tensorflow as tf

hvd.init()
tf.random.set_seed(hvd.rank())
layers = tf.keras.layers
model = tf.keras.Sequential([layers.Input((4,)), layers.Dense(8, activation="relu"), layers.Dense(1)], name="net")
model.compile(hvd.DistributedOptimizer(tf.keras.optimizers.legacy.SGD(0.01)), "mse")
data = tf.data.Dataset.from_tensor_slices((tf.ones((64, 4)), tf.ones((64, 1)))).batch(8)
model.fit(data, epochs=2, verbose=0, callbacks=[hvd.callbacks.BroadcastGlobalVariablesCallback(0)])


@tf.function
def agree(value: tf.Tensor) -> tf.Tensor:
    return horovod.allreduce(value, op=horovod.Sum)


for _ in range(3):
    together = agree(tf.constant(float(hvd.rank() + 1)))
print("rank", hvd.rank(), "of", hvd.size(), "together", float(together))
