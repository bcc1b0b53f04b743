"""Networks as estimators of scikit-learn: in pipelines, grid searches and cross-validation.

``Classifier`` and ``Regressor`` train a :class:`gpunn.Sequential`, by default a perceptron with one hidden layer. They
standardise the features as they are told, take class labels of any type, and can be pickled and cloned.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils.multiclass import check_classification_targets, type_of_target, unique_labels
from sklearn.utils.validation import check_is_fitted, check_random_state, column_or_1d, validate_data

from gpunn._frames import is_pandas, numbers_of
from gpunn.errors import UsageError
from gpunn.layers import CLASS_OF, Layer, Linear, ReLU
from gpunn.network import Network, Sequential, from_yaml

_LARGEST_SEED = 2**31 - 1
_ROWS_OF_CALL = 64
_FLOATS = [np.float64, np.float32]  # other numbers become float64: the features are centred before they are rounded


class _Estimator(BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    def __init__(
        self,
        layers: Any = None,
        *,
        hidden: int | Sequence[int] = (64,),
        optimizer: Any = "adam",
        learning_rate: float = 0.01,
        epochs: int = 50,
        batch_size: int = 32,
        normalize: Any = "data",
        schedule: Any = None,
        backend: str = "auto",
        precision: str = "fp32",
        threads: int = 1,
        settings: Mapping[str, Any] | None = None,
        random_state: Any = None,
    ) -> None:
        self.layers = layers
        self.hidden = hidden
        self.optimizer = optimizer
        self.learning_rate = learning_rate
        self.epochs = epochs
        self.batch_size = batch_size
        self.normalize = normalize
        self.schedule = schedule
        self.backend = backend
        self.precision = precision
        self.threads = threads
        self.settings = settings
        self.random_state = random_state

    def _network(self, outputs: int, seed: int) -> Network:
        """A new network each time, since a fit begins with first weights."""
        if self.layers is None:
            chain: list[Layer] = []
            for units in np.ravel(self.hidden).tolist():
                chain += [Linear(None, units), ReLU()]
            return Sequential([*chain, Linear(None, outputs)], seed=seed)
        made = self.layers
        if callable(made) and not isinstance(made, Network):
            made = made(outputs)
        if isinstance(made, Network) and not isinstance(made, Sequential):
            return from_yaml(made.to_yaml(), seed=seed)
        layers = made.layers if isinstance(made, Network) else list(made)
        return Sequential([_copy(layer) for layer in layers], seed=seed)

    def _begin(self, x: npt.NDArray[Any], outputs: int, **compiled: Any) -> None:
        """A new network for such rows, untrained."""
        seed = int(check_random_state(self.random_state).randint(_LARGEST_SEED))
        network = self._network(outputs, seed)
        optimizer = {"type": self.optimizer} if isinstance(self.optimizer, str) else dict(self.optimizer)
        network.compile(
            optimizer,
            learning_rate=self.learning_rate,
            normalize=self.normalize,
            schedule=self.schedule,
            backend=self.backend,
            precision=self.precision,
            threads=self.threads,
            **compiled,
        )
        network._samples(x)  # from here on its shapes are known
        found = network._columns(network._built())
        if found != outputs:
            raise UsageError(f"layers: the last one gives {found} numbers for each row; the data needs {outputs}")
        self.network_ = network
        self.n_outputs_, self.n_iter_, self.t_ = outputs, 0, 0

    def _train(self, x: npt.NDArray[Any], y: npt.NDArray[Any], epochs: int) -> None:
        """Trains from where the network is, and sets the attributes that scikit-learn's own networks have."""
        self.network_.fit(x, y, epochs=epochs, batch_size=min(self.batch_size, len(x)), settings=self.settings)
        self.history_ = self.network_.history
        done = len(self.history_)  # fewer than `epochs` where the settings stop early
        self.t_ += (done - self.n_iter_) * len(x)
        self.n_iter_ = done
        self.loss_curve_ = [float(loss) for loss in self.history_["loss"]]
        self.loss_ = self.loss_curve_[-1]
        self.best_loss_ = min(self.loss_curve_)

    def _validated(self, x: Any, *y: Any, **checked: Any) -> Any:
        try:
            return validate_data(self, x, *y, **checked)
        except (TypeError, ValueError):
            if is_pandas(x):
                numbers_of(x, "X")  # whose error names the column
            raise

    def _answers(self, x: Any) -> npt.NDArray[np.float64]:
        check_is_fitted(self)
        rows = np.asarray(self._validated(x, dtype=_FLOATS, reset=False))
        # Kernels sum in another order where there are other numbers of rows. With equal calls the answer for a row does
        # not depend on the rows beside it.
        padded = np.zeros((-(-len(rows) // _ROWS_OF_CALL) * _ROWS_OF_CALL, rows.shape[1]), rows.dtype)
        padded[: len(rows)] = rows
        calls = [self.network_.predict(padded[i : i + _ROWS_OF_CALL]) for i in range(0, len(padded), _ROWS_OF_CALL)]
        return np.concatenate(calls)[: len(rows)].astype(np.float64)


class Classifier(ClassifierMixin, _Estimator):  # type: ignore[misc]
    """A classifier of rows ``[rows, features]``.

    Args:
        layers: the layers of a network, a network, or a function of the number of classes that returns either. The last
            layer gives a number a class. None: a perceptron with ``hidden`` units.
        hidden: units of each hidden layer, where there are no ``layers``; a number is one layer.
        optimizer, learning_rate, schedule, backend, precision, normalize: as :meth:`gpunn.Network.compile` has them.
            By default the features are standardised by the training rows.
        epochs, batch_size: of :meth:`gpunn.Network.fit`; a batch has no more rows than there are.
        threads: of the host. One, since scikit-learn runs several fits at a time.
        settings: further keys of the experiment by their full names, as {"training.ema": 0.99}.
        random_state: of the weights, the order of the rows and dropout; a number gives the same bits each time.

    After ``fit``: ``classes_``, ``n_features_in_``, ``network_`` (a :class:`gpunn.Network`), ``history_``; and as
    scikit-learn's own networks ``n_iter_`` (the epochs that were trained), ``loss_``, ``loss_curve_``, ``best_loss_``,
    ``t_`` and ``n_outputs_``. Sample weights are not supported.
    """

    def fit(self, X: Any, y: Any) -> Classifier:  # noqa: N803  # scikit-learn's name
        """Trains on rows ``[rows, features]`` and a class of any type for each row, or several labels of a row,
        ``[rows, labels]`` of 0 and 1. Returns the estimator."""
        x, y = self._rows(X, y, reset=True)
        self.multilabel_ = y.ndim == 2
        if self.multilabel_:
            self.classes_ = np.arange(y.shape[1])
            self._begin(x, y.shape[1], loss="binary_cross_entropy", task="multi_label")
            self._train(x, y, self.epochs)
            return self
        self.classes_, labels = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(
                f"a classifier needs samples of at least 2 classes; the data has 1 class: {self.classes_[0]!r}"
            )
        self._begin_classes(x)
        self._train(x, labels.astype(np.int32), self.epochs)
        return self

    def partial_fit(self, X: Any, y: Any, classes: Any = None) -> Classifier:  # noqa: N803
        """Trains for an epoch on some rows, from where the last call ended. The first call needs all ``classes``, and
        normalises later rows as its own. Returns the estimator."""
        first = not hasattr(self, "network_")
        if first and classes is None:
            raise ValueError("classes must be passed on the first call to partial_fit.")
        x, y = self._rows(X, y, reset=first)
        if y.ndim == 2 or getattr(self, "multilabel_", False):
            raise ValueError("partial_fit takes one class for each row; for several labels use fit")
        if first:
            self.multilabel_ = False
            self.classes_ = unique_labels(classes)
        elif classes is not None and not np.array_equal(self.classes_, unique_labels(classes)):
            raise ValueError(f"`classes` are not those of the first call to partial_fit: {self.classes_}")
        unknown = np.setdiff1d(y, self.classes_)
        if len(unknown):
            raise ValueError(
                f"`y` has labels not in `classes`. `self.classes_` has {self.classes_}. `y` has {unknown}."
            )
        if first:
            self._begin_classes(x)
        self._train(x, np.searchsorted(self.classes_, y).astype(np.int32), 1)
        return self

    def _rows(self, x: Any, y: Any, reset: bool) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        if is_pandas(y):
            dtypes = y.dtypes if hasattr(y, "columns") else [y.dtype]
            if all(getattr(one, "kind", "O") in "biu" for one in dtypes):
                y = numbers_of(y, "y")  # scikit-learn makes floating-point numbers of integers that may be missing
        x, y = self._validated(x, y, dtype=_FLOATS, multi_output=True, reset=reset)
        if y.ndim == 2 and y.shape[1] == 1:
            y = column_or_1d(y, warn=True)
        check_classification_targets(y)
        if y.ndim == 2 and type_of_target(y) != "multilabel-indicator":
            raise ValueError("y has several columns: expected labels of 0 and 1, found columns of classes")
        return x, y

    def _begin_classes(self, x: npt.NDArray[Any]) -> None:
        self._begin(x, len(self.classes_), loss="cross_entropy", task="classification")

    def predict_proba(self, X: Any) -> npt.NDArray[np.float64]:  # noqa: N803
        """Probabilities ``[rows, classes]``, in the order of ``classes_``; of labels the probability of each."""
        doubles = self._answers(X)
        return doubles if self.multilabel_ else np.asarray(doubles / doubles.sum(axis=1, keepdims=True))

    def predict_log_proba(self, X: Any) -> npt.NDArray[np.float64]:  # noqa: N803
        """Logarithms of the probabilities; minus infinity where one is 0."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.predict_proba(X)))

    def predict(self, X: Any) -> npt.NDArray[Any]:  # noqa: N803
        """The most probable class of each row; of labels ``[rows, labels]`` a 1 where it is probable."""
        probabilities = self.predict_proba(X)
        if self.multilabel_:
            return (probabilities > 0.5).astype(np.int64)
        return np.asarray(self.classes_[probabilities.argmax(axis=1)])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags


class Regressor(RegressorMixin, _Estimator):  # type: ignore[misc]
    """A regressor of rows ``[rows, features]`` to a number, or to ``[rows, outputs]``.

    Arguments as :class:`Classifier` has them; a function for ``layers`` is called with the number of outputs. Targets
    are standardised for the training; predictions are in the units of the data.
    """

    def fit(self, X: Any, y: Any) -> Regressor:  # noqa: N803
        """Trains on rows ``[rows, features]`` and numbers ``[rows]`` or ``[rows, outputs]``. Returns the estimator."""
        x, y = self._rows(X, y, reset=True)
        self._begin_numbers(x, y)
        self._train(x, y.reshape(len(y), -1), self.epochs)
        return self

    def partial_fit(self, X: Any, y: Any) -> Regressor:  # noqa: N803
        """Trains for an epoch on some rows, from where the last call ended. Later rows are normalised, and later
        targets standardised, like those of the first call. Returns the estimator."""
        first = not hasattr(self, "network_")
        x, y = self._rows(X, y, reset=first)
        if first:
            self._begin_numbers(x, y)
        targets = y.reshape(len(y), -1)
        if targets.shape[1] != self.n_outputs_:
            raise ValueError(f"y has {targets.shape[1]} outputs; the first call to partial_fit had {self.n_outputs_}")
        self._train(x, targets, 1)
        return self

    def _rows(self, x: Any, y: Any, reset: bool) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        x, y = self._validated(x, y, dtype=_FLOATS, multi_output=True, y_numeric=True, reset=reset)
        return x, np.asarray(y, dtype=np.float64)

    def _begin_numbers(self, x: npt.NDArray[Any], y: npt.NDArray[Any]) -> None:
        self._one_output = y.ndim == 1
        outputs = 1 if self._one_output else y.shape[1]
        self._begin(x, outputs, loss="mean_squared_error", task="regression", scale_targets=True)

    def predict(self, X: Any) -> npt.NDArray[np.float64]:  # noqa: N803
        """Predicts numbers ``[rows]`` or ``[rows, outputs]``, in the form that ``fit`` was given."""
        answers = self._answers(X)
        return np.asarray(answers[:, 0] if self._one_output else answers)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags


def _copy(layer: Layer) -> Layer:
    if not isinstance(layer, Layer):
        raise UsageError(f"layers are of gpunn, found {type(layer).__name__}")
    again = CLASS_OF[layer.type]._restored(layer.name or "", layer.keys)
    again.name = layer.name
    again.expected = dict(layer.expected)
    return again
