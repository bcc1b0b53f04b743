"""Losses as functions of arrays. Each is the mean over the rows, as in training and evaluation."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from gpunn._arrays import as_array
from gpunn.errors import UsageError

_SUM_TOLERANCE = 1e-3


class Outputs(np.ndarray[Any, np.dtype[np.float32]]):
    """A network's output: an array that knows the kind of its numbers, until something is computed from it.

    ``kind`` is "logits", "probabilities", "log_probabilities" or "values".
    """

    kind: str | None

    def __array_finalize__(self, source: Any) -> None:
        self.kind = getattr(source, "kind", None)

    def __reduce__(self) -> tuple[Any, ...]:
        made: Any = super().__reduce__()
        return (*made[:2], (*made[2], self.kind))

    def __setstate__(self, state: Any) -> None:
        super().__setstate__(state[:-1])
        self.kind = state[-1]

    def __array_wrap__(self, array: Any, context: Any = None, return_scalar: bool = False) -> Any:
        plain = np.asarray(array)
        return plain[()] if return_scalar or plain.ndim == 0 else plain


def outputs_of(array: npt.NDArray[np.float32], kind: str) -> Outputs:
    result = array.view(Outputs)
    result.kind = kind
    return result


def _rows(predictions: Any, what: str = "predictions") -> npt.NDArray[np.float64]:
    array = np.asarray(as_array(predictions, what), dtype=np.float64)
    if array.ndim == 0 or array.size == 0:
        raise UsageError(f"{what}: expected [rows, ...], found {list(array.shape)}")
    return array


def _targets(y: Any, like: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    target = np.asarray(as_array(y, "y"), dtype=np.float64)
    if target.shape != like.shape and target.size == like.size and target.shape[:1] == like.shape[:1]:
        target = target.reshape(like.shape)
    if target.shape != like.shape:
        raise UsageError(f"y: expected the shape of the predictions, {list(like.shape)}, found {list(target.shape)}")
    return target


def _kind_of(predictions: Any, array: npt.NDArray[np.float64], from_logits: bool | None, one_each: bool) -> str:
    if from_logits is not None:
        return "logits" if from_logits else "probabilities"
    kind = getattr(predictions, "kind", None)
    if kind in ("logits", "probabilities", "log_probabilities"):
        return str(kind)
    inside = bool(((array >= 0) & (array <= 1)).all())
    if one_each:
        return "probabilities" if inside else "logits"
    sums = bool((np.abs(array.sum(axis=-1) - 1) < _SUM_TOLERANCE).all())
    return "probabilities" if inside and sums else "logits"


def _log_softmax(logits: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    shifted = logits - logits.max(axis=-1, keepdims=True)
    return np.asarray(shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True)))


def _one_hot(y: Any, predictions: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Classes ``[rows]`` as rows with a single 1; probabilities ``[rows, classes]`` as they are."""
    target = as_array(y, "y")
    classes = predictions.shape[-1]
    if target.shape == predictions.shape and (target.ndim > 1 or classes == 1):
        return np.asarray(target, dtype=np.float64)
    if target.ndim == 2 and target.shape[1] == 1:
        target = target[:, 0]
    if target.shape != predictions.shape[:1]:
        raise UsageError(
            f"y: expected a class for each of the {predictions.shape[0]} rows, or {list(predictions.shape)} "
            f"probabilities, found {list(target.shape)}"
        )
    labels = target.astype(np.int64)
    if (labels != target).any():
        raise UsageError("y: classes are integers from 0")
    if ((labels < 0) | (labels >= classes)).any():
        wrong = labels[(labels < 0) | (labels >= classes)][0]
        raise UsageError(f"y: with {classes} classes labels are 0 to {classes - 1}, found {int(wrong)}")
    return np.eye(classes)[labels]


def cross_entropy_loss(
    predictions: Any, y: Any, *, from_logits: bool | None = None, label_smoothing: float = 0.0
) -> float:
    """The mean cross-entropy of predictions ``[rows, classes]`` and classes ``y``.

    ``y`` has an integer from 0 for each row, or a probability for each class, ``[rows, classes]``. ``from_logits`` says
    whether the predictions are logits, of which the softmax is still to be taken, or probabilities. None: what the
    network said that made them (it gives probabilities where it ends in a softmax); of other arrays, probabilities
    where no number is below 0 and each row sums to 1, else logits.

    >>> round(cross_entropy_loss([[0.5, 0.5]], [0]), 4)
    0.6931
    """
    array = _rows(predictions)
    if array.ndim != 2:
        raise UsageError(f"predictions: expected [rows, classes], found {list(array.shape)}")
    target = _one_hot(y, array)
    target = target * (1 - label_smoothing) + label_smoothing / array.shape[1]
    kind = _kind_of(predictions, array, from_logits, one_each=False)
    if kind == "logits":
        logs = _log_softmax(array)
    elif kind == "log_probabilities":
        logs = array
    else:
        if ((array < 0) | (array > 1 + _SUM_TOLERANCE)).any():
            raise UsageError("predictions: probabilities lie between 0 and 1; logits are told by from_logits=True")
        logs = np.log(np.maximum(array, np.finfo(np.float32).tiny))
    return float(-(target * logs).sum(axis=1).mean())


def binary_cross_entropy_loss(predictions: Any, y: Any, *, from_logits: bool | None = None) -> float:
    """The mean over rows and outputs of the cross-entropy of each output by itself and a target of 0 to 1.

    ``from_logits`` as :func:`cross_entropy_loss` has it; of arrays of unknown origin, probabilities where all lie
    between 0 and 1.
    """
    array = _rows(predictions)
    target = _targets(y, array)
    if _kind_of(predictions, array, from_logits, one_each=True) == "logits":
        return float((np.maximum(array, 0) - array * target + np.log1p(np.exp(-np.abs(array)))).mean())
    tiny = np.finfo(np.float32).tiny
    logs = target * np.log(np.maximum(array, tiny)) + (1 - target) * np.log(np.maximum(1 - array, tiny))
    return float(-logs.mean())


def mse_loss(predictions: Any, y: Any) -> float:
    """The mean of the squared differences, over rows and outputs."""
    array = _rows(predictions)
    return float(((array - _targets(y, array)) ** 2).mean())


def l1_loss(predictions: Any, y: Any) -> float:
    """The mean of the absolute differences, over rows and outputs."""
    array = _rows(predictions)
    return float(np.abs(array - _targets(y, array)).mean())


def huber_loss(predictions: Any, y: Any, *, delta: float = 1.0) -> float:
    """The mean loss of differences: half the square up to ``delta``, linear beyond."""
    array = _rows(predictions)
    distance = np.abs(array - _targets(y, array))
    return float(np.where(distance <= delta, distance**2 / 2, delta * (distance - delta / 2)).mean())


def hinge_loss(predictions: Any, y: Any, *, margin: float = 1.0, power: int = 1) -> float:
    """The multi-class hinge loss of scores ``[rows, classes]`` and classes ``y`` ``[rows]``, as ``MultiMarginLoss``."""
    array = _rows(predictions)
    if array.ndim != 2:
        raise UsageError(f"predictions: expected [rows, classes], found {list(array.shape)}")
    own = _one_hot(y, array)
    missing = np.maximum(0, margin - (array * own).sum(axis=1, keepdims=True) + array) ** power
    return float((missing * (1 - own)).sum(axis=1).mean() / array.shape[1])
