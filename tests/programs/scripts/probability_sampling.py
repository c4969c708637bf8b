"""TensorFlow Probability: 50 steps of variational inference, then Hamiltonian Monte Carlo in 5 compiled calls."""

import small_model
import tensorflow as tf
import tensorflow_probability as tfp

small_model.begin()
tfd = tfp.distributions
target = tfd.MultivariateNormalTriL([1.0, -1.0], [[1.0, 0.0], [0.5, 1.0]])
surrogate = tfp.experimental.vi.build_affine_surrogate_posterior([2], operators="tril")
losses = tfp.vi.fit_surrogate_posterior(
    target.log_prob, surrogate, optimizer=tf.keras.optimizers.legacy.Adam(0.1), num_steps=50, seed=(1, 2), sample_size=4
)
print(losses[-1].numpy())
kernel = tfp.mcmc.HamiltonianMonteCarlo(target.log_prob, step_size=0.3, num_leapfrog_steps=3)


@tf.function
def chain(state, seed):
    return tfp.mcmc.sample_chain(100, current_state=state, kernel=kernel, trace_fn=None, seed=seed)


state = tf.zeros(2)
for call in range(5):
    samples = chain(state, tf.constant([call, 7]))
    state = samples[-1]
    print(samples.numpy().mean(axis=0))
raise SystemExit(3)
