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
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, check_random_state, validate_data

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

    def _train(self, x: npt.NDArray[Any], y: npt.NDArray[Any], outputs: int, **compiled: Any) -> None:
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
        self.history_ = network.fit(
            x, y, epochs=self.epochs, batch_size=min(self.batch_size, len(x)), settings=self.settings
        )
        self.n_iter_ = self.epochs
        self.network_ = network

    def _answers(self, x: Any) -> npt.NDArray[np.float64]:
        check_is_fitted(self)
        rows = np.asarray(validate_data(self, x, dtype=_FLOATS, reset=False))
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

    After ``fit``: ``classes_``, ``n_features_in_``, ``network_`` (a :class:`gpunn.Network`), ``history_``, ``n_iter_``.
    Sample weights are not supported.
    """

    def fit(self, X: Any, y: Any) -> Classifier:  # noqa: N803  # scikit-learn's name
        """Trains on rows ``[rows, features]`` and a class of any type for each row. Returns the estimator."""
        x, y = validate_data(self, X, y, dtype=_FLOATS)
        check_classification_targets(y)
        self.classes_, labels = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(
                f"a classifier needs samples of at least 2 classes; the data has 1 class: {self.classes_[0]!r}"
            )
        self._train(x, labels.astype(np.int32), len(self.classes_), loss="cross_entropy", task="classification")
        return self

    def predict_proba(self, X: Any) -> npt.NDArray[np.float64]:  # noqa: N803
        """Probabilities ``[rows, classes]``, in the order of ``classes_``."""
        doubles = self._answers(X)
        return np.asarray(doubles / doubles.sum(axis=1, keepdims=True))

    def predict(self, X: Any) -> npt.NDArray[Any]:  # noqa: N803
        """The most probable class of each row."""
        most_probable = self.predict_proba(X).argmax(axis=1)
        return np.asarray(self.classes_[most_probable])


class Regressor(RegressorMixin, _Estimator):  # type: ignore[misc]
    """A regressor of rows ``[rows, features]`` to a number, or to ``[rows, outputs]``.

    Arguments as :class:`Classifier` has them; a function for ``layers`` is called with the number of outputs. Targets
    are standardised for the training; predictions are in the units of the data.
    """

    def fit(self, X: Any, y: Any) -> Regressor:  # noqa: N803
        """Trains on rows ``[rows, features]`` and numbers ``[rows]`` or ``[rows, outputs]``. Returns the estimator."""
        x, y = validate_data(self, X, y, dtype=_FLOATS, multi_output=True, y_numeric=True)
        targets = np.asarray(y, dtype=np.float64)
        self._one_output = targets.ndim == 1
        targets = targets[:, None] if self._one_output else targets
        loss = "mean_squared_error"
        self._train(x, targets, targets.shape[1], loss=loss, task="regression", scale_targets=True)
        return self

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
