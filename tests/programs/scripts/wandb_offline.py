"""wandb, offline: its callback in a fit of 3 epochs of 10 steps, and its own process."""

import small_model
import wandb
from wandb.integration.keras import WandbMetricsLogger

small_model.begin()
x, y = small_model.data()
run = wandb.init(mode="offline", project="tried", settings=wandb.Settings(silent=True))
history = small_model.model().fit(x, y, epochs=3, verbose=0, callbacks=[WandbMetricsLogger(log_freq=1)])
print(history.history)
print({key: run.summary[key] for key in sorted(run.summary.keys()) if key.startswith("epoch/")})
wandb.finish()
raise SystemExit(4)
