"""A GradientTape loop, as in TensorFlow's guide: train and test steps, metrics, checkpoints."""

import tempfile

import tensorflow as tf

tf.random.set_seed(1)
model = tf.keras.Sequential([tf.keras.layers.Input((4,)), tf.keras.layers.Dense(8, activation="relu"), tf.keras.layers.Dense(2)])
loss_of = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
optimizer = tf.keras.optimizers.Adam()
train_loss = tf.keras.metrics.Mean()


@tf.function
def train_step(images, labels):
    with tf.GradientTape() as tape:
        loss = loss_of(labels, model(images, training=True))
    optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
    train_loss(loss)


@tf.function
def test_step(images, labels):
    return loss_of(labels, model(images, training=False))


data = tf.data.Dataset.from_tensor_slices((tf.ones((60, 4)), tf.zeros((60,), tf.int64))).shuffle(60).batch(16)
checkpoint = tf.train.Checkpoint(step=tf.Variable(0))
for epoch in range(2):
    train_loss.reset_state()
    for images, labels in data:
        train_step(images, labels)
        checkpoint.step.assign_add(1)
    for images, labels in data.take(2):
        test_loss = test_step(images, labels)
    print(f"epoch {epoch}: {train_loss.result() > test_loss}")
checkpoint.save(tempfile.mkdtemp() + "/model")
print(int(checkpoint.step))
