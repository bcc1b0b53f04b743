"""Models in eight bits: calibrated, written, loaded and measured from Python."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gpunn
import small


@pytest.fixture(scope="module")
def eight_bits(trained: gpunn.Run, tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("quantized") / "lenet_int8.onnx"
    report = gpunn.quantize(trained, file, images=64, most_lost=5, backend="cpu")
    assert report.file == file
    assert report.images == 64
    assert report.rows == 100
    assert len(report.convolutions) == 2
    assert len(report.dense) == 3
    assert report.layers
    assert all(layer.scale > 0 and layer.decibels > 10 for layer in report.layers)
    assert report.accuracy_before is not None
    assert report.accuracy_after is not None
    assert report.accuracy_after > report.accuracy_before - 0.05
    return file


def test_answers_are_nearly_those_of_the_model(trained: gpunn.Run, eight_bits: Path) -> None:
    images = gpunn.load_dataset("digits", synthetic_train=400, synthetic_test=100).x_test
    ours = gpunn.load(trained, backend="cpu").run(images, "logits")
    model = gpunn.load(eight_bits, backend="cpu")
    found = model.run(images, "logits")
    assert found.shape == ours.shape
    difference = float(np.abs(found - ours).max())
    assert 0 < difference < 0.1 * float(np.abs(ours).max())
    assert (found.argmax(1) == ours.argmax(1)).mean() > 0.95
    said = model.predict(images[0])[0].top[0]
    assert said.index == int(found[0].argmax())


def test_evaluate_takes_the_data_of_an_experiment(trained: gpunn.Run, eight_bits: Path, tmp_path: Path) -> None:
    experiment = tmp_path / "digits.yaml"
    experiment.write_text(gpunn.load_experiment(small.experiment()).yaml())
    found = gpunn.evaluate(eight_bits, data=experiment, backend="cpu")
    assert found.rows == 100
    assert abs(found.metrics["accuracy"] - gpunn.evaluate(trained).metrics["accuracy"]) < 0.05


def test_too_much_is_lost(trained: gpunn.Run, tmp_path: Path) -> None:
    file = tmp_path / "none.onnx"
    with pytest.raises(gpunn.Error, match="nothing is written"):
        gpunn.quantize(trained, file, images=8, most_lost=-100, backend="cpu")
    assert not file.exists()


def test_what_can_not_be_quantized(trained: gpunn.Run, tmp_path: Path) -> None:
    with pytest.raises(gpunn.UsageError, match='expected "maximum", "entropy" or "percentile"'):
        gpunn.quantize(trained, tmp_path / "x.onnx", method="median")  # type: ignore[arg-type]
    with pytest.raises(gpunn.UsageError, match="images"):
        gpunn.quantize(trained, tmp_path / "x.onnx", images=1)
    with pytest.raises(gpunn.MissingError):
        gpunn.quantize(tmp_path / "nowhere", tmp_path / "x.onnx")


def table(folder: Path) -> dict[str, Any]:
    """A regression whose features have a few very large values: eight bits for all of them leave little of the rest."""
    rng = np.random.default_rng(5)
    x = rng.normal(size=(400, 4))
    x[::40] *= 60
    y = np.tanh(x[:, 0]) + x[:, 1].clip(-2, 2)
    rows = "\n".join(",".join(f"{value:.6g}" for value in (*row, target)) for row, target in zip(x, y, strict=True))
    (folder / "rows.csv").write_text(f"a,b,c,d,y\n{rows}\n")
    return {
        "task": "regression",
        "model": {"layers": [{"linear": {"units": 32}}, "relu", {"linear": {"units": 1}}]},
        "data": {
            "dataset": "csv",
            "path": str(folder / "rows.csv"),
            "target_columns": ["y"],
            "test_fraction": 0.25,
            "batch_size": 20,
        },
        "optimizer": {"type": "adam", "learning_rate": 0.01},
    }


TASKS: dict[str, tuple[str, Callable[[Path], dict[str, Any]]]] = {
    "regression": ("r2", table),
    "multi_label": (
        "map",
        lambda _: {
            "task": "multi_label",
            "model": {"layers": ["flatten", {"linear": {"units": 16}}, "relu", {"linear": {"units": 10}}]},
            "data": {"dataset": "two_digits", "synthetic_train": 200, "synthetic_test": 60, "batch_size": 20},
        },
    ),
    "super_resolution": (
        "psnr",
        lambda _: {
            "task": "super_resolution",
            "model": {
                "layers": [
                    {"conv2d": {"filters": 8, "kernel": 3, "padding": 1}},
                    "relu",
                    {"conv2d": {"filters": 4, "kernel": 3, "padding": 1}},
                    {"pixel_shuffle": {"factor": 2}},
                ]
            },
            "data": {
                "dataset": "drawn_photographs",
                "scale": 2,
                "patch_size": 16,
                "patches": 32,
                "batch_size": 8,
                "synthetic_train": 2,
                "synthetic_test": 2,
                "also_scaled": [],
            },
            "loss": "mean_squared_error",
        },
    ),
}


@pytest.mark.parametrize("task", list(TASKS))
def test_every_task_is_measured_by_its_own_metric(task: str, tmp_path: Path) -> None:
    metric, made = TASKS[task]
    settings = small.experiment(**made(tmp_path), runs=str(tmp_path / "runs"))
    experiment = tmp_path / "experiment.yaml"
    experiment.write_text(gpunn.load_experiment(settings).yaml())
    run = gpunn.run(settings)
    file = tmp_path / "int8.onnx"
    report = gpunn.quantize(run, file, images=64, most_lost=1e6)
    assert report.metric == metric
    assert report.before is not None
    assert report.after is not None
    assert report.lost is not None
    before, after = gpunn.evaluate(run), gpunn.evaluate(file, data=experiment)
    assert report.rows == before.rows
    assert report.before == pytest.approx(before.metrics[metric], rel=1e-6)
    assert report.after == pytest.approx(after.metrics[metric], rel=1e-6)
    worse = report.before - report.after  # larger is better for all three
    assert report.lost == pytest.approx(100 * worse if metric == "map" else 100 * worse / abs(report.before))
    file.unlink()
    most = report.lost - 1e-9
    with pytest.raises(gpunn.Error, match=r"it loses .* nothing is written"):
        gpunn.quantize(run, file, images=64, most_lost=most)
    assert not file.exists()
    assert gpunn.quantize(run, file, images=64, most_lost=report.lost).lost == report.lost


def test_a_regression_may_lose_nothing(tmp_path: Path) -> None:
    run = gpunn.run(small.experiment(**table(tmp_path), training={"epochs": 20}, runs=str(tmp_path / "runs")))
    for most in (0, None):
        with pytest.raises(gpunn.Error, match=r"R² is .* it loses .* %"):
            gpunn.quantize(run, tmp_path / "int8.onnx", images=64, most_lost=most)
        assert not (tmp_path / "int8.onnx").exists()
    with pytest.raises(gpunn.UsageError, match="found NaN"):
        gpunn.quantize(run, tmp_path / "int8.onnx", most_lost=float("nan"))


@pytest.mark.parametrize("raw", [False, True])
def test_features_of_unlike_sizes_are_named_as_the_cause(raw: bool, tmp_path: Path) -> None:
    settings = table(tmp_path)
    rng = np.random.default_rng(5)
    x = rng.normal(size=(400, 2)) * [1, 1000]
    rows = "\n".join(f"{a:.6g},{b:.6g},{3 * a + b / 1000:.6g}" for a, b in x)
    (tmp_path / "rows.csv").write_text(f"a,b,y\n{rows}\n")
    if raw:
        settings["data"] |= {"mean": [0, 0], "stddev": [1, 1]}
    run = gpunn.run(small.experiment(**settings, training={"epochs": 5}, runs=str(tmp_path / "runs")))
    with pytest.raises(gpunn.Error, match="nothing is written") as caught:
        gpunn.quantize(run, tmp_path / "int8.onnx", images=64, most_lost=-1e9)
    assert ("features share one scale" in str(caught.value)) is raw
    assert ("Another method" in str(caught.value)) is not raw


@pytest.mark.parametrize("scaled", [False, True])
def test_a_model_has_its_own_scale_of_targets_whatever_the_data_say(scaled: bool, tmp_path: Path) -> None:
    settings = table(tmp_path)
    settings["data"]["scale_targets"] = scaled
    learnt = small.experiment(**settings, training={"epochs": 3}, runs=str(tmp_path / "runs"))
    run = gpunn.run(learnt)
    other = tmp_path / "other.yaml"
    settings["data"]["scale_targets"] = not scaled
    other.write_text(gpunn.load_experiment(small.experiment(**settings)).yaml())
    gpunn.export(run, tmp_path / "float.onnx")
    expected = gpunn.evaluate(run).metrics["rmse"]
    assert gpunn.evaluate(tmp_path / "float.onnx", data=other).metrics["rmse"] == pytest.approx(expected, rel=1e-4)
    report = gpunn.quantize(tmp_path / "float.onnx", tmp_path / "int8.onnx", data=other, images=64, most_lost=1e6)
    assert report.before == pytest.approx(gpunn.evaluate(run).metrics["r2"], rel=1e-4)
