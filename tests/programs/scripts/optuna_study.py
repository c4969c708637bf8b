"""An optuna study of 5 trials, in a database, with its pruning callback's reports: 2 epochs of 10 steps each."""

import optuna
import small_model

small_model.begin()
x, y = small_model.data()


def objective(trial):
    model = small_model.model(trial.suggest_int("units", 4, 32), trial.suggest_float("rate", 1e-3, 1e-1, log=True))
    for epoch in range(2):
        loss = model.fit(x, y, verbose=0).history["loss"][-1]
        trial.report(loss, epoch)
        if trial.should_prune():
            raise optuna.TrialPruned
    return loss


optuna.logging.set_verbosity(optuna.logging.WARNING)
study = optuna.create_study(storage="sqlite:///study.db", sampler=optuna.samplers.TPESampler(seed=1))
study.optimize(objective, n_trials=5)
for trial in study.trials:
    print(trial.number, trial.state.name, trial.params, trial.value)
