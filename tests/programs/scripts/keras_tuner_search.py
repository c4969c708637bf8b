"""keras-tuner's own search: 4 trials of 3 epochs of 10 steps."""

import keras_tuner
import small_model

small_model.begin()
x, y = small_model.data()


def build(choice):
    return small_model.model(choice.Int("units", 4, 32), choice.Float("rate", 1e-3, 1e-1, sampling="log"))


tuner = keras_tuner.RandomSearch(build, "val_loss", max_trials=4, seed=1, directory="search", overwrite=True)
tuner.search(x, y, epochs=3, validation_split=0.0, validation_data=(x[:64], y[:64]), verbose=0)
for trial in tuner.oracle.get_best_trials(4):
    print(trial.hyperparameters.values, trial.score)
