"""TensorFlow Recommenders: a retrieval model with its metric, 2 epochs of 10 steps, an evaluation, an index."""

import numpy as np
import small_model
import tensorflow as tf
import tensorflow_recommenders as tfrs

small_model.begin()
chance = np.random.default_rng(0)
users, films = chance.integers(0, 30, 640), chance.integers(0, 40, 640)


class Retrieval(tfrs.Model):
    def __init__(self):
        super().__init__()
        self.user, self.film = tf.keras.layers.Embedding(30, 8), tf.keras.layers.Embedding(40, 8)
        candidates = tf.data.Dataset.range(40).batch(20).map(self.film)
        self.task = tfrs.tasks.Retrieval(metrics=tfrs.metrics.FactorizedTopK(candidates))

    def compute_loss(self, features, training=False):
        return self.task(self.user(features["user"]), self.film(features["film"]), compute_metrics=not training)


model = Retrieval()
model.compile(tf.keras.optimizers.legacy.Adagrad(0.1))
watched = tf.data.Dataset.from_tensor_slices({"user": users, "film": films}).batch(64)
print(model.fit(watched, epochs=2, verbose=0).history)
print(model.evaluate(watched, return_dict=True, verbose=0))
index = tfrs.layers.factorized_top_k.BruteForce(model.user)
index.index(model.film(tf.range(40)))
print(index(tf.constant([1, 2]), k=3)[1].numpy().tolist())
