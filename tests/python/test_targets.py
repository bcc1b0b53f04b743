"""Labels and targets of every type: what a number means does not depend on its dtype."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import gpunn as gnn

Array = npt.NDArray[Any]
ROWS = 40
INTEGERS = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", ">i4", "<u8"]


def samples() -> Array:
    return np.random.default_rng(2).normal(size=(ROWS, 4)).astype(np.float32)


def network(outputs: int, **compiled: Any) -> gnn.Network:
    layers = [gnn.Linear(4, outputs)]
    return gnn.Sequential(layers).compile("sgd", backend="cpu", threads=1, **compiled)


def weights(y: Any, outputs: int, **compiled: Any) -> list[Array]:
    fitted = network(outputs, **compiled)
    fitted.fit(samples(), y)
    return list(fitted.state_dict().values())


@pytest.mark.parametrize("outputs", [3, 300])
@pytest.mark.parametrize("dtype", [*INTEGERS, "bool"])
def test_labels_of_every_integer_type_are_the_same_classes(dtype: str, outputs: int) -> None:
    y = np.arange(ROWS) % (2 if dtype == "bool" else 3)
    expected = weights(y, outputs)
    for given in (y.astype(dtype), y.astype(dtype)[:, None], y.astype(dtype).astype(object)):
        assert all(map(np.array_equal, weights(given, outputs), expected))


@pytest.mark.parametrize("dtype", INTEGERS)
def test_labels_outside_the_classes_are_named_with_a_hint_to_learn_numbers(dtype: str) -> None:
    limits = np.iinfo(dtype)
    for wrong in {limits.min, limits.max, 3} - {0}:
        y = (np.arange(ROWS) % 3).astype(dtype)
        y[5] = wrong
        message = (
            rf"the label of row 5 \(counted from 0\) is {wrong}; the network has 3 outputs, so labels are 0 to 2; "
            "to learn numbers, compile with loss='mse'"
        )
        with pytest.raises(gnn.UsageError, match=message):
            weights(y, 3)
        with pytest.raises(gnn.UsageError, match=message):
            network(3).evaluate(samples(), y)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integer_targets_of_one_output(dtype: str) -> None:
    y = (np.arange(ROWS) % 50).astype(dtype)
    with pytest.raises(gnn.UsageError, match="labels are 0 to 1; to learn numbers, compile with loss='mse'"):
        weights(y, 1)
    with pytest.raises(gnn.UsageError, match=r"one output needs loss='bce' for two classes, .* loss='mse'"):
        weights(y, 1, loss="cross_entropy")
    expected = weights(y.astype(np.float64), 1, loss="mse")
    for given in (y, y[:, None]):
        assert all(map(np.array_equal, weights(given, 1, loss="mse"), expected))
    hinted = network(1)
    with pytest.raises(gnn.UsageError, match="loss='mse'"):
        hinted.fit(samples(), y)
    hinted.compile("sgd", loss="mse", backend="cpu", threads=1).fit(samples(), y)
    assert all(map(np.array_equal, hinted.state_dict().values(), expected))


def test_floating_point_targets_of_several_outputs_hint_at_classes() -> None:
    y = np.arange(ROWS) % 3.0
    with pytest.raises(gnn.UsageError, match=r"to learn classes, give integers: y\.astype\(int\)"):
        weights(y, 3)
    assert all(map(np.array_equal, weights(y, 3, loss="cross_entropy"), weights(y.astype(int), 3)))
    with pytest.raises(gnn.UsageError, match=r"found 0\.5; to learn numbers, compile with loss='mse'"):
        weights(y + 0.5, 3, loss="cross_entropy")
