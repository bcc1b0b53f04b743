"""Numbers far from 0, as Unix time is: every way into gpunn centres them in float64 before it rounds them.

The data sets have columns with and without an offset that float64 takes on exactly. Whatever a network learns has to be
the same bits in both.
"""

from __future__ import annotations

import json
import subprocess
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import gpunn as gnn

Array = npt.NDArray[Any]

# Seconds, milliseconds and nanoseconds since 1970. One second is `step` of them.
OFFSETS = [(1_700_000_000, 1), (1_700_000_000_000, 1000), (1_700_000_000_000_000_000, 10**9)]
ROWS = 240


def times(offset: int, step: int) -> tuple[Array, Array]:
    """Two columns of whole seconds within two hours, int64, and a class that their difference and sum decide."""
    random = np.random.default_rng(5)
    seconds = random.integers(0, 7200, size=(ROWS, 2))
    y = (seconds.sum(axis=1) > 7200).astype(np.int32)
    return seconds * step + offset, y


def network(**compiled: Any) -> gnn.Sequential:
    net = gnn.Sequential([gnn.Linear(2, 16), gnn.ReLU(), gnn.Linear(16, 2 if "task" not in compiled else 1)], seed=3)
    net.compile("adam", learning_rate=0.02, normalize="data", backend="cpu", **compiled)
    return net


def write_csv(file: Path, x: Array, y: Array) -> Path:
    lines = ["a,b,y"] + [f"{a},{b},{c}" for (a, b), c in zip(x.tolist(), y.tolist(), strict=True)]
    file.write_text("\n".join(lines) + "\n")
    return file


def experiment(name: str, data: dict[str, Any], outputs: int = 2, **changes: Any) -> dict[str, Any]:
    return {
        "name": name,
        "model": {"layers": [{"linear": {"units": 16}}, {"relu": {}}, {"linear": {"units": outputs}}]},
        "data": {"batch_size": 32, **data},
        "optimizer": {"type": "adam", "learning_rate": 0.02},
        "training": {"epochs": 15, "seed": 3},
        "backend": "cpu",
        **changes,
    }


def reference_accuracy(x: Array, y: Array) -> float:
    """scikit-learn's: the features standardised in float64, and a line between the classes."""
    pytest.importorskip("sklearn")
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return float(make_pipeline(StandardScaler(), LogisticRegression()).fit(x, y).score(x, y))


@pytest.mark.parametrize(("offset", "step"), OFFSETS)
@pytest.mark.parametrize("dtype", ["int64", "uint64", "float64"])
def test_arrays(offset: int, step: int, dtype: str) -> None:
    near, y = times(0, step)
    far, _ = times(offset, step)
    probabilities = []
    for x in (near.astype(dtype), far.astype(dtype)):
        net = network()
        net.fit(x, y, epochs=15)
        accuracy = net.evaluate(x, y)["accuracy"]
        assert abs(accuracy - reference_accuracy(x, y)) < 0.04
        probabilities.append(net.predict(x))
    assert (probabilities[0] == probabilities[1]).all()


def test_the_mean_and_deviation_are_scikit_learns() -> None:
    preprocessing = pytest.importorskip("sklearn.preprocessing")
    x, y = times(*OFFSETS[0])
    scaler = preprocessing.StandardScaler().fit(x.astype(np.float64))
    net = network()
    net.fit(x, y)
    info = net._built().info()["inputs"][0]
    assert np.allclose(info["stddev"], scaler.scale_, rtol=1e-12)
    assert (np.abs(np.array(info["mean"]) - scaler.mean_) < 1e-6 * scaler.scale_).all()


@pytest.mark.parametrize(("offset", "step"), OFFSETS)
def test_csv_files(tmp_path: Path, offset: int, step: int) -> None:
    answers = []
    for name, x, y in (("near", *times(0, step)), ("far", *times(offset, step))):
        table = write_csv(tmp_path / f"{name}.csv", x, y)
        data = {"dataset": "csv", "path": str(table), "test_fraction": 0.25}
        run = gnn.run(experiment(name, data), runs=tmp_path / "runs")
        rows = gnn.load(run.path).predict(str(table), top=2)
        answers.append(
            (
                [epoch["train_loss"] for epoch in run.epochs],
                gnn.evaluate(run.path).metrics["accuracy"],
                [[one.probability for one in row.top] for row in rows],
                gnn.load(run.path).run(x),
            )
        )
    for one, other in zip(*answers, strict=True):
        assert np.array_equal(one, other) if isinstance(one, np.ndarray) else one == other


@pytest.mark.parametrize("stored", ["int64", "float64"])
def test_hdf5_files_resident_and_streamed(tmp_path: Path, stored: str) -> None:
    h5py = pytest.importorskip("h5py")
    answers = []
    for name, offset in (("near", 0), ("far", OFFSETS[0][0])):
        x, y = times(offset, 1)
        with h5py.File(tmp_path / f"{name}.h5", "w") as file:
            file["x"], file["y"] = x.astype(stored), y
        data = {
            "dataset": "hdf5",
            "path": str(tmp_path / f"{name}.h5"),
            "train_samples": "x",
            "train_labels": "y",
            "test_fraction": 0.25,
        }
        for residency in ("device", "stream"):
            run = gnn.run(experiment(name, data | {"residency": residency}), runs=tmp_path / "runs")
            answers.append(gnn.load(run.path).run(x))
    assert all((one == answers[0]).all() for one in answers)


def test_a_mean_of_the_experiment_and_a_resumed_run(tmp_path: Path) -> None:
    answers = []
    for name, offset in (("near", 0), ("far", OFFSETS[0][0])):
        x, y = times(offset, 1)
        table = write_csv(tmp_path / f"{name}.csv", x, y)
        data = {"dataset": "csv", "path": str(table), "test_fraction": 0.25}
        own = data | {"mean": [offset + 3600.0] * 2, "stddev": [2078.0] * 2}
        run = gnn.run(experiment(name, own), runs=tmp_path / "runs")
        answers.append(gnn.load(run.path).run(x))
    assert (answers[0] == answers[1]).all()
    whole = gnn.run(experiment("whole", data), runs=tmp_path / "runs")
    half = gnn.run(experiment("half", data, training={"epochs": 7, "seed": 3}), runs=tmp_path / "runs")
    resumed = gnn.resume(half.path, set={"training.epochs": 15})
    last = [gnn.load(Path(run.path) / "last.h5").run(x) for run in (whole, resumed)]
    assert (last[0] == last[1]).all()


def test_batches_of_a_generator() -> None:
    answers = []
    for offset in (0, OFFSETS[0][0]):
        x, y = times(offset, 1)
        net = gnn.Sequential([gnn.Linear(2, 16), gnn.ReLU(), gnn.Linear(16, 2)], seed=3)
        net.compile("adam", learning_rate=0.02, normalize=([offset + 3600.0] * 2, [2078.0] * 2), backend="cpu")
        net.fit([(x[i : i + 32], y[i : i + 32]) for i in range(0, ROWS, 32)], epochs=5)
        answers.append(net.predict(x))
    assert (answers[0] == answers[1]).all()


def test_batches_that_nothing_measures_have_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    x, y = times(*OFFSETS[0])
    target = x.sum(axis=1).astype(np.float64)
    network().fit([(x, y)], epochs=1)
    assert "samples keep their units. Give their mean and standard deviation" in caplog.text
    caplog.clear()
    net = network(task="regression", loss="mean_squared_error", scale_targets=True)
    net.fit([(x, target)], epochs=1)
    assert "targets keep their units" in caplog.text
    caplog.clear()
    net = network(task="regression", loss="mean_squared_error", scale_targets=True)
    net.fit(x, target, epochs=5)  # which measures both
    net.fit([(x, target)], epochs=5)
    assert net.evaluate(x, target)["rmse"] < target.std()
    assert caplog.text == ""


@pytest.mark.parametrize("dtype", ["int64", "float64"])
def test_scikit_learns_estimators(dtype: str) -> None:
    pytest.importorskip("sklearn")
    from gpunn.sklearn import Classifier, Regressor

    near, y = times(0, 1)
    far, _ = times(OFFSETS[0][0], 1)
    fits = [Classifier(epochs=10, random_state=0).fit(x.astype(dtype), y) for x in (near, far)]
    assert (fits[0].predict_proba(near) == fits[1].predict_proba(far)).all()
    numbers = near.sum(axis=1).astype(np.float64)
    models = [Regressor(epochs=10, random_state=0).fit(near, numbers + offset) for offset in (0.0, 1e9)]
    assert models[0].score(near, numbers) == pytest.approx(models[1].score(near, numbers + 1e9), abs=1e-9)
    assert np.allclose(models[0].predict(near), models[1].predict(near) - 1e9, rtol=0, atol=1e-3)


@pytest.mark.parametrize("offset", [0.0, 1e9])
def test_metrics_of_targets_are_scikit_learns(offset: float) -> None:
    metrics = pytest.importorskip("sklearn.metrics")
    x, _ = times(0, 1)
    y = x.astype(np.float64) @ [[1e-4], [2e-4]] + offset  # a deviation of about 0.5
    net = network(task="regression", loss="mean_squared_error", scale_targets=True)
    net.fit(x, y, epochs=10)
    predicted = net.predict(x)
    assert predicted.dtype == np.float64
    found = net.evaluate(x, y)
    assert found["rmse"] == pytest.approx(np.sqrt(metrics.mean_squared_error(y, predicted)), rel=1e-5)
    assert found["mae"] == pytest.approx(metrics.mean_absolute_error(y, predicted), rel=1e-5)
    assert found["r2"] == pytest.approx(metrics.r2_score(y, predicted), abs=1e-5)
    assert found["rmse"] < 0.25 * y.std()


def test_metrics_do_not_depend_on_the_offset_of_targets() -> None:
    x, _ = times(0, 1)
    y = x.sum(axis=1, keepdims=True).astype(np.float64) / 4096  # exact with the offset
    reports = []
    for offset in (0.0, 1e9):
        net = network(task="regression", loss="mean_squared_error", scale_targets=True)
        net.fit(x, y + offset, epochs=5)
        reports.append(net.evaluate(x, y + offset))
    assert reports[0] == reports[1]


def test_targets_in_their_own_units_are_not_rounded_in_metrics(caplog: pytest.LogCaptureFixture) -> None:
    """A network that does not scale its targets answers in float32; the targets that it is judged by are exact."""
    x, _ = times(0, 1)
    y = x.sum(axis=1, keepdims=True).astype(np.float64) / 4096 + 1e9
    net = network(task="regression", loss="mean_squared_error")
    net.fit(x, y, epochs=1)
    assert "Set data.scale_targets: true" in caplog.text
    error = y - net.predict(x).astype(np.float64)
    assert net.evaluate(x, y)["rmse"] == pytest.approx(float(np.sqrt((error**2).mean())), rel=1e-6)


def test_a_time_is_predicted_to_the_second(tmp_path: Path) -> None:
    """Targets of seconds since 1970 in a table: `gpunn predict`, its JSON and Python give the same second."""
    seconds = np.arange(ROWS)
    x = np.stack([seconds, seconds], axis=1)
    y = 1_700_000_000 + 60 * seconds
    table = write_csv(tmp_path / "times.csv", x, y)
    data = {"dataset": "csv", "path": str(table), "test_fraction": 0.1}
    line = experiment("line", data, outputs=1, task="regression", loss="mean_squared_error")
    line["training"] = {"epochs": 60, "seed": 3}
    run = gnn.run(line, runs=tmp_path / "runs")
    model = gnn.load(run.path)
    values = model.run(x)
    assert values.dtype == np.float64
    assert np.abs(values[:, 0] - y).max() < 0.1 * y.std()
    assert len(np.unique(values)) > ROWS // 2  # float32 has a number for every 128 seconds
    told = [row.values[0].value for row in model.predict(str(table))]
    assert told == values[:, 0].tolist()
    report = gnn.evaluate(run.path)
    assert set(report.targets[:, 0].tolist()) <= set(y.tolist())
    program = Path(gnn.__file__).parent.parent.parent / "bin" / "gpunn"
    if not program.exists():
        return
    command = [str(program), "predict", str(run.path), str(table)]
    printed = json.loads(subprocess.run([*command, "--json"], check=True, capture_output=True, text=True).stdout)
    assert [row["values"]["y"] for row in printed] == told
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    shown = [float(text.split()[0]) for text in lines if text.startswith("  ")]
    assert np.abs(np.array(shown) - told).max() <= 0.5


def test_numbers_that_were_rounded_before_have_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    x, y = times(*OFFSETS[0])
    small = (x - OFFSETS[0][0]).astype(np.float32)
    network().fit(x, y, epochs=1)
    network().fit(small, y, epochs=1)
    assert caplog.text == ""
    network().fit(x.astype(np.float32), y, epochs=1)
    for column in (0, 1):
        assert caplog.text.count(f"column {column} holds numbers rounded to f32") == 1
    assert "128 apart" in caplog.text
    caplog.clear()
    network().fit((small * 1e-3 + 2000).astype(np.float16), y, epochs=1)
    assert caplog.text.count("rounded to f16") == 2


def test_an_onnx_file_says_what_it_rounds(tmp_path: Path) -> None:
    x, y = times(*OFFSETS[0])
    table = write_csv(tmp_path / "times.csv", x, y)
    data = {"dataset": "csv", "path": str(table), "test_fraction": 0.1}
    run = gnn.run(experiment("far", data), runs=tmp_path / "runs")
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        gnn.export(run.path, tmp_path / "normalized.onnx")
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        gnn.export(run.path, tmp_path / "raw.onnx", raw_input=True)
    columns = [str(one.message) for one in told]
    for name, text in zip("ab", columns, strict=True):
        assert f"the input '{name}' of the ONNX model is f32" in text
        assert "128 apart" in text
    onnxruntime = pytest.importorskip("onnxruntime")
    session = onnxruntime.InferenceSession(str(tmp_path / "raw.onnx"))
    rounded = x.astype(np.float32)  # which is all that the graph rounds
    answers = session.run(["probabilities"], {"features": rounded})[0]
    assert np.allclose(answers, gnn.load(run.path).run(rounded), atol=1e-5)
