"""The estimators keep scikit-learn's contract, and work where its own work."""

from __future__ import annotations

import copy
import pickle
from io import BytesIO
from typing import Any

import numpy as np
import pytest

pytest.importorskip("sklearn")
import joblib
from sklearn.base import clone
from sklearn.datasets import load_diabetes, load_iris
from sklearn.exceptions import DataConversionWarning
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.neural_network import MLPClassifier, MLPRegressor
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


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_attributes_after_a_fit_are_those_of_scikit_learns_networks() -> None:
    x, y = load_iris(return_X_y=True)
    stopped = {"early_stopping.patience": 1, "early_stopping.monitor": "train_loss", "early_stopping.min_delta": 0.2}
    for make, own in ((Classifier, MLPClassifier), (Regressor, MLPRegressor)):
        theirs = own(max_iter=3).fit(x, y)
        for settings in (None, stopped):
            model = make(epochs=30, random_state=0, settings=settings).fit(x, y)
            assert model.n_iter_ == len(model.history_) == len(model.loss_curve_)
            assert (model.n_iter_ == 30) == (settings is None)
            assert model.loss_ == model.loss_curve_[-1]
            assert model.best_loss_ == min(model.loss_curve_)
            assert model.t_ == model.n_iter_ * len(x)
            assert model.n_outputs_ == theirs.n_outputs_
            for name in ("n_iter_", "loss_", "loss_curve_", "best_loss_", "t_", "n_outputs_", "n_features_in_"):
                assert isinstance(getattr(theirs, name), type(getattr(model, name)))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_logarithms_of_probabilities() -> None:
    x, y = load_iris(return_X_y=True)
    for model in (Classifier(epochs=30, random_state=0), MLPClassifier(max_iter=30, random_state=0)):
        model.fit(x, y)
        far = np.concatenate([x, x[:1] * 1e6])
        with np.errstate(divide="ignore"):
            expected = np.log(model.predict_proba(far))
            found = model.predict_log_proba(far)
        assert found.shape == (151, 3)
        assert np.array_equal(found, expected)


TYPES = [*"bBhHiIlLqQ?efd", ">i4", "<U3", "object"]


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_labels_of_every_type_come_back_as_they_were_given(dtype: str) -> None:
    x, y = load_iris(return_X_y=True)
    y = y % 2 == 0 if dtype == "?" else np.array(["no", "yes", "may"], dtype)[y] if dtype in ("<U3", "object") else y
    given = np.asarray(y).astype(dtype)
    model = Classifier(epochs=20, random_state=0).fit(x, given)
    theirs = MLPClassifier(max_iter=20, random_state=0).fit(x, given)
    assert model.classes_.tolist() == theirs.classes_.tolist()
    predicted = model.predict(x)
    assert predicted.dtype == model.classes_.dtype == given.dtype
    assert (predicted == given).mean() > 0.6
    assert model.score(x, given) == (predicted == given).mean()


def test_integer_targets_of_a_regressor_are_numbers() -> None:
    x, y = load_iris(return_X_y=True)
    expected = Regressor(epochs=20, random_state=0).fit(x, y * 50.0).predict(x)
    for dtype in ("int16", "uint8", "int64", "uint64", "object"):
        assert np.array_equal(Regressor(epochs=20, random_state=0).fit(x, (y * 50).astype(dtype)).predict(x), expected)


def test_frames_have_names_and_columns_without_numbers_are_named() -> None:
    pd = pytest.importorskip("pandas")
    x, y = load_iris(return_X_y=True, as_frame=True)
    mixed = x.assign(wide=x.iloc[:, 0] > 5.5, kind=pd.Categorical(y % 2), whole=y.astype("Int64"))
    model = Classifier(epochs=5, random_state=0).fit(mixed, y)
    assert list(model.feature_names_in_) == list(mixed.columns)
    numbers = mixed.astype(float).to_numpy()
    assert np.array_equal(
        model.predict_proba(mixed), Classifier(epochs=5, random_state=0).fit(numbers, y).predict_proba(numbers)
    )
    for label in (pd.Categorical(y), y.astype("Int64"), y.map({0: "a", 1: "b", 2: "c"})):
        assert len(Classifier(epochs=1).fit(mixed, label).classes_) == 3
    for dtype in ("Int64", "UInt8", "boolean"):
        label = (y % 2).astype(dtype)
        for given in (label, pd.Index(label), pd.array(label)):
            answers = Classifier(epochs=1, random_state=0).fit(x, given).predict(x)
            assert answers.dtype == dtype.lower().replace("ean", "")
    for make in (Classifier, Regressor):
        for column in (pd.date_range("2020-01-01", periods=150), ["a"] * 150):
            with pytest.raises(ValueError, match="X, column 'kind': expected numbers, found"):
                make(epochs=1).fit(mixed.assign(kind=column), y)
    with pytest.raises(ValueError, match="X, column 'kind': expected numbers, found"):
        model.predict(mixed.assign(kind=pd.date_range("2020-01-01", periods=150)))
    with pytest.raises(ValueError, match="X, column 'whole': there is no value in row 0"):
        model.predict(mixed.assign(whole=pd.array([None] * 150, dtype="Int64")))


def test_partial_fits_continue() -> None:
    x, y = load_iris(return_X_y=True)
    whole = Classifier(epochs=3, random_state=0).fit(x, y)
    parts = Classifier(random_state=0)
    with pytest.raises(ValueError, match="classes must be passed on the first call"):
        parts.partial_fit(x, y)
    for _ in range(3):
        parts.partial_fit(x, y, classes=[2, 1, 0])
    assert np.array_equal(parts.predict_proba(x), whole.predict_proba(x))
    assert (parts.n_iter_, parts.t_, parts.loss_curve_) == (3, 450, whole.loss_curve_)
    parts.partial_fit(x[y == 1], y[y == 1])
    assert list(parts.classes_) == [0, 1, 2]
    with pytest.raises(ValueError, match="labels not in `classes`"):
        parts.partial_fit(x, y + 1)
    with pytest.raises(ValueError, match="not those of the first call"):
        parts.partial_fit(x, y, classes=[0, 1])
    fresh = Classifier(epochs=3, random_state=0).fit(x, y).fit(x, y)
    assert fresh.n_iter_ == 3
    numbers, parts = Regressor(epochs=2, random_state=0).fit(x, y), Regressor(random_state=0)
    parts.partial_fit(x, y).partial_fit(x, y)
    assert np.array_equal(parts.predict(x), numbers.predict(x))
    with pytest.raises(ValueError, match="y has 2 outputs; the first call to partial_fit had 1"):
        parts.partial_fit(x, np.stack([y, y], axis=1))
    assert parts.predict(x).shape == (150,)


def test_processes_and_threads_of_joblib() -> None:
    x, y = load_iris(return_X_y=True)
    model = Classifier(epochs=5, random_state=3).fit(x, y)
    expected = model.predict_proba(x)
    for backend in ("loky", "threading"):
        found = joblib.Parallel(n_jobs=2, backend=backend)(joblib.delayed(one.predict_proba)(x) for one in [model] * 2)
        assert all(np.array_equal(one, expected) for one in found)
    for again in (copy.copy(model), copy.deepcopy(model)):
        assert np.array_equal(again.predict_proba(x), expected)
    model.partial_fit(x, y)
    assert np.array_equal(
        copy.deepcopy(model).partial_fit(x, y).predict_proba(x), model.partial_fit(x, y).predict_proba(x)
    )


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_several_labels_of_a_row() -> None:
    x, y = load_iris(return_X_y=True)
    labels = np.stack([y == 0, y < 2, x[:, 0] > 6], axis=1).astype(int)
    model = Classifier(epochs=60, random_state=0).fit(x, labels)
    theirs = MLPClassifier(max_iter=60, random_state=0).fit(x, labels)
    for one in (model, theirs):
        assert one.classes_.tolist() == [0, 1, 2]
        assert one.predict_proba(x).shape == one.predict(x).shape == (150, 3)
        assert one.predict(x).dtype == np.int64
        assert np.array_equal(one.predict(x), one.predict_proba(x) > 0.5)
        assert one.score(x, labels) == (one.predict(x) == labels).all(axis=1).mean()
    assert model.score(x, labels) > 0.9
    with pytest.raises(ValueError, match="one class for each row"):
        model.partial_fit(x, y)
    with pytest.raises(ValueError, match="expected labels of 0 and 1, found columns of classes"):
        Classifier(epochs=1).fit(x, np.stack([y, y], axis=1))
    with pytest.warns(DataConversionWarning):
        column = Classifier(epochs=2, random_state=0).fit(x, y[:, None])
    assert column.predict(x).shape == (150,)


def test_sparse_rows_and_missing_values_are_refused() -> None:
    sparse = pytest.importorskip("scipy.sparse")
    x, y = load_iris(return_X_y=True)
    for model in (Classifier(epochs=1), Regressor(epochs=1)):
        with pytest.raises(TypeError, match="Sparse data was passed"):
            model.fit(sparse.csr_matrix(x), y)
        with pytest.raises(ValueError, match="contains NaN"):
            model.fit(np.where(x > 7, np.nan, x), y)
