"""A script that fails in a step."""

import numpy as np
import tensorflow as tf


class Broken(tf.keras.callbacks.Callback):
    def on_epoch_end(self, epoch, logs=None):
        if epoch == 1:
            raise ValueError("the validation folder is empty")


model = tf.keras.Sequential([tf.keras.layers.Input((4,)), tf.keras.layers.Dense(1)], name="net")
model.compile("sgd", "mse")
print("training", flush=True)
model.fit(np.ones((64, 4)), np.ones((64, 1)), epochs=3, batch_size=8, verbose=0, callbacks=[Broken()])
