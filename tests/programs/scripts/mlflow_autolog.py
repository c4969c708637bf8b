"""mlflow's autolog records a fit of 3 epochs of 10 steps, with its model."""

import logging

import mlflow
import small_model

logging.getLogger("mlflow").setLevel(logging.ERROR)
small_model.begin()
mlflow.set_tracking_uri("sqlite:///runs.db")
mlflow.tensorflow.autolog(log_datasets=False)
x, y = small_model.data()
with mlflow.start_run() as run:
    small_model.model().fit(x, y, epochs=3, verbose=0)
recorded = mlflow.get_run(run.info.run_id)
print(sorted(recorded.data.metrics.items()))
print(sorted(recorded.data.params))
