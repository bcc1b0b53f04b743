"""Engines: models planned for one device, written and opened from Python."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import gpunn
from gpunn._core import EngineExportReport


def test_an_engine_answers_as_its_model(trained: gpunn.Run, tmp_path: Path) -> None:
    file = tmp_path / "lenet.engine"
    report = gpunn.export(trained, file, backend="cpu", batch=(1, 4))
    assert isinstance(report, EngineExportReport)
    assert (report.file, report.backend, report.batches) == (file, "cpu", [1, 4])
    assert report.ops > 5
    images = gpunn.load_dataset("digits", synthetic_train=400, synthetic_test=100).x_test[:3]
    engine = gpunn.load(file)
    assert engine.max_batch == 4
    np.testing.assert_allclose(engine.run(images, "logits"), gpunn.load(trained).run(images, "logits"), rtol=1e-5)
    with pytest.raises(gpunn.UsageError, match=r"training\.precision"):
        gpunn.load(file, set={"training.precision": "bf16"})


def test_arguments_of_other_files_are_refused(trained: gpunn.Run, tmp_path: Path) -> None:
    with pytest.raises(gpunn.UsageError, match=r"NAME\.engine"):
        gpunn.export(trained, tmp_path / "lenet.onnx", batch=(1,))
    with pytest.raises(gpunn.UsageError, match="needs batch"):
        gpunn.export(trained, tmp_path / "lenet.engine")
    with pytest.raises(gpunn.UsageError, match="not for NAME"):
        gpunn.export(trained, tmp_path / "lenet.engine", opset=18)
