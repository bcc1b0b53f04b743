from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gpunn
import small


def test_evaluation(trained: gpunn.Run) -> None:
    evaluation = trained.evaluate(mistakes=5)
    assert (evaluation.part, evaluation.rows) == ("test", 100)
    assert evaluation.metrics["accuracy"] == pytest.approx(trained.best["test_accuracy"])
    confusion = evaluation.confusion
    assert confusion.shape == (10, 10)
    assert confusion.sum() == 100
    assert np.trace(confusion) == round(evaluation.metrics["accuracy"] * 100)
    assert [one.rows for one in evaluation.classes] == list(confusion.sum(axis=1))
    assert len(evaluation.mistakes) == 5
    assert evaluation.mistakes[0].loss >= evaluation.mistakes[1].loss
    assert "accuracy" in repr(evaluation)
    assert evaluation._repr_html_().count("<tr>") == 11


def test_frame_of_an_evaluation(trained: gpunn.Run) -> None:
    pytest.importorskip("pandas")
    frame = trained.evaluate().frame()
    assert list(frame.index) == [str(digit) for digit in range(10)]
    assert frame["rows"].sum() == 100


def test_regression() -> None:
    run = gpunn.run("mlp_diabetes", epochs=2, backend="cpu")
    evaluation = run.evaluate()
    assert evaluation.confusion.shape == (0, 0)
    assert evaluation.targets.shape == evaluation.predictions.shape == (evaluation.rows, 1)
    difference = evaluation.targets - evaluation.predictions
    assert evaluation.metrics["mae"] == pytest.approx(np.abs(difference).mean(), rel=1e-4)
    model = gpunn.load(run)
    file = gpunn.shipped_experiments()["mlp_diabetes"].parent / "data" / "diabetes.csv"
    x = gpunn.load_dataset("csv", path=file, task="regression", target_columns=["progression"], test_fraction=0.1)
    assert x.y_train.dtype == np.float64
    assert x.y_train.shape == (len(x.x_train), 1)
    assert model(x.x_train[:5].astype(np.float64)).shape == (5, 1)
    assert model.predict(x.x_train[:1])[0].values[0].value == pytest.approx(model(x.x_train[:1])[0, 0])


def test_plots(trained: gpunn.Run) -> None:
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    axes = trained.plot()
    assert [line.get_label() for line in axes.get_lines()] == ["train loss", "test loss"]
    assert np.asarray(axes.get_lines()[0].get_ydata()).tolist() == trained.metrics["train_loss"]
    with pytest.raises(gpunn.UsageError, match="train_accuracy"):
        trained.plot(["accuracy"])
    image = gpunn.plots.confusion(trained.evaluate(), normalise=False).get_images()[0]
    assert np.asarray(image.get_array()).sum() == 100
    assert len(gpunn.plots.filters(trained).axes) == 8
    assert len(gpunn.plots.filters(trained, "conv2.weight").axes) == 16
    with pytest.raises(gpunn.UsageError, match=r"conv1\.weight"):
        gpunn.plots.filters(trained, "conv9.weight")
    matplotlib.pyplot.close("all")


def test_report(trained: gpunn.Run) -> None:
    assert trained.report("page.html") == Path("page.html")
    assert "<html" in Path("page.html").read_text()


def test_plan_and_summary() -> None:
    plan = gpunn.plan(small.experiment())
    assert plan.backend == "cpu"
    assert {"CONV2D"} <= {op.op.split("_")[0] for op in plan.ops}
    assert plan.peak_bytes == plan.arena_bytes + plan.persistent_bytes
    summary = gpunn.summary(small.experiment())
    assert summary.parameters == plan.parameters == sum(layer.parameters for layer in summary.layers)
    alone = gpunn.summary(gpunn.shipped_models()["lenet5"], input_shape=(1, 28, 28))
    assert alone.parameters == summary.parameters
    rates = gpunn.schedule(small.experiment(schedule={"type": "cosine"})).learning_rates
    assert len(rates) == 40
    assert rates[0] > rates[-1]


def test_race() -> None:
    began: list[str] = []

    class Starts(gpunn.Callback):
        def on_start(self, start: gpunn.RunStart) -> None:
            began.append(start.backend)

    report = gpunn.race(small.experiment(), ["cpu"], chart="race.svg", callbacks=[Starts()], epochs=1)
    assert report.ok
    assert began == ["cpu"]
    assert [entry.backend for entry in report.entries] == ["cpu"]
    assert len(report.entries[0].losses) == 20
    assert Path("race.svg").is_file()
    with pytest.raises(gpunn.Error, match="twice"):
        gpunn.race(small.experiment(), ["cpu", "cpu"])


def test_bench() -> None:
    report = gpunn.bench(small.experiment(), repeats=3, warmup=1)
    assert (report.backend, report.repeats) == ("cpu", 3)
    assert 0 < report.min_seconds <= report.median_seconds <= report.max_seconds
    rows = gpunn.bench_ops([("matmul", "32x32x32")], backends=["cpu"], repeats=5, ceilings=False).rows
    assert [row.op for row in rows] == ["MATMUL"]
    assert rows[0].failure == ""
    assert 0 <= rows[0].error < rows[0].error_allowed
    with pytest.raises(gpunn.UsageError, match="matmul"):
        gpunn.bench_ops([("matmull", "32x32x32")])
    with pytest.raises(gpunn.UsageError, match="bf16"):
        gpunn.bench_ops([("matmul", "32x32x32")], precisions=["bfloat"])


def test_check() -> None:
    cases: list[Any] = []
    report = gpunn.check("cpu", suites=["ops"], ops=["RELU"], on_case=cases.append)
    assert report.ok
    assert report.passed > 0
    assert len(cases) == len(report.cases)
    with pytest.raises(gpunn.UsageError, match="RELU"):
        gpunn.check("cpu", ops=["RELUX"])


def test_datasets() -> None:
    known = {one.name: one for one in gpunn.datasets()}
    assert known["digits"].synthetic
    digits = gpunn.load_dataset("digits", synthetic_train=30, synthetic_test=20)
    assert digits.x_train.shape == (30, 1, 28, 28)
    assert digits.x_train.dtype == np.uint8
    assert digits.y_test.shape == (20,)
    assert digits.y_test.dtype == np.int32
    with pytest.raises(gpunn.ConfigError, match="digits"):
        gpunn.load_dataset("digitz")
