"""The estimators keep scikit-learn's contract, and work where its own work."""

from __future__ import annotations

import pickle
from io import BytesIO
from typing import Any

import numpy as np
import pytest

pytest.importorskip("sklearn")
import joblib
from sklearn.base import clone
from sklearn.datasets import load_diabetes, load_iris
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import gpunn as gnn
from gpunn.sklearn import Classifier, Regressor


@parametrize_with_checks(  # type: ignore[untyped-decorator]  # scikit-learn has no types
    [
        Classifier(hidden=(16,), epochs=40, random_state=0),
        Regressor(hidden=(16,), epochs=60, random_state=0),
    ]
)
@pytest.mark.filterwarnings("ignore")
def test_scikit_learns_checks(estimator: Any, check: Any) -> None:
    check(estimator)


def test_classes_of_any_type_and_probabilities() -> None:
    x, y = load_iris(return_X_y=True)
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    model = Classifier(epochs=30, random_state=1).fit(x, names)
    assert list(model.classes_) == ["setosa", "versicolor", "virginica"]
    assert model.score(x, names) > 0.95
    probabilities = model.predict_proba(x)
    assert probabilities.shape == (150, 3)
    assert np.allclose(probabilities.sum(axis=1), 1)
    assert (model.classes_[probabilities.argmax(axis=1)] == model.predict(x)).all()


def test_pipelines_grids_and_cross_validation() -> None:
    x, y = load_iris(return_X_y=True)
    pipeline = make_pipeline(StandardScaler(), Classifier(epochs=20, random_state=0, normalize=None))
    assert cross_val_score(pipeline, x, y, cv=3).mean() > 0.9
    search = GridSearchCV(
        pipeline, {"classifier__hidden": [(8,), (32,)], "classifier__optimizer": ["adam", "sgd"]}, cv=2
    ).fit(x, y)
    assert search.best_score_ > 0.85
    x, y = load_diabetes(return_X_y=True)
    assert cross_val_score(Regressor(epochs=30, hidden=(16,), random_state=0), x, y, cv=3).mean() > 0.3


def test_a_fitted_estimator_is_pickled_and_a_clone_is_fresh() -> None:
    x, y = load_iris(return_X_y=True)
    model = Classifier(epochs=5, random_state=3).fit(x, y)
    expected = model.predict_proba(x)
    assert np.array_equal(pickle.loads(pickle.dumps(model)).predict_proba(x), expected)
    buffer = BytesIO()
    joblib.dump(model, buffer)
    buffer.seek(0)
    assert np.array_equal(joblib.load(buffer).predict_proba(x), expected)
    fresh = clone(model)
    assert not hasattr(fresh, "network_")
    assert np.array_equal(fresh.fit(x, y).predict_proba(x), expected)


def test_networks_of_ones_own() -> None:
    x, y = load_iris(return_X_y=True)

    def layers(outputs: int) -> list[gnn.Layer]:
        return [gnn.Linear(None, 12), gnn.Tanh(), gnn.Linear(None, outputs), gnn.Softmax()]

    made = Classifier(layers, epochs=20, random_state=0).fit(x, y)
    given = Classifier(layers(3), epochs=20, random_state=0).fit(x, y)
    assert np.array_equal(made.predict_proba(x), given.predict_proba(x))

    def branches(outputs: int) -> gnn.Network:
        rows = gnn.Input((4,))
        return gnn.Network(rows, gnn.Linear(4, outputs)(rows + gnn.Tanh()(gnn.Linear(4, 4)(rows))))

    of_function = Classifier(branches, epochs=20, random_state=0).fit(x, y)
    of_network = Classifier(branches(3), epochs=20, random_state=0).fit(x, y)
    assert np.array_equal(of_function.predict_proba(x), of_network.predict_proba(x))
    with pytest.raises(gnn.UsageError, match="the last one gives 8 numbers for each row; the data needs 3"):
        Classifier([gnn.Linear(4, 8)], epochs=1).fit(x, y)
    one = Classifier(hidden=8, epochs=3, random_state=0).fit(x, y)
    assert np.array_equal(one.predict_proba(x), clone(one).set_params(hidden=(8,)).fit(x, y).predict_proba(x))
    targets = np.stack([y, -2.0 * y], axis=1)
    both = Regressor(epochs=40, random_state=0).fit(x, targets)
    assert both.predict(x).shape == (150, 2)
    assert both.score(x, targets) > 0.9
