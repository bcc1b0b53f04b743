"""Frames and series of pandas are the numbers that they hold, or a message names the column that holds none."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import gpunn as gnn

pd = pytest.importorskip("pandas")

ROWS = 60
Array = npt.NDArray[Any]


def frame(**more: Any) -> Any:
    rng = np.random.default_rng(5)
    return pd.DataFrame(
        {"a": rng.normal(size=ROWS), "b": rng.random(ROWS) > 0.5, "c": rng.integers(0, 9, ROWS).astype(np.int8)}
    ).assign(**more)


def labels() -> Any:
    return (frame().a > 0).astype(int)


def trained(x: Any, y: Any) -> gnn.Network:
    network = gnn.Sequential([gnn.Linear(None, 6), gnn.Tanh(), gnn.Linear(6, 2)]).compile(
        "sgd", learning_rate=0.1, backend="cpu", threads=1
    )
    network.fit(x, y, epochs=2)
    return network


def same(one: gnn.Network, other: gnn.Network) -> bool:
    return all(map(np.array_equal, one.state_dict().values(), other.state_dict().values()))


BITS = np.tile([True, False, False], ROWS // 3)
NUMBERS = np.tile([1.5, 2, -3], ROWS // 3)


@pytest.mark.parametrize(
    ("column", "values"),
    [
        (BITS, BITS),
        (pd.array(BITS, dtype="boolean"), BITS),
        (pd.array(NUMBERS, dtype="Float64"), NUMBERS),
        (pd.array(NUMBERS.astype(int), dtype="Int64"), NUMBERS.astype(int)),
        (pd.array(BITS.astype(int), dtype="UInt8"), BITS),
        (pd.Categorical(NUMBERS), NUMBERS),
        (pd.Categorical(BITS), BITS),
        (pd.arrays.SparseArray(NUMBERS), NUMBERS),
        (pd.Series(NUMBERS.tolist(), dtype=object), NUMBERS),
        (pd.Series([Decimal(one) for one in NUMBERS]), NUMBERS),
        (pd.Series([1, True, 2.5] * (ROWS // 3), dtype=object), np.tile([1, 1, 2.5], ROWS // 3)),
    ],
)
def test_columns_of_numbers_are_numbers(column: Any, values: Array) -> None:
    x = frame(d=column)
    numbers = np.column_stack([frame().to_numpy(np.float64), values])
    expected = trained(numbers, labels().to_numpy())
    assert same(trained(x, labels()), expected)
    assert np.array_equal(expected.predict(x), expected.predict(numbers))
    assert expected.evaluate(x, labels()) == expected.evaluate(numbers, labels().to_numpy())


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (pd.date_range("2020-01-01", periods=ROWS), "found datetime64.*; turn it into numbers, such as days"),
        (pd.date_range("2020-01-01", periods=ROWS, tz="UTC"), "found datetime64.*UTC"),
        (pd.to_timedelta(np.arange(ROWS), unit="s"), "found timedelta64"),
        (pd.period_range("2020-01-01", periods=ROWS, freq="D"), r"found period\[D\]"),
        (pd.interval_range(0, ROWS), "found interval"),
        (pd.Categorical(["x", "y"] * (ROWS // 2)), "found category; encode it as numbers"),
        (["x", "y"] * (ROWS // 2), "found .*; encode it as numbers"),
        (pd.Series([1, "y"] * (ROWS // 2), dtype=object), r"found 'y' in row 1 \(counted from 0\); encode"),
        (pd.Series([1, 2, None] * (ROWS // 3), dtype=object), "found None in row 2"),
        (pd.array([1, 2, None] * (ROWS // 3), dtype="Int64"), "there is no value in row 2"),
        (pd.array([True, None, None] * (ROWS // 3), dtype="boolean"), "there is no value in row 1"),
        (NUMBERS * 1j, "found complex128"),
    ],
)
def test_columns_without_numbers_are_named(column: Any, message: str) -> None:
    with pytest.raises(gnn.UsageError, match=f"x, column 'd': .*{message}"):
        trained(frame(d=column), labels())
    expected = trained(frame(d=0), labels())
    with pytest.raises(gnn.UsageError, match=f"x, column 'd': .*{message}"):
        expected.predict(frame(d=column))


@pytest.mark.parametrize(
    "change",
    [
        lambda y: y.astype("Int64"),
        lambda y: (y == 1).astype("boolean"),
        pd.Categorical,
        pd.Index,
        lambda y: y.to_frame(),
        lambda y: y.sort_index(ascending=False).iloc[::-1],
    ],
)
def test_labels_of_pandas(change: Any) -> None:
    assert same(trained(frame(), change(labels())), trained(frame(), labels().to_numpy()))


def test_labels_of_pandas_that_are_not_numbers() -> None:
    with pytest.raises(gnn.UsageError, match=r"y, column 'kind': expected numbers, found .*pandas\.factorize"):
        trained(frame(), labels().map({0: "no", 1: "yes"}).rename("kind"))
    missing = labels().astype("Int64")
    missing[4] = pd.NA
    with pytest.raises(gnn.UsageError, match="y, column 'a': there is no value in row 4"):
        trained(frame(), missing)


def test_batches_and_loaded_models_take_frames(tmp_path: Any) -> None:
    x, y = frame(), labels()
    network = trained(x, y)
    pairs = [(x[i : i + 20], y[i : i + 20]) for i in (0, 20, 40)]
    assert network.evaluate(pairs) == network.evaluate(x, y)
    network.save(tmp_path / "network.h5")
    model = gnn.load(tmp_path / "network.h5")
    assert np.array_equal(model.run(x), network.predict(x))
    with pytest.raises(gnn.UsageError, match="x, column 'a': expected numbers, found datetime64"):
        model.run(x.assign(a=pd.date_range("2020-01-01", periods=ROWS)))
