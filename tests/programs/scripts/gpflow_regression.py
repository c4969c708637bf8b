"""GPflow fits a sparse Gaussian process with 60 steps of Adam, then with L-BFGS."""

import gpflow
import numpy as np
import small_model
import tensorflow as tf

small_model.begin()
x = np.linspace(0, 1, 60)[:, None]
y = np.sin(12 * x) + 0.1 * np.random.default_rng(1).normal(size=x.shape)
model = gpflow.models.SVGP(gpflow.kernels.SquaredExponential(), gpflow.likelihoods.Gaussian(), x[::6].copy(), num_data=60)
loss = model.training_loss_closure((x, y))
adam = tf.keras.optimizers.legacy.Adam(0.05)


@tf.function
def step():
    adam.minimize(loss, model.trainable_variables)


for _ in range(60):
    step()
print(float(loss()))
result = gpflow.optimizers.Scipy().minimize(loss, model.trainable_variables, options={"maxiter": 20})
print(result.fun, result.nit)
