"""Converts the caller's arrays for the library: samples uint8, float32 or float64, labels int32, numbers float64.

A number keeps its value here. The library subtracts the mean of the training data in float64, and rounds only the
difference to float32.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
import numpy.typing as npt

from gpunn._frames import is_pandas, numbers_among, numbers_of
from gpunn.errors import UsageError

Array = npt.NDArray[Any]

_LEARN_NUMBERS = "to learn numbers, compile with loss='mse'"


def host_array(value: Any, what: str) -> Array:
    """A numpy array from anything that is like one: numpy, pandas, PyTorch, DLPack, lists. Copies only if needed."""
    if isinstance(value, np.ma.MaskedArray) and np.ma.is_masked(value):
        raise UsageError(
            f"{what}: {int(np.ma.getmaskarray(value).sum())} values are masked; replace them, for instance by "
            "numpy.ma.filled, or leave their rows out"
        )
    if is_pandas(value):
        return numbers_of(value, what)
    if hasattr(value, "toarray"):
        raise UsageError(f"{what}: expected a dense array, found a sparse one; give its .toarray()")
    try:
        if hasattr(value, "detach"):  # PyTorch, whose tensors may have a gradient or be on a device
            value = value.detach().cpu()
            if str(value.dtype) == "torch.bfloat16":  # numpy has no such type
                value = value.float()
        elif hasattr(value, "__dlpack__") and not hasattr(value, "__array__"):
            return np.from_dlpack(value)
        array = np.asarray(value)
    except (TypeError, ValueError, RuntimeError) as error:
        raise UsageError(f"{what}: expected an array of numbers, found {type(value).__name__}: {error}") from error
    if array.dtype == object and (numbers := numbers_among(array)) is not None:
        return numbers
    return array


def as_array(value: Any, what: str) -> Array:
    """As :func:`host_array`, of numbers."""
    array = host_array(value, what)
    if array.dtype.kind not in "buif":
        found = type(value).__name__ if array.ndim == 0 and array.dtype == object else f"dtype {array.dtype}"
        raise UsageError(f"{what}: expected an array of numbers, found {found}")
    return array


def count_of(value: Any, what: str) -> int:
    """A number of epochs, rows or steps: an integer of any type, at least 1."""
    try:
        count = operator.index(value)
    except TypeError:
        raise UsageError(f"{what}: expected an integer, found {value!r}") from None
    if count < 1:
        raise UsageError(f"{what}: expected at least 1, found {count}")
    return count


def samples_of(
    value: Any, what: str = "x", *, shape: list[int] | None = None, dtype: str | None = None, images: bool = False
) -> Array:
    """Samples ``[rows, ...]``, packed. uint8 stays where samples are images (pixels, which the network divides by
    255). All other numbers become float32 if it holds them exactly, else float64. ``shape`` and ``dtype`` are those of
    one sample, where they are known; ``images``: the network takes ``[C, H, W]``, so that ``[rows, H, W]`` are images
    of one channel.
    """
    array = as_array(value, what)
    if array.ndim < 2:
        raise UsageError(
            f"{what}: expected [rows, features] or [rows, channels, height, width], found {list(array.shape)}"
            + (f"; one sample is {what}[None]" if array.ndim == 1 else "")
        )
    if array.size == 0:
        raise UsageError(f"{what}: the array is empty, {list(array.shape)}")
    one_channel = images and array.ndim == 3
    if shape is not None:
        one_channel = list(array.shape[1:]) == shape[1:] and shape[0] == 1 and len(shape) == 3
    if one_channel:
        array = array[:, None]
    if shape is not None and list(array.shape[1:]) != shape:
        hint = ""
        if len(shape) == 3 and array.ndim == 4 and [array.shape[3], *array.shape[1:3]] == shape:
            hint = f"; its channels are last: {what}.transpose(0, 3, 1, 2)"
        raise UsageError(f"{what}: the network takes samples of {shape}, found {list(array.shape[1:])}{hint}")
    pixels = array.dtype == np.uint8 and array.ndim > 2
    if dtype == "u8" and not pixels:
        raise UsageError(
            f"{what}: the network was trained on uint8 pixels from 0 to 255, found {array.dtype}; give it such pixels"
        )
    if dtype == "f32" and pixels:
        raise UsageError(
            f"{what}: the network was trained on floating-point samples, found uint8 pixels; convert them as those "
            f"were, for instance by ({what} / 255).astype('float32')"
        )
    return np.ascontiguousarray(array, dtype=np.uint8 if pixels else float_for(array.dtype))


def integers_of(value: Any, what: str, *, shape: list[int] | None = None) -> Array:
    """Samples ``[rows, ...]`` of integers, int32: what layers take as it is. ``shape`` is that of one sample."""
    array = as_array(value, what)
    if array.ndim == 0 or (shape is not None and list(array.shape[1:]) != shape):
        raise UsageError(f"{what}: the network takes samples of {shape or 'integers'}, found {list(array.shape)}")
    if array.size == 0:
        raise UsageError(f"{what}: the array is empty, {list(array.shape)}")
    if array.dtype.kind == "f" and (array == np.floor(array)).all():
        array = array.astype(np.int64)
    limits = np.iinfo(np.int32)
    if array.dtype.kind == "f" or array.min() < limits.min or array.max() > limits.max:
        raise UsageError(f"{what}: expected integers of int32, found {array.dtype}")
    return np.ascontiguousarray(array, dtype=np.int32)


def float_for(dtype: Any) -> type[np.floating[Any]]:
    """The floating-point type of the library that holds all numbers of a dtype: float64 if float32 rounds them."""
    return np.float32 if np.can_cast(dtype, np.float32) else np.float64


def infer_task(y: Array, loss: str | None, columns: int) -> str:
    """The task that fits targets of this form, this loss and this number of outputs."""
    flat = y.ndim == 1 or (y.ndim == 2 and y.shape[1] == 1)
    if loss in ("cross_entropy", "hinge"):
        return "classification"
    if loss == "binary_cross_entropy":
        return "classification" if flat and columns in (1, 2) else "multi_label"
    if loss in ("mean_squared_error", "huber"):
        return "classification" if flat and y.dtype.kind in "bui" and columns > 1 else "regression"
    if y.dtype.kind not in "bui":
        return "regression"
    if flat:
        return "classification"
    return "multi_label" if bool(np.isin(y, (0, 1)).all()) else "regression"


def weights_of(value: Any, rows: int) -> Array | None:
    """Weights of rows, float64 ``[rows, 1]``."""
    if value is None:
        return None
    weights = as_array(value, "sample_weight")
    if weights.shape not in ((rows,), (rows, 1)):
        raise UsageError(f"sample_weight: expected one number for each of the {rows} rows, found {list(weights.shape)}")
    return np.ascontiguousarray(weights.reshape(rows, 1), dtype=np.float64)


def targets_of(value: Any, task: str, outputs: int, rows: int, what: str = "y") -> Array:
    """Labels int32 ``[rows]``, or ``[rows, outputs]`` for a number of ``rows``: numbers in float64, or 0 and 1 in
    float32."""
    y = as_array(value, what)
    if y.ndim == 0 or y.shape[0] != rows:
        raise UsageError(f"{what}: expected one entry for each of the {rows} samples, found {list(y.shape)}")
    if y.dtype.kind == "f" and not np.isfinite(y).all():
        row = int(np.argwhere(~np.isfinite(y))[0][0])
        found = "NaN" if np.isnan(y.reshape(rows, -1)[row]).any() else "an infinity"
        raise UsageError(f"{what}: {found} in row {row} (counted from 0); remove such rows or replace the value")
    if task == "classification":
        return _labels(y, outputs, what)
    if y.ndim == 1:
        y = y[:, None]
    if y.ndim != 2 or y.shape[1] != outputs:
        hint = ""
        if y.shape[1:] == (1,) and y.dtype.kind == "f" and (y == np.floor(y)).all():
            hint = f"; to learn classes, give integers: {what}.astype(int)"
        raise UsageError(
            f"{what}: the network has {outputs} outputs, expected targets of [{rows}, {outputs}], found "
            f"{list(y.shape)}{hint}"
        )
    if task == "multi_label" and not np.isin(y, (0, 1)).all():
        raise UsageError(f"{what}: each label of a row is 0 or 1, found {float(y[~np.isin(y, (0, 1))][0])}")
    return np.ascontiguousarray(y, dtype=np.float32 if task == "multi_label" else np.float64)


def _labels(y: Array, classes: int, what: str) -> Array:
    if y.ndim == 2 and y.shape[1] == 1:
        y = y[:, 0]
    if y.ndim == 2 and y.shape[1] == classes:  # one-hot
        if not (np.isin(y, (0, 1)).all() and (y.sum(axis=1) == 1).all()):
            raise UsageError(f"{what}: a class a row is expected, as a number or as a row with a single 1")
        y = y.argmax(axis=1)
    if y.ndim != 1:
        raise UsageError(f"{what}: a class a row is expected, [rows], found {list(y.shape)}")
    if y.dtype.kind == "f" and (y != np.floor(y)).any():
        raise UsageError(
            f"{what}: classes are integers from 0, found {float(y[y != np.floor(y)][0])}; {_LEARN_NUMBERS}"
        )
    wrong = (y < 0) | (y >= classes)
    if wrong.any():
        row = int(np.argmax(wrong))
        there = f"the network has {classes} outputs"
        if classes < 3:  # two classes are one output or two
            there = "the network has two classes" if classes == 2 else "one output needs loss='bce' for two classes"
        raise UsageError(
            f"{what}: the label of row {row} (counted from 0) is {int(y[row])}; {there}, so labels are 0 to "
            f"{classes - 1}; {_LEARN_NUMBERS}"
        )
    return np.ascontiguousarray(y, dtype=np.int32)
