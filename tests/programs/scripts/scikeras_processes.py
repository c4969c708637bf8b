"""scikeras in a grid search of 4 fits in two processes, 2 epochs of 5 steps each, then the best of them, 2 epochs of 10."""

import os

os.environ.setdefault("KERAS_BACKEND", "tensorflow")

if __name__ == "__main__":
    import small_model
    from scikeras.wrappers import KerasClassifier
    from sklearn.model_selection import GridSearchCV

    small_model.begin()
    x, y = small_model.data()
    classifier = KerasClassifier(small_model.model, epochs=2, verbose=0, random_state=1, model__units=4)
    search = GridSearchCV(classifier, {"model__units": [4, 8]}, n_jobs=2, cv=2)
    search.fit(x, y.ravel())
    print(search.best_params_, search.cv_results_["mean_test_score"].tolist(), search.best_score_)
