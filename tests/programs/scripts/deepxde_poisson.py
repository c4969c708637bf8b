"""DeepXDE solves a Poisson equation in 300 steps; its backend (sessions or functions) is in DDE_BACKEND."""

import deepxde as dde
import numpy as np
import small_model
from deepxde.backend import tf

if dde.backend.backend_name == "tensorflow":
    small_model.begin()
dde.config.set_random_seed(1)


def equation(x, y):
    return -dde.grad.hessian(y, x) - np.pi**2 * tf.sin(np.pi * x)


space = dde.geometry.Interval(-1, 1)
edge = dde.icbc.DirichletBC(space, lambda x: 0, lambda _, on_boundary: on_boundary)
data = dde.data.PDE(space, equation, edge, 16, 2, train_distribution="uniform", num_test=20)
model = dde.Model(data, dde.nn.FNN([1, 20, 20, 1], "tanh", "Glorot uniform"))
model.compile("adam", lr=0.001, metrics=["l2 relative error"] if data.soln else None)
losses, _ = model.train(iterations=300, display_every=100, verbose=0)
print(losses.steps, [float(loss.sum()) for loss in losses.loss_train])
