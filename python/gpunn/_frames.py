"""Numbers of pandas: frames, series and indices, whatever the types of their columns."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt

from gpunn.errors import UsageError

Array = npt.NDArray[Any]

_NUMBERS = (bool, int, float, np.number, np.bool_, Decimal)
_TIMES = ("datetime", "timedelta", "period")


def is_pandas(value: Any) -> bool:
    return type(value).__module__.partition(".")[0] == "pandas" and (
        hasattr(value, "dtype") or hasattr(value, "dtypes")
    )


def numbers_of(value: Any, what: str) -> Array:
    """The numbers of a frame ``[rows, columns]``, or of a series ``[rows]``. Raises UsageError with the name of a
    column that has none."""
    if not hasattr(value, "columns"):
        name = getattr(value, "name", None)
        return _column(value, what if name is None else f"{what}, column {name!r}")
    columns = [_column(value.iloc[:, i], f"{what}, column {name!r}") for i, name in enumerate(value.columns)]
    array = np.empty(value.shape, np.result_type(*columns) if columns else np.float32)
    for i, column in enumerate(columns):
        array[:, i] = column
    return array


def _column(column: Any, what: str) -> Array:
    dtype = column.dtype
    if getattr(dtype, "categories", None) is not None:
        return _known(np.asarray(column), dtype, what)
    if getattr(dtype, "kind", "O") not in "buif" or isinstance(dtype, np.dtype):
        return _known(np.asarray(column), dtype, what)
    missing = np.asarray(column.isna())
    if missing.any():
        raise UsageError(
            f"{what}: there is no value in row {int(missing.argmax())} (counted from 0); fill it in, for instance by "
            "pandas' fillna, or leave such rows out"
        )
    return np.asarray(column.to_numpy(getattr(dtype, "numpy_dtype", None)))


def _known(array: Array, dtype: Any, what: str) -> Array:
    if array.dtype.kind in "buif":
        return array
    if array.dtype == object and (numbers := numbers_among(array)) is not None:
        return numbers
    found = str(dtype)
    if found == "object":
        others = (row for row, one in enumerate(array.tolist()) if not isinstance(one, _NUMBERS))
        row = next(others, 0)
        found = f"{array[row]!r} in row {row} (counted from 0)"
    if any(one in str(dtype) for one in _TIMES):
        hint = "turn it into numbers, such as days or seconds since a date"
    else:
        hint = "encode it as numbers, for instance by pandas.get_dummies or pandas.factorize"
    raise UsageError(f"{what}: expected numbers, found {found}; {hint}")


def numbers_among(array: Array) -> Array | None:
    """An array of Python's numbers as one of numpy's; None if there is anything else in it."""
    values = [float(one) if isinstance(one, Decimal) else one for one in array.ravel().tolist()]
    if not values or not all(isinstance(one, _NUMBERS) for one in values):
        return None
    numbers = np.asarray(values)
    return numbers.reshape(array.shape) if numbers.dtype.kind in "buif" else None
