"""Copies and pickles of networks and models are the same networks and models, here and in other processes."""

from __future__ import annotations

import copy
import multiprocessing
import pickle
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import gpunn as gnn

Array = npt.NDArray[Any]
WAYS: list[Callable[[Any], Any]] = [copy.copy, copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))]


def rows() -> tuple[Array, Array]:
    rng = np.random.default_rng(1)
    x = rng.normal(size=(90, 4)).astype(np.float32)
    return x, rng.integers(0, 3, 90)


def classifier(**compiled: Any) -> gnn.Network:
    layers = [gnn.Linear(4, 300), gnn.Tanh(), gnn.Dropout(0.2), gnn.Linear(300, 3)]  # weights for a file of their own
    return gnn.Sequential(layers).compile("adam", backend="cpu", threads=1, **compiled)


def pixels() -> tuple[gnn.Network, Array, Array]:
    network = gnn.Sequential([gnn.Conv2d(1, 4, 3), gnn.BatchNorm2d(4), gnn.ReLU(), gnn.Flatten(), gnn.Linear(None, 3)])
    network.compile("sgd", backend="cpu", threads=1, normalize="data")
    x = np.random.default_rng(2).integers(0, 256, (30, 1, 6, 6), dtype=np.uint8)
    return network, x, np.arange(30) % 3


def made(kind: str, folder: Path) -> tuple[gnn.Network, Array, Array]:
    x, y = rows()
    network = classifier(normalize="data", training={"ema": 0.9})
    if kind == "pixels":
        network, x, y = pixels()
    if kind == "numbers":
        network = gnn.Sequential([gnn.Linear(4, 2)]).compile(
            "sgd", loss="mse", scale_targets=True, backend="cpu", threads=1
        )
        y = x[:, :2] * 100 + 5
    if kind == "new":
        return network, x, y
    network.fit(x, y, epochs=2)
    if kind == "loaded":
        network.save(folder / "network.h5")
        network = gnn.Network.load(folder / "network.h5")
        (folder / "network.h5").unlink()
    if kind == "imported":
        network.save(folder / "network.h5")
        gnn.export(folder / "network.h5", folder / "network.onnx")
        network = gnn.Network.load(folder / "network.onnx")
    return network, x, y


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", ["new", "trained", "pixels", "numbers", "loaded", "imported"])
def test_copies_of_networks_answer_and_learn_alike_and_by_themselves(
    kind: str, way: Callable[[Any], Any], tmp_path: Path
) -> None:
    network, x, y = made(kind, tmp_path)
    again = way(network)
    before = network.state_dict()
    assert repr(again) == repr(network)
    assert np.array_equal(again.predict(x), network.predict(x))
    assert len(again.history) == len(network.history)
    if kind == "imported":  # it has no optimizer
        return
    again.fit(x, y)
    assert all(map(np.array_equal, network.state_dict().values(), before.values()))
    assert len(again.history) == len(network.history) + 1
    network.fit(x, y)
    assert all(map(np.array_equal, network.state_dict().values(), again.state_dict().values()))
    assert network.history["loss"] == again.history["loss"]


def test_answers_keep_their_kind() -> None:
    x, y = rows()
    answers = classifier().forward(x)
    for way in WAYS:
        again = way(answers)
        assert np.array_equal(again, answers)
        assert again.kind == "logits"
        assert gnn.cross_entropy_loss(again, y) == gnn.cross_entropy_loss(answers, y)


def opened(kind: str, folder: Path, **options: Any) -> tuple[gnn.Model, Array]:
    network, x, _ = made("pixels" if kind == "pixels" else "trained", folder)
    file = folder / "network.h5"
    network.save(file)
    if kind == "engine":
        gnn.export(file, folder / "network.engine", batch=[1, 8], backend="cpu")
        file = folder / "network.engine"
    elif kind.startswith("onnx"):
        gnn.export(file, folder / "network.onnx", external_data=kind == "onnx with data")
        file = folder / "network.onnx"
        assert (folder / "network.onnx.data").exists() == (kind == "onnx with data")
    elif kind == "run":
        (folder / "run").mkdir()
        file.rename(folder / "run" / "last.h5")
        file = folder / "run"
    return gnn.load(file, backend="cpu", threads=1, **options), x


MODELS = ["checkpoint", "pixels", "run", "engine", "onnx", "onnx with data"]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", MODELS)
def test_copies_of_models_are_the_same_model(kind: str, way: Callable[[Any], Any], tmp_path: Path) -> None:
    (tmp_path / "files").mkdir()
    model, x = opened(kind, tmp_path / "files", max_batch=8)
    expected = model.run(x)
    shutil.rmtree(tmp_path / "files")  # nothing of a loaded model depends on the names of its files
    again = way(way(model))
    del model
    assert np.array_equal(again.run(x), expected)
    assert (again.backend, again.max_batch) == ("cpu", 8)
    assert "threads: 1\n" in again.experiment.yaml()
    assert again.info.outputs == ["0", "1", "2"]


def test_a_pickle_has_the_options_of_load(tmp_path: Path) -> None:
    options = {"max_batch": 5, "calls": 2, "set": {"training.precision": "bf16"}, "without": ["fold_batch_norm"]}
    model, x = opened("pixels", tmp_path, **options)
    again = pickle.loads(pickle.dumps(model))
    assert again.max_batch == 5
    assert "precision: bf16\n" in again.experiment.yaml()
    assert again.experiment.yaml() == model.experiment.yaml()
    assert again._options == model._options
    assert np.array_equal(again.run(x), model.run(x))


def test_a_model_is_the_one_that_was_loaded_whatever_its_file_is_by_now(tmp_path: Path) -> None:
    model, x = opened("checkpoint", tmp_path)
    expected = model.run(x)
    other, _, _ = made("trained", tmp_path)
    other.fit(*rows(), epochs=5)
    other.save(tmp_path / "other.h5")
    (tmp_path / "other.h5").replace(tmp_path / "network.h5")  # as a training replaces its checkpoints
    assert np.array_equal(pickle.loads(pickle.dumps(model)).run(x), expected)
    model = gnn.load(tmp_path / "network.h5")
    (tmp_path / "network.h5").write_bytes(b"something else")
    with pytest.raises(gnn.Error, match=r"network\.h5 was overwritten after the model had been loaded"):
        pickle.dumps(model)
    assert np.array_equal(copy.deepcopy(model).run(x), model.run(x))


def test_a_process_with_too_many_open_files_loads_models(tmp_path: Path) -> None:
    model, x = opened("checkpoint", tmp_path)

    def no_more(*_: Any) -> int:
        raise OSError(24, "Too many open files")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("gpunn._model_files.os.open", no_more)
        again = gnn.load(tmp_path / "network.h5", backend="cpu", threads=1)
    assert np.array_equal(again.run(x), model.run(x))
    with pytest.raises(gnn.Error, match=r"network\.h5: its files could not be held open"):
        pickle.dumps(again)


def test_other_processes_get_models_and_networks(tmp_path: Path) -> None:
    model, x = opened("checkpoint", tmp_path)
    network, _, _ = made("trained", tmp_path)
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert np.array_equal(pool.apply(model.run, (x,)), model.run(x))
        assert np.array_equal(pool.apply(network.predict, (x,)), network.predict(x))
        assert np.array_equal(pool.apply(copy.deepcopy, (model,)).run(x), model.run(x))
    with (tmp_path / "both.pickle").open("wb") as file:
        pickle.dump((model, network, x, model.run(x), network.predict(x)), file)
    program = (
        "import pickle, sys\n"
        "model, network, x, one, other = pickle.load(open(sys.argv[1], 'rb'))\n"
        "sys.exit(not ((model.run(x) == one).all() and (network.predict(x) == other).all()))\n"
    )
    subprocess.run([sys.executable, "-c", program, str(tmp_path / "both.pickle")], check=True)


def test_runs_and_predictions(trained: gnn.Run, tmp_path: Path) -> None:
    model = gnn.load(trained)
    images = np.random.default_rng(4).integers(0, 256, (3, 1, 28, 28), dtype=np.uint8)
    predictions = model.predict(images, rows=[5])
    for way in WAYS:
        again = way(predictions)
        assert [repr(one) for one in again] == [repr(one) for one in predictions]
        assert (again[3].label, again[0].top[1].name) == (predictions[3].label, predictions[0].top[1].name)
        run = way(trained)
        assert (run.path, run.final, run.name) == (trained.path, trained.final, trained.name)
    assert copy.deepcopy(trained).result is trained.result
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        (first,) = pool.map(model.predict, [images])
    assert [repr(one) for one in first] == [repr(one) for one in predictions[:3]]


def test_estimators_that_hold_models_are_copied(tmp_path: Path) -> None:
    sklearn = pytest.importorskip("sklearn")
    joblib = pytest.importorskip("joblib")
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import FunctionTransformer

    model, x = opened("checkpoint", tmp_path)
    pipeline = make_pipeline(FunctionTransformer(model.run))
    for again in (*(way(pipeline) for way in WAYS), sklearn.clone(pipeline)):
        assert np.array_equal(again.fit_transform(x), model.run(x))
    found = joblib.Parallel(n_jobs=2)(joblib.delayed(model.run)(part) for part in (x[:8], x[8:]))
    assert np.array_equal(np.concatenate(found), model.run(x))
