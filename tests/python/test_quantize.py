"""Models in eight bits: calibrated, written, loaded and measured from Python."""

from __future__ import annotations

from pathlib import Path

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
