"""Weights of rows, in memory and in an HDF5 file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gpunn

h5py: Any = pytest.importorskip("h5py", reason="needs the package h5py")

RANDOM = np.random.default_rng(5)
X = RANDOM.normal(size=(200, 3)).astype(np.float32)
Y = (X @ [1.0, -2.0, 0.5] + np.abs(X[:, 0]))[:, np.newaxis]
WEIGHTS = RANDOM.uniform(0, 2, 200)


def weighted_least_squares() -> np.ndarray[Any, Any]:
    """Of a line through X: three slopes and an offset."""
    a = np.column_stack([X, np.ones(len(X))]) * np.sqrt(WEIGHTS)[:, np.newaxis]
    return np.asarray(np.linalg.lstsq(a, Y[:, 0] * np.sqrt(WEIGHTS), rcond=None)[0])


def line() -> gpunn.Network:
    network = gpunn.Sequential([gpunn.Linear(3, 1, name="line")], input_shape=(3,), seed=1)
    network.compile(loss="mse", optimizer="adam", learning_rate=0.05, backend="cpu")
    return network


def found(network: gpunn.Network) -> np.ndarray[Any, Any]:
    state = network.state_dict()
    return np.append(state["line.weight"].ravel(), state["line.bias"])


def test_a_line_through_weighted_rows_is_that_of_least_squares() -> None:
    network = line()
    network.fit(X, Y, sample_weight=WEIGHTS, epochs=600, batch_size=200, validation_data=(X[:9], Y[:9]))
    np.testing.assert_allclose(found(network), weighted_least_squares(), atol=2e-3)
    plain = line()
    plain.fit(X, Y, epochs=600, batch_size=200)
    assert np.abs(found(plain) - weighted_least_squares()).max() > 0.01

    error = (network.predict(X) - Y)[:, 0] ** 2
    assert network.evaluate(X, Y, sample_weight=WEIGHTS)["loss"] == pytest.approx((WEIGHTS * error).mean(), rel=1e-4)
    assert network.evaluate(X, Y)["loss"] == pytest.approx(error.mean(), rel=1e-4)


def test_weights_in_an_hdf5_file(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "rows.h5", "w") as file:
        file["x"], file["y"], file["w"] = X, Y, WEIGHTS
    run = gpunn.run(
        {
            "task": "regression",
            "model": {"layers": [{"linear": {"name": "line", "units": 1}}]},
            "data": {
                "dataset": "hdf5",
                "path": str(tmp_path / "rows.h5"),
                "train_samples": "x",
                "train_labels": "y",
                "test_path": str(tmp_path / "rows.h5"),
                "train_weights": "w",
                "batch_size": 200,
            },
            "optimizer": {"type": "adam", "learning_rate": 0.05},
            "training": {"epochs": 800, "seed": 1},
        },
        backend="cpu",
        runs=tmp_path,
    )
    a = np.column_stack([X, np.ones(len(X))])
    predicted = gpunn.load(run.path / "last.h5").run(X)[:, 0]
    np.testing.assert_allclose(predicted, a @ weighted_least_squares(), atol=5e-3)


def test_mistakes_in_an_hdf5_file(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "rows.h5", "w") as file:
        file["x"], file["y"], file["w"] = X, Y, np.ones((200, 2))
    data = {
        "dataset": "hdf5",
        "path": str(tmp_path / "rows.h5"),
        "train_samples": "x",
        "train_labels": "y",
        "test_fraction": 0.2,
    }
    experiment: dict[str, Any] = {"task": "regression", "model": {"layers": [{"linear": {"units": 1}}]}}
    for keys, text in (
        ({"train_weights": "w"}, r"array 'w': expected one weight for each row, found \[200, 2\]"),
        ({"test_weights": "w"}, "data.test_weights goes with data.train_weights"),
    ):
        with pytest.raises(gpunn.Error, match=text):
            gpunn.run(experiment | {"data": data | keys}, backend="cpu", runs=tmp_path)


def test_mistakes() -> None:
    with pytest.raises(gpunn.UsageError, match="expected one number for each of the 200 rows, found \\[3\\]"):
        line().fit(X, Y, sample_weight=[1, 2, 3])
    with pytest.raises(gpunn.UsageError, match="the weight of row 1 of the training part is -1"):
        line().fit(X, Y, sample_weight=np.where(np.arange(200) == 1, -1.0, 1.0))
    with pytest.raises(gpunn.UsageError, match="sample_weight is for arrays"):
        line().fit([(X, Y)], sample_weight=WEIGHTS)
