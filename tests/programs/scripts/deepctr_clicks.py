"""DeepCTR's DeepFM: 3 epochs of 20 steps."""

import numpy as np
import small_model
from deepctr.feature_column import DenseFeat, SparseFeat, get_feature_names
from deepctr.models import DeepFM

small_model.begin()
chance = np.random.default_rng(0)
columns = [*(SparseFeat(f"c{n}", 50, embedding_dim=4) for n in range(4)), DenseFeat("d", 1)]
names = get_feature_names(columns)
rows = {name: chance.integers(0, 50, 640) if name != "d" else chance.random(640) for name in names}
clicked = (rows["c0"] % 2).astype("float32")
model = DeepFM(columns, columns, task="binary")
model.compile("adam", "binary_crossentropy", metrics=["AUC"])
history = model.fit(rows, clicked, batch_size=32, epochs=3, verbose=0)
print(history.history)
print(model.predict(rows, batch_size=320, verbose=0)[:3].tolist())
