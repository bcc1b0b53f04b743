"""Metrics that the evaluated rows do not define, with scikit-learn's functions as the definition."""

from __future__ import annotations

import csv
import json
import math
import subprocess
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gpunn as gnn

metrics = pytest.importorskip("sklearn.metrics", reason="scikit-learn defines the metrics")


def labelled(rows: int = 60, lacking: tuple[int, ...] = ()) -> tuple[Any, Any]:
    rng = np.random.default_rng(8)
    x = rng.normal(size=(rows, 6)).astype(np.float32)
    y = (x[:, :4] + 0.5 * rng.normal(size=(rows, 4)) > 0.2).astype(np.float32)
    y[:, list(lacking)] = 0
    return x, y


def labeller() -> gnn.Network:
    network = gnn.Sequential([gnn.Linear(6, 4)]).compile(
        "adam", loss="binary_cross_entropy", learning_rate=0.05, backend="cpu"
    )
    network.fit(*labelled(), epochs=5)
    return network


def test_labels_that_the_rows_lack_are_left_out_of_every_mean() -> None:
    network = labeller()
    for lacking in ((), (2,), (0, 3)):
        x, y = labelled(lacking=lacking)
        there = y.any(axis=0)
        probabilities = network.predict(x)
        f1 = metrics.f1_score(y, probabilities >= 0.5, average=None, zero_division=np.nan)
        ap = metrics.average_precision_score(y[:, there], probabilities[:, there], average="macro")
        found = network.evaluate(x, y)
        assert found["map"] == pytest.approx(ap, abs=1e-9)
        assert found["f1"] == pytest.approx(f1[there].mean(), abs=1e-9)


def test_without_any_label_the_means_are_undefined() -> None:
    x, y = labelled(lacking=(0, 1, 2, 3))
    found = labeller().evaluate(x, y)
    assert math.isnan(found["map"])
    assert math.isnan(found["f1"])
    assert found["exact_match"] >= 0


@pytest.mark.parametrize("rows", [1, 20])
def test_r2_of_a_target_that_does_not_vary(rows: int) -> None:
    rng = np.random.default_rng(1)
    x = rng.normal(size=(40, 3)).astype(np.float32)
    y = np.stack([x @ [1.0, 2, 3], x @ [0.5, 0, 1]], axis=1)
    network = gnn.Sequential([gnn.Linear(3, 2)]).compile("adam", learning_rate=0.05, backend="cpu")
    network.fit(x, y, epochs=5)
    y[:, 0] = 0.7
    found = network.evaluate(x[:rows], y[:rows])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of one row
        own = metrics.r2_score(y[:rows, 1], network.predict(x[:rows])[:, 1], force_finite=False)
    assert found["r2"] == pytest.approx(own, abs=1e-4, nan_ok=True)  # of the column that varies
    assert math.isnan(network.evaluate(x[:rows], np.full((rows, 2), 0.7))["r2"])


def test_records_of_a_run_whose_metric_is_undefined(tmp_path: Path) -> None:
    for name in ("train", "test"):
        rows = [f"{i % 11},{0.7 if name == 'test' else i % 11}" for i in range(40)]
        (tmp_path / f"{name}.csv").write_text("\n".join(["x,y", *rows]) + "\n")
    run = gnn.run(
        {
            "task": "regression",
            "model": {"layers": [{"linear": {"units": 1}}]},
            "data": {
                "dataset": "csv",
                "path": str(tmp_path / "train.csv"),
                "test_path": str(tmp_path / "test.csv"),
                "target_columns": ["y"],
                "batch_size": 8,
            },
            "optimizer": {"type": "sgd", "learning_rate": 0.001},
            "training": {"epochs": 4},
            "early_stopping": {"monitor": "r2", "patience": 1},
            "checkpoint": {"monitor": "r2"},
            "schedule": {"type": "reduce_on_plateau", "monitor": "r2", "patience": 0},
            "backend": "cpu",
        },
        runs=tmp_path / "runs",
    )
    assert run.result is not None
    assert (len(run.epochs), run.result.stopped_early, run.result.best_epoch) == (4, False, 0)
    assert math.isnan(run.result.best_metric)
    assert {row["learning_rate"] for row in run.epochs} == {run.epochs[0]["learning_rate"]}
    assert all(math.isnan(row["test_r2"]) for row in run.epochs)
    assert run.best == {}
    assert not (run.path / "best.h5").exists()
    with (run.path / "metrics.csv").open() as file:
        assert [row["test_r2"] for row in csv.DictReader(file)] == [""] * 4
    records = [json.loads(line) for line in (run.path / "metrics.jsonl").read_text().splitlines()]
    assert [one["test_r2"] for one in records if one["kind"] == "epoch"] == [None] * 4
    assert "r2 (checkpoint.monitor) was undefined in every epoch" in (run.path / "log.txt").read_text()
    program = Path(gnn.__file__).parent / "bin" / "gpunn"
    shown = subprocess.run([program, "eval", run.path], check=True, capture_output=True, text=True).stdout
    assert any(line.split()[-1] == "-" for line in shown.splitlines() if line.startswith("R²"))
    assert 'R²</dt><dd id="r2">-</dd>' in Path(run.report(tmp_path / "page.html")).read_text()
