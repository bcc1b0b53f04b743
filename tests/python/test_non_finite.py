"""Evaluations of models whose outputs are NaN or infinite say so."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gpunn
import gpunn as gnn
import small

TABLES = Path(__file__).parents[2] / "experiments" / "data"
HALVED = [{"conv2d": {"filters": 4, "kernel": 3, "stride": 2, "padding": 1}}, "relu"] * 3
TASKS: dict[str, dict[str, Any]] = {
    "classification": small.experiment(),
    "regression": {
        "task": "regression",
        "model": {"layers": [{"linear": {"units": 3}}, "relu", {"linear": {"units": 1}}]},
        "data": {
            "dataset": "csv",
            "path": str(TABLES / "diabetes.csv"),
            "test_path": str(TABLES / "diabetes_test.csv"),
            "target_columns": ["progression"],
            "batch_size": 32,
        },
    },
    "detection": {
        "task": "detection",
        "model": {"layers": [*HALVED, {"fcos_head": {"classes": 10, "strides": 8, "width": 16, "depth": 1}}]},
        "loss": "focal",
        "data": {
            "dataset": "drawn_digits",
            "image_size": 32,
            "channels": 1,
            "digits": 1,
            "batch_size": 8,
            "synthetic_train": 16,
            "synthetic_test": 8,
        },
    },
    "super_resolution": {
        "task": "super_resolution",
        "model": {"layers": [{"conv2d": {"filters": 4, "kernel": 3, "padding": 1}}, {"pixel_shuffle": {"factor": 2}}]},
        "data": {
            "dataset": "drawn_photographs",
            "scale": 2,
            "patch_size": 16,
            "patches": 16,
            "batch_size": 8,
            "synthetic_train": 2,
            "synthetic_test": 2,
        },
    },
}


def with_weight(run: gpunn.Run, value: float, file: Path) -> Path:
    """The run's model with a weight of this value."""
    network = gnn.Network.load(run.path)
    state = network.state_dict()
    name = next(name for name in state if name.endswith("weight"))
    state[name].reshape(-1)[0] = value
    network.load_state_dict(state)
    network.save(file)
    return file


def options_of(data: dict[str, Any]) -> list[str]:
    settings = [("--set", f"data.{key}={value}") for key, value in data.items() if key != "dataset"]
    return ["--data", data["dataset"], *(word for setting in settings for word in setting)]


def evaluated(*arguments: Any) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "gpunn._program", "eval", *map(str, arguments), "--backend", "cpu"]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("form", ["checkpoint", "onnx"])
@pytest.mark.parametrize("task", TASKS)
def test_a_weight_that_is_nan(task: str, form: str, tmp_path: Path) -> None:
    experiment = {**TASKS[task], "training": {"epochs": 1, "seed": 3}}
    run = gpunn.run(experiment, backend="cpu", runs=tmp_path)
    whole = gpunn.evaluate(run.path, backend="cpu")
    assert whole.non_finite is None
    model = with_weight(run, np.nan, tmp_path / "broken.h5")
    data = experiment["data"]
    options = options_of(data)
    if form == "onnx":
        gpunn.export(model, tmp_path / "broken.onnx")
        model = tmp_path / "broken.onnx"
    done = evaluated(model, *options)
    assert done.returncode == 1, done.stderr
    assert (
        f"the outputs or the loss of {whole.rows} of {whole.rows} {whole.part} rows are NaN or infinite" in done.stderr
    )
    assert "first of row 0: 1 of the " in done.stderr
    assert ".weight'" in done.stderr
    if form == "checkpoint":
        assert "loss      NaN" in done.stdout
    as_json = evaluated(model, *options, "--json")
    assert as_json.returncode == 1
    report = json.loads(as_json.stdout)
    assert report["loss"] is None
    assert (report["non_finite"]["rows"], report["non_finite"]["first"]) == (whole.rows, 0)
    given = {f"data.{key}": value for key, value in data.items() if key != "dataset"}
    with pytest.warns(RuntimeWarning, match="are NaN or infinite, first of row 0"):
        evaluation = gpunn.evaluate(model, data=data["dataset"], set=given, backend="cpu")
    assert np.isnan(evaluation.loss)
    if task == "classification":
        assert sum(one.rows for one in evaluation.classes) == whole.rows
        assert sum(one.predicted for one in evaluation.classes) == 0


def test_a_sum_beyond_the_range_of_f32(tmp_path: Path) -> None:
    experiment = {**TASKS["regression"], "training": {"epochs": 1, "seed": 3}}
    run = gpunn.run(experiment, backend="cpu", runs=tmp_path)
    model = with_weight(run, 3e38, tmp_path / "large.h5")
    done = evaluated(model, *options_of(experiment["data"]))
    assert done.returncode == 1
    assert "a value between the layers is beyond the range of f32" in done.stderr


def test_a_network_that_is_evaluated_on_arrays() -> None:
    network = gnn.Sequential(gnn.Linear(3, 2))
    x = np.ones((4, 3), np.float32)
    network.forward(x)
    state = network.state_dict()
    network.load_state_dict({name: np.full_like(value, np.nan) for name, value in state.items()})
    with pytest.warns(RuntimeWarning, match="outputs are NaN or infinite"):
        assert np.isnan(network.evaluate(x, np.array([0, 1, 0, 1]))["loss"])
