"""``warm.py MODEL LOOP [server]``: trains a model for 300 steps, then ten more for each line of input.

MODEL: convnet, transformer, resnet50, lstm. LOOP: fit, custom. ``server``: the script has a TracingServer of its own.
"""

import sys

import numpy as np
import tensorflow as tf

kind, loop, *own = sys.argv[1:]
if own:
    from tftracer import TracingServer

    server = TracingServer(server_port=0)
    print(server.url, flush=True)
WARM, MORE, BATCH = 300, 10, 2
layers = tf.keras.layers


def convnet():
    parts = [layers.Input((16, 16, 3)), layers.Conv2D(8, 3, activation="relu"), layers.BatchNormalization()]
    return tf.keras.Sequential([*parts, layers.Flatten(), layers.Dense(32, activation="relu"), layers.Dense(10)]), (16, 16, 3)


def transformer():
    words = tf.keras.Input((16,))
    state = layers.Embedding(50, 32)(words)
    for _ in range(4):
        state = layers.LayerNormalization()(layers.Add()([state, layers.MultiHeadAttention(4, 8)(state, state)]))
        state = layers.LayerNormalization()(layers.Add()([state, layers.Dense(32)(layers.Dense(64, "relu")(state))]))
    return tf.keras.Model(words, layers.Dense(10)(layers.GlobalAveragePooling1D()(state))), (16,)


def resnet50():
    model = tf.keras.applications.ResNet50(weights=None, input_shape=(32, 32, 3), classes=10, classifier_activation=None)
    return model, (32, 32, 3)


def lstm():
    return tf.keras.Sequential([layers.Input((20, 8)), layers.LSTM(16), layers.Dense(10)]), (20, 8)


model, shape = {"convnet": convnet, "transformer": transformer, "resnet50": resnet50, "lstm": lstm}[kind]()
# Adam's update of 24 million weights would take most of the time.
optimizer = tf.keras.optimizers.SGD() if kind == "resnet50" else tf.keras.optimizers.Adam()
loss_of = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
model.compile(optimizer, loss_of)


def data(steps):
    one = (np.zeros((BATCH, *shape), np.float32), np.arange(BATCH, dtype=np.int32))
    return tf.data.Dataset.from_tensors(one).repeat(steps)


@tf.function
def train_step(x, y):
    with tf.GradientTape() as tape:
        loss = loss_of(y, model(x, training=True))
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    return loss


def train(steps):
    if loop == "fit":
        model.fit(data(steps), verbose=0)
    else:
        for x, y in data(steps):
            train_step(x, y)


train(WARM)
print("trained", flush=True)
for _ in sys.stdin:
    train(MORE)
    print("again", flush=True)
