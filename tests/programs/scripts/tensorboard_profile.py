"""TensorBoard's callback with its own profile of steps 3 to 6, in 2 epochs of 10 steps; what it wrote."""

from pathlib import Path

import small_model
import tensorflow as tf

small_model.begin()
x, y = small_model.data()
board = tf.keras.callbacks.TensorBoard("logs", histogram_freq=1, profile_batch=(3, 6))
print(small_model.model().fit(x, y, epochs=2, verbose=0, callbacks=[board], validation_data=(x, y)).history)
(profile,) = Path("logs").rglob("*.xplane.pb")
print("a profile of some size", profile.stat().st_size > 10_000)
for path in sorted(Path("logs/train").glob("events*")):
    events = tf.compat.v1.train.summary_iterator(str(path))
    print(sorted((event.step, value.tag) for event in events for value in event.summary.value))
